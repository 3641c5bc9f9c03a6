"""The Cell Ontology: its terms, and labels that name them.

The table beside this file is from the Cell Ontology (CC BY 4.0,
https://obofoundry.org/ontology/cl); ``benchmarks/make_ontology.py`` makes it.
"""

from optirank.ontology.terms import (
    ID_COLUMN,
    LabelTerm,
    Ontology,
    alike,
    cell_ontology,
    match_labels,
    parents_among,
    read_terms,
    term_ids,
    write_terms,
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
