"""TopScoringPairsClassifier (k-TSP): a majority vote of a few pairs of genes."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank.estimators._base import RankClassifier, label_codes, refuse_anndata
from optirank.estimators.selection import DIGITS
from optirank.ranks.scoring import by_class

if TYPE_CHECKING:
    from optirank.ranks.orders import SampleOrders

_BLOCK_VALUES = 1 << 22  # ranks of dense samples that are made at once: 32 MiB


class PairClassifier(RankClassifier):
    """What the classifiers on the order of pairs of genes share: checks."""

    def _checked(self, X: Any, y: Any) -> tuple[Any, NDArray]:
        """X, and the codes of the labels among ``classes_``."""
        refuse_anndata(X)
        X, y = validate_data(self, X, y, accept_sparse="csr")
        self.classes_, codes = label_codes(y)
        if X.shape[1] < 2:
            raise ValueError(
                "X has 1 feature(s), and a pair needs 2: give at least 2 genes"
            )
        return X, codes


class TopScoringPairsClassifier(PairClassifier):
    """k top scoring pairs (k-TSP): each of k pairs of genes votes, the majority
    decides.

    The score of a pair (a, b) of genes is ``|P(x_a > x_b | class) - P(x_a > x_b |
    rest)|``, estimated by the shares of the training samples (Geman and others, 2004).
    Of equal scores, the pair whose mean difference of ranks within a sample differs
    most between class and rest is the better one. Pairs are taken from the best on,
    each without the genes of those before it (Tan and others, 2005).

    With more than two classes this is done for each class against the rest, in which
    every class counts the same. The class with the largest mean vote is predicted.
    Votes weighted by the scores of the pairs decide between equal ones. A pair of equal
    values, of which sparse counts have many, does not vote.

    Parameters
    ----------
    k_max : int, default=13
        The number of pairs per class, fewer where there are fewer; an even one counts
        as the odd number below.
    max_genes : int or None, default=500
        Genes that are compared: those whose mean ranks within a sample differ most
        between class and rest, relative to the standard error. Time and memory grow
        with the square of this number. None compares all genes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    k_ : ndarray of int
        Number of pairs, one entry per problem: one for two classes, one per class for
        more.
    pairs_ : ndarray of shape (n_pairs, 2)
        Positions (a, b) of the genes compared, the pairs of the problems one after the
        other.
    signs_ : ndarray of shape (n_pairs,)
        1 where ``x_a > x_b`` votes for the class, -1 where it votes for the rest.
    scores_ : ndarray of shape (n_pairs,)
    genes_ : ndarray of shape (d,)
        Mask of the genes needed to predict: those of the pairs.

    References
    ----------
    - Geman, d'Avignon, Naiman, Winslow: Classifying gene expression profiles from
      pairwise mRNA comparisons. Statistical Applications in Genetics and Molecular
      Biology 3, 2004.
    - Tan, Naiman, Xu, Winslow, Geman: Simple decision rules for classifying human
      cancers from gene expression profiles. Bioinformatics 21, 2005.

    Examples
    --------
    >>> from optirank_lab import TopScoringPairsClassifier
    >>> from optirank.datasets import make_unstable_ranks
    >>> data = make_unstable_ranks(300, random_state=0)
    >>> model = TopScoringPairsClassifier().fit(data.X, data.y)
    >>> model.pairs_.shape == (model.k_[0], 2)
    True
    """

    _parameter_constraints: dict = {
        "k_max": [Interval(Integral, 1, None, closed="left")],
        "max_genes": [None, Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, k_max: int = 13, *, max_genes: int | None = 500) -> None:
        self.k_max = k_max
        self.max_genes = max_genes

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> TopScoringPairsClassifier:
        """Choose the pairs from finite values on any scale and labels of two classes
        or more.
        """
        from optirank.ranks.orders import order_samples

        X, codes = self._checked(X, y)
        of_classes = best_pairs(order_samples(X), codes, self.k_max, self.max_genes)
        odd = [(len(pairs.genes) - 1) // 2 * 2 + 1 for pairs in of_classes]
        self.k_ = np.array(odd)
        kept = list(zip(odd, of_classes, strict=True))
        self.pairs_ = np.concatenate([pairs.genes[:k] for k, pairs in kept])
        self.signs_ = np.concatenate([pairs.signs[:k] for k, pairs in kept])
        self.scores_ = np.concatenate([pairs.scores[:k] for k, pairs in kept])
        self.genes_ = np.zeros(X.shape[1], dtype=bool)
        self.genes_[self.pairs_] = True
        return self

    def decision_function(self, X: Any) -> NDArray:
        """Votes for minus votes against, over the number of pairs: one value per sample
        and class.

        With two classes there is one value per sample, that of the second class. A part
        that is too small to change the order of different votes is added. It decides
        between equal ones.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        needed, places = np.unique(self.pairs_, return_inverse=True)
        values = dense_columns(X, needed)
        places = places.reshape(self.pairs_.shape)
        first = values[:, places[:, 0]]
        second = values[:, places[:, 1]]
        votes = self.signs_ * ((first > second) - (first < second).astype(float))
        votes *= 1.0 + self._tie_break() * self.scores_
        starts = np.concatenate([[0], np.cumsum(self.k_)[:-1]])
        means = np.add.reduceat(votes, starts, axis=1) / self.k_
        return means[:, 0] if len(self.k_) == 1 else means

    def predict_proba(self, X: Any) -> NDArray:
        """Shares of votes, ties half; with more than two classes each row is divided by
        its sum.
        """
        scores = by_class(self.decision_function(X))
        shares = 1.0 + scores / (1.0 + 2.0 * self._tie_break())  # above 0
        return shares / shares.sum(axis=1, keepdims=True)

    def _tie_break(self) -> float:
        """The part of the votes weighted by scores that decides between equal votes.

        Mean votes of at most k pairs that differ do so by ``1 / k^2`` or more.
        """
        return 1.0 / (4.0 * self.k_.max() ** 2)


