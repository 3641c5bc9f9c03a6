"""Finding a panel by elimination: nested sets of genes, each ranked among themselves.

1. The 2000 genes that correlate most with a class are the candidates.
2. Softmax regression on the ranks of these genes among themselves; the half of largest weight
   (largest over the classes) stays; the genes that stay are ranked again among themselves; and so
   on, down to 10 genes. These fits see the samples and four copies of them on simulated platforms.
3. The weights of each set are fitted on the samples alone, with a strong penalty against the mean
   loss: a platform adds an error to every gene that more samples do not average away. It is in
   proportion to the number of genes (0.1 for 100), so that panels of all sizes have scores of the
   same spread, and probabilities as soft.

Data are read through a *source* (`MatrixSource`, or a file's in ``optirank.workflow``). One pass
gives the candidates and at most 500 samples per class, on which genes are eliminated and held-out
accuracy is measured; another the panel's genes of all samples, for the last weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.metrics import balanced_accuracy, standard_error
from optirank._util.scales import log_values, value_scale
from optirank.panel.candidates import ClassSums
from optirank.panel.platforms import log_spread, simulate_platforms
from optirank.panel.softmax import BLOCK_ROWS, balanced_weights, fit_ridge
from optirank.ranks.scoring import best_class, by_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.softmax import RidgeFit

SIZES = (10, 20, 30, 50, 70, 100, 200, 300, 500, 1000)  # of the nested panels
AUTO_FROM = (
    100  # genes: enough for 2 to 14 classes of real sets, and robust to missing genes
)
N_CANDIDATES = 2000  # 1000 to 3000 made no difference over real pairs
PER_CLASS = (
    500  # samples for the elimination: more change the panel little, and cost time
)
_L2_ELIMINATION = 0.03  # against the mean loss; 0.01 to 0.1 choose equally good genes
_L2_PER_GENE = (
    1e-3  # in the last fit: scores of all sizes then have the same spread beforehand
)
_N_COPIES = 4  # simulated platforms beside the samples themselves
_STRENGTH = 2.0  # of their gene factors, in spreads of the genes' log values
_SEED = 300  # of these platforms; another moves accuracies on a query by half a point either way
_TOL_ELIMINATION = 1e-3  # of the gradient: tighter fits keep the same genes
_TOL_LAST = 1e-5  # the weights then have four digits
MISSING = (
    0.1,
    0.3,
)  # shares of a panel's genes without which held-out samples are scored too
_BLOCK_ENTRIES = 1 << 24  # of a matrix in memory that are looked at together: 128 MiB


@dataclass(frozen=True)
class Panel:
    """A panel of k genes with its weights."""

    genes: NDArray  # (k,): positions among all genes, rising
    coef: NDArray  # (rows, k): on scaled ranks; one row for two classes, else one per class
    intercept: NDArray  # (rows,)
    mean_ranks: NDArray  # (k,): mean scaled ranks in training, classes counted equally


@dataclass(frozen=True)
class HeldOut:
    """Scores of samples by panels that were found without them."""

    rows: NDArray  # positions of the held-out samples, rising
    codes: NDArray  # their classes, as numbers
    fold: NDArray  # of each
    scores: dict[
        int, NDArray
    ]  # by size: (n, rows); -inf for a class that a fold's training lacks
    lacking: dict[
        tuple[int, float, int], NDArray
    ]  # by size, share of genes missing, draw

    def accuracy(self, scores: NDArray, among: NDArray | bool = True) -> float:
        """Balanced accuracy of the samples of classes that their fold could learn."""
        own = scores[np.arange(len(scores)), self.codes * (scores.shape[1] > 1)]
        known = np.isfinite(own) & among
        return balanced_accuracy(self.codes[known], best_class(scores[known]))

    def curve(self) -> list[tuple[int, float, float]]:
        """Size, balanced accuracy, its standard error over the folds."""
        rows = []
        for size, scores in sorted(self.scores.items()):
            found = [
                self.accuracy(scores, self.fold == k) for k in np.unique(self.fold)
            ]
            error = standard_error(np.array([one for one in found if np.isfinite(one)]))
            rows.append((size, self.accuracy(scores), float(error)))
        return rows

    def with_missing(self, size: int) -> list[tuple[float, float]]:
        """Shares of a panel's genes that are missing, and the balanced accuracy without them."""
        rows = [(0.0, self.accuracy(self.scores[size]))]
        for share in MISSING:
            found = [
                one
                for (n, s, _), one in self.lacking.items()
                if (n, s) == (size, share)
            ]
            if found:
                rows.append(
                    (share, float(np.mean([self.accuracy(one) for one in found])))
                )
        return rows


