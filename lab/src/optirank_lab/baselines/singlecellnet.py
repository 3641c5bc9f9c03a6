"""SingleCellNet: a random forest on the order of informative pairs of genes."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from optirank_lab.baselines.anova import Matrix
from optirank_lab.baselines.top_pairs import PairClassifier, count_pairs, dense_columns
from optirank_lab.baselines.transformers import SingleCellNetGenes, top_each_way


class SingleCellNetClassifier(PairClassifier):
    """SingleCellNet (SCN): a random forest on the order of pairs of genes.

    Genes are selected by their correlation with the label
    (``SingleCellNetGenes``, `n_top_genes` each way). Every
    ordered pair (a, b) of selected genes is a binary feature, ``x_a > x_b``; the
    `n_top_pairs` features of highest correlation with the label are kept. With more
    than two classes both choices are made for each class against the rest, among the
    class's own genes, and the pairs of all classes are joined. A random forest with
    balanced class weights learns from these features.

    The forest also learns a class of `n_random` profiles without structure: the pair
    features of random training samples, each profile's values shuffled over its pairs.
    This class never shows: the probabilities of the real classes are divided by their
    sum (where the forest gives the random class everything, the real classes share
    equally).

    Comparisons within a sample do not change under increasing maps of its values, so
    counts, counts per million and their logarithms all serve. Only the selection of
    genes looks at the values themselves: counts are down-sampled, scaled and logged for
    it, anything else is used as it is.

    Parameters
    ----------
    n_top_genes : int, default=100
        Genes taken at each end of the correlations, for each class.
    n_top_pairs : int, default=100
        Pairs kept for each class; all of them where there are fewer.
    n_trees : int, default=1000
        Trees of the forest.
    n_random : int, default=100
        Shuffled profiles of the random class; 0 leaves it out.
    n_jobs : int or None, default=None
        Threads the trees are grown and asked with.
    random_state : int, RandomState instance or None, default=None
        Seed of the down-sampling, the shuffled profiles and the forest.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    pairs_ : ndarray of shape (n_pairs, 2)
        Positions (a, b) of the genes compared, ``x_a > x_b``.
    genes_ : ndarray of shape (d,)
        Mask of the genes needed to predict: those of the pairs.
    forest_ : RandomForestClassifier
    """

    _parameter_constraints: dict = {
        "n_top_genes": [Interval(Integral, 1, None, closed="left")],
        "n_top_pairs": [Interval(Integral, 1, None, closed="left")],
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "n_random": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_top_genes: int = 100,
        n_top_pairs: int = 100,
        *,
        n_trees: int = 1000,
        n_random: int = 100,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_top_genes = n_top_genes
        self.n_top_pairs = n_top_pairs
        self.n_trees = n_trees
        self.n_random = n_random
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Matrix, y: Any) -> SingleCellNetClassifier:
        """Choose genes and pairs, and grow the forest; X holds counts or
        expression values.
        """
        X, codes = self._checked(X, y)
        random_state = check_random_state(self.random_state)
        self.pairs_ = self._choose_pairs(X, codes, random_state)
        self.genes_ = np.zeros(X.shape[1], dtype=bool)
        self.genes_[self.pairs_] = True

        features = self._pair_features(X)
        rng = np.random.default_rng(random_state.randint(2**31 - 1))
        chosen = rng.integers(features.shape[0], size=self.n_random)
        # Each profile shuffled over its pairs
        random = rng.permuted(features[chosen], axis=1)
        self.forest_ = RandomForestClassifier(
            self.n_trees,
            class_weight="balanced",
            n_jobs=self.n_jobs,
            random_state=random_state.randint(2**31 - 1),
        )
        # The codes of the classes are 0, 1, ...; the random class comes after them.
        random_codes = np.full(random.shape[0], self.classes_.size)
        self.forest_.fit(
            np.vstack([features, random]), np.concatenate([codes, random_codes])
        )
        return self

    def predict_proba(self, X: Matrix) -> np.ndarray:
        """Probabilities of the real classes, the random class taken out, shape (n,
        n_classes).
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        of_all_classes: Any = self.forest_.predict_proba(self._pair_features(X))
        votes = of_all_classes[:, : self.classes_.size]
        total = votes.sum(axis=1, keepdims=True)
        return np.where(total > 0, votes, 1.0) / np.where(
            total > 0, total, self.classes_.size
        )

    def predict(self, X: Matrix) -> np.ndarray:
        """The most probable class of each sample."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_probable]

    def _choose_pairs(
        self,
        X: Matrix,
        codes: np.ndarray,
        random_state: np.random.RandomState,
    ) -> np.ndarray:
        selector = SingleCellNetGenes(self.n_top_genes, random_state=random_state).fit(
            X, codes
        )
        n_selected = np.count_nonzero(np.asarray(selector.get_support()))
        if n_selected < 2:
            raise ValueError(
                f"{n_selected} of the {X.shape[1]} genes varies and passes the filter, "
                "and a pair needs 2: give more genes, or genes that are expressed in "
                "more samples"
            )
        positives = [1] if self.classes_.size == 2 else range(self.classes_.size)
        pairs = []
        for positive, correlation in zip(
            positives, selector.correlations_, strict=True
        ):
            genes = top_each_way(correlation, self.n_top_genes)
            correlations = pair_correlations(dense_columns(X, genes), codes == positive)
            n_varying = np.count_nonzero(correlations > -np.inf)
            # The highest signed correlation is first, ties are in the order of (a, b)
            n_best = min(self.n_top_pairs, n_varying)
            best = np.argsort(-correlations, axis=None, kind="stable")[:n_best]
            pairs.append(genes[np.stack(np.divmod(best, len(genes)), axis=1)])
        pairs = np.unique(np.concatenate(pairs), axis=0)
        if not pairs.size:
            raise ValueError(
                f"no pair of the {n_selected} selected genes changes its order between "
                "samples: give more genes, or raise n_top_genes"
            )
        return pairs

    def _pair_features(self, X: Matrix) -> np.ndarray:
        needed = np.flatnonzero(self.genes_)
        values = dense_columns(X, needed)
        first, second = np.searchsorted(needed, self.pairs_).T
        return (values[:, first] > values[:, second]).astype(np.float32)


def pair_correlations(values: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Correlation of every feature ``x_a > x_b`` with a binary label, -inf for a
    constant one.

    It follows from how often each feature is on among the positives and among all
    samples: with fractions `p`, `q` of these and `f` of positives it is ``f (p - q) /
    sqrt(f (1 - f) q (1 - q))``.
    """
    from optirank.ranks.orders import order_samples

    positive = np.asarray(positive, dtype=bool)
    n = len(positive)
    n_positive = int(positive.sum())
    groups = order_samples(values).groups_of(np.arange(values.shape[1]))
    on = count_pairs(groups, (~positive).astype(int), 2)
    among = on[0] / n_positive
    overall = on.sum(axis=0) / n
    fraction = n_positive / n
    scale = np.sqrt(fraction * (1 - fraction) * overall * (1 - overall))
    constant = scale == 0
    correlation = fraction * (among - overall) / np.where(constant, 1.0, scale)
    return np.where(constant, -np.inf, correlation)
