"""The labels of several sets side by side, before anything is trained on them."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from optirank._util.names import counted, some
from optirank.io.data import DataError, annotations_of, text_column
from optirank.io.reading import open_expression
from optirank.model.tree import Tree, tree_of_table
from optirank.ontology import (
    LabelTerm,
    Ontology,
    alike,
    match_labels,
    parents_among,
)
from optirank.workflow.several import names_of_files


@dataclass(frozen=True)
class LabelSets:
    """Which sets have which labels.

    Attributes
    ----------
    counts : samples of each label (rows) in each set (columns), the labels of most
        sets first.
    terms : of each label, in the order of the rows.
    alike : groups of labels that look like one class.
    """

    counts: pd.DataFrame
    terms: list[LabelTerm]
    alike: list[tuple[str, ...]]

    @property
    def names(self) -> list[str]:
        """The labels."""
        return [str(label) for label in self.counts.index]

    def only_in(self) -> dict[str, list[str]]:
        """The labels that one set alone has, by set; not those that look like
        another's.
        """
        resembling = {label for group in self.alike for label in group}
        found: dict[str, list[str]] = {}
        for label, numbers in zip(self.names, self.counts.to_numpy() > 0, strict=True):
            if numbers.sum() == 1 and label not in resembling:
                name = str(self.counts.columns[numbers.argmax()])
                found.setdefault(name, []).append(label)
        return found

    def notes(self) -> list[str]:
        """Labels that look like one class, with what joins them; and those that one set
        alone has.
        """
        notes = [
            f"the labels {some(group, 20, quoted=True)} look like one class; they are "
            f"different classes unless they are joined: {joining(group, self.counts)}"
            for group in self.alike
        ]
        if self.counts.shape[1] > 1:
            notes += [
                f"{name} alone has {counted(len(labels), 'class', 'classes')} that no "
                f"other set can judge: {some(labels)}"
                for name, labels in self.only_in().items()
            ]
        return notes


def side_by_side(
    sets: Mapping[str, Sequence[object]],
    ontology: Ontology,
    ids: Mapping[str, str] | None = None,
) -> LabelSets:
    """The labels of sets by their names; missing labels are left out.

    ``ids`` are terms that the user gave to labels; they win over those that are found.
    """
    counts = label_counts(sets)
    names = [str(label) for label in counts.index]
    terms = [_given(term, ids, ontology) for term in match_labels(names, ontology)]
    return LabelSets(counts, terms, alike(terms))


def label_counts(sets: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Samples of each label (rows) in each set, the labels of most sets first."""
    columns = {
        name: pd.Series(labels, dtype=object).dropna().astype(str).value_counts()
        for name, labels in sets.items()
    }
    counts = pd.DataFrame(columns).fillna(0).astype(int)
    order = pd.DataFrame(
        {
            "sets": -(counts > 0).sum(axis=1),
            "samples": -counts.sum(axis=1),
            "label": counts.index,
        },
        index=counts.index,
    ).sort_values(["sets", "samples", "label"])
    return counts.loc[order.index]


def _given(
    term: LabelTerm, ids: Mapping[str, str] | None, ontology: Ontology
) -> LabelTerm:
    """The term that the user gave to a label, where there is one."""
    if ids is None or term.label not in ids:
        return term
    given = ids[term.label]
    return LabelTerm(term.label, given, ontology.terms[given].name, "given")


def joining(group: Sequence[str], counts: pd.DataFrame) -> str:
    """What joins labels under the name of most samples."""
    kept = max(group, key=lambda label: counts.loc[label].sum())
    renamed = {label: kept for label in group if label != kept}
    return f"mapping={renamed}"


def join(labels: Sequence[object], mapping: Mapping[str, str]) -> list[object]:
    """Labels under the names that they are joined to."""
    return [mapping.get(str(label), label) for label in labels]


def check_mapping(mapping: Mapping[str, str], known: Sequence[str]) -> None:
    """Refuse names that no set has, and chains of names."""
    for theirs, ours in mapping.items():
        asked = {theirs: ours}
        if theirs not in known:
            raise DataError(
                f"mapping={asked}: no set has the label {theirs!r}; there are "
                f"{some(known, 20)}"
            )
        if mapping.get(ours, ours) != ours:
            raise DataError(
                f"mapping={asked}: {ours!r} is itself renamed to "
                f"{mapping[ours]!r}: give {theirs!r} that name"
            )


def read_tree(path: Path, counts: Mapping[str, int]) -> Tree:
    """The tree in a table of two columns, a label and its parent, below a header.

    ``counts`` are the samples of each label in the data. Tables are .csv, or .tsv with
    tabs.
    """
    delimiter = "\t" if path.suffix.lower() in (".tsv", ".txt") else ","
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [*csv.reader(file, delimiter=delimiter)]
    for number, line in enumerate(lines, 1):
        if len(line) != 2:
            raise DataError(
                f"{path}, line {number} has {len(line)} columns: a tree has two, a "
                "label and its parent"
            )
    rows = [(label.strip(), parent.strip()) for label, parent in lines[1:]]
    return tree_of_table(rows, counts, str(path))


def ontology_tree(
    ids: Mapping[str, str], counts: Mapping[str, int], ontology: Ontology
) -> Tree:
    """The tree of the labels at hand by their terms; labels without one are at the top.

    ``ids`` may have further labels, of the user's table: one that stands above labels
    with samples becomes an inner label, others are left out.
    """
    above = {
        higher
        for label in ids.keys() & counts.keys()
        for higher in ontology.ancestors(ids[label])
    }
    at_hand = {
        label: term for label, term in ids.items() if label in counts or term in above
    }
    rows = parents_among(at_hand, ontology)
    return tree_of_table(rows, counts, "the Cell Ontology")


def labels_of_files(
    paths: Sequence[Path], column: str, **reading: Any
) -> dict[str, Sequence[object]]:
    """The labels of the samples of each file, by its name."""
    sets: dict[str, Sequence[object]] = {}
    for path, name in zip(paths, names_of_files(paths), strict=True):
        with open_expression(path, label=column, **reading) as opened:
            sets[name] = text_column(annotations_of(opened), column, str(path)).tolist()
    return sets
