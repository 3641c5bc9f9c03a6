"""The Cell Ontology: its terms, and labels that name them.

The table beside this file is from the Cell Ontology (CC BY 4.0,
https://obofoundry.org/ontology/cl); ``benchmarks/make_ontology.py`` makes it.
"""

from optirank.ontology.matching import LabelTerm, alike, match_labels
from optirank.ontology.tables import read_terms, write_terms
from optirank.ontology.terms import (
    ID_COLUMN,
    Ontology,
    cell_ontology,
    parents_among,
    term_ids,
)

__all__ = [
    "ID_COLUMN",
    "LabelTerm",
    "Ontology",
    "alike",
    "cell_ontology",
    "match_labels",
    "parents_among",
    "read_terms",
    "term_ids",
    "write_terms",
]
