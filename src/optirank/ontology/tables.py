"""The table of labels and terms that a user corrects and gives back."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from optirank._util.files import write_text
from optirank._util.names import some
from optirank.ontology.matching import LabelTerm
from optirank.ontology.terms import ID_COLUMN, NAME_COLUMN, NO_TERM, Ontology

_HEADER = ("label", "samples", ID_COLUMN, NAME_COLUMN, "found_by", "near")


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

    Tables are .csv, or .tsv with tabs, with the columns ``label`` and
    ``cell_type_ontology_term_id``. A label whose id is empty or "unknown" has none.
    """
    delimiter = "\t" if path.suffix.lower() in (".tsv", ".txt") else ","
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, delimiter=delimiter)
        lacking = {"label", ID_COLUMN} - set(reader.fieldnames or ())
        if lacking:
            raise ValueError(
                f"{path} has no column {min(lacking)!r}: it has "
                f"{some(reader.fieldnames or ())}; optirank labels writes such a table"
            )
        ids: dict[str, str] = {}
        for row in reader:
            label = row["label"] or ""
            term = (row[ID_COLUMN] or "").strip()
            if term in ("", NO_TERM):
                continue
            where = f"{path}, line {reader.line_num}"
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
