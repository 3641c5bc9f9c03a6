"""The samples of a training: their labels with the coarser ones above, their sources,
and which of them can be used.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from optirank._util.words import counted, note, some
from optirank.data.opening import check_path
from optirank.data.profiles import FILE_COLUMN, DataError, readable, text_column
from optirank.data.tables import read_table
from optirank.estimators.selection import N_FOLDS, make_folds
from optirank.model.tree import Tree, tree_of_columns, tree_of_table

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from optirank.verbs.options import TrainingOptions

MIN_CLASS = 3  # samples: two to learn from while one is held out
_FULL_SOURCE = 10  # samples of a class with which a source counts half

_NO_CLASS = (  # words that mark samples without a label
    *("unknown", "unassigned", "undefined", "undetermined", "unlabelled", "unlabeled"),
    *("unclassified", "na", "n/a", "nan", "none", "null", "other", "missing", "?", "-"),
)
_DONOR = re.compile(
    r"(^|[^a-z])(donor|patient|subject|individual|participant|person|animal)([^a-z]|$)"
)


class LabelledSamples(NamedTuple):
    """Samples that can be learned from.

    Attributes
    ----------
    rows, names : their positions among all samples, rising, and their names.
    classes, codes : the classes, and that of each sample as a number.
    tree, terms : coarser labels above the classes, and ids of labels.
    sources : the source of each sample, where folds leave sources out.
    fold_of : then also the fold that holds each out, -1 for none.
    """

    rows: NDArray[np.intp]
    names: NDArray[np.object_]
    classes: NDArray
    codes: NDArray[np.intp]
    tree: Tree | None
    terms: Mapping[str, str]
    sources: NDArray | None
    fold_of: NDArray[np.intp] | None

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights with which, in every class, large sources count the same.

        A source in which a class is frequent would else be learned in place of the
        class.
        """
        if self.sources is None:
            return np.ones(len(self.codes))
        source_codes = np.unique(self.sources, return_inverse=True)[1]
        group = self.codes + len(self.classes) * source_codes
        n_groups = len(self.classes) * (int(source_codes.max()) + 1)
        sizes = np.bincount(group, minlength=n_groups)
        weights = 1.0 / (sizes + _FULL_SOURCE)
        of_sources = (sizes * weights).reshape(-1, len(self.classes))
        factors = np.bincount(self.codes) / of_sources.sum(axis=0)
        return weights[group] * factors[self.codes]


def labelled_samples(
    obs: pd.DataFrame,
    options: TrainingOptions,
    source: str,
    empty: Sequence[int] | NDArray = (),
) -> LabelledSamples:
    """The samples that have a label, a source, values to rank (not ``empty``) and a
    large class, or DataError.
    """
    labels, tree, ids = labels_of_samples(obs, options, source)
    batches = None
    if options.batch is not None:
        batches = text_column(obs, options.batch, source)
    rows = _usable_rows(labels, batches, options, source, empty)
    names = labels.to_numpy()[rows].astype(str)
    classes, codes = np.unique(names, return_inverse=True)
    if len(classes) < 2:
        there = f"one class ({classes[0]})" if len(classes) else "no class"
        raise DataError(
            f"{source}: column {options.label[-1]!r} has {there} of at least "
            f"{MIN_CLASS} usable samples: a classifier needs two classes"
        )
    words = [
        f"{str(name)!r} ({n})"
        for name, n in zip(classes, np.bincount(codes), strict=True)
        if name.strip().lower() in _NO_CLASS
    ]
    if words:
        note(
            f"samples labelled {some(words)} are used as a class like any other: leave "
            "their label empty if they have no known class"
        )
    if tree is not None:
        tree = tree.of_classes(classes)
    terms = {}
    if ids:
        named = classes.tolist() if tree is None else tree.labels
        terms = {str(name): ids[name] for name in named if ids.get(name)}
        lacking = [name for name in named if name not in terms]
        note(
            f"{len(terms)} of {len(named)} labels have an id; without one: "
            f"{some(lacking)}"
        )
    sources = fold_of = None
    if batches is None:  # folds follow from the samples, not read yet
        _note_donors(obs.iloc[rows], options.label[-1])
    else:
        sources = batches.to_numpy()[rows].astype(str)
        fold_of = _folds_of_sources(codes, classes, sources, options.batch, source)
    sample_names = obs.index.to_numpy(dtype=object)[rows]
    return LabelledSamples(
        rows, sample_names, classes, codes, tree, terms, sources, fold_of
    )


