"""Finding a panel by elimination: nested sets of genes, each ranked among themselves.

1. The 2000 genes that correlate most with a class are the candidates.
2. Softmax regression on the ranks of these genes among themselves; the half of largest weight
   (largest over the classes) stays; the genes that stay are ranked again among themselves; and so
   on, down to 10 genes. These fits see the samples and four copies of them on simulated platforms.
3. The weights of each set are fitted on the samples alone, with a strong penalty against the mean
   loss: a platform adds an error to every gene that more samples do not average away. It is in
   proportion to the number of genes (0.1 for 100), so that panels of all sizes have scores of the
   same spread, and probabilities as soft.

Everything that is read of the data goes through a *source* (`MatrixSource`, or a file's in
``optirank.workflow``), so the steps are the same for a matrix in memory and for a file of a million
cells. One pass gives the candidates and at most 500 samples per class, on which genes are
eliminated and held-out accuracy is measured; another the panel's genes of all samples, on which the
last weights are fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy import sparse

from optirank.preprocessing.class_sums import ClassSums
from optirank.preprocessing.scales import log_values, value_scale
from optirank.solver.ridge import BLOCK_ROWS, balanced_weights, fit_ridge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.solver.ridge import RidgeFit

SIZES = (10, 20, 30, 50, 70, 100, 200, 300, 500, 1000)  # of the nested panels
AUTO_FROM = 100  # genes: enough for 2 to 14 classes of real sets, and robust to missing genes
N_CANDIDATES = 2000  # 1000 to 3000 made no difference over real pairs
PER_CLASS = 500  # samples for the elimination: more change the panel little, and cost time
_L2_ELIMINATION = 0.03  # against the mean loss; 0.01 to 0.1 choose equally good genes
_L2_PER_GENE = 1e-3  # in the last fit: scores of all sizes then have the same spread beforehand
_N_COPIES = 4  # simulated platforms beside the samples themselves
_STRENGTH = 2.0  # of their gene factors, in spreads of the genes' log values
_TOL_ELIMINATION = 1e-3  # of the gradient: tighter fits keep the same genes
_TOL_LAST = 1e-5  # the weights then have four digits
_BLOCK_ENTRIES = 1 << 24  # of a matrix in memory that are looked at together: 128 MiB


@dataclass(frozen=True)
class Panel:
    """A panel of k genes with its weights.

    Attributes
    ----------
    genes : (k,) positions among all genes, rising
    coef : (rows, k) weights on scaled ranks; one row for two classes, else one per class
    intercept : (rows,)
    mean_ranks : (k,) mean scaled rank of each gene in training, classes counted equally
    """

    genes: NDArray
    coef: NDArray
    intercept: NDArray
    mean_ranks: NDArray


@dataclass(frozen=True)
class HeldOut:
    """Scores of samples by panels that were found without them.

    Attributes
    ----------
    rows : positions of the held-out samples, rising
    codes : their classes, as numbers
    fold : the fold of each
    scores : size -> (n, rows of the model); -inf for a class that the fold's training part lacks
    """

    rows: NDArray
    codes: NDArray
    fold: NDArray
    scores: dict[int, NDArray]

    def accuracy(self, size: int) -> float:
        """Balanced accuracy of all samples of classes that their fold could learn."""
        return self._accuracy(size, np.ones(len(self.rows), dtype=bool))

    def accuracies(self, size: int) -> NDArray:
        """The same in each fold."""
        return np.array([self._accuracy(size, self.fold == k) for k in np.unique(self.fold)])

    def _accuracy(self, size: int, here: NDArray) -> float:
        here = here & self.known(size)
        right = best_codes(self.scores[size]) == self.codes
        shares = [right[here & (self.codes == k)].mean() for k in np.unique(self.codes[here])]
        return float(np.mean(shares)) if shares else np.nan

    def known(self, size: int) -> NDArray:
        """Which samples are of a class that their fold could learn."""
        scores = self.scores[size]
        if scores.shape[1] == 1:
            return np.isfinite(scores[:, 0])
        return np.isfinite(scores[np.arange(len(scores)), self.codes])

    def curve(self) -> list[tuple[int, float, float]]:
        """Size, balanced accuracy and its standard error over the folds, from the smallest size."""
        rows = []
        for size in sorted(self.scores):
            found = self.accuracies(size)
            found = found[np.isfinite(found)]
            error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
            rows.append((size, self.accuracy(size), float(error)))
        return rows


@dataclass(frozen=True)
class PanelSearch:
    """What a search gives: panels by size, held-out scores, and the samples it looked at.

    ``X`` has the samples at ``rows`` with all genes.
    """

    path: dict[int, Panel]
    held_out: HeldOut | None
    rows: NDArray
    X: Any


class Source(Protocol):
    """Samples by genes, read in blocks."""

    shape: tuple[int, int]
    scale: str

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """All samples in order, with some genes (all): arrays or CSR matrices."""


class MatrixSource:
    """A matrix in memory: array, or CSR or CSC."""

    def __init__(self, X: Any) -> None:
        self._X, self.shape, self.scale = X, X.shape, value_scale(X)

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """See `Source`."""
        X = self._X if columns is None else self._X[:, columns]
        X = X.tocsr() if sparse.issparse(X) else X
        step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
        for start in range(0, X.shape[0], step):
            yield X[start : start + step]


def search_panels(
    source: Source,
    codes: NDArray,
    n_classes: int,
    *,
    sample_weight: NDArray | None = None,
    n_genes: int | str = "auto",
    include: NDArray | None = None,
    fold_of: NDArray | None = None,
    n_threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> PanelSearch:
    """The nested panels of at most the size asked for, with their weights; held-out scores.

    Parameters
    ----------
    source : the samples.
    codes : the class of each, from 0 to ``n_classes - 1``.
    sample_weight : a weight per sample, ones by default.
    n_genes : the largest panel, or "auto": chosen by held-out accuracy (`choose_size`).
    include : positions of genes that every panel has.
    fold_of : the fold that holds each sample out, -1 for none; None holds none out.
    n_threads : threads; they change the time alone.
    progress : is told how many of the steps are done.
    """
    include = np.zeros(0, np.intp) if include is None else np.asarray(include)
    parts = np.zeros(len(codes), np.intp) if fold_of is None else fold_of + 1
    folds = np.zeros(0, np.intp) if fold_of is None else np.unique(fold_of[fold_of >= 0])
    steps = _Steps(progress, len(folds) + 3)
    rows = some_rows(codes)
    sums, X = first_pass(source, codes, n_classes, parts, rows)
    n_candidates = N_CANDIDATES if n_genes == "auto" else max(N_CANDIDATES, n_genes)
    candidates = sums.best_genes(n_candidates)
    if not len(candidates):
        raise ValueError(
            f"none of the {source.shape[1]} genes differs between the samples: a panel needs genes "
            "that vary"
        )
    every = np.arange(sums.n_parts)
    of_fold = [sums.best_genes(n_candidates, every[every != fold + 1]) for fold in folds]
    read = np.unique(np.concatenate([candidates, include, *of_fold])).astype(np.intp)
    steps.done()

    samples = _Sorted.with_copies(_dense(X[:, read]).astype(np.float32, copy=False), n_threads)
    weights = balanced_weights(codes[rows], None if sample_weight is None else sample_weight[rows])
    labels = _Labels(codes[rows], n_classes, weights)
    always = np.searchsorted(read, include)
    usable = np.union1d(candidates, include)
    sizes = path_sizes(n_genes, len(usable), len(include))
    held_out = None
    if len(folds):
        scores, fold = {}, fold_of[rows]
        for k, chosen in zip(folds, of_fold, strict=True):
            columns = np.searchsorted(read, np.union1d(chosen, include))
            train, test = fold != k, fold == k
            found = _held_out_fold(samples, labels, train, test, columns, sizes, always)
            for size, values in found.items():
                scores.setdefault(size, np.full((len(rows), values.shape[1]), np.nan))
                scores[size][test] = values
            steps.done()
        out = fold >= 0
        scores = {size: values[out] for size, values in scores.items()}
        held_out = HeldOut(rows[out], codes[rows][out], fold[out], scores)
        if n_genes == "auto":
            sizes = [size for size in sizes if size <= choose_size(held_out)]
    columns = np.searchsorted(read, usable)
    nested = samples.eliminate(np.arange(len(rows)), labels, columns, sizes, always)
    nested = {size: read[found] for size, found in nested.items()}
    steps.done()
    widest = nested[max(nested)]
    blocks = source.blocks(widest) if len(rows) < len(codes) else [X[:, widest]]
    path = _last_fits(blocks, codes, n_classes, sample_weight, nested, n_threads)
    steps.done()
    return PanelSearch(path, held_out, rows, X)


def first_pass(
    source: Source, codes: NDArray, n_classes: int, parts: NDArray, rows: NDArray
) -> tuple[ClassSums, Any]:
    """Sums of the log values by class and part, and the samples for the elimination."""
    sums = ClassSums(source.shape[1], n_classes, int(parts.max()) + 1)
    kept, start = [], 0
    for block in source.blocks():
        stop = start + block.shape[0]
        sums.add(log_values(block, source.scale), codes[start:stop], parts[start:stop])
        here = slice(*np.searchsorted(rows, [start, stop]))
        kept.append(block[rows[here] - start])
        start = stop
    if sparse.issparse(kept[0]):
        return sums, sparse.vstack(kept, format="csc")  # its columns are taken next
    return sums, np.concatenate(kept)


def path_sizes(n_genes: int | str, n_usable: int, n_include: int = 0) -> list[int]:
    """The sizes of the nested panels, rising; the last is the one asked for, or the largest."""
    most = min(n_usable, SIZES[-1]) if n_genes == "auto" else min(int(n_genes), n_usable)
    least = max(2, n_include)
    return [size for size in SIZES if least <= size < most] + [most]


def choose_size(held_out: HeldOut) -> int:
    """The smallest size, of at least 100, within one standard error of the best."""
    curve = [row for row in held_out.curve() if row[0] >= AUTO_FROM] or held_out.curve()[-1:]
    _, best, error = max(curve, key=lambda row: (row[1], -row[0]))
    return min(size for size, accuracy, _ in curve if accuracy >= best - error)


def some_rows(codes: NDArray, most: int = PER_CLASS) -> NDArray:
    """Rising positions of at most so many samples per class, drawn the same way every time."""
    rng = np.random.default_rng(0)
    chosen = [rng.permutation(np.flatnonzero(codes == k))[:most] for k in np.unique(codes)]
    return np.sort(np.concatenate(chosen))


def best_codes(scores: NDArray) -> NDArray:
    """The class of the highest score; of one column, the second class above 0."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return scores.argmax(axis=1)


