"""Finding a panel by elimination: nested sets of genes, each ranked among themselves.

1. The 2000 genes whose places in the samples correlate most with a class are the
   candidates.
2. Softmax regression on the centred ranks of these genes among themselves; the half of
   largest weight (largest over the classes) stays; the genes that stay are ranked again
   among themselves; and so on, down to 10 genes.
3. The weights of each set are fitted on all samples, with the same penalty against the
   mean loss: a platform adds an error to every gene that more samples do not average
   away.

Data are read in two passes. The first (`first_look`) gives the candidates and at most
500 samples per class, on which genes are eliminated and held-out accuracy is measured;
the second the panel's genes of all samples, for the last weights.

Only the order of the values within each sample is looked at: counts and their
logarithms give the same panel. Genes are handled in an order that follows from these
orders, never from their columns, so the order of the columns changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.workers import one_blas_thread
from optirank.panel.held_out import (
    MISSING,
    N_DRAWS,
    HeldOut,
    HeldOutScores,
    choose_size,
)
from optirank.panel.softmax import fit_votes, mean_weights
from optirank.panel.sources import Pass, SortedSamples, dense, mixed, row_hashes
from optirank.panel.votes import centred, doubled_ranks_among, sort_groups
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.candidates import ClassSums
    from optirank.panel.softmax import VotesFit

SIZES = (10, 20, 30, 50, 70, 100, 200, 300, 500, 1000)  # of the nested panels
N_CANDIDATES = 2000  # 1000 to 3000 made no difference over real pairs
L2 = 0.03  # against the mean loss; 0.1 hurts many weak classes, 0.01 other platforms
_TOL_ELIMINATION = 1e-4  # of the gradient: looser fits keep other genes
_TOL_LAST = 1e-5  # the weights then have four digits
_HASHED_ROWS = 1 << 14  # samples whose ranks are hashed at a time: little memory


@dataclass(frozen=True)
class Panel:
    """A panel of k genes with its weights."""

    genes: NDArray  # (k,): positions among all genes, rising
    coef: NDArray
    """(rows, k), on centred ranks: one row for two classes (the score of the second),
    else one per class."""


@dataclass(frozen=True)
class PanelSearch:
    """What a search gives: panels by size, and held-out scores."""

    path: dict[int, Panel]
    n_genes: int  # the size that was asked for or chosen; the path may go on beyond it
    held_out: HeldOut | None


def search_panels(
    sums: ClassSums,
    rows: NDArray,
    X: Any,
    codes: NDArray,
    n_classes: int,
    run_pass: Pass,
    *,
    sample_weight: NDArray | None = None,
    class_weight: str | NDArray | None = "balanced",
    n_genes: int | str = "auto",
    include: NDArray | None = None,
    allowed: NDArray | None = None,
    per_class: int = 0,
    fold_of: NDArray | None = None,
    l2: float = L2,
    n_threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> PanelSearch:
    """The nested panels of at most ``n_genes``, with their weights; held-out scores.

    Parameters
    ----------
    sums, rows, X
        What `first_look` gave.
    codes : array of shape (n_samples,)
        The class of each sample, from 0 to ``n_classes - 1``.
    n_classes : int
    run_pass : callable
        Runs over all samples again, with the genes of the largest panel.
    sample_weight : array of shape (n_samples,), optional
    class_weight : "balanced", None or array of shape (n_classes,)
        "balanced": all classes count the same. None: samples do. An array: a further
        weight for the samples of each class.
    n_genes : int or "auto"
        Genes of the largest panel; "auto" chooses by held-out accuracy (`choose_size`).
    include : array of int, optional
        Positions of the genes that must be in every panel. Where they fill the panel,
        no other gene is looked at.
    allowed : array of int, optional
        Positions of the genes that may be in a panel; all by default.
    per_class : int
        So many genes of largest weight stay for each class, at every size that has
        room.
    fold_of : array of shape (n_samples,), optional
        The fold that holds each sample out, -1 for none; None holds none out.
    l2 : float
        The penalty against the mean loss.
    n_threads : int
        Threads; they change the time alone.
    progress : callable, optional
        Called with the number of stages done and of all stages; see `stages`.
    """
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    if isinstance(class_weight, np.ndarray):
        weights = weights * class_weight[codes]
    balanced = isinstance(class_weight, str)
    fit = _Fit(n_classes, weights, balanced, l2, n_threads, per_class)
    _check_per_class(per_class, n_classes, n_genes)
    required = np.zeros(0, np.intp) if include is None else np.asarray(include)
    if n_genes == len(required):
        allowed = required
    fold = np.full(len(codes), -1) if fold_of is None else fold_of
    folds = np.unique(fold[fold >= 0])
    done = _Counter(progress, len(stages(len(folds))))

    n_candidates = N_CANDIDATES
    if not isinstance(n_genes, str):
        n_candidates = max(N_CANDIDATES, n_genes)
    candidates = _Candidates(sums, n_candidates, required, allowed, folds)
    done.count()

    read = candidates.read
    groups = sort_groups(dense(X[:, read]), n_threads)
    samples = _Samples(groups, codes[rows], rows, fit)
    always = np.searchsorted(read, required)
    sizes = path_sizes(n_genes, len(candidates.of_all), len(required))
    held_out = None
    if len(folds):
        columns_in = candidates.columns_in_folds()
        with one_blas_thread():  # products are small, and the same for any machine
            held_out = samples.score_folds(fold, columns_in, sizes, always, read, done)
    chosen = max(sizes)
    if n_genes == "auto" and held_out is not None:
        chosen = choose_size(held_out)

    columns = candidates.columns(candidates.of_all)
    nested = samples.eliminate(np.arange(len(rows)), columns, sizes, always)
    # Larger panels serve data that lack many genes of the chosen one: some samples do
    path = {
        size: samples.panel(left, read)
        for size, left in nested.items()
        if size > chosen
    }
    genes_of = {size: read[left] for size, left in nested.items() if size <= chosen}
    done.count()
    del samples, groups  # before the panel's genes of all samples are read
    whole = (X, rows) if len(rows) == len(codes) else None
    path |= _last_weights(run_pass, whole, codes, genes_of, fit)
    done.count()
    return PanelSearch(dict(sorted(path.items())), chosen, held_out)


class _Candidates:
    """The genes that may be in a panel: of all samples, and of those of each fold's
    training.

    Attributes
    ----------
    of_all : positions of the candidates of all samples, rising.
    of_fold : those of the samples that a fold does not hold out, by its number.
    read : all of these; the genes that are read.
    """

    def __init__(
        self,
        sums: ClassSums,
        n: int,
        required: NDArray,
        allowed: NDArray | None,
        folds: NDArray,
    ) -> None:
        best = sums.best_genes(n, among=allowed)
        if not len(best):
            n_looked_at = sums.n_genes if allowed is None else len(allowed)
            raise ValueError(
                f"none of the {n_looked_at} genes differs between the samples: a panel "
                "needs genes that vary"
            )
        parts = np.arange(sums.n_parts)
        self.of_all = np.union1d(best, required)
        self.of_fold: dict[int, NDArray] = {}
        for fold in folds.tolist():
            best = sums.best_genes(n, parts[parts != fold + 1], allowed)
            self.of_fold[fold] = np.union1d(best, required)
        together = np.concatenate([self.of_all, *self.of_fold.values()])
        self.read = np.unique(together).astype(np.intp)
        self._places = sums.places()

    def columns(self, genes: NDArray) -> NDArray:
        """Where genes are among those that are read, in the order of their places."""
        return np.searchsorted(self.read, genes[np.argsort(self._places[genes])])

    def columns_in_folds(self) -> dict[int, NDArray]:
        """The same for the candidates of each fold."""
        return {fold: self.columns(genes) for fold, genes in self.of_fold.items()}


def stages(n_folds: int) -> list[str]:
    """The stages of a search in words."""
    return [
        "candidate genes",
        *(f"held-out fold {k} of {n_folds}" for k in range(1, n_folds + 1)),
        "elimination",
        "last weights",
    ]


def path_sizes(n_genes: int | str, n_usable: int, n_include: int = 0) -> list[int]:
    """The sizes of the nested panels, rising; the last is the one asked for, or the
    largest.
    """
    asked = SIZES[-1] if isinstance(n_genes, str) else int(n_genes)
    most = min(asked, n_usable)
    least = max(2, n_include)
    return [size for size in SIZES if least <= size < most] + [most]


@dataclass(frozen=True)
class _Fit:
    """How all fits of a search are made."""

    n_classes: int
    weights: NDArray  # of all samples
    balanced: bool
    l2: float
    n_threads: int
    per_class: int = 0

    @property
    def n_rows(self) -> int:
        """Rows of the weights: one for two classes, else one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    def __call__(
        self,
        doubled: NDArray,
        codes: NDArray,
        samples: NDArray,
        tol: float,
        start: NDArray | None = None,
    ) -> VotesFit:
        """Weights for the classes among ``codes`` of the samples at these positions."""
        codes = np.unique(codes, return_inverse=True)[1]
        weights = mean_weights(codes, self.weights[samples], balanced=self.balanced)
        return fit_votes(
            doubled,
            codes,
            int(codes.max()) + 1,
            weights,
            l2=self.l2,
            tol=tol,
            start=start,
            n_threads=self.n_threads,
        )


