"""The terms of the Cell Ontology and what stands above each of them."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from optirank._util.names import some

TABLE = "cell_ontology.tsv.gz"
ID_COLUMN = "cell_type_ontology_term_id"  # CELLxGENE's name for ids of cell types
NAME_COLUMN = "cell_type"  # and for their names
NO_TERM = "unknown"  # CELLxGENE's word for a cell whose type has no term


@dataclass(frozen=True)
class Term:
    """A type of cells."""

    name: str
    synonyms: tuple[str, ...]
    parents: tuple[str, ...]  # ids


@dataclass(frozen=True, eq=False)
class Ontology:
    """The terms by their ids, such as CL:0000236, and the version of the ontology."""

    version: str
    terms: Mapping[str, Term]

    def ancestors(self, term: str) -> set[str]:
        """The ids of all terms above one."""
        above: set[str] = set()
        waiting = [*self.terms[term].parents]
        while waiting:
            parent = waiting.pop()
            if parent not in above:
                above.add(parent)
                waiting += self.terms[parent].parents
        return above


@cache
def cell_ontology() -> Ontology:
    """The Cell Ontology as it comes with optirank."""
    packed = (files("optirank.ontology") / TABLE).read_bytes()
    first, _, *lines = gzip.decompress(packed).decode().splitlines()
    terms = {}
    for line in lines:
        term, name, synonyms, parents = line.split("\t")
        terms[term] = Term(name, _listed(synonyms), _listed(parents))
    version = first.removeprefix("# Cell Ontology ").split(",")[0]
    return Ontology(version, terms)


def parents_among(ids: Mapping[str, str], ontology: Ontology) -> list[tuple[str, str]]:
    """Each label with the label that is next above it; "" for those without one.

    ``ids`` are the terms of the labels. A ValueError where two labels are one term, or
    where two labels stand above one and neither above the other.
    """
    label_of: dict[str, str] = {}
    for label, term in ids.items():
        if term in label_of:
            raise ValueError(
                f"the labels {label_of[term]!r} and {label!r} are one term, {term} "
                f"({ontology.terms[term].name}): join them, or correct one"
            )
        label_of[term] = label
    above = {term: ontology.ancestors(term) & label_of.keys() for term in label_of}
    rows = []
    for term, label in label_of.items():
        higher = {far for near in above[term] for far in above[near]}
        nearest = sorted(above[term] - higher)
        if len(nearest) > 1:
            names = some([label_of[parent] for parent in nearest], quoted=True)
            raise ValueError(
                f"the label {label!r} ({term}) stands below {names} in the Cell "
                "Ontology, and a tree has one parent: give the tree as a table of "
                "labels and parents"
            )
        rows.append((label, label_of[nearest[0]] if nearest else ""))
    return rows


def term_ids(labels: Iterable[str], ids: Mapping[str, str]) -> list[str]:
    """The id of each label, "unknown" for labels without one, as CELLxGENE asks for."""
    return [ids.get(label, NO_TERM) for label in labels]


def _listed(cell: str) -> tuple[str, ...]:
    return tuple(cell.split("|")) if cell else ()
