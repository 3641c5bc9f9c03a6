"""TopScoringPairsClassifier (k-TSP): a majority vote of a few pairs of genes."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank.estimators._pair_choice import (
    Pairs,
    PairSearch,
    k_by_validation,
    k_by_variance,
    votes_in,
)
from optirank.estimators._pairs import dense_columns
from optirank.estimators._subset import subset_votes
from optirank.estimators.card import ModelCard
from optirank.estimators.panel import carried, forget_training, plain_probabilities
from optirank.estimators.votes import pair_votes, tie_break
from optirank.ranks.scoring import best_class
from optirank.tuning.folds import make_folds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags


class TopScoringPairsClassifier(ModelCard, ClassifierMixin, BaseEstimator):
    """k top scoring pairs (k-TSP): each of k pairs of genes votes, the majority decides.

    The score of a pair (a, b) of genes is ``|P(x_a > x_b | class) - P(x_a > x_b | rest)|``,
    estimated by the shares of the training samples (Geman and others, 2004). Of equal scores, the
    pair whose mean difference of ranks within a sample differs most between class and rest is the
    better one. Pairs are taken from the best on, each without the genes of those before it (Tan and
    others, 2005).

    The classical method is ``TopScoringPairsClassifier(9, choose_k="cv", ties="min",
    balance_rest=False)``. The defaults carry over better to other platforms.

    With more than two classes this is done for each class against the rest. The class with the
    largest mean vote is predicted. Votes weighted by the scores of the pairs decide between equal
    ones.

    Parameters
    ----------
    k_max : int, default=13
        The largest number of pairs per class; an even one counts as the odd number below.
    choose_k : {"max", "cv", "variance"}, default="max"
        How the odd number k of pairs is chosen. "max": `k_max`, which carried over best to other
        platforms. "cv": the best balanced accuracy in cross-validation on the training samples, one
        k for all classes. "variance": for each class, the largest difference between the mean sums
        of votes in class and rest, divided by the square root of the sum of their variances (Afsari
        and others, 2014). Of equally good ones, the smallest k is taken.
    ties : {"average", "min"}, default="average"
        How a pair of equal values votes. "average": not at all (0). "min": as if ``x_a < x_b``,
        which is the classical definition. Sparse counts have many pairs of two zeros.
    balance_rest : bool, default=True
        Whether each class counts the same in the rest; if not, each sample does. There is no
        difference with two classes.
    max_genes : int or None, default=500
        Genes that are compared: those whose mean ranks within a sample differ most between class
        and rest, relative to the standard error. Time and memory grow with the square of this
        number. None compares all genes.
    cv : int, default=5
        Number of folds with ``choose_k="cv"``.

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

    References
    ----------
    - Geman, d'Avignon, Naiman, Winslow: Classifying gene expression profiles from pairwise mRNA
      comparisons. Statistical Applications in Genetics and Molecular Biology 3, 2004.
    - Tan, Naiman, Xu, Winslow, Geman: Simple decision rules for classifying human cancers from gene
      expression profiles. Bioinformatics 21, 2005.
    - Afsari, Braga-Neto, Geman: Rank discriminants for predicting phenotypes from RNA expression.
      Annals of Applied Statistics 8, 2014.

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
        "choose_k": [StrOptions({"max", "cv", "variance"})],
        "ties": [StrOptions({"average", "min"})],
        "balance_rest": ["boolean"],
        "max_genes": [None, Interval(Integral, 2, None, closed="left")],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        k_max: int = 13,
        *,
        choose_k: str = "max",
        ties: str = "average",
        balance_rest: bool = True,
        max_genes: int | None = 500,
        cv: int = 5,
    ) -> None:
        self.k_max = k_max
        self.choose_k = choose_k
        self.ties = ties
        self.balance_rest = balance_rest
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
        from optirank.ranks.orders import order_samples

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
        search = PairSearch(
            orders=order_samples(X),
            codes=codes,
            n_classes=len(self.classes_),
            k_max=self.k_max,
            max_genes=self.max_genes,
            balanced=self.balance_rest,
        )
        found = self._choose(search)
        forget_training(self)
        self.k_ = np.array([len(pairs.genes) for pairs in found])
        self.pairs_, self.signs_, self.scores_ = (
            np.concatenate([getattr(pairs, name) for pairs in found]) for name in Pairs._fields
        )
        self.genes_ = np.zeros(X.shape[1], dtype=bool)
        self.genes_[self.pairs_] = True
        return self

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Votes for minus votes against, over the number of pairs: one value per sample and class.

        With two classes there is one value per sample, that of the second class. A part that is too
        small to change the order of different votes is added. It decides between equal ones.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        needed, places = np.unique(self.pairs_, return_inverse=True)
        values = dense_columns(X, needed)
        first, second = (values[:, one] for one in places.reshape(self.pairs_.shape).T)
        votes = pair_votes(first, second, self.signs_, self.ties)
        votes *= 1.0 + tie_break(self.k_.max()) * self.scores_
        starts = np.concatenate([[0], np.cumsum(self.k_)[:-1]])
        means = np.add.reduceat(votes, starts, axis=1) / self.k_
        return means[:, 0] if len(self.k_) == 1 else means

    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Shares of votes, ties half; with more than two classes each row is divided by its sum.

        Where the model carries a ``calibration_``, its probabilities are given instead.
        """
        scores = self.decision_function(X)
        calibration = carried(self, "calibration_")
        if calibration is not None:
            return calibration.probabilities(scores)
        return plain_probabilities(self, scores)

    def predict(self, X: ArrayLike) -> NDArray:
        """The class that most pairs vote for."""
        chosen = best_class(self.decision_function(X))
        return self.classes_[chosen]

    def subset(self, classes: Iterable) -> TopScoringPairsClassifier:
        """The model restricted to two or more of its classes, which it then chooses among.

        The pairs of each class stay as they are. Of two classes, the pairs of the first vote
        against the second; if one has more pairs, its best are kept, as many as the other has.
        This model is left as it is. Its calibration and record of held-out scores are dropped.
        """
        check_is_fitted(self)
        return subset_votes(self, classes)

    def _choose(self, search: PairSearch) -> list[Pairs]:
        """The pairs of all classes, their number chosen."""
        found = search.find()
        if self.choose_k == "max" or max(len(pairs.genes) for pairs in found) < 3:
            return [pairs.first(self.k_max) for pairs in found]
        sizes = np.bincount(search.codes)
        if self.choose_k == "cv":
            if np.count_nonzero(sizes > 1) < 2:  # nothing to train a fold on
                return [pairs.first(1) for pairs in found]
            k = k_by_validation(search, make_folds(search.codes, self.cv, None), self.ties)
            return [pairs.first(k) for pairs in found]
        chosen = []
        for positive, pairs in zip(search.positives, found, strict=True):
            votes = votes_in(search.orders, pairs, self.ties)
            rest = search.rest_weights(sizes, positive)
            chosen.append(pairs.first(k_by_variance(votes, search.codes, positive, rest)))
        return chosen

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Only the order of genes within a sample is seen; see RankLinearClassifier.
        tags.classifier_tags.poor_score = True
        return tags
