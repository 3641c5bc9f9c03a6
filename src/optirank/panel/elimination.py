"""Finding a panel by elimination: nested sets of genes, each ranked among themselves.

1. The 2000 genes whose places in the samples correlate most with a class are the
   candidates.
2. Softmax regression on the centred ranks of these genes among themselves; the half of
   largest weight (largest over the classes) stays; the genes that stay are ranked again
   among themselves; and so on, down to 10 genes.
3. The weights of each set are fitted on all samples, with the same penalty against the
   mean loss: a platform adds an error to every gene that more samples do not average
   away.

Data are read in two passes. The first (`DrawnSamples`) gives the candidates and at most
500 samples per class, on which genes are eliminated and held-out accuracy is measured;
the second the panel's genes of all samples, for the last weights.

Only the order of the values within each sample is looked at: counts and their
logarithms give the same panel. Genes are handled in an order that follows from these
orders, never from their columns, so the order of the columns changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optirank._util.numbers import (
    PerSample,
    balanced_accuracy,
    error_of_counts,
    standard_error,
)
from optirank._util.work import one_blas_thread
from optirank.panel.samples import Pass, mixed, row_hashes, uniform_numbers
from optirank.panel.votes import (
    doubled_ranks_among,
    fit_votes,
    mean_weights,
    ranked_scores,
    sort_groups,
)
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.samples import ClassSums

SIZES = (10, 20, 30, 50, 70, 100, 200, 300, 500, 1000)  # of the nested panels
N_CANDIDATES = 2000  # 1000 to 3000 made no difference over real pairs
L2 = 0.03  # against the mean loss; 0.1 hurts many weak classes, 0.01 other platforms
AUTO_FROM = 100  # genes: with half of them missing, as good as 30 to 50 that are there
MISSING = (0.1, 0.3, 0.5, 0.7)  # shares of a panel's genes to leave out
N_DRAWS = 3  # of the genes to leave out
_TOL_ELIMINATION = 1e-4  # of the gradient: looser fits keep other genes
_TOL_LAST = 1e-5  # the weights then have four digits

_HASHED = 1 << 22  # ranks that are hashed at a time
_OF_ALL = -1  # in place of a fold: all samples


class Panel:
    """A panel of k genes with its weights; genes may be given in any order.

    Attributes
    ----------
    genes : array of shape (k,)
        Positions among all genes, rising.
    coef : array of shape (rows, k)
        Weights on centred ranks: one row for two classes (the score of the second),
        else one per class.
    """

    def __init__(self, genes: NDArray, coef: NDArray) -> None:
        order = np.argsort(genes)
        self.genes = genes[order]
        self.coef = np.ascontiguousarray(coef[:, order])


class HeldOut(NamedTuple):
    """Scores of samples by panels that were found without them.

    Samples of a class that the training part of their fold lacks are left out.

    Attributes
    ----------
    rows, codes, fold : arrays of shape (n,)
        Positions of the held-out samples, their classes as numbers, and their folds.
    scores : dict of int to array of shape (n, rows)
        By size; -inf for a class that the fold's training part lacks.
    with_fewer : dict of (int, float) to array of shape (draws, n)
        By size and share of genes missing: the classes given.
    panels : dict of (int, int) to Panel
        By size and fold: the panel that was found without the fold; weights of a class
        that its training part lacks are NaN.
    """

    rows: NDArray
    codes: NDArray
    fold: NDArray
    scores: dict[int, NDArray]
    with_fewer: dict[tuple[int, float], NDArray]
    panels: dict[tuple[int, int], Panel]

    def curve(self) -> list[tuple[int, float, float]]:
        """Size, balanced accuracy, its standard error over the folds."""
        points = []
        for size, scores in sorted(self.scores.items()):
            labels = best_class(scores)
            of_folds = [
                balanced_accuracy(self.codes[own], labels[own])
                for own in (self.fold == k for k in np.unique(self.fold))
            ]
            error = float(standard_error(np.array(of_folds)))
            points.append((size, balanced_accuracy(self.codes, labels), error))
        return points

    def with_missing(self, size: int) -> list[tuple[float, float]]:
        """Shares of the panel's genes that are missing, with the balanced accuracy."""
        of_draws = {0.0: [best_class(self.scores[size])]}
        of_draws |= {share: [*self.with_fewer[size, share]] for share in MISSING}
        return [
            (share, float(np.mean([balanced_accuracy(self.codes, d) for d in draws])))
            for share, draws in of_draws.items()
        ]