@dataclass(frozen=True)
class _Samples:
    """Sorted samples with their classes, on which genes are eliminated."""

    groups: NDArray  # (n, genes): the numbers of each sample's distinct values
    codes: NDArray  # (n,)
    positions: NDArray  # (n,) among all samples
    fit: _Fit

    def ranks(self, rows: NDArray, genes: NDArray) -> NDArray:
        """Twice the ranks of some genes among themselves."""
        return doubled_ranks_among(self.groups, rows, genes, self.fit.n_threads)

    def fit_rows(
        self, rows: NDArray, genes: NDArray, tol: float, start: NDArray | None = None
    ) -> VotesFit:
        """Weights of some genes, fitted on some samples."""
        ranks = self.ranks(rows, genes)
        return self.fit(ranks, self.codes[rows], self.positions[rows], tol, start)

    def own_order(self, columns: NDArray) -> NDArray:
        """The samples in an order that follows from their ranks of some genes.

        Sums in floating point then do not depend on the order in which samples came.
        ``columns`` are in an order that follows from the samples, too.
        """
        keys = mixed(np.arange(len(columns)))
        every = np.arange(len(self.codes))
        hashes = np.empty(len(every), np.uint64)
        for start in range(0, len(every), _HASHED_ROWS):
            rows = every[start : start + _HASHED_ROWS]
            hashes[rows] = row_hashes(self.ranks(rows, columns), keys)
        weights = self.fit.weights[self.positions]
        return np.lexsort([hashes, weights, self.codes])

    def panel(self, columns: NDArray, genes: NDArray) -> Panel:
        """A panel of some columns, fitted on all samples; ``genes`` are the positions
        of all columns.
        """
        rows = self.own_order(columns)
        coef = self.fit_rows(rows, columns, _TOL_LAST).coef
        return _rising(genes[columns], coef)

    def eliminate(
        self, rows: NDArray, genes: NDArray, sizes: list[int], always: NDArray
    ) -> dict[int, NDArray]:
        """The genes that are left at each size; all of them where there are no more."""
        left = genes
        start = None
        nested = {}
        # The larger sizes too, so that the way to a size is the same whatever was asked
        # for
        larger = [size for size in SIZES if size > max(sizes)]
        for size in sorted([*sizes, *larger], reverse=True):
            while len(left) > size:
                coef = self.fit_rows(rows, left, _TOL_ELIMINATION, start).coef
                weight = np.abs(coef).max(axis=0)
                n_kept = max(size, len(left) // 2)
                if self.fit.n_classes * self.fit.per_class <= n_kept - len(always):
                    weight[_leading(coef, self.fit.per_class)] = np.inf
                weight[np.isin(left, always)] = np.inf
                kept = np.sort(np.argsort(-weight, kind="stable")[:n_kept])
                left = left[kept]
                start = coef[:, kept]
            if size in sizes:
                nested[size] = left
        return nested

    def score_folds(
        self,
        fold_of: NDArray,
        genes_in: dict[int, NDArray],
        sizes: list[int],
        always: NDArray,
        read: NDArray,
        done: _Counter,
    ) -> HeldOut:
        """Scores of the samples of every fold; ``read`` are the positions of the
        columns.
        """
        scored = HeldOutScores(len(self.codes))
        fold = fold_of[self.positions]
        for number, genes in genes_in.items():
            panels = self.score_fold(fold == number, genes, sizes, always, scored)
            for size, (left, coef) in panels.items():
                scored.add_panel(size, int(number), _rising(read[left], coef))
            done.count()
        return scored.held_out(self.positions, self.codes, fold)

    def score_fold(
        self,
        held_out: NDArray,
        genes: NDArray,
        sizes: list[int],
        always: NDArray,
        scored: HeldOutScores,
    ) -> dict[int, tuple[NDArray, NDArray]]:
        """Everything again without the held-out samples (a mask), and scores of these.

        Returns the genes and weights of each size.
        """
        train = np.flatnonzero(~held_out)
        test = np.flatnonzero(held_out)
        present = np.unique(self.codes[train])
        if len(present) < 2 or not len(genes):
            unknown = np.full((len(test), self.fit.n_rows), np.nan)
            for size in sizes:
                scored.add_unknown(size, test, unknown)
            return {}
        panels = {}
        for size, left in self.eliminate(train, genes, sizes, always).items():
            coef = self._of_all(self.fit_rows(train, left, _TOL_LAST).coef, present)
            everything = np.arange(len(left))
            scores = self._scores(test, left, coef, everything)
            scored.add(size, test, scores)
            panels[size] = left, coef
            for share in MISSING:
                for draw in range(N_DRAWS):
                    there = _genes_there(len(left), share, draw)
                    scores = self._scores(test, left, coef, there)
                    scored.add_with_fewer(size, share, draw, test, best_class(scores))
        return panels

    def _of_all(self, coef: NDArray, present: NDArray) -> NDArray:
        """Weights of all classes, NaN for those that are not present."""
        if self.fit.n_rows == 1:
            return coef
        if len(present) == 2:
            coef = np.concatenate([-coef, coef]) / 2
        of_all = np.full((self.fit.n_classes, coef.shape[1]), np.nan)
        of_all[present] = coef
        return of_all

    def _scores(
        self, rows: NDArray, genes: NDArray, coef: NDArray, there: NDArray
    ) -> NDArray:
        """Scores by the genes that are there; -inf for classes without weights."""
        scores = centred(self.ranks(rows, genes[there])) @ coef[:, there].T
        return np.where(np.isnan(scores), -np.inf, scores)


class _Counter:
    """Tells how many stages are done."""

    def __init__(self, tell: Callable[[int, int], None] | None, total: int) -> None:
        self._tell = tell
        self._total = total
        self._done = 0

    def count(self) -> None:
        """One more."""
        self._done += 1
        if self._tell is not None:
            self._tell(self._done, self._total)


def _rising(genes: NDArray, coef: NDArray) -> Panel:
    """A panel with its genes in the order of their positions."""
    order = np.argsort(genes)
    return Panel(genes[order], np.ascontiguousarray(coef[:, order]))


def _leading(coef: NDArray, n: int) -> NDArray:
    """Positions of the n genes of largest weight for each class."""
    of_classes = np.concatenate([-coef, coef]) if len(coef) == 1 else coef
    return np.unique(np.argsort(-of_classes, axis=1, kind="stable")[:, :n])


def _check_per_class(per_class: int, n_classes: int, n_genes: int | str) -> None:
    if isinstance(n_genes, str) or per_class * n_classes <= n_genes:
        return
    raise ValueError(
        f"{per_class} genes for each of {n_classes} classes are "
        f"{per_class * n_classes}, and the panel has {n_genes}: ask for more genes, or "
        "for fewer per class"
    )


def _genes_there(k: int, share: float, draw: int) -> NDArray:
    """The genes, at least two, that are left when a share of k is missing."""
    n_lost = min(round(share * k), max(0, k - 2))
    return np.sort(np.random.default_rng(draw).permutation(k)[n_lost:])


def _last_weights(
    run_pass: Pass,
    whole: tuple[Any, NDArray] | None,
    codes: NDArray,
    genes_of: dict[int, NDArray],
    fit: _Fit,
) -> dict[int, Panel]:
    """The weights of nested panels on all samples; ``whole`` has these and their
    positions where they are in memory.
    """
    widest = np.sort(genes_of[max(genes_of)])
    rows = np.arange(len(codes))
    if whole is None:
        sorted_samples = SortedSamples(len(codes), fit.n_threads)
        run_pass([sorted_samples], widest)
        groups = sorted_samples.result()
    else:
        X, rows = whole
        groups = sort_groups(dense(X[:, widest]), fit.n_threads)
    samples = _Samples(groups, codes[rows], rows, fit)
    return {
        size: samples.panel(np.searchsorted(widest, genes), widest)
        for size, genes in sorted(genes_of.items())
    }
