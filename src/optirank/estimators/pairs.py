"""Pairs of genes whose order tells classes apart: which pairs, how many, and how they vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from optirank.ranks.scoring import best_class
from optirank.tuning.scoring import balanced_accuracy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.ranks.orders import SampleOrders

_DIGITS = 12  # to which scores are equal
_BLOCK_VALUES = 1 << 22  # ranks of dense samples that are made at once


class PairClassifier(ClassifierMixin, BaseEstimator):
    """What the classifiers on the order of pairs of genes share: checks and tags."""

    def _checked(self, X: Any, y: Any) -> tuple[Any, NDArray]:
        """X, and the codes of the labels among ``classes_``."""
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only ({self.classes_.tolist()[0]!r}): a classifier needs samples "
                "of at least 2 classes"
            )
        if X.shape[1] < 2:
            raise ValueError("X has 1 feature(s), and a pair needs 2: give at least 2 genes")
        return X, codes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Only the order of genes within a sample is seen; see RankLinearClassifier.
        tags.classifier_tags.poor_score = True
        return tags


class Pairs(NamedTuple):
    """Disjoint pairs of genes of one class against the rest, the best first."""

    genes: NDArray  # (k, 2)
    signs: NDArray  # 1 where x_a > x_b speaks for the class, -1 where it speaks for the rest
    scores: NDArray

    def first(self, k: int) -> Pairs:
        """The k best, an odd number: k, or the odd number below it or below what there is."""
        k = min(k, len(self.genes))
        k -= 1 - k % 2
        return Pairs(self.genes[:k], self.signs[:k], self.scores[:k])


class RankMoments(NamedTuple):
    """Numbers of samples, and sums of ranks within a sample and of their squares, by class."""

    sizes: NDArray  # (classes,)
    sums: NDArray  # (classes, d)
    squares: NDArray  # (classes, d)


def rank_moments(orders: SampleOrders, codes: NDArray, n_codes: int) -> RankMoments:
    """Moments of the ranks among all genes, divided by their number, by the samples' codes."""
    d = orders.n_genes
    sums, squares = np.zeros((2, n_codes, d))
    step = max(1, _BLOCK_VALUES // d)
    for start in range(0, orders.n_samples, step):
        block = slice(start, min(start + step, orders.n_samples))
        ranks = orders.take(block).ranks(np.ones(d), dtype=np.float64).columns(np.arange(d)) / d
        member = np.equal.outer(np.arange(n_codes), codes[block]).astype(float)
        sums += member @ ranks
        squares += member @ ranks**2
    return RankMoments(np.bincount(codes, minlength=n_codes), sums, squares)


@dataclass(frozen=True)
class PairSearch:
    """The search for pairs on some samples.

    ``positives`` are the classes (codes) that have pairs: the second of two, or each of several.
    Every class counts the same in the rest where ``balanced``, else every sample does.
    """

    orders: SampleOrders
    codes: NDArray
    n_classes: int
    k_max: int
    max_genes: int | None
    balanced: bool

    @property
    def positives(self) -> range:
        """The classes that have pairs."""
        return range(1, 2) if self.n_classes == 2 else range(self.n_classes)

    def find(self, rows: NDArray | slice = slice(None)) -> list[Pairs | None]:
        """The pairs of each class on some samples; None for a class that these lack."""
        orders, codes = self.orders.take(rows), self.codes[rows]
        moments = rank_moments(orders, codes, self.n_classes)
        every = np.arange(orders.n_genes)
        filtered = self.max_genes is not None and self.max_genes < len(every)
        counts = None if filtered else self._shares(orders, codes, every, moments.sizes)
        found: list[Pairs | None] = []
        for positive in self.positives:
            if not moments.sizes[positive]:
                found.append(None)
                continue
            rest = self._rest_weights(moments.sizes, positive)
            shift, difference = rank_shift(moments, positive, rest)
            genes, above = every, counts
            if filtered:
                genes = np.sort(np.argsort(-difference, kind="stable")[: self.max_genes])
                above = self._shares(orders, codes, genes, moments.sizes)
            scores = above[positive] - np.tensordot(rest, above, 1)
            found.append(disjoint_pairs(scores, shift[genes], genes, self.k_max))
        return found

    def _rest_weights(self, sizes: NDArray, positive: int) -> NDArray:
        """What each class counts for in the rest: numbers of sum 1, 0 for the class itself."""
        weights = (sizes > 0).astype(float) if self.balanced else sizes.astype(float)
        weights[positive] = 0.0
        return weights / weights.sum()

    def _shares(
        self, orders: SampleOrders, codes: NDArray, genes: NDArray, sizes: NDArray
    ) -> NDArray:
        """Shares of each class's samples with ``x_a > x_b``, for all pairs of some genes."""
        counts = count_pairs(orders.groups_of(genes), codes, self.n_classes)
        return counts / np.maximum(sizes, 1)[:, None, None]


def rank_shift(moments: RankMoments, positive: int, rest: NDArray) -> tuple[NDArray, NDArray]:
    """By how much mean ranks are higher in the class, and this relative to its standard error."""
    sizes = np.maximum(moments.sizes, 1)[:, None]
    means, squares = moments.sums / sizes, moments.squares / sizes
    center = rest @ means
    shift = means[positive] - center
    inside = squares[positive] - means[positive] ** 2
    outside = rest @ squares - center**2
    n_rest = moments.sizes.sum() - moments.sizes[positive]
    spread = np.sqrt(np.maximum(inside / sizes[positive] + outside / n_rest, 0.0))
    size = np.where(shift.round(_DIGITS) != 0, np.inf, 0.0)
    return shift, np.divide(np.abs(shift), spread, out=size, where=spread > 1e-9)


def disjoint_pairs(difference: NDArray, shift: NDArray, genes: NDArray, k_max: int) -> Pairs:
    """At most ``k_max`` disjoint pairs by their score, the absolute ``difference``.

    ``difference[a, b]`` is ``P(x_a > x_b | class) - P(x_a > x_b | rest)``, and ``shift`` by how
    much the mean rank of each gene is higher in the class: of equal scores, the pair of largest
    ``|shift_a - shift_b|`` is the better one. ``genes`` are the positions of the genes. There is
    at least one pair, even if none has a score above 0.
    """
    score = np.abs(difference).round(_DIGITS)
    np.fill_diagonal(score, -1.0)
    chosen: list[tuple[int, int]] = []
    while len(chosen) < k_max:
        best = score.max()
        if best < 0 or (best == 0 and chosen):
            break
        first, second = np.divmod(np.flatnonzero(score == best), len(score))
        which = np.abs(shift[first] - shift[second]).round(_DIGITS).argmax()
        pair = [first[which], second[which]]
        chosen.append((pair[0], pair[1]))
        score[pair] = -1.0
        score[:, pair] = -1.0
    pairs = np.array(chosen)
    found = difference[pairs[:, 0], pairs[:, 1]].round(_DIGITS)
    return Pairs(genes[pairs], np.where(found >= 0, 1.0, -1.0), np.abs(found))


def k_by_validation(search: PairSearch, folds: list[tuple[NDArray, NDArray]], ties: str) -> int:
    """The odd number of pairs, the same for all classes, of best balanced accuracy held out.

    The smallest number of equal ones is taken.
    """
    sizes = np.arange(1, search.k_max + 1, 2)
    accuracies = np.empty((len(folds), len(sizes)))
    for row, (train, test) in zip(accuracies, folds, strict=True):
        held_out = search.orders.take(test)
        decisions = np.full((len(test), len(search.positives), len(sizes)), -np.inf)
        for column, pairs in enumerate(search.find(train)):
            if pairs is not None:
                there = pairs.first(search.k_max)
                values = held_out.groups_of(there.genes.ravel()).reshape(len(test), -1, 2)
                votes = pair_votes(values[..., 0], values[..., 1], there.signs, ties)
                each = np.minimum(sizes, len(there.genes))  # fewer than asked for: all vote
                plain, weighted = (
                    np.cumsum(one, axis=1)[:, each - 1] for one in (votes, votes * there.scores)
                )
                decisions[:, column] = (plain + tie_break(each) * weighted) / each
        truth = search.codes[test]
        for j in range(len(sizes)):
            scores = decisions[:, 0, j] if search.n_classes == 2 else decisions[:, :, j]
            row[j] = balanced_accuracy(truth, best_class(scores))
    return int(sizes[accuracies.mean(axis=0).round(_DIGITS).argmax()])


def pair_votes(first: NDArray, second: NDArray, signs: NDArray, ties: str) -> NDArray:
    """Votes of pairs (a, b) by the values of both genes, samples x pairs.

    1 for the class, -1 for the rest: the sign where ``x_a > x_b``, else its opposite. With
    ``ties="average"`` a pair of equal values has the vote 0.
    """
    votes = np.where(first > second, signs, -signs)
    return np.where(first == second, 0.0, votes) if ties == "average" else votes


def tie_break(k: int | NDArray) -> float | NDArray:
    """The part of the votes weighted by scores that decides between equal votes.

    Mean votes of at most k pairs that differ do so by ``1 / k^2`` or more.
    """
    return 1.0 / (4.0 * k**2)


def count_pairs(groups: NDArray, codes: NDArray, n_codes: int) -> NDArray:
    """Number of samples with ``x_a > x_b``, for all (a, b), by the samples' codes.

    ``groups`` (n, g) are unsigned integers in the order of the values of each sample, as
    ``SampleOrders.groups_of`` gives them. The result has shape (n_codes, g, g).
    """
    from optirank._compiled.pair_loops import count_above

    counts = np.zeros((n_codes, groups.shape[1], groups.shape[1]), np.int32)
    for code in range(n_codes):
        count_above(np.ascontiguousarray(groups[codes == code]), counts[code])
    return counts


def dense_columns(X, genes: NDArray) -> NDArray:
    """Some columns as a dense array."""
    chosen = X[:, genes]
    return chosen.toarray() if sparse.issparse(chosen) else np.asarray(chosen)