def search_panels(
    sums: ClassSums,
    rows: NDArray,
    X: Any,
    fold_of: NDArray,
    codes: NDArray,
    n_classes: int,
    run_pass: Pass,
    *,
    sample_weight: NDArray,
    balanced: bool = True,
    n_genes: int | str = "auto",
    include: Sequence[int] | NDArray = (),
    allowed: NDArray | None = None,
    per_class: int = 0,
    contrasts: NDArray | None = None,
    l2: float = L2,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[int, Panel], int, HeldOut]:
    """The nested panels of at most ``n_genes``, with their weights; held-out scores.

    Parameters
    ----------
    sums, rows, X, fold_of
        What `DrawnSamples` gave.
    codes : array of shape (n_samples,)
        The class of each sample, from 0 to ``n_classes - 1``.
    n_classes : int
    run_pass : callable
        Runs over all samples again, with the genes of the largest panel.
    sample_weight : array of shape (n_samples,)
    balanced : bool
        Whether all classes count the same; else samples do.
    n_genes : int or "auto"
        Genes of the largest panel; "auto" chooses by held-out accuracy (`choose_size`).
    include : array of int
        Positions of the genes that must be in every panel. Where they fill the panel,
        no other gene is looked at.
    allowed : array of int, optional
        Positions of the genes that may be in a panel; all by default.
    per_class : int
        So many genes of largest weight stay for each class, at every size that has
        room.
    contrasts : array of shape (n_labels, n_classes), optional
        Of a tree: weights of the classes times it are those of the labels that then
        take the place of the classes.
    l2 : float
        The penalty against the mean loss.
    progress : callable, optional
        Called with the number of stages done and of all stages: candidate genes, each
        fold, elimination, last weights.

    Returns
    -------
    path : the panels by size; it may go on beyond the size asked for or chosen.
    n_genes : that size.
    held_out : scores of held-out samples.
    """
    n_asked = 0 if isinstance(n_genes, str) else n_genes
    n_labels = n_classes if contrasts is None else len(contrasts)
    if n_asked and per_class * n_labels > n_asked:
        raise ValueError(
            f"{per_class} genes for each of {n_labels} "
            f"{'classes' if contrasts is None else 'labels'} are "
            f"{per_class * n_labels}, and the panel has {n_genes}: ask for more "
            "genes, or for fewer per class"
        )
    required = np.asarray(include, dtype=np.intp)
    if n_asked and n_asked == len(required):
        allowed = required
    folds = np.unique(fold_of[fold_of >= 0]).tolist()
    n_stages = len(folds) + 3
    tell = progress or (lambda *_: None)
    samples_of = partial(
        RankedSamples,
        n_classes=n_classes,
        balanced=balanced,
        l2=l2,
        per_class=per_class,
        contrasts=contrasts,
    )
    n_candidates = max(N_CANDIDATES, n_asked)
    candidates = _candidates(sums, n_candidates, required, allowed, folds)
    read = np.unique(np.concatenate([*candidates.values()])).astype(np.intp)
    columns_in = {k: np.searchsorted(read, genes) for k, genes in candidates.items()}
    columns = columns_in.pop(_OF_ALL)
    always = np.searchsorted(read, required)
    sizes = path_sizes(n_genes, len(columns), len(required))
    tell(1, n_stages)

    groups = sort_groups(X[:, read])
    samples = samples_of(groups, codes[rows], sample_weight[rows])
    with one_blas_thread():  # products are small, and the same for any machine
        held_out = samples.hold_out(
            rows, fold_of[rows], columns_in, sizes, always, read, tell
        )
    chosen = choose_size(held_out) if n_genes == "auto" else max(sizes)
    nested = samples.eliminate(np.arange(len(rows)), columns, sizes, always)
    # Larger panels serve data that lack many genes of the chosen one: some samples do
    path = {
        size: samples.panel(left, read)
        for size, left in nested.items()
        if size > chosen
    }
    tell(n_stages - 1, n_stages)
    widest = np.sort(read[nested[chosen]])
    del samples, groups  # before the panel's genes of all samples are read
    if len(rows) == len(codes):
        groups = sort_groups(X[:, widest])
    else:
        rows = np.arange(len(codes))
        sorting = PerSample(sort_groups)
        run_pass([sorting], widest)
        groups = sorting.result()
    samples = samples_of(groups, codes[rows], sample_weight[rows])
    for size in [size for size in sizes if size <= chosen]:
        columns = np.searchsorted(widest, read[nested[size]])
        path[size] = samples.panel(columns, widest)
    tell(n_stages, n_stages)
    return dict(sorted(path.items())), chosen, held_out


