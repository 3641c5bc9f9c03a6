"""TopScoringPairsClassifier (k-TSP): a majority vote of a few pairs of genes."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank.estimators._pairs import dense_columns, pair_counts
from optirank.estimators.card import ModelCard
from optirank.estimators.panel import forget_training
from optirank.ranks.relative import relative_ranks
from optirank.ranks.scoring import best_class, by_class
from optirank.tuning.folds import make_folds
from optirank.tuning.scoring import balanced_accuracy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

_DIGITS = 12  # to which scores are equal
_BLOCK_VALUES = 1 << 22  # ranks made at once in double precision


class Pairs(NamedTuple):
    """Disjoint pairs of genes of one class against the rest, the best first."""

    genes: NDArray  # (k, 2)
    signs: NDArray  # 1 where x_a > x_b speaks for the class, -1 where it speaks for the rest
    scores: NDArray

    def first(self, k: int) -> Pairs:
        """The k best."""
        return Pairs(self.genes[:k], self.signs[:k], self.scores[:k])


class TopScoringPairsClassifier(ModelCard, ClassifierMixin, BaseEstimator):
    """k top scoring pairs (k-TSP): each of k pairs of genes votes, the majority decides.

    The method of Tan, Naiman, Xu, Winslow and Geman (Bioinformatics, 2005). The score of a pair
    (a, b) is ``|P(x_a > x_b | class) - P(x_a > x_b | rest)|``, estimated by the shares of the
    training samples; of equal scores, the pair whose mean difference of ranks within a sample
    differs most between class and rest is the better one. Pairs are taken from the best on, each
    without the genes of those before it. The number k of pairs is odd, at most `k_max`, and chosen
    by cross-validation on the training samples (balanced accuracy, the smallest k of equal ones).

    With more than two classes this is done for each class against the rest, and the class with the
    largest share of votes is predicted; votes weighted by the pairs' scores decide between equal
    shares.

    Parameters
    ----------
    k_max : int, default=9
        The largest number of pairs per class; an even one counts as the odd number below.
    max_genes : int or None, default=500
        Genes that are compared: of more, those whose mean ranks within a sample differ most between
        class and rest, relative to their spread. The work grows with the square of this number.
        None compares all.
    cv : int, default=5
        Folds of the choice of k. With `k_max` below 3 there is nothing to choose.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    k_ : ndarray of int
        Number of pairs, one entry per problem: one for two classes, one per class for more.
    pairs_ : ndarray of shape (n_pairs, 2)
        Positions (a, b) of the genes compared, the pairs of the problems one after the other.
    signs_ : ndarray of shape (n_pairs,)
        1 where ``x_a > x_b`` votes for the class, -1 where it votes for the rest.
    scores_ : ndarray of shape (n_pairs,)
    genes_ : ndarray of shape (d,)
        Mask of the genes needed to predict: those of the pairs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), when X has names

    Examples
    --------
    >>> from optirank import TopScoringPairsClassifier
    >>> from optirank.datasets import make_unstable_ranks
    >>> data = make_unstable_ranks(300, random_state=0)
    >>> model = TopScoringPairsClassifier().fit(data.X, data.y)
    >>> model.pairs_.shape == (model.k_[0], 2)
    True
    """

    _parameter_constraints: dict = {
        "k_max": [Interval(Integral, 1, None, closed="left")],
        "max_genes": [None, Interval(Integral, 2, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, k_max: int = 9, *, max_genes: int | None = 500, cv: int = 5) -> None:
        self.k_max = k_max
        self.max_genes = max_genes
        self.cv = cv

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike) -> TopScoringPairsClassifier:
        """Choose the pairs.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, d)
            Expression values on any scale; finite.
        y : array-like of shape (n_samples,)
            Labels of two classes or more.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only ({self.classes_.tolist()[0]!r}): a classifier needs samples "
                "of at least 2 classes"
            )
        if X.shape[1] < 2:
            raise ValueError("X has 1 feature(s), and a pair needs 2: give at least 2 genes")
        positives = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        ranks = _ranks(X)
        found = [self._choose(X, ranks, y == label) for label in positives]
        forget_training(self)
        self.k_ = np.array([len(pairs.genes) for pairs in found])
        self.pairs_, self.signs_, self.scores_ = (
            np.concatenate([getattr(pairs, name) for pairs in found]) for name in Pairs._fields
        )
        self.genes_ = np.zeros(X.shape[1], dtype=bool)
        self.genes_[self.pairs_] = True
        return self

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Votes for minus votes against, over their number: one per sample, or one per class too.

        With more than two classes a part too small to change an order of shares is added, that
        decides between equal ones.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        votes = _votes(X, self.pairs_, self.signs_)
        starts = np.concatenate([[0], np.cumsum(self.k_)[:-1]])
        means = np.add.reduceat(votes, starts, axis=1) / self.k_
        if len(self.k_) == 1:
            return means[:, 0]
        weighted = np.add.reduceat(votes * self.scores_, starts, axis=1) / self.k_
        return means + self._tie_break() * weighted

    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Shares of votes; with more than two classes each row is divided by its sum."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return (1.0 + by_class(scores)) / 2.0
        shares = 1.0 + scores / (1.0 + 2.0 * self._tie_break())  # above 0, in the scores' order
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: ArrayLike) -> NDArray:
        """The class that most pairs vote for."""
        chosen = best_class(self.decision_function(X))
        return self.classes_[chosen]

    def _tie_break(self) -> float:
        """The part of weighted votes: shares of at most k votes differ by 2 / k^2 or more."""
        return 1.0 / (2.0 * self.k_.max() ** 2)

    def _choose(self, X, ranks: NDArray, positive: NDArray) -> Pairs:
        """The pairs of one class against the rest, their number chosen by cross-validation."""
        every = np.arange(len(positive))
        found = self._top_pairs(X, ranks, positive, every)
        sizes = np.arange(1, len(found.genes) + 1, 2)
        if len(sizes) == 1 or min(positive.sum(), (~positive).sum()) < 2:
            return found.first(1)
        accuracies = []
        for train, test in make_folds(positive, self.cv, None):
            pairs = self._top_pairs(X, ranks, positive, train)
            votes = _votes(X[test], pairs.genes, pairs.signs).cumsum(axis=1)
            # A fold may have fewer pairs than asked for: then the most it has, an odd number, vote
            last = votes.shape[1] - 1 + votes.shape[1] % 2
            ends = np.minimum(sizes, last) - 1
            truth = positive[test]
            accuracies.append([balanced_accuracy(truth, votes[:, k] > 0) for k in ends])
        means = np.mean(accuracies, axis=0).round(_DIGITS)
        return found.first(int(sizes[means.argmax()]))

    def _top_pairs(self, X, ranks: NDArray, positive: NDArray, rows: NDArray) -> Pairs:
        """Disjoint pairs by their score on some of the samples."""
        inside = positive[rows]
        genes, shift = self._compared_genes(ranks[rows], inside)
        return top_scoring_pairs(dense_columns(X[rows], genes), inside, shift, genes, self.k_max)

    def _compared_genes(self, ranks: NDArray, positive: NDArray) -> tuple[NDArray, NDArray]:
        """Positions of the genes to compare, and by how much their mean rank is higher inside."""
        one, rest = ranks[positive], ranks[~positive]
        shift = one.mean(axis=0, dtype=float) - rest.mean(axis=0, dtype=float)
        if self.max_genes is None or ranks.shape[1] <= self.max_genes:
            return np.arange(ranks.shape[1]), shift
        variances = [part.var(axis=0, dtype=float) / len(part) for part in (one, rest)]
        spread = np.sqrt(sum(variances))
        size = np.divide(np.abs(shift), spread, out=np.where(shift, np.inf, 0.0), where=spread > 0)
        genes = np.sort(np.argsort(-size, kind="stable")[: self.max_genes])
        return genes, shift[genes]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Only the order of genes within a sample is seen; see RankLinearClassifier.
        tags.classifier_tags.poor_score = True
        return tags


