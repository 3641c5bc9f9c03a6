"""The Cell Ontology: its terms, and labels that name them.

The table beside this file is from the Cell Ontology (CC BY 4.0,
https://obofoundry.org/ontology/cl); ``benchmarks/make_ontology.py`` makes it.
"""

from optirank.ontology.matching import LabelTerm, alike, match_labels
from optirank.ontology.tables import read_terms, write_terms
from optirank.ontology.terms import Ontology, cell_ontology, parents_among

__all__ = [
    "LabelTerm",
    "Ontology",
    "alike",
    "cell_ontology",
    "match_labels",
    "parents_among",
    "read_terms",
    "write_terms",
]
