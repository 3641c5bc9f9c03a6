"""The labels that a training works on, and the coarser labels above them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from optirank._util.names import counted, some
from optirank.io.data import annotations_of, source_of, text_column
from optirank.io.joining import FILE_COLUMN
from optirank.model.tree import Terms, Tree, tree_of_columns, tree_of_table
from optirank.ontology import cell_ontology, match_labels, read_terms
from optirank.workflow.label_sets import (
    check_mapping,
    join,
    label_counts,
    ontology_tree,
    read_tree,
    side_by_side,
)
from optirank.workflow.options import ONTOLOGY

if TYPE_CHECKING:
    from anndata import AnnData

    from optirank.workflow.options import TrainingOptions


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


def labels_of_files(data: Sequence[AnnData], options: TrainingOptions) -> pd.DataFrame:
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
