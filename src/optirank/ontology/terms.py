"""The terms of the Cell Ontology, what stands above each of them, and labels that name
them.

Labels are found by names and synonyms, never by likeness: case, spaces, hyphens,
underscores, a plural and the order of words make no difference, and ``CD14+`` is
CD14-positive. What is merely like a name, such as a tissue or a tumour beside a cell
type, is shown as near and never taken.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

from optirank._util.files import write_text
from optirank._util.names import some
from optirank.io.table_files import read_fields

TABLE = "cell_ontology.tsv.gz"
ID_COLUMN = "cell_type_ontology_term_id"  # CELLxGENE's name for ids of cell types
NAME_COLUMN = "cell_type"  # and for their names
NO_TERM = "unknown"  # CELLxGENE's word for a cell whose type has no term


_HEADER = ("label", "samples", ID_COLUMN, NAME_COLUMN, "found_by", "near")
_NEAREST = 3  # names that are shown for a label without a term
_LIKE = 0.7  # of difflib: below, most names have nothing in common

# Short names that are used for one type alone; the ontology has none of them
USUAL_NAMES = {
    "CD4 T": "CL:0000624",
    "CD4 T cell": "CL:0000624",
    "CD4+ T cell": "CL:0000624",
    "CD8 T": "CL:0000625",
    "CD8 T cell": "CL:0000625",
    "CD8+ T cell": "CL:0000625",
    "NK": "CL:0000623",
    "pDC": "CL:0000784",
    "cDC": "CL:0000990",
    "CD14 mono": "CL:0001054",
    "CD14 monocyte": "CL:0001054",
    "CD14+ mono": "CL:0001054",
    "CD16 mono": "CL:0002396",
    "CD16 monocyte": "CL:0002396",
    "CD16+ mono": "CL:0002396",
    "CD16+ monocyte": "CL:0002396",
    "FCGR3A mono": "CL:0002396",
    "FCGR3A monocyte": "CL:0002396",
    "FCGR3A+ mono": "CL:0002396",
    "FCGR3A+ monocyte": "CL:0002396",
    "microglia": "CL:0000129",
    "excitatory neuron": "CL:0000679",
    "inhibitory neuron": "CL:0000617",
    "OPC": "CL:0002453",
}


@dataclass(frozen=True)
class Term:
    """A type of cells."""

    name: str
    synonyms: tuple[str, ...]
    parents: tuple[str, ...]  # ids


@dataclass(frozen=True)
class LabelTerm:
    """A label and the term that it names.

    Attributes
    ----------
    label : as the data have it.
    id, name : of the term; "" where there is none.
    how : "name", "synonym" or "usual name"; "" where there is none.
    near : ids and names of terms whose names are like the label, where there is none.
    """

    label: str
    id: str = ""
    name: str = ""
    how: str = ""
    near: tuple[tuple[str, str], ...] = ()


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

    def match(self, label: str) -> LabelTerm:
        """The term that a label names; two terms of one synonym are near ones."""
        key = _in_order(label)
        for how, index in self._kinds.items():
            found = sorted(index.get(key, ()))
            if len(found) == 1:
                return LabelTerm(label, found[0], self.terms[found[0]].name, how)
            if found:
                break
        else:
            found = self._near(label)
        near = tuple((term, self.terms[term].name) for term in found)
        return LabelTerm(label, near=near)

    def _near(self, label: str) -> list[str]:
        """The ids of terms with names like a label's, the nearest first."""
        words = _words(label)
        as_cell = tuple(sorted({*words, "cell"}))
        found = [
            term for index in self._kinds.values() for term in index.get(as_cell, ())
        ]
        whole = " ".join(words)
        close = difflib.get_close_matches(whole, self._spelled, _NEAREST, _LIKE)
        found += [self._spelled[name] for name in close]
        return [*dict.fromkeys(found)][:_NEAREST]

    @cached_property
    def _kinds(self) -> dict[str, dict[tuple[str, ...], set[str]]]:
        """The ids of each name, whatever the order of its words, by kind."""
        names: dict[str, Iterable[tuple[str, str]]] = {
            "name": ((one.name, term) for term, one in self.terms.items()),
            "synonym": (
                (synonym, term)
                for term, one in self.terms.items()
                if not one.name.endswith(")")  # of one species, as VIP in primates
                for synonym in one.synonyms
            ),
            "usual name": USUAL_NAMES.items(),
        }
        kinds = {}
        for kind, pairs in names.items():
            kinds[kind] = index = defaultdict(set)
            for name, term in pairs:
                index[_in_order(name)].add(term)
        return kinds

    @cached_property
    def _spelled(self) -> dict[str, str]:
        """The id of the term of each name and synonym."""
        return {
            " ".join(_words(name)): term
            for term, one in self.terms.items()
            for name in (*one.synonyms, one.name)
        }


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