class Pairs(NamedTuple):
    """Disjoint pairs of genes of one class against the rest, the best first."""

    genes: NDArray  # (k, 2)
    # 1 where x_a > x_b speaks for the class, -1 where it speaks for the rest
    signs: NDArray
    scores: NDArray


def best_pairs(
    orders: SampleOrders, codes: NDArray, k_max: int, max_genes: int | None
) -> list[Pairs]:
    """At most ``k_max`` disjoint pairs of the second of two classes, or of each of
    several.
    """
    sizes = np.bincount(codes)
    sums, squares = _rank_sums(orders, codes, len(sizes))
    means = sums / sizes[:, None]
    mean_squares = squares / sizes[:, None]
    all_genes = np.arange(orders.n_genes)
    filtered = max_genes is not None and max_genes < len(all_genes)

    def shares(genes: NDArray) -> NDArray:
        """Shares of each class's samples with ``x_a > x_b``, for all pairs of
        some genes.
        """
        counts = count_pairs(orders.groups_of(genes), codes, len(sizes))
        return counts / sizes[:, None, None]

    genes = all_genes
    above = np.zeros(0) if filtered else shares(all_genes)
    of_classes = []
    for positive in range(1, 2) if len(sizes) == 2 else range(len(sizes)):
        rest = np.where(np.arange(len(sizes)) == positive, 0.0, 1.0 / (len(sizes) - 1))
        center = rest @ means
        shift = means[positive] - center
        if filtered:  # by the difference of mean ranks, relative to its standard error
            inside = (mean_squares[positive] - means[positive] ** 2) / sizes[positive]
            outside = (rest @ mean_squares - center**2) / (len(codes) - sizes[positive])
            spread = np.sqrt(np.maximum(inside + outside, 0.0))
            size = np.where(shift.round(DIGITS) != 0, np.inf, 0.0)
            np.divide(np.abs(shift), spread, out=size, where=spread > 1e-9)
            genes = np.sort(np.argsort(-size, kind="stable")[:max_genes])
            above = shares(genes)
        difference = above[positive] - np.tensordot(rest, above, 1)
        of_classes.append(_disjoint_pairs(difference, shift[genes], genes, k_max))
    return of_classes


def _rank_sums(
    orders: SampleOrders, codes: NDArray, n_codes: int
) -> tuple[NDArray, NDArray]:
    """Sums by class of the ranks among all genes, divided by their number, and of their
    squares.
    """
    d = orders.n_genes
    sums, squares = np.zeros((2, n_codes, d))
    step = max(1, _BLOCK_VALUES // d)
    for start in range(0, orders.n_samples, step):
        block = slice(start, min(start + step, orders.n_samples))
        whole = orders.take(block).ranks(np.ones(d), dtype=np.float64)
        ranks = whole.columns(np.arange(d)) / d
        member = np.equal.outer(np.arange(n_codes), codes[block]).astype(float)
        sums += member @ ranks
        squares += member @ ranks**2
    return sums, squares


def _disjoint_pairs(
    difference: NDArray, shift: NDArray, genes: NDArray, k_max: int
) -> Pairs:
    """At most ``k_max`` disjoint pairs by ``|difference|``, at least one even if all
    are 0.

    ``difference[a, b]`` is ``P(x_a > x_b | class) - P(x_a > x_b | rest)``, and
    ``shift`` by how much the mean rank of each gene is higher in the class, which
    decides between equal scores.
    """
    score = np.abs(difference).round(DIGITS)
    np.fill_diagonal(score, -1.0)
    chosen: list[list[int]] = []
    while len(chosen) < k_max:
        best = score.max()
        if best < 0 or (best == 0 and chosen):
            break
        first, second = np.divmod(np.flatnonzero(score == best), len(score))
        which = np.abs(shift[first] - shift[second]).round(DIGITS).argmax()
        pair = [first[which], second[which]]
        chosen.append(pair)
        score[pair] = -1.0
        score[:, pair] = -1.0
    pairs = np.array(chosen)
    of_pairs = difference[pairs[:, 0], pairs[:, 1]].round(DIGITS)
    return Pairs(genes[pairs], np.where(of_pairs >= 0, 1.0, -1.0), np.abs(of_pairs))


def count_pairs(groups: NDArray, codes: NDArray, n_codes: int) -> NDArray:
    """Number of samples with ``x_a > x_b``, for all (a, b), by the samples' codes.

    ``groups`` (n, g) are unsigned integers in the order of the values of each sample,
    as ``SampleOrders.groups_of`` gives them. The result has shape (n_codes, g, g).
    """
    from optirank_lab.baselines.pair_loops import count_above

    counts = np.zeros((n_codes, groups.shape[1], groups.shape[1]), np.int32)
    for code in range(n_codes):
        count_above(np.ascontiguousarray(groups[codes == code]), counts[code])
    return counts


def dense_columns(X: Any, genes: NDArray) -> NDArray:
    """Some columns as a dense array."""
    chosen = X[:, genes]
    return chosen.toarray() if sparse.issparse(chosen) else np.asarray(chosen)
