"""From profiles to what a training reads: options, usable samples and genes, folds, one source."""

from __future__ import annotations

import fnmatch
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.names import some
from optirank.datasets.data import DataError, block_rows, duplicates, text_column
from optirank.estimators.panel_classifier import N_FOLDS, fold_numbers
from optirank.model.genes import match_genes
from optirank.preprocessing.scales import value_scale
from optirank.tuning.folds import make_folds
from optirank.workflow.labels import label_notes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from optirank.datasets.data import Profiles

MIN_CLASS = 3  # samples: two to learn from while one is held out
_LOOKED_AT = 200  # samples that tell the kind of values, evenly spaced
_WILD = "*?["


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What a user may ask of a training.

    Parameters
    ----------
    label : the column of ``obs`` with the classes.
    batch : a column with the source of each sample (data set, donor): folds then leave whole
        sources out, and the accuracy is that of a new source.
    n_genes : the size of the panel, or "auto"; see :class:`optirank.PanelClassifier`.
    gene_list : the genes to choose from; all by default.
    available : the genes of the data to be labelled later; others are not used. They are found by
        name as in prediction, whatever their case and version.
    include, exclude : genes that must be in the panel, and genes that may not; names, or patterns
        such as ``MT-*``.
    method : "panel", or "optirank" or "rank-lr" of the paper.
    target_error : the share of wrong labels to allow: prediction then withholds labels.
    n_jobs : threads; -1 for all processors. They change the time alone.
    name, description : of the model, for its card.
    """

    label: str
    batch: str | None = None
    n_genes: int | str = "auto"
    gene_list: Sequence[str] | None = None
    available: Sequence[str] | None = None
    include: Sequence[str] | str = ()
    exclude: Sequence[str] | str = ()
    method: str = "panel"
    target_error: float | None = None
    n_jobs: int | None = None
    name: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        n = self.n_genes
        if n != "auto" and (isinstance(n, bool) or not isinstance(n, int | np.integer)):
            raise DataError(f"{n!r} genes: give a number, or 'auto'")
        if n != "auto" and n < 2:
            raise DataError(f"a panel of {n} genes: ranks among themselves need at least 2 genes")
        error = self.target_error
        if error is not None and not 0 < error < 1:
            raise DataError(f"target error {error!r}: use a share between 0 and 1, such as 0.05")
        for name in ("include", "exclude"):  # one pattern may be given as it is
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, (getattr(self, name),))
        if self.method != "panel" and (self.include or n != "auto"):
            raise DataError(
                f"method={self.method!r} chooses its genes itself: leave out include and n_genes "
                "(--include, --genes), or use the panel method"
            )


class EmptySamplesError(DataError):
    """Some samples have the same value in every gene; ``rows`` are their positions."""

    def __init__(self, rows: NDArray) -> None:
        super().__init__(f"{len(rows)} samples have the same value in every gene")
        self.rows = rows


class ProfilesSource:
    """The usable samples and genes of some profiles, read in blocks.

    The first pass over all genes checks the values, and makes a checksum of names and values.
    """

    def __init__(self, profiles: Profiles, rows: NDArray, columns: NDArray) -> None:
        self._profiles, self._rows, self._columns = profiles, rows, columns
        self.shape = len(rows), len(columns)
        self.genes = np.asarray(profiles.gene_names, dtype=object)[columns]
        looked_at = rows[:: max(1, len(rows) // _LOOKED_AT)]
        self.sample = next(iter(profiles.blocks(columns, len(looked_at), looked_at))).X
        _refuse_no_numbers(self.sample, profiles.source)
        self.scale = value_scale(self.sample)
        self.checksum = ""

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """All samples in order, with some genes (all): arrays or CSR matrices."""
        profiles, first = self._profiles, columns is None
        chosen = self._columns if first else self._columns[columns]
        if len(chosen) == len(profiles.gene_names) and (np.diff(chosen) == 1).all():
            chosen = None
        rows = None if len(self._rows) == profiles.n_samples else self._rows
        names = [*map(str, self.genes), *map(str, profiles.sample_names[self._rows])]
        digest = hashlib.blake2b("\0".join(names).encode(), digest_size=16)
        empty, start = [], 0
        for block in profiles.blocks(chosen, block_rows(len(profiles.gene_names)), rows):
            X = block.X.tocsr() if sparse.issparse(block.X) else np.asarray(block.X)
            if first:
                _refuse_no_numbers(X, profiles.source)
                empty.append(start + np.flatnonzero(_constant(X)))
                _add_values(digest, X)
            start += X.shape[0]
            yield X
        if first:
            found = np.concatenate(empty)
            if len(found):
                raise EmptySamplesError(self._rows[found])
            self.checksum = digest.hexdigest()


@dataclass(frozen=True)
class Prepared:
    """Everything that a training works on."""

    source: ProfilesSource
    classes: NDArray
    codes: NDArray  # the class of each sample, as a number
    fold_of: NDArray  # the fold that holds each sample out, -1 for none
    sources: NDArray | None  # the source of each sample, where folds leave sources out
    samples: NDArray  # names
    include: NDArray  # positions of the genes that must be in the panel
    n_genes_of_file: int
    notes: tuple[str, ...]


def prepare(data: Profiles, options: TrainingOptions, empty: NDArray | None = None) -> Prepared:
    """Check everything that can be wrong, and leave out what cannot be used.

    ``empty`` are the positions of samples that turned out to have no values to rank.
    """
    data, notes = _unique_genes(data)
    labels = text_column(data.obs, options.label, data.source)
    groups = None if options.batch is None else text_column(data.obs, options.batch, data.source)
    columns, told = usable_genes(np.asarray(data.gene_names, dtype=object), data.source, options)
    notes += told
    rows, told = _usable_samples(data, options, labels, groups, empty)
    notes += told
    y = labels.to_numpy()[rows].astype(str)
    notes += label_notes(y)
    sources = None if groups is None else groups.to_numpy()[rows].astype(str)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        found = f"one class ({classes[0]})" if len(classes) else "no class"
        raise DataError(
            f"{data.source}: column {options.label!r} has {found} of at least {MIN_CLASS} usable "
            "samples: a classifier needs two classes"
        )
    n_genes = options.n_genes
    if n_genes != "auto" and n_genes > len(columns):
        raise DataError(
            f"a panel of {n_genes} genes: {data.source} has {len(columns)} genes that can be used; "
            "ask for fewer"
        )
    source = ProfilesSource(data, rows, columns)
    include, told = _included(source.genes, data.source, options)
    fold_of, fold_notes = _folds(codes, classes, sources, options, data.source)
    return Prepared(
        source=source,
        classes=classes,
        codes=codes,
        fold_of=fold_of,
        sources=sources,
        samples=np.asarray(data.sample_names, dtype=object)[rows],
        include=include,
        n_genes_of_file=len(data.gene_names),
        notes=(*notes, *told, *fold_notes),
    )


def usable_genes(
    names: NDArray, source: str, options: TrainingOptions
) -> tuple[NDArray, list[str]]:
    """Rising positions of the genes to choose from, and notes."""
    notes: list[str] = []
    kept = np.ones(len(names), dtype=bool)
    texts = [str(name) for name in names]
    if options.gene_list is not None:
        wanted = list(dict.fromkeys(str(one) for one in options.gene_list))
        kept = np.isin(np.array(texts, dtype=object).astype(str), wanted)
        if kept.sum() < 2:
            raise DataError(
                f"{source} has {kept.sum()} of the {len(wanted)} genes asked for, too few: it "
                f"has genes such as {some(texts, 3)}, asked for were {some(wanted, 3)}"
            )
        if lost := sorted(set(wanted).difference(texts)):
            notes.append(f"{len(lost)} of {len(wanted)} genes asked for are missing: {some(lost)}")
    for pattern in options.exclude:
        hits = matching(texts, pattern) & kept
        kept &= ~hits
        found = [texts[k] for k in np.flatnonzero(hits)]
        told = f"{len(found)} genes excluded by {pattern!r}: {some(found, 5)}"
        notes.append(told if found else f"no gene is excluded by {pattern!r}: none has such a name")
    positions = np.flatnonzero(kept)
    if len(positions) < 2:
        raise DataError(
            f"{source}: {len(positions)} of {len(names)} genes are left to choose from, and ranks "
            "need at least 2"
        )
    if options.available is not None:
        here = names[positions]
        match = match_genes(here, options.available)
        n = int(match.present.sum())
        if n < 2:
            raise DataError(
                f"{source} shares {n} genes with the data to be labelled: it has genes such as "
                f"{some(here, 3)}, those have {some(options.available, 3)}"
            )
        spelled = replace(match, genes=(), columns=match.columns[:0])
        notes.append(f"{n} of {len(here)} genes are used: those that the data to be labelled have")
        notes += spelled.notes()
        positions = positions[match.present]
    return positions, notes


def matching(names: Sequence[str], pattern: str) -> NDArray:
    """Mask of the names equal to a word, or that fit a pattern such as ``MT-*``; in any case."""
    wanted = str(pattern).casefold()
    if any(sign in wanted for sign in _WILD):
        return np.array([fnmatch.fnmatchcase(name.casefold(), wanted) for name in names], bool)
    return np.array([name.casefold() == wanted for name in names], dtype=bool)


def _included(genes: NDArray, source: str, options: TrainingOptions) -> tuple[NDArray, list[str]]:
    """Positions of the genes that must be in the panel."""
    texts, notes = [str(gene) for gene in genes], []
    wanted, lost = np.zeros(len(texts), dtype=bool), []
    for pattern in options.include:
        hits = matching(texts, pattern)
        wanted |= hits
        if not hits.any():
            lost.append(pattern)
    if lost:
        raise DataError(
            f"{source} has no gene {some(lost, 5)} that could be in the panel: it was excluded, "
            f"the query lacks it, or it has another name, such as {some(texts, 3)}"
        )
    found = np.flatnonzero(wanted)
    if options.n_genes != "auto" and len(found) > options.n_genes:
        raise DataError(
            f"{len(found)} genes must be in a panel of {options.n_genes}: ask for more genes, or "
            "include fewer"
        )
    if len(found):
        notes.append(f"{len(found)} genes are in the panel as asked: {some(genes[found])}")
    return found, notes


def _folds(
    codes: NDArray,
    classes: NDArray,
    sources: NDArray | None,
    options: TrainingOptions,
    source: str,
) -> tuple[NDArray, list[str]]:
    """The fold of each sample, and what there is to say about folds."""
    if sources is not None and len(np.unique(sources)) < 2:
        raise DataError(
            f"{source}: column {options.batch!r} has the single value {sources[0]!r}, so no source "
            "can be left out: leave the column out, or name another (batch=, --batch)"
        )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            folds = make_folds(codes, N_FOLDS, sources)
        except ValueError:
            folds = []
    notes = [str(warning.message) for warning in told]
    lost = {one for train, test in folds for one in np.setdiff1d(codes[test], codes[train])}
    folds = [(train, test) for train, test in folds if np.isin(codes[test], codes[train]).any()]
    if not folds:
        raise DataError(
            f"{source}: no class is in two sources of column {options.batch!r}, so none that is "
            "learned from some can be tested on another: leave the column out, or name another "
            "(batch=, --batch)"
        )
    if lost:
        notes.append(
            "where its only source is left out a class cannot be learned, and its samples there "
            f"are not counted: {some([classes[k] for k in sorted(lost)])}"
        )
    return fold_numbers(codes, folds), notes


def _unique_genes(data: Profiles) -> tuple[Profiles, list[str]]:
    """The data with names of their own for the genes; where some share one, all are read."""
    twice = duplicates(data.gene_names)
    if not twice:
        return data, []
    whole = next(iter(data.blocks(None, max(1, data.n_samples))))
    how = "sum" if value_scale(whole.X) == "counts" else "first"
    told = "their counts are summed" if how == "sum" else "the first of each is used"
    notes = [f"{len(twice)} gene names occur more than once, {told}: {some(twice)}"]
    return whole.merge_duplicates(how), notes


def _usable_samples(
    data: Profiles,
    options: TrainingOptions,
    labels: pd.Series,
    groups: pd.Series | None,
    empty: NDArray | None,
) -> tuple[NDArray, list[str]]:
    """Positions of the samples with a label, a source, values to rank and a class large enough."""
    notes: list[str] = []

    def without(mask: NDArray, what: str) -> NDArray:
        n = int((keep & mask).sum())
        if n:
            notes.append(f"{n} sample{'s are' if n > 1 else ' is'} left out: {what}")
        return keep & ~mask

    if not data.n_samples:
        raise DataError(f"{data.source} holds no samples")
    keep = np.ones(data.n_samples, dtype=bool)
    keep = without(_missing(labels), f"no label in {options.label!r}")
    if groups is not None:
        keep = without(_missing(groups), f"no source in {options.batch!r}")
    if empty is not None:
        mask = np.zeros(data.n_samples, dtype=bool)
        mask[empty] = True
        keep = without(mask, "every gene has the same value")
    if not keep.any():
        raise DataError(f"{data.source}: no sample is left to train on; {'; '.join(notes)}")
    counts = labels[keep].value_counts()
    small = counts[counts < MIN_CLASS]
    if len(small):
        named = some([f"{name} ({n})" for name, n in small.items()])
        mask = labels.isin(small.index).to_numpy()
        keep = without(mask, f"their class has fewer than {MIN_CLASS}: {named}")
    return np.flatnonzero(keep), notes


def _missing(values: pd.Series) -> NDArray:
    return (values.isna() | (values.astype(str).str.strip() == "")).to_numpy()


def _refuse_no_numbers(X: Any, source: str) -> None:
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "buif":
        raise DataError(f"{source}: the matrix holds {values.dtype}, not numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        n = int((~np.isfinite(values)).sum())
        what = "1 value is" if n == 1 else f"{n} values are"
        raise DataError(
            f"{source}: {what} missing or infinite (NaN, inf): fill in what is missing, or "
            "leave these genes or samples out"
        )


def _constant(X: Any) -> NDArray:
    """Which samples have one value in every gene; of sparse ones, zero."""
    if sparse.issparse(X):
        return np.diff(X.indptr) == 0
    return X.min(axis=1) == X.max(axis=1)


def _add_values(digest: Any, X: Any) -> None:
    """Add the non-zero values of a block and their places to a checksum."""
    X = sparse.csr_matrix(X)
    for part, kind in ((X.indptr, "<i8"), (X.indices, "<i4"), (X.data, "<f8")):
        digest.update(np.ascontiguousarray(part, dtype=kind).data)