def match_labels(labels: Iterable[str], ontology: Ontology) -> list[LabelTerm]:
    """The term of each label, or the terms with the nearest names."""
    return [ontology.match(label) for label in labels]


def alike(terms: Iterable[LabelTerm]) -> list[tuple[str, ...]]:
    """Groups of labels that look like one class, each sorted.

    They name one term, or differ in case, spaces, hyphens, plurals or the order of
    words alone.
    """
    groups: defaultdict[object, set[str]] = defaultdict(set)
    for term in terms:
        groups[term.id or _in_order(term.label)].add(term.label)
    return [tuple(sorted(group)) for group in groups.values() if len(group) > 1]


def _in_order(name: str) -> tuple[str, ...]:
    return tuple(sorted(_words(name)))


def _words(name: str) -> list[str]:
    """The words of a name: small letters, no plural, CD14+ and CD14- as one word."""
    text = re.sub(r"(?<=\w)\(?\+\)?(?!\w)", " positive ", name.casefold())
    text = re.sub(r"(?<=\w)(\([-−]\)|[-−](?!\w))", " negative ", text)
    text = " ".join(re.findall(r"\w+", text.replace("_", " ")))
    text = re.sub(
        r" (positive|negative|low|high)\b", r"\1", text
    )  # stays with its word
    return [_singular(word) for word in text.split()]


def _singular(word: str) -> str:
    is_plural = len(word) > 3 and word.endswith("s") and word[-2] not in "sui"
    return word[:-1] if is_plural else word


def write_terms(
    path: Path, terms: Iterable[LabelTerm], counts: Mapping[str, int]
) -> None:
    """Write the labels with their terms; what has none shows the nearest names.

    The columns ``label`` and ``cell_type_ontology_term_id`` are read again by
    :func:`read_terms`, the others are for the reader.
    """
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(_HEADER)
    for term in terms:
        near = "; ".join(f"{known} {name}" for known, name in term.near)
        samples = counts.get(term.label, 0)
        writer.writerow((term.label, samples, term.id, term.name, term.how, near))
    write_text(path, table.getvalue())


def read_terms(path: Path, ontology: Ontology) -> dict[str, str]:
    """The id of each label in a table that has one; ValueError names a bad line.

    Tables have the columns ``label`` and ``cell_type_ontology_term_id``. A label whose
    id is empty or "unknown" has none.
    """
    lines = read_fields(path)
    header = lines[0][1] if lines else []
    lacking = {"label", ID_COLUMN} - set(header)
    if lacking:
        raise ValueError(
            f"{path} has no column {min(lacking)!r}: it has {some(header)}; "
            "optirank labels writes such a table"
        )
    ids: dict[str, str] = {}
    for number, fields in lines[1:]:
        row = dict(zip(header, fields, strict=False))
        label = row.get("label", "")
        term = row.get(ID_COLUMN, "").strip()
        if term in ("", NO_TERM):
            continue
        where = f"{path}, line {number}"
        if term not in ontology.terms:
            raise ValueError(
                f"{where}: {term!r} is no term in use of the Cell Ontology "
                f"{ontology.version}: give an id such as CL:0000236, or none"
            )
        if ids.setdefault(label, term) != term:
            raise ValueError(
                f"{where}: {label!r} is {ids[label]} above: keep one of the two"
            )
    return ids