def top_scoring_pairs(
    values: NDArray, positive: NDArray, shift: NDArray, genes: NDArray, k_max: int
) -> Pairs:
    """At most ``k_max`` disjoint pairs by their score, pairs without any score last.

    ``shift`` is by how much the mean rank of each gene is higher among the positives: the second
    score of (a, b) is ``|shift_a - shift_b|``. ``genes`` are the positions that the columns of
    ``values`` are called by. There is at least one pair, even if no pair has a score.
    """
    among, rest = pair_counts(values, positive)
    difference = among / positive.sum() - rest / (~positive).sum()
    score = np.abs(difference).round(_DIGITS)
    np.fill_diagonal(score, -1.0)
    second = np.abs(shift[:, None] - shift[None, :]).round(_DIGITS)
    chosen: list[tuple[int, int]] = []
    scores: list[float] = []
    while len(chosen) < k_max:
        best = score.max()
        if best < 0 or (best == 0 and chosen):
            break
        equal = np.flatnonzero(score == best)
        a, b = np.divmod(equal[second.ravel()[equal].argmax()], len(score))
        chosen.append((a, b))
        scores.append(best)
        score[[a, b]] = -1.0
        score[:, [a, b]] = -1.0
    pairs = np.array(chosen)
    signs = np.where(difference[pairs[:, 0], pairs[:, 1]] >= 0, 1.0, -1.0)
    return Pairs(genes[pairs], signs, np.array(scores))


def _votes(X, pairs: NDArray, signs: NDArray) -> NDArray:
    """1 for the class and -1 for the rest, samples x pairs."""
    needed, places = np.unique(pairs, return_inverse=True)
    values = dense_columns(X, needed)
    first, second = places.reshape(pairs.shape).T
    return np.where(values[:, first] > values[:, second], signs, -signs)


def _ranks(X) -> NDArray:
    """Ranks within each sample among all genes, divided by their number, in single precision."""
    n, d = X.shape
    every = np.ones(d, dtype=bool)
    ranks = np.empty((n, d), np.float32)
    step = max(1, _BLOCK_VALUES // d)
    for start in range(0, n, step):
        ranks[start : start + step] = relative_ranks(X[start : start + step], every)
    return ranks