def _candidates(
    sums: ClassSums, n: int, required: NDArray, allowed: NDArray | None, folds: list
) -> dict[int, NDArray]:
    """The genes that may be in a panel, in the order of their places.

    By fold: the best of the samples that it does not hold out; and those of all.
    """
    places = sums.places()
    parts = np.arange(len(sums.sizes))
    parts_of = {fold: parts[parts != fold + 1] for fold in folds}
    candidates = {}
    for fold, used in {_OF_ALL: parts, **parts_of}.items():
        best = sums.best_genes(n, used, allowed)
        if fold == _OF_ALL and not len(best):
            n_looked_at = len(places) if allowed is None else len(allowed)
            raise ValueError(
                f"none of the {n_looked_at} genes differs between the samples: a panel "
                "needs genes that vary"
            )
        genes = np.union1d(best, required)
        candidates[fold] = genes[np.argsort(places[genes])]
    return candidates


def path_sizes(n_genes: int | str, n_usable: int, n_include: int = 0) -> list[int]:
    """The sizes of the nested panels, rising; the last is the one asked for, or the
    largest.
    """
    asked = SIZES[-1] if isinstance(n_genes, str) else int(n_genes)
    most = min(asked, n_usable)
    least = max(2, n_include)
    return [size for size in SIZES if least <= size < most] + [most]