def counts_by_file(
    obs: pd.DataFrame, options: TrainingOptions, source: str
) -> pd.DataFrame:
    """Samples of each label (rows) in each of several files, the labels of most files
    first.
    """
    labels = joined_labels(obs, options, source)[options.label[-1]]
    counts = pd.crosstab(labels.to_numpy(), obs[FILE_COLUMN].to_numpy(dtype=object))
    order = np.lexsort([-counts.sum(axis=1), -(counts > 0).sum(axis=1)])
    return counts.iloc[order]


def joined_labels(
    obs: pd.DataFrame, options: TrainingOptions, source: str
) -> dict[str, pd.Series]:
    """The columns of labels, under the names that these are joined to."""
    columns = {name: text_column(obs, name, source) for name in options.label}
    mapping = options.mapping or {}
    present = {label for labels in columns.values() for label in labels.dropna()}
    for theirs, ours in mapping.items():
        if theirs not in present:
            raise DataError(
                f"mapping={ {theirs: ours} }: no set has the label {theirs!r}; there "
                f"are {some(sorted(present), 20)}"
            )
        if mapping.get(ours, ours) != ours:
            raise DataError(
                f"mapping={ {theirs: ours} }: {ours!r} is itself renamed to "
                f"{mapping[ours]!r}: give {theirs!r} that name"
            )
    return {
        name: labels.map(lambda label: mapping.get(label, label)).astype(object)
        for name, labels in columns.items()
    }


def labels_of_samples(
    obs: pd.DataFrame, options: TrainingOptions, source: str
) -> tuple[pd.Series, Tree | None, dict[str, str]]:
    """The finest labels, NaN where there is none; the tree of coarser ones above them;
    and ids of labels.

    Several columns are a tree from coarse to fine; a table of labels and parents is one
    above a single column. A sample that is known to an inner label alone has no class.
    """
    columns = joined_labels(obs, options, source)
    labels = columns[options.label[-1]]
    tree = None
    if len(columns) > 1:
        tree, finest = tree_of_columns(pd.DataFrame(columns))
        labels = pd.Series(finest, index=obs.index, dtype=object)
    elif options.tree is not None:
        counts = {str(name): int(n) for name, n in labels.value_counts().items()}
        pairs = read_pairs(options.tree, "a label and its parent")
        tree = tree_of_table(pairs, counts, "the tree")
    ids = {}
    if options.ontology is not None:
        ids = dict(read_pairs(options.ontology, "a label and its id"))
    if tree is not None and tree.depth == 1:
        note("no label stands above another: the model has no tree of labels")
        tree = None
    if tree is None:
        return labels, None, ids
    inner = labels.isin(set(tree.labels) - set(tree.leaves))
    if inner.any():
        numbers = pd.Series(labels[inner]).value_counts()
        what = counted(int(inner.sum()), "sample is", "samples are")
        listed = some([f"{name} ({n})" for name, n in numbers.items()])
        note(
            f"{what} known to a coarser label alone, which says nothing of the finer "
            f"ones, and left without a label: {listed}"
        )
    return labels.mask(inner), tree, ids


def read_pairs(
    table: Mapping[str, str] | str | os.PathLike[str], what: str
) -> list[tuple[str, str]]:
    """The pairs of a mapping, or of a table of two columns below a header."""
    if isinstance(table, Mapping):
        return [(str(name), str(value)) for name, value in table.items()]
    path = check_path(table)
    with readable(path):
        frame = read_table(path, as_text=True).frame
        if frame.shape[1] != 1:
            raise DataError(f"it has {frame.shape[1] + 1} columns: give two, {what}")
        return list(zip(frame.index, frame.iloc[:, 0].str.strip(), strict=True))


