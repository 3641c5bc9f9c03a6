"""TopScoringPairsClassifier (k-TSP): a majority vote of a few pairs of genes."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank.estimators.pairs import (
    PairClassifier,
    Pairs,
    PairSearch,
    dense_columns,
    k_by_validation,
    pair_votes,
    tie_break,
)
from optirank.ranks.scoring import best_class, by_class
from optirank.tuning.folds import make_folds

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


class TopScoringPairsClassifier(PairClassifier):
    """k top scoring pairs (k-TSP): each of k pairs of genes votes, the majority decides.

    The score of a pair (a, b) of genes is ``|P(x_a > x_b | class) - P(x_a > x_b | rest)|``,
    estimated by the shares of the training samples (Geman and others, 2004). Of equal scores, the
    pair whose mean difference of ranks within a sample differs most between class and rest is the
    better one. Pairs are taken from the best on, each without the genes of those before it (Tan and
    others, 2005).

    The classical method is ``TopScoringPairsClassifier(9, choose_k="cv", ties="min",
    balance_rest=False)``. The defaults work better on other platforms.

    With more than two classes this is done for each class against the rest. The class with the
    largest mean vote is predicted. Votes weighted by the scores of the pairs decide between equal
    ones.

    Parameters
    ----------
    k_max : int, default=13
        The largest number of pairs per class; an even one counts as the odd number below.
    choose_k : {"max", "cv"}, default="max"
        How the odd number k of pairs is chosen. "max": `k_max`, which worked best on other
        platforms. "cv": the best balanced accuracy in cross-validation on the training samples, one
        k for all classes; of equally good ones, the smallest k is taken.
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

    References
    ----------
    - Geman, d'Avignon, Naiman, Winslow: Classifying gene expression profiles from pairwise mRNA
      comparisons. Statistical Applications in Genetics and Molecular Biology 3, 2004.
    - Tan, Naiman, Xu, Winslow, Geman: Simple decision rules for classifying human cancers from gene
      expression profiles. Bioinformatics 21, 2005.

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
        "choose_k": [StrOptions({"max", "cv"})],
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

        X, codes = self._checked(X, y)
        search = PairSearch(
            orders=order_samples(X),
            codes=codes,
            n_classes=len(self.classes_),
            k_max=self.k_max,
            max_genes=self.max_genes,
            balanced=self.balance_rest,
        )
        found = self._choose(search)
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
        """Shares of votes, ties half; with more than two classes each row is divided by its sum."""
        scores = by_class(self.decision_function(X))
        shares = 1.0 + scores / (1.0 + 2.0 * tie_break(self.k_.max()))  # above 0
        return shares / shares.sum(axis=1, keepdims=True)

    def predict(self, X: ArrayLike) -> NDArray:
        """The class that most pairs vote for."""
        chosen = best_class(self.decision_function(X))
        return self.classes_[chosen]

    def _choose(self, search: PairSearch) -> list[Pairs]:
        """The pairs of all classes, their number chosen."""
        found, k = search.find(), self.k_max
        if self.choose_k == "cv" and max(len(pairs.genes) for pairs in found) > 2:
            k = 1
            if np.count_nonzero(np.bincount(search.codes) > 1) > 1:  # else no fold can be trained
                k = k_by_validation(search, make_folds(search.codes, self.cv, None), self.ties)
        return [pairs.first(k) for pairs in found]
