"""Make data ready for training: labels, sources, genes and samples; each loss is reported."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from optirank._util.names import some
from optirank.datasets.errors import DataError
from optirank.model.genes import match_genes
from optirank.preprocessing._statistics import is_counts
from optirank.workflow.folding import N_FOLDS, fold_samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.datasets.data import ExpressionData
    from optirank.tuning.folds import Fold

MIN_CLASS = 3  # samples of a class: two to train on while one is held out
MAX_SAMPLES = 20_000  # to train on; of larger classes some are drawn
_NO_LABEL = {"", "nan", "na", "n/a", "none", "null", "<na>"}
_WILD = "*?["


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What is trained on."""

    X: Any  # CSR matrix or array, samples by genes
    y: NDArray  # labels, text
    groups: NDArray | None  # the source of each sample
    genes: NDArray  # names, each once
    samples: NDArray  # names
    reference: NDArray | None  # positions of a reference set fixed by the user
    max_genes: int | None
    label: str
    batch: str | None
    source: str
    notes: tuple[str, ...]

    @property
    def classes(self) -> NDArray:
        """The labels, each once, in order."""
        return np.unique(self.y)

    @property
    def n_problems(self) -> int:
        """Binary problems of a classifier: one for two classes, one per class for more."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def folds(self, n_folds: int = N_FOLDS) -> tuple[list[Fold], list[str]]:
        """Folds of these samples, and what there is to say about them."""
        return fold_samples(self.y, self.groups, self.batch, self.source, n_folds)

    def noted(self, *texts: str) -> Prepared:
        """The same with more to say."""
        return replace(self, notes=(*self.notes, *texts))

    def take(self, rows: NDArray) -> Prepared:
        """Some of the samples."""
        groups = None if self.groups is None else self.groups[rows]
        return replace(
            self, X=self.X[rows], y=self.y[rows], groups=groups, samples=self.samples[rows]
        )

    def thinned(self, n_samples: int, why: str) -> Prepared:
        """At most about so many samples: classes above a common size lose some, at random."""
        if len(self.y) <= n_samples:
            return self
        classes, codes, counts = np.unique(self.y, return_inverse=True, return_counts=True)
        cap = max(MIN_CLASS, _common_cap(counts, n_samples))
        rng = np.random.default_rng(0)
        parts = [rng.permutation(np.flatnonzero(codes == k))[:cap] for k in range(len(classes))]
        rows = np.sort(np.concatenate(parts))
        text = f"{why}: at most {cap} samples per class are used, {len(rows)} of {len(self.y)}"
        return self.take(rows).noted(text)


def prepare(
    data: ExpressionData,
    label: str,
    *,
    batch: str | None = None,
    genes: Sequence[str] | None = None,
    available: Sequence[str] | None = None,
    max_genes: int | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Prepared:
    """Check everything that can be wrong, and leave out what cannot be used; see `train`."""
    if max_genes is not None and max_genes < 2:
        raise DataError(f"at most {max_genes} genes: a comparison needs at least 2 genes")
    labels = data.labels(label)
    groups = None if batch is None else data.labels(batch)
    data, notes = _chosen_genes(data, genes, exclude)
    if available is not None:
        data, told = _available_genes(data, available)
        notes += told
    keep, told = _usable_samples(data, label, labels, batch, groups)
    notes += told
    if not keep.all():
        data = data.select_samples(keep)
    if include and exclude:
        _refuse_both(data, include, exclude)
    y = labels[keep].to_numpy().astype(str)
    if len(np.unique(y)) < 2:
        raise DataError(
            f"{data.source}: column {label!r} has {_n_classes(y)} of at least {MIN_CLASS} usable "
            "samples: a classifier needs two classes"
        )
    X = data.X.tocsr() if sparse.issparse(data.X) else data.X
    reference, told = _reference(data, include, max_genes)
    prepared = Prepared(
        X=X,
        y=y,
        groups=None if groups is None else groups[keep].to_numpy().astype(str),
        genes=np.asarray(data.gene_names, dtype=object),
        samples=np.asarray(data.sample_names, dtype=object),
        reference=reference,
        max_genes=max_genes,
        label=label,
        batch=batch,
        source=data.source,
        notes=(*notes, *told),
    )
    if prepared.groups is not None and len(np.unique(prepared.groups)) < 2:
        only = str(prepared.groups[0])
        raise DataError(
            f"{data.source}: column {batch!r} has the single value {only!r}, so no source can be "
            "left out: leave the column out, or name another (batch=, --batch)"
        )
    prepared.folds()  # refused now rather than later
    return prepared.thinned(MAX_SAMPLES, f"more than {MAX_SAMPLES} samples")


def _usable_samples(
    data: ExpressionData,
    label: str,
    labels: pd.Series,
    batch: str | None,
    groups: pd.Series | None,
) -> tuple[NDArray, list[str]]:
    """Mask of the samples with a label, a source, counts, and enough of their class; notes."""
    notes: list[str] = []

    def without(mask: NDArray, what: str) -> NDArray:
        n = int((keep & mask).sum())
        if n:
            notes.append(f"{n} sample{'s are' if n > 1 else ' is'} left out: {what}")
        return keep & ~mask

    if not data.n_samples:
        raise DataError(f"{data.source} holds no samples")
    keep = np.ones(data.n_samples, dtype=bool)
    keep = without(_missing(labels), f"no label in {label!r}")
    if groups is not None:
        keep = without(_missing(groups), f"no source in {batch!r}")
    keep = without(_empty(data), "empty, every gene has the same value")
    if not keep.any():
        raise DataError(f"{data.source}: no sample is left to train on; {'; '.join(notes)}")
    counts = labels[keep].value_counts()
    small = counts[counts < MIN_CLASS]
    if len(small):
        named = some([f"{name} ({n})" for name, n in small.items()])
        keep = without(
            labels.isin(small.index).to_numpy(),
            f"their class has fewer than {MIN_CLASS}: {named}",
        )
    return keep, notes


def _missing(values: pd.Series) -> NDArray:
    text = values.astype(str).str.strip().str.lower()
    return (values.isna() | text.isin(_NO_LABEL)).to_numpy()


def _empty(data: ExpressionData) -> NDArray:
    """Mask of samples whose genes cannot be ordered; values that are no numbers are refused."""
    X = data.X
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "buif":
        raise DataError(f"{data.source}: the matrix holds {values.dtype}, not numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        n = int((~np.isfinite(values)).sum())
        what = "1 value is" if n == 1 else f"{n} values are"
        raise DataError(
            f"{data.source}: {what} missing or infinite (NaN, inf): fill in what is missing, or "
            "leave these genes or samples out"
        )
    if sparse.issparse(X):
        low, high = (np.ravel(extreme(axis=1).toarray()) for extreme in (X.min, X.max))
        return low == high
    return X.min(axis=1) == X.max(axis=1)


def _chosen_genes(
    data: ExpressionData, genes: Sequence[str] | None, exclude: Sequence[str]
) -> tuple[ExpressionData, list[str]]:
    """Genes with names of their own, those asked for, without those excluded; notes."""
    notes: list[str] = []
    if twice := data.duplicated_genes:
        how = "sum" if is_counts(data.X) else "first"
        told = "their counts are summed" if how == "sum" else "the first of each is used"
        notes.append(f"{len(twice)} gene names occur more than once, {told}: {some(twice)}")
        data = data.merge_duplicates(how)
    names = [str(name) for name in data.gene_names]
    if genes is not None:
        wanted = list(dict.fromkeys(genes))
        here = set(names)
        found = [gene for gene in wanted if gene in here]
        if len(found) < 2:
            raise DataError(
                f"{data.source} has {len(found)} of the {len(wanted)} genes asked for, too few: it "
                f"has genes such as {some(names, 3)}, asked for were {some(wanted, 3)}"
            )
        if len(found) < len(wanted):
            lost = [gene for gene in wanted if gene not in here]
            notes.append(f"{len(lost)} of {len(wanted)} genes asked for are missing: {some(lost)}")
        data = data.select_genes(found)
        names = found
    out: set[str] = set()
    for pattern in exclude:
        hits = matching(names, pattern)
        out.update(hits)
        told = f"{len(hits)} genes excluded by {pattern!r}: {some(hits, 5)}"
        notes.append(told if hits else f"no gene is excluded by {pattern!r}: none has such a name")
    if out:
        kept = [k for k, name in enumerate(names) if name not in out]
        if len(kept) < 2:
            raise DataError(f"{data.source}: the genes excluded leave {len(kept)} of {len(names)}")
        data = data.select_genes(np.array(kept))
    if data.n_genes < 2:
        raise DataError(f"{data.source} has {data.n_genes} gene: ranks need at least 2")
    return data, notes


def _available_genes(
    data: ExpressionData, available: Sequence[str]
) -> tuple[ExpressionData, list[str]]:
    """The genes that prediction would find among those available; notes."""
    match = match_genes(data.gene_names, available)
    n = int(match.present.sum())
    if n < 2:
        raise DataError(
            f"{data.source} shares {n} genes with the data to be labelled: it has genes such as "
            f"{some(data.gene_names, 3)}, those have {some(available, 3)}"
        )
    spelled = replace(match, genes=(), columns=match.columns[:0])
    notes = [
        f"{n} of {data.n_genes} genes are used: those that the data to be labelled have",
        *spelled.notes(),
    ]
    return data.select_genes(np.flatnonzero(match.present)), notes


def matching(names: Sequence[str], pattern: str) -> list[str]:
    """Names equal to a word, or that fit a pattern such as ``MT-*``; case does not count."""
    wanted = pattern.casefold()
    if any(sign in pattern for sign in _WILD):
        return [name for name in names if fnmatch.fnmatchcase(name.casefold(), wanted)]
    return [name for name in names if name.casefold() == wanted]


def _reference(
    data: ExpressionData, include: Sequence[str], max_genes: int | None
) -> tuple[NDArray | None, list[str]]:
    """Positions of the reference set that the user fixed; notes."""
    if not include:
        return None, []
    notes: list[str] = []
    names = [str(name) for name in data.gene_names]
    found: set[str] = set()
    lost = []
    for pattern in include:
        hits = matching(names, pattern)
        found.update(hits)
        if not hits:
            lost.append(pattern)
    if not found:
        raise DataError(
            f"{data.source} has none of the reference genes asked for ({some(include, 5)}): it has "
            f"genes such as {some(names, 3)}"
        )
    if lost:
        notes.append(f"{len(lost)} reference genes asked for are missing: {some(lost)}")
    if max_genes is not None and len(found) >= max_genes:
        raise DataError(
            f"{len(found)} reference genes leave no gene to weigh among at most {max_genes}: "
            "allow more genes, or name fewer"
        )
    notes.append(f"the reference set is fixed to {len(found)} genes: {some(sorted(found))}")
    return np.array([k for k, name in enumerate(names) if name in found]), notes


def _refuse_both(data: ExpressionData, include: Sequence[str], exclude: Sequence[str]) -> None:
    both = [gene for gene in include if any(matching([gene], pattern) for pattern in exclude)]
    if both:
        raise DataError(f"{data.source}: {some(both)} would be both included and excluded")


def _n_classes(y: NDArray) -> str:
    names = np.unique(y)
    return f"one class ({names[0]})" if len(names) else "no class"


def _common_cap(counts: NDArray, total: int) -> int:
    """The largest class size c with ``sum(min(counts, c)) <= total``."""
    low, high = 1, int(counts.max())
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(counts, middle).sum() <= total:
            low = middle
        else:
            high = middle - 1
    return low