def _usable_rows(
    labels: pd.Series,
    batches: pd.Series | None,
    options: TrainingOptions,
    source: str,
    empty: Sequence[int] | NDArray,
) -> NDArray[np.intp]:
    """Positions of the samples that can be used; notes on the others."""
    columns = {f"no label in {options.label[-1]!r}": labels}
    if batches is not None:
        columns[f"no source in {options.batch!r}"] = batches
    reasons = {
        reason: np.asarray(values.isna() | (values.astype(str).str.strip() == ""))
        for reason, values in columns.items()
    }
    reasons["every gene has the same value"] = np.isin(np.arange(len(labels)), empty)
    usable = ~np.any([*reasons.values()], axis=0)
    names, sizes = np.unique(labels[usable].astype(str), return_counts=True)
    is_small = sizes < MIN_CLASS
    small = dict(zip(names[is_small], sizes[is_small], strict=True))
    listed = some([f"{name} ({n_samples})" for name, n_samples in small.items()])
    reason = f"their class has fewer than {MIN_CLASS}: {listed}"
    reasons[reason] = np.asarray(labels.isin([*small]))
    left = np.ones(len(labels), dtype=bool)
    left_out = []
    for reason, mask in reasons.items():
        n_samples = int((left & mask).sum())
        left &= ~mask
        if n_samples:
            what = counted(n_samples, "sample is", "samples are")
            left_out.append(f"{what} left out: {reason}")
    if not usable.any():
        raise DataError(
            f"{source}: no sample is left to train on; {'; '.join(left_out)}"
        )
    for text in left_out:
        note(text)
    return np.flatnonzero(left)


def _folds_of_sources(
    codes: NDArray, classes: NDArray, sources: NDArray, batch: str | None, source: str
) -> NDArray[np.intp]:
    """The fold that holds each sample out, where folds leave sources out."""
    if len(np.unique(sources)) < 2:
        raise DataError(
            f"{source}: column {batch!r} has the single value {str(sources[0])!r}, so "
            "no source can be left out: leave the column out, or name another (batch=)"
        )
    folds = []
    with warnings.catch_warnings(), contextlib.suppress(ValueError):
        warnings.simplefilter("ignore")  # it is said below what is not learned
        folds = make_folds(codes, N_FOLDS, sources)
    learned = [(test, np.isin(codes[test], codes[train])) for train, test in folds]
    usable = [test for test, can_learn in learned if can_learn.any()]
    if not usable:
        raise DataError(
            f"{source}: no class is in two sources of column {batch!r}, so none that "
            "is learned from some can be tested on another: leave the column out, or "
            "name another (batch=); labels of one class that differ between sources "
            "are joined by mapping="
        )
    lost = np.concatenate([codes[test][~can_learn] for test, can_learn in learned])
    if len(lost):
        note(
            "where its only source is left out a class cannot be learned, and its "
            f"samples there are not counted: {some(classes[np.unique(lost)])}"
        )
    fold_of = np.full(len(codes), -1)
    for k, test in enumerate(usable):
        fold_of[test] = k
    return fold_of


def _note_donors(obs: pd.DataFrame, label: str) -> None:
    """Say that a column looks like that of donors with several samples each.

    Samples of one donor resemble each other: where they are on both sides of a fold,
    held-out samples are not independent.
    """
    for column in map(str, obs.columns):
        words = re.sub(r"([a-z])([A-Z])", r"\1_\2", column).lower()
        if column == label or not _DONOR.search(words):
            continue
        n_samples, n_donors = obs[column].count(), obs[column].nunique()
        if 2 <= n_donors <= n_samples / 2:
            note(
                f"column {column!r} looks like that of donors ({n_donors} of "
                f"{n_samples} samples), and held-out figures are too high where donors "
                f"are on both sides of a fold: batch={column!r} leaves donors out"
            )
            return