class RankedSamples(NamedTuple):
    """Sorted samples with their classes, on which genes are eliminated and panels
    fitted.
    """

    groups: NDArray  # (n, genes): the numbers of each sample's distinct values
    codes: NDArray  # (n,)
    weights: NDArray  # (n,)
    n_classes: int
    balanced: bool = True
    l2: float = L2
    per_class: int = 0
    contrasts: NDArray | None = None

    def fit(
        self, rows: NDArray, genes: NDArray, tol: float, start: NDArray | None = None
    ) -> NDArray:
        """Weights of some genes, for the classes that there are among some samples."""
        present, codes = np.unique(self.codes[rows], return_inverse=True)
        return fit_votes(
            doubled_ranks_among(self.groups, rows, genes),
            codes,
            len(present),
            mean_weights(codes, self.weights[rows], balanced=self.balanced),
            l2=self.l2,
            tol=tol,
            start=start,
        )

    def panel(self, columns: NDArray, genes: NDArray) -> Panel:
        """A panel of some columns, fitted on all samples; ``genes`` are the positions
        of all columns.

        Samples are taken in an order that follows from their ranks of these genes, so
        that sums in floating point do not depend on the order in which they came.
        ``columns`` are in an order that follows from the samples, too.
        """
        every = np.arange(len(self.codes))
        keys = mixed(np.arange(len(columns)))
        n_chunks = 1 + every.size * columns.size // _HASHED
        hashes = []
        for chunk in np.array_split(every, n_chunks):
            doubled = doubled_ranks_among(self.groups, chunk, columns)
            hashes.append(row_hashes(doubled, keys))
        rows = np.lexsort([np.concatenate(hashes), self.weights, self.codes])
        return Panel(genes[columns], self.fit(rows, columns, _TOL_LAST))

    def eliminate(
        self, rows: NDArray, genes: NDArray, sizes: list[int], always: NDArray
    ) -> dict[int, NDArray]:
        """The genes that are left at each size; all of them where there are no more.

        No size where there are no two classes, or no gene that varies, to learn from.
        """
        if len(np.unique(self.codes[rows])) < 2 or not len(genes):
            return {}
        left = genes
        start = None
        nested = {}
        # The larger sizes too, so that the way to a size is the same whatever was asked
        # for
        larger = [size for size in SIZES if size > max(sizes)]
        for size in sorted([*sizes, *larger], reverse=True):
            while len(left) > size:
                coef = self.fit(rows, left, _TOL_ELIMINATION, start)
                weight = np.abs(coef).max(axis=0)
                n_kept = max(size, len(left) // 2)
                if self.per_class:
                    weight[self.leading(coef, n_kept - len(always))] = np.inf
                weight[np.isin(left, always)] = np.inf
                kept = np.sort(np.argsort(-weight, kind="stable")[:n_kept])
                left = left[kept]
                start = coef[:, kept]
            if size in sizes:
                nested[size] = left
        return nested

    def leading(self, coef: NDArray, room: int) -> NDArray:
        """Positions of the genes of largest weight for each label, where there is room
        for them.

        Where these samples lack a class, labels are the classes that there are.
        """
        of_labels = np.concatenate([-coef, coef]) if len(coef) == 1 else coef
        if self.contrasts is not None and len(of_labels) == self.n_classes:
            of_labels = self.contrasts @ of_labels
        n_each = self.per_class if len(of_labels) * self.per_class <= room else 0
        return np.argsort(-of_labels, axis=1, kind="stable")[:, :n_each]

    def hold_out(
        self,
        rows: NDArray,
        fold: NDArray,
        columns_in: dict[int, NDArray],
        sizes: list[int],
        always: NDArray,
        read: NDArray,
        tell: Callable[[int, int], None],
    ) -> HeldOut:
        """Everything again without the samples of each fold, and scores of these.

        ``rows`` and ``read`` are the positions of all samples and columns.
        """
        shape = len(fold), 1 if self.n_classes == 2 else self.n_classes
        scores = {size: np.full(shape, np.nan) for size in sizes}
        with_fewer = {
            key: np.zeros((N_DRAWS, len(fold)), np.intp)
            for key in itertools.product(sizes, MISSING)
        }
        panels = {}
        for stage, (k, columns) in enumerate(columns_in.items(), 2):
            train = np.flatnonzero(fold != k)
            test = np.flatnonzero(fold == k)
            for size, left in self.eliminate(train, columns, sizes, always).items():
                coef = self.fit(train, left, _TOL_LAST)
                if self.n_classes > 2:  # NaN for classes that are not in training
                    if len(coef) == 1:
                        coef = np.concatenate([-coef, coef]) / 2
                    of_all = np.full((self.n_classes, len(left)), np.nan)
                    of_all[np.unique(self.codes[train])] = coef
                    coef = of_all
                panels[size, k] = Panel(read[left], coef)
                scores[size][test] = ranked_scores(self.groups, test, left, coef)
                for share, draw in itertools.product(MISSING, range(N_DRAWS)):
                    drawn = np.argsort(uniform_numbers(len(left), draw))
                    n_lost = min(round(share * len(left)), max(0, len(left) - 2))
                    there = np.sort(drawn[n_lost:])
                    of_fewer = ranked_scores(
                        self.groups, test, left[there], coef[:, there]
                    )
                    with_fewer[size, share][draw, test] = best_class(of_fewer)
            tell(stage, len(columns_in) + 3)
        learned = is_learned(scores[max(sizes)], self.codes)
        return HeldOut(
            rows[learned],
            self.codes[learned],
            fold[learned],
            {size: values[learned] for size, values in scores.items()},
            {key: labels[:, learned] for key, labels in with_fewer.items()},
            panels,
        )


def is_learned(scores: NDArray, codes: NDArray) -> NDArray[np.bool_]:
    """Which held-out samples are of a class that their fold could learn: their own
    score is finite.
    """
    column = codes if scores.shape[1] > 1 else np.zeros(len(codes), np.intp)
    return np.isfinite(scores[np.arange(len(scores)), column])


def choose_size(held_out: HeldOut) -> int:
    """The smallest size within one standard error of the best.

    It is the smallest of at least 100 genes, which do without some of them, where one
    of these is good enough. The standard error over the folds is at least that of the
    counts: where all folds are right by chance, it would be zero.
    """
    curve = held_out.curve()
    largest, best, error = max(curve, key=lambda row: (row[1], -row[0]))
    codes, sizes = np.unique(held_out.codes, return_counts=True)
    is_right = best_class(held_out.scores[largest]) == held_out.codes
    right = np.bincount(held_out.codes[is_right], minlength=codes[-1] + 1)
    error = max(error, error_of_counts(right[codes], sizes))
    good = [size for size, accuracy, _ in curve if accuracy >= best - error]
    return min([size for size in good if size >= AUTO_FROM] or good)