@dataclass(frozen=True)
class PanelSearch:
    """What a search gives: panels by size, held-out scores, and the samples it looked at."""

    path: dict[int, Panel]
    held_out: HeldOut | None
    rows: NDArray
    X: Any  # the samples at ``rows`` with all genes


class MatrixSource:
    """A matrix in memory (array, CSR or CSC), read in blocks of samples, arrays or CSR."""

    def __init__(self, X: Any) -> None:
        self._X, self.shape, self.scale = X, X.shape, value_scale(X)

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """All samples in order, with some genes (all)."""
        X = self._X if columns is None else self._X[:, columns]
        X = X.tocsr() if sparse.issparse(X) else X
        step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
        for start in range(0, X.shape[0], step):
            yield X[start : start + step]


def search_panels(
    source: MatrixSource,
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
    """The nested panels of at most ``n_genes``, with their weights; held-out scores.

    ``fold_of`` is the fold that holds each sample out, -1 for none; None holds none out.
    """
    include = np.zeros(0, np.intp) if include is None else np.asarray(include)
    parts = np.zeros(len(codes), np.intp) if fold_of is None else fold_of + 1
    folds = (
        np.zeros(0, np.intp) if fold_of is None else np.unique(fold_of[fold_of >= 0])
    )
    done, total = count(1), len(folds) + 3
    tell = (lambda *_: None) if progress is None else progress
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
    of_fold = [
        sums.best_genes(n_candidates, every[every != fold + 1]) for fold in folds
    ]
    read = np.unique(np.concatenate([candidates, include, *of_fold])).astype(np.intp)
    tell(next(done), total)

    weight = np.ones(len(codes)) if sample_weight is None else sample_weight
    groups = _with_copies(_dense(X[:, read]).astype(np.float32, copy=False), n_threads)
    samples = _Samples(groups, codes[rows], n_classes, weight[rows], n_threads)
    always = np.searchsorted(read, include)
    usable = np.union1d(candidates, include)
    sizes = path_sizes(n_genes, len(usable), len(include))
    held_out = None
    if len(folds):
        scores, fold = {}, fold_of[rows]
        for k, chosen in zip(folds, of_fold, strict=True):
            columns = np.searchsorted(read, np.union1d(chosen, include))
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            for key, values in samples.held_out(
                train, test, columns, sizes, always
            ).items():
                scores.setdefault(key, np.full((len(rows), values.shape[1]), np.nan))
                scores[key][test] = values
            tell(next(done), total)
        out = fold >= 0
        whole = {
            size: values[out] for (size, _, draw), values in scores.items() if draw < 0
        }
        lacking = {key: values[out] for key, values in scores.items() if key[2] >= 0}
        held_out = HeldOut(rows[out], codes[rows][out], fold[out], whole, lacking)
        if n_genes == "auto":
            sizes = [size for size in sizes if size <= choose_size(held_out)]
    columns = np.searchsorted(read, usable)
    nested = samples.eliminate(np.arange(len(rows)), columns, sizes, always)
    nested = {size: read[found] for size, found in nested.items()}
    tell(next(done), total)
    widest = nested[max(nested)]
    blocks = source.blocks(widest) if len(rows) < len(codes) else [X[:, widest]]
    del samples  # before the panel's genes of all samples are read
    kind = np.uint16 if len(widest) <= np.iinfo(np.uint16).max else np.uint32
    groups, start = np.empty((len(codes), len(widest)), kind), 0
    for block in blocks:
        groups[start : start + block.shape[0]] = sort_groups(_dense(block), n_threads)
        start += block.shape[0]
    samples, path = _Samples(groups, codes, n_classes, weight, n_threads), {}
    for size, genes in sorted(nested.items()):
        fitted = samples.fit(np.arange(len(codes)), np.searchsorted(widest, genes))
        path[size] = Panel(genes, fitted.coef, fitted.intercept, fitted.mean_ranks)
    tell(next(done), total)
    return PanelSearch(path, held_out, rows, X)


def first_pass(
    source: MatrixSource, codes: NDArray, n_classes: int, parts: NDArray, rows: NDArray
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
    most = (
        min(n_usable, SIZES[-1]) if n_genes == "auto" else min(int(n_genes), n_usable)
    )
    least = max(2, n_include)
    return [size for size in SIZES if least <= size < most] + [most]


def choose_size(held_out: HeldOut) -> int:
    """The smallest size, of at least 100, within one standard error of the best."""
    curve = [
        row for row in held_out.curve() if row[0] >= AUTO_FROM
    ] or held_out.curve()[-1:]
    _, best, error = max(curve, key=lambda row: (row[1], -row[0]))
    return min(size for size, accuracy, _ in curve if accuracy >= best - error)


def some_rows(codes: NDArray, most: int = PER_CLASS) -> NDArray:
    """Rising positions of at most so many samples per class, drawn the same way every time."""
    rng = np.random.default_rng(0)
    chosen = [
        rng.permutation(np.flatnonzero(codes == k))[:most] for k in np.unique(codes)
    ]
    return np.sort(np.concatenate(chosen))


@dataclass(frozen=True)
class _Samples:
    """Sorted samples with their classes and weights; copies of all of them may follow below."""

    groups: (
        NDArray  # ((1 + copies) n, genes): the numbers of each sample's distinct values
    )
    codes: NDArray  # (n,)
    n_classes: int
    weights: NDArray  # (n,)
    n_threads: int

    def ranks(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Twice the ranks of some genes among themselves."""
        return among(self.groups, rows, columns, self.n_threads)

    def labels(self, rows: NDArray) -> tuple[NDArray, NDArray]:
        """Classes among those that are present, and weights in which these count the same."""
        codes = np.unique(self.codes[rows], return_inverse=True)[1]
        return codes, balanced_weights(codes, self.weights[rows])

    def fit(self, rows: NDArray, columns: NDArray) -> RidgeFit:
        """The last weights on some samples, without copies."""
        codes, weights = self.labels(rows)
        return fit_ridge(
            self.ranks(rows, columns),
            codes,
            codes.max() + 1,
            weights,
            l2=_L2_PER_GENE * len(columns),
            tol=_TOL_LAST,
            n_threads=self.n_threads,
        )

    def eliminate(
        self, rows: NDArray, columns: NDArray, sizes: list[int], always: NDArray
    ) -> dict[int, NDArray]:
        """The genes (of ``columns``) that are left at each size."""
        n_layers = len(self.groups) // len(self.codes)
        layers = np.concatenate([rows + k * len(self.codes) for k in range(n_layers)])
        codes, weights = self.labels(rows)
        codes, weights = np.tile(codes, n_layers), np.tile(weights, n_layers) / n_layers
        left, fitted, found = columns, None, {}
        larger = [
            size for size in SIZES if size > max(sizes)
        ]  # the same way to every size
        for size in sorted([*sizes, *larger], reverse=True):
            while len(left) > size:
                fitted = fit_ridge(
                    self.ranks(layers, left),
                    codes,
                    codes.max() + 1,
                    weights,
                    l2=_L2_ELIMINATION,
                    tol=_TOL_ELIMINATION,
                    start=fitted,
                    n_threads=self.n_threads,
                )
                weight = np.abs(fitted.coef).max(axis=0)
                weight[np.isin(left, always)] = np.inf
                kept = np.sort(
                    np.argsort(-weight, kind="stable")[: max(size, len(left) // 2)]
                )
                left, means = left[kept], fitted.mean_ranks[kept]
                fitted = replace(fitted, coef=fitted.coef[:, kept], mean_ranks=means)
            if size in sizes:
                found[size] = left
        return found

    def held_out(
        self,
        train: NDArray,
        test: NDArray,
        columns: NDArray,
        sizes: list[int],
        always: NDArray,
    ) -> dict[tuple[int, float, int], NDArray]:
        """Everything again on the training part of a fold, and the scores of the held-out part.

        They are by size, share of the genes that are missing and number of the draw (-1 with all
        genes). The mean ranks stand in for missing genes, as in prediction.
        """
        width = 1 if self.n_classes == 2 else self.n_classes
        present = np.unique(self.codes[train])
        sizes = [size for size in sizes if size < len(columns)] or [
            min(sizes[0], len(columns))
        ]
        if len(present) < 2:
            return {
                (size, 0.0, -1): np.full((len(test), width), np.nan) for size in sizes
            }
        found = {}
        for size, genes in self.eliminate(train, columns, sizes, always).items():
            fitted = self.fit(train, genes)
            draws = [(0.0, -1)]
            if size >= AUTO_FROM or size == max(
                sizes
            ):  # that may be chosen; three draws of genes
                draws += [(share, draw) for share in MISSING for draw in range(3)]
            for share, draw in draws:
                order = np.random.default_rng(max(draw, 0)).permutation(len(genes))
                lost, here = np.split(order, [round(share * len(genes))])
                here = np.sort(here)
                ranks = self.ranks(test, genes[here]) / (2.0 * len(here))
                base = fitted.intercept + fitted.coef[:, lost] @ fitted.mean_ranks[lost]
                scores = ranks @ fitted.coef[:, here].T + base
                found[size, share, draw] = scores
                if width > 1:
                    found[size, share, draw] = every = np.full(
                        (len(test), width), -np.inf
                    )
                    every[:, present] = by_class(
                        scores / (2 if len(present) == 2 else 1)
                    )
        return found


def _with_copies(V: NDArray, n_threads: int) -> NDArray:
    """Sort dense samples and, below them, their copies on simulated platforms."""
    n, spread = len(V), log_spread(V)
    first = sort_groups(V, n_threads)
    groups = np.empty(((1 + _N_COPIES) * n, V.shape[1]), first.dtype)
    groups[:n] = first
    for k in range(1, 1 + _N_COPIES):  # one at a time, to hold one of them in memory
        (copy,) = simulate_platforms(V, [_STRENGTH], _SEED + k, spread=spread)
        groups[k * n : (k + 1) * n] = sort_groups(copy, n_threads)
    return groups


def sort_groups(values: NDArray, n_threads: int = 1) -> NDArray:
    """Number the distinct values of every sample, in rising order."""
    from optirank.ranks.orders import order_samples

    return order_samples(values, n_threads).groups


def among(
    groups: NDArray, rows: NDArray, columns: NDArray, n_threads: int = 1
) -> NDArray:
    """Twice the ranks of some genes among themselves, for some samples."""
    from optirank._compiled.rank_loops import doubled_ranks

    columns = np.asarray(columns, dtype=np.int64)
    small = 2 * len(columns) <= np.iinfo(np.uint16).max
    out = np.empty((len(rows), len(columns)), np.uint16 if small else np.uint32)
    parts = [slice(at, at + BLOCK_ROWS) for at in range(0, len(rows), BLOCK_ROWS)]

    def rank(part: slice) -> None:
        doubled_ranks(groups, rows[part], columns, out[part])

    with ThreadPoolExecutor(max(1, min(n_threads, len(parts)))) as pool:
        list(pool.map(rank, parts))
    return out


def _dense(block: Any) -> NDArray:
    return block.toarray() if sparse.issparse(block) else np.asarray(block)