@dataclass(frozen=True)
class _Labels:
    """Classes and weights of the samples that are sorted."""

    codes: NDArray
    n_classes: int
    weights: NDArray

    def of(self, rows: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """The classes present, numbered among themselves; which they are; weights with sum 1."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        weights = self.weights[rows]
        totals = np.bincount(codes, weights)
        return present, codes, weights / (len(present) * totals[codes])


@dataclass(frozen=True)
class _Sorted:
    """Samples, and copies of them below, as the numbers of their distinct values."""

    groups: NDArray  # ((1 + copies) n, genes)
    n: int
    n_threads: int

    @classmethod
    def with_copies(cls, V: NDArray, n_threads: int) -> _Sorted:
        """Sort dense samples and their copies on simulated platforms."""
        from optirank.tuning.platforms import log_spread, simulate_platforms

        n, spread = len(V), log_spread(V)
        first = sort_groups(V, n_threads)
        groups = np.empty(((1 + _N_COPIES) * n, V.shape[1]), first.dtype)
        groups[:n] = first
        for k in range(1, 1 + _N_COPIES):  # one at a time, to hold one of them in memory
            (copy,) = simulate_platforms(V, 1, _STRENGTH, k, spread=spread)
            groups[k * n : (k + 1) * n] = sort_groups(copy, n_threads)
        return cls(groups, len(V), n_threads)

    def ranks(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Twice the ranks of some genes among themselves."""
        return among(self.groups, rows, columns, self.n_threads)

    def fit(self, rows: NDArray, labels: _Labels, columns: NDArray) -> RidgeFit:
        """The last weights on some samples, without copies."""
        present, codes, weights = labels.of(rows)
        return fit_ridge(
            self.ranks(rows, columns),
            codes,
            len(present),
            weights,
            l2=_L2_PER_GENE * len(columns),
            tol=_TOL_LAST,
            n_threads=self.n_threads,
        )

    def eliminate(
        self, rows: NDArray, labels: _Labels, columns: NDArray, sizes: list[int], always: NDArray
    ) -> dict[int, NDArray]:
        """The genes (of ``columns``) that are left at each size."""
        n_layers = len(self.groups) // self.n
        layers = np.concatenate([rows + k * self.n for k in range(n_layers)])
        present, codes, weights = labels.of(rows)
        codes, weights = np.tile(codes, n_layers), np.tile(weights, n_layers) / n_layers
        left, fitted, found = columns, None, {}
        larger = [size for size in SIZES if size > max(sizes)]  # the same way to every size
        for size in sorted([*sizes, *larger], reverse=True):
            while len(left) > size:
                fitted = fit_ridge(
                    self.ranks(layers, left),
                    codes,
                    len(present),
                    weights,
                    l2=_L2_ELIMINATION,
                    tol=_TOL_ELIMINATION,
                    start=fitted,
                    n_threads=self.n_threads,
                )
                weight = np.abs(fitted.coef).max(axis=0)
                weight[np.isin(left, always)] = np.inf
                kept = np.argsort(-weight, kind="stable")[: max(size, len(left) // 2)]
                kept.sort()
                left, fitted = left[kept], _only(fitted, kept)
            if size in sizes:
                found[size] = left
        return found


def _only(fitted: RidgeFit, kept: NDArray) -> RidgeFit:
    return replace(fitted, coef=fitted.coef[:, kept], mean_ranks=fitted.mean_ranks[kept])


def _held_out_fold(
    samples: _Sorted,
    labels: _Labels,
    train: NDArray,
    test: NDArray,
    columns: NDArray,
    sizes: list[int],
    always: NDArray,
) -> dict[int, NDArray]:
    """Everything again on the training part of a fold, and the scores of its held-out samples."""
    train, test = np.flatnonzero(train), np.flatnonzero(test)
    width = 1 if labels.n_classes == 2 else labels.n_classes
    present = np.unique(labels.codes[train])
    sizes = [size for size in sizes if size < len(columns)] or [min(sizes[0], len(columns))]
    found = {}
    if len(present) < 2:
        return {size: np.full((len(test), width), np.nan) for size in sizes}
    nested = samples.eliminate(train, labels, columns, sizes, always)
    for size, genes in nested.items():
        fitted = samples.fit(train, labels, genes)
        ranks = samples.ranks(test, genes) / (2.0 * len(genes))
        z = ranks @ fitted.coef.T + fitted.intercept
        scores = np.full((len(test), width), -np.inf)
        if width == 1:
            scores = z
        elif len(present) == 2:
            scores[:, present] = np.column_stack([-z[:, 0] / 2, z[:, 0] / 2])
        else:
            scores[:, present] = z
        found[size] = scores
    return found


def _last_fits(
    blocks: Iterable[Any],
    codes: NDArray,
    n_classes: int,
    sample_weight: NDArray | None,
    nested: dict[int, NDArray],
    n_threads: int,
) -> dict[int, Panel]:
    """Weights of every panel on all samples."""
    widest = nested[max(nested)]
    groups = np.concatenate([sort_groups(_dense(block), n_threads) for block in blocks])
    weights = balanced_weights(codes, sample_weight)
    path = {}
    for size, genes in sorted(nested.items()):
        columns = np.searchsorted(widest, genes)
        doubled = among(groups, np.arange(len(codes)), columns, n_threads)
        fitted = fit_ridge(
            doubled,
            codes,
            n_classes,
            weights,
            l2=_L2_PER_GENE * size,
            tol=_TOL_LAST,
            n_threads=n_threads,
        )
        path[size] = Panel(genes, fitted.coef, fitted.intercept, fitted.mean_ranks)
    return path


def sort_groups(values: NDArray, n_threads: int = 1) -> NDArray:
    """Number the distinct values of every sample, in rising order."""
    from optirank.ranks.orders import order_samples

    return order_samples(values, n_threads).groups


def among(groups: NDArray, rows: NDArray, columns: NDArray, n_threads: int = 1) -> NDArray:
    """Twice the ranks of some genes among themselves, for some samples."""
    from optirank._compiled.panel_loops import doubled_ranks

    columns = np.asarray(columns, dtype=np.int64)
    out = np.empty((len(rows), len(columns)), _number_type(2 * len(columns)))

    def rank(part: slice) -> None:
        doubled_ranks(groups, rows[part], columns, out[part])

    _in_threads(rank, len(rows), BLOCK_ROWS, n_threads)
    return out


def _in_threads(work: Callable[[slice], None], n: int, step: int, n_threads: int) -> None:
    parts = [slice(at, min(n, at + step)) for at in range(0, n, step)]
    if n_threads < 2 or len(parts) < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, parts))


def _number_type(most: int) -> np.dtype:
    return np.dtype(np.uint16 if most <= np.iinfo(np.uint16).max else np.uint32)


def _dense(block: Any) -> NDArray:
    return block.toarray() if sparse.issparse(block) else np.asarray(block)


class _Steps:
    """Counts the steps that are done."""

    def __init__(self, progress: Callable[[int, int], None] | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def done(self) -> None:
        """One more."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)
