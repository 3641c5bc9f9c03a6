"""The labels that a training works on: those of several sets side by side, joined, and
the coarser labels above them.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from optirank._util.names import counted, some
from optirank.io.data import DataError, annotations_of, source_of, text_column
from optirank.io.objects import FILE_COLUMN
from optirank.io.reading import open_expression
from optirank.model.tree import Terms, Tree, tree_of_columns, tree_of_table
from optirank.ontology import (
    LabelTerm,
    Ontology,
    alike,
    cell_ontology,
    match_labels,
    parents_among,
    read_terms,
)
from optirank.workflow.options import ONTOLOGY
from optirank.workflow.sources import names_of_files

if TYPE_CHECKING:
    from anndata import AnnData

    from optirank.workflow.options import TrainingOptions


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


@dataclass(frozen=True)
class LabelledSamples:
    """Labels of samples with what belongs to them.

    Attributes
    ----------
    labels : the finest label of each sample; NaN where it has none.
    tree : the coarser labels above them, if any.
    terms : of the Cell Ontology, where they were asked for.
    notes : sentences for the user.
    """

    labels: pd.Series
    tree: Tree | None
    terms: Terms | None
    notes: list[str]

    def terms_of(self, tree: Tree | None, classes: Iterable[object]) -> Terms | None:
        """The terms of the classes and of the labels above them."""
        if self.terms is None:
            return None
        return self.terms.of_labels(classes if tree is None else tree.labels)


def labelled_samples(
    obs: pd.DataFrame, options: TrainingOptions, source: str, *, several: bool
) -> LabelledSamples:
    """The labels of samples as a training asks for them.

    Labels are joined first. Several columns are a tree from coarse to fine; a table of
    labels and parents, or the Cell Ontology, is one above a single column. A sample
    that is known to an inner label alone has no class, and is left out. ``several``
    says that the samples are of several files.
    """
    columns = _joined(obs, options, source)
    labels = columns[options.columns[-1]]
    notes: list[str] = []
    if several:  # before anything is fitted
        sets = _by_file(obs, labels)
        notes += side_by_side(sets, cell_ontology()).notes()
    tree = terms = None
    if len(columns) > 1:
        tree, finest = tree_of_columns(pd.DataFrame(columns))
        labels = pd.Series(finest, index=obs.index, dtype=object)
    if options.tree is not None or options.ontology is not None:
        counts = {str(name): int(n) for name, n in labels.value_counts().items()}
        ids = _ids(options, {*counts, *(tree.labels if tree else ())})
        terms = Terms(ids, cell_ontology().version) if ids else None
        tree = tree or _given_tree(options.tree, counts, ids)
        notes += _notes_of_terms(terms, tree or counts)
    if tree is None:
        return LabelledSamples(labels, None, terms, notes)
    if tree.depth == 1:
        notes.append("no label stands above another: the model has no tree of labels")
        return LabelledSamples(labels, None, terms, notes)
    inner = labels.isin(set(tree.labels) - set(tree.leaves))
    if inner.any():
        numbers = pd.Series(labels[inner]).value_counts()
        what = counted(int(inner.sum()), "sample is", "samples are")
        listed = some([f"{name} ({n})" for name, n in numbers.items()])
        notes.append(
            f"{what} known to a coarser label alone, which says nothing of the finer "
            f"ones, and left without a label: {listed}"
        )
    return LabelledSamples(labels.mask(inner), tree, terms, notes)


def _given_tree(
    tree: Mapping[str, str] | str | os.PathLike[str] | None,
    counts: Mapping[str, int],
    ids: Mapping[str, str],
) -> Tree | None:
    """The tree of a table, of a mapping from labels to parents, or of the ontology."""
    if tree is None:
        return None
    if isinstance(tree, Mapping):
        return tree_of_table([*tree.items()], counts, "the tree")
    if tree == ONTOLOGY:
        return ontology_tree(ids, counts, cell_ontology())
    return read_tree(Path(tree), counts)


def _ids(options: TrainingOptions, labels: Iterable[str]) -> dict[str, str]:
    """The terms of labels: those that were given, else by names and synonyms."""
    if isinstance(options.ontology, Mapping):
        return dict(options.ontology)
    if options.ontology is not None:
        return read_terms(Path(options.ontology), cell_ontology())
    if options.tree != ONTOLOGY:
        return {}
    found = match_labels(sorted(labels), cell_ontology())
    return {term.label: term.id for term in found if term.id}


def _notes_of_terms(terms: Terms | None, labels: Tree | Mapping[str, int]) -> list[str]:
    """How many of the labels have a term."""
    if terms is None:
        return []
    names = labels.labels if isinstance(labels, Tree) else [*labels]
    lacking = [name for name in names if name not in terms.ids]
    note = (
        f"{len(names) - len(lacking)} of {len(names)} labels have a term of the Cell "
        f"Ontology {terms.version}"
    )
    return [note + (f"; without one: {some(lacking)}" if lacking else "")]


def counts_by_file(data: Sequence[AnnData], options: TrainingOptions) -> pd.DataFrame:
    """Samples of each label in each of several files that are used together."""
    obs = annotations_of(data)
    columns = _joined(obs, options, source_of(data))
    return label_counts(_by_file(obs, columns[options.columns[-1]]))


def _joined(
    obs: pd.DataFrame, options: TrainingOptions, source: str
) -> dict[str, pd.Series]:
    """The columns of labels, under the names that these are joined to."""
    columns = {name: text_column(obs, name, source) for name in options.columns}
    if not options.mapping:
        return columns
    known = {label for labels in columns.values() for label in labels.dropna()}
    check_mapping(options.mapping, sorted(known))
    return {
        name: pd.Series(join(labels.tolist(), options.mapping), obs.index, dtype=object)
        for name, labels in columns.items()
    }


def _by_file(obs: pd.DataFrame, labels: pd.Series) -> dict[str, list[object]]:
    """The labels of each file."""
    files = obs[FILE_COLUMN].to_numpy(dtype=object).astype(str)
    return {name: labels[files == name].tolist() for name in sorted(set(files))}
