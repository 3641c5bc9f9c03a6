"""From profiles to what a training works on: usable samples and genes, classes, folds,
and the first pass over them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import counted, some
from optirank._util.scales import GeneMoments
from optirank.io.blocks import unique_genes
from optirank.io.data import (
    DataError,
    annotations_of,
    block_rows,
    gene_names,
    n_samples_of,
    notes_of,
    parts_of,
    source_of,
    text_column,
)
from optirank.io.homologs import in_names_of
from optirank.io.passes import run_pass
from optirank.panel.sources import first_look, keys_of_names
from optirank.tuning.folds import (
    N_FOLDS,
    donor_notes,
    fold_numbers,
    make_folds,
    repeated_notes,
)
from optirank.workflow.checks import Checksums, EmptySamples
from optirank.workflow.gene_lists import (
    included_genes,
    usable_genes,
)
from optirank.workflow.label_sets import labelled_samples
from optirank.workflow.labels import label_notes

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank._util.passes import Accumulator
    from optirank.io.cluster import Cluster
    from optirank.model import Terms, Tree
    from optirank.panel.candidates import ClassSums
    from optirank.workflow.options import TrainingOptions

_FULL_SOURCE = 10  # samples of a class with which a source counts half


@dataclass(frozen=True)
class Prepared:
    """Everything that a training works on."""

    data: list[AnnData]
    rows: NDArray  # positions of the samples in use
    genes: NDArray  # names of the genes in use
    cluster: Cluster | None  # where passes over the samples run instead of here
    classes: NDArray
    codes: NDArray  # the class of each sample, as a number
    fold_of: NDArray  # the fold that holds each sample out, -1 for none
    sources: NDArray | None  # the source of each sample, where folds leave sources out
    samples: NDArray  # names
    include: NDArray  # positions of the genes that must be in the panel
    n_genes: int | str  # of the panel; "auto" chooses by held-out accuracy
    n_genes_of_file: int
    notes: list[str]
    tree: Tree | None = None  # coarser labels above the classes
    terms: Terms | None = None  # of the Cell Ontology
    allowed: NDArray | None = None  # positions of the genes that may be; None: all
    per_class: int = 0  # genes of largest weight that each class keeps

    @property
    def weights(self) -> NDArray | None:
        """Weights with which, in every class, large sources count the same; or None.

        A source in which a class is frequent would else be learned in place of the
        class.
        """
        if self.sources is None:
            return None
        source_codes = np.unique(self.sources, return_inverse=True)[1]
        group = self.codes + len(self.classes) * source_codes
        n_groups = len(self.classes) * (int(source_codes.max()) + 1)
        sizes = np.bincount(group, minlength=n_groups)
        weights = 1.0 / (sizes + _FULL_SOURCE)
        of_sources = (sizes * weights).reshape(-1, len(self.classes))
        factors = np.bincount(self.codes) / of_sources.sum(axis=0)
        return weights[group] * factors[self.codes]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(np.unique(self.fold_of[self.fold_of >= 0]))

    def summary(self) -> str:
        """How much there is of everything, in a line."""
        return (
            f"{len(self.rows)} samples, {len(self.genes)} genes, "
            f"{len(self.classes)} classes, {self.n_folds} folds"
        )

    def run_pass(
        self, accumulators: Sequence[Accumulator], columns: NDArray | None = None
    ) -> None:
        """Feed accumulators with all samples in use, and some of the genes (all)."""
        run_pass(
            self.data,
            accumulators,
            self.genes if columns is None else self.genes[columns],
            size=block_rows(self.n_genes_of_file),
            rows=None if len(self.rows) == n_samples_of(self.data) else self.rows,
            together=max(getattr(one, "together", 1) for one in accumulators),
            cluster=self.cluster,
        )


@dataclass(frozen=True)
class FirstLook:
    """What the first pass over all samples and genes gives, before anything is fitted.

    Attributes
    ----------
    sums : of the places of the genes, by class and fold.
    rows, X : positions of at most 500 samples per class, in an order that follows
        from the samples themselves, and these samples.
    fold_of : the fold that holds each sample out, -1 for none.
    checksum : of the names and values of all samples.
    standardised : whether the values were standardised per gene.
    """

    sums: ClassSums
    rows: NDArray
    X: Any
    fold_of: NDArray
    checksum: str
    standardised: bool


def prepare(
    data: AnnData | Sequence[AnnData],
    options: TrainingOptions,
    *,
    cluster: Cluster | None = None,
    n_threads: int = 1,
) -> tuple[Prepared, FirstLook]:
    """Check everything that can be wrong, leave out what cannot be used, and look at
    all samples once.

    Where samples turn out to have no values to rank, they are left out, and the others
    are looked at again: folds are of the samples that are left. ``cluster`` runs
    passes over the samples.
    """
    parts = parts_of(data)
    if options.query_genes is not None and len(parts) == 1:
        parts = [in_names_of(parts[0], options.query_genes)]
    parts = [unique_genes(part) for part in parts]
    prepared = _prepared(parts, options, None, cluster)
    empty, looked = _look(prepared, n_threads)
    if len(empty):
        prepared = _prepared(parts, options, prepared.rows[empty], cluster)
        _, looked = _look(prepared, n_threads)
    return replace(prepared, fold_of=looked.fold_of), looked


def _look(prepared: Prepared, n_threads: int) -> tuple[NDArray, FirstLook]:
    """The first pass: positions of the samples that are empty, and all else."""
    n_samples = len(prepared.rows)
    empty = EmptySamples(n_samples, source_of(prepared.data))
    checksums = Checksums(n_samples)
    moments = GeneMoments()
    has_sources = prepared.sources is not None
    sums, rows, X, fold_of, n_repeated = first_look(
        prepared.run_pass,
        prepared.codes,
        len(prepared.classes),
        keys_of_names(prepared.genes),
        fold_of=prepared.fold_of if has_sources else None,
        n_folds=N_FOLDS,
        checks=[empty, checksums, moments],
        n_threads=n_threads,
    )
    checksum = checksums.checksum(prepared.genes, prepared.samples)
    looked = FirstLook(sums, rows, X, fold_of, checksum, moments.result())
    prepared.notes.extend(repeated_notes(n_repeated, has_sources=has_sources))
    return np.flatnonzero(empty.result()), looked


def _prepared(
    data: list[AnnData],
    options: TrainingOptions,
    empty: NDArray | None,
    cluster: Cluster | None,
) -> Prepared:
    """The samples and genes to use; ``empty`` are positions of samples that are not."""
    source = source_of(data)
    notes = notes_of(data)  # every step adds its own
    obs = annotations_of(data)
    labelled = labelled_samples(obs, options, source, several=len(data) > 1)
    labels = labelled.labels
    notes += labelled.notes
    batches = None
    if options.batch is not None:
        batches = text_column(obs, options.batch, source)
    names = gene_names(data)
    columns = usable_genes(names, source, options, notes)
    rows = usable_samples(source, options, labels, batches, empty, notes)
    y = labels.to_numpy()[rows].astype(str)
    notes += label_notes(np.sort(y))
    if options.batch is None:
        notes += donor_notes(obs.iloc[rows], options.columns[-1])
    sources = None if batches is None else batches.to_numpy()[rows].astype(str)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        there = f"one class ({classes[0]})" if len(classes) else "no class"
        raise DataError(
            f"{source}: column {options.columns[-1]!r} has {there} of at least "
            f"{MIN_CLASS} usable samples: a classifier needs two classes"
        )
    tree = labelled.tree and labelled.tree.of_classes(classes)
    if options.panel_size is not None and options.panel_size > len(columns):
        raise DataError(
            f"a panel of {options.n_genes} genes: {source} has {len(columns)} "
            "genes that can be used; ask for fewer"
        )
    return Prepared(
        data=data,
        rows=rows,
        genes=names[columns],
        cluster=cluster,
        classes=classes,
        codes=codes,
        include=included_genes(names[columns], source, options, notes),
        fold_of=np.full(len(codes), -1)
        if sources is None  # folds follow from the samples, which are not read yet
        else _folds(codes, classes, sources, options, source, notes),
        sources=sources,
        samples=obs.index.to_numpy(dtype=object)[rows],
        n_genes=_panel_size(options, len(columns)),
        n_genes_of_file=len(names),
        notes=notes,
        tree=tree,
        terms=labelled.terms_of(tree, classes),
    )


def _panel_size(options: TrainingOptions, n_usable: int) -> int | str:
    """The size asked for; of a list of genes all, unless fewer are asked for."""
    if options.n_genes == "auto" and options.gene_list is not None:
        return n_usable
    return options.n_genes


def _folds(
    codes: NDArray,
    classes: NDArray,
    sources: NDArray,
    options: TrainingOptions,
    source: str,
    notes: list[str],
) -> NDArray:
    """The fold of each sample, where folds leave sources out."""
    if len(np.unique(sources)) < 2:
        raise DataError(
            f"{source}: column {options.batch!r} has the single value "
            f"{str(sources[0])!r}, so no source can be left out: leave the column out, "
            "or name another (batch=)"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            folds = make_folds(codes, N_FOLDS, sources)
        except ValueError:
            folds = []
    notes += [str(warning.message) for warning in caught]
    not_learned = {
        code
        for train, test in folds
        for code in np.setdiff1d(codes[test], codes[train]).tolist()
    }
    folds = [
        (train, test)
        for train, test in folds
        if np.isin(codes[test], codes[train]).any()
    ]
    if not folds:
        raise DataError(
            f"{source}: no class is in two sources of column {options.batch!r}, so "
            "none that is learned from some can be tested on another: leave the "
            "column out, or name another (batch=)"
        )
    if not_learned:
        notes.append(
            "where its only source is left out a class cannot be learned, and its "
            "samples there are not counted: "
            f"{some([classes[k] for k in sorted(not_learned)])}"
        )
    return fold_numbers(codes, folds)


MIN_CLASS = 3  # samples: two to learn from while one is held out


def usable_samples(
    source: str,
    options: TrainingOptions,
    labels: pd.Series,
    sources: pd.Series | None,
    empty: NDArray | None,
    notes: list[str],
) -> NDArray:
    """Positions of the samples with a label, a source, values to rank and a
    large class.
    """
    if not len(labels):
        raise DataError(f"{source} holds no samples")
    reasons = {f"no label in {options.columns[-1]!r}": _is_missing(labels)}
    if sources is not None:
        reasons[f"no source in {options.batch!r}"] = _is_missing(sources)
    if empty is not None:
        reasons["every gene has the same value"] = np.isin(
            np.arange(len(labels)), empty
        )
    kept = np.ones(len(labels), dtype=bool)
    left_out = [
        note
        for reason, mask in reasons.items()
        if (note := _leave_out(kept, mask, reason))
    ]
    if not kept.any():
        raise DataError(
            f"{source}: no sample is left to train on; {'; '.join(left_out)}"
        )
    names = labels.to_numpy(dtype=object)
    classes, counts = np.unique(names[kept].astype(str), return_counts=True)
    is_small = counts < MIN_CLASS
    if is_small.any():
        named = zip(classes[is_small], counts[is_small], strict=True)
        listed = some([f"{name} ({n_samples})" for name, n_samples in named])
        in_small = kept & np.isin(names.astype(str), classes[is_small])
        reason = f"their class has fewer than {MIN_CLASS}: {listed}"
        left_out.append(_leave_out(kept, in_small, reason))
    notes += left_out
    return np.flatnonzero(kept)


def _is_missing(values: pd.Series) -> NDArray:
    return np.asarray(values.isna() | (values.astype(str).str.strip() == ""))


def _leave_out(kept: NDArray, mask: NDArray, reason: str) -> str:
    """Take samples out of those that are kept, and say so; "" where there are none."""
    n_samples = int((kept & mask).sum())
    kept[mask] = False
    if not n_samples:
        return ""
    return f"{counted(n_samples, 'sample is', 'samples are')} left out: {reason}"
