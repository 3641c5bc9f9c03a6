"""Lists of marker genes by simple rules and by published tools, to compare panels with.

Each function takes log values (samples x genes) and classes as numbers, and ranks all
genes for every class, the best first: (classes, genes). `in_turns` makes one list of
them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_N_FOREST = 500  # genes that a forest sees: those of largest t statistic
_N_BINARY = 15  # genes per class that NS-Forest orders by their binary score
_COSG_EXPRESSED = 0.1  # share of the class that must express a gene, as in COSG

Ranking = Callable[[NDArray, NDArray], NDArray]


def cosg(X: NDArray, codes: NDArray) -> NDArray[np.intp]:
    """COSG (Dai et al. 2022, doi:10.1093/bib/bbab579), with its default mu = 1.

    With the cosine ``c_k`` between a gene and the indicator of class k, the score of
    the gene for class k is ``c_k^3 / sum over t of c_t^2``.
    """
    indicator = np.eye(codes.max() + 1)[codes]
    lengths = np.sqrt((X**2).sum(axis=0))
    cosines = (X.T @ indicator) / np.sqrt(indicator.sum(axis=0))
    cosines /= np.where(lengths > 0, lengths, 1.0)[:, None]
    squares = cosines**2
    total = squares.sum(axis=1, keepdims=True)
    scores = (cosines * squares / np.where(total > 0, total, 1.0)).T
    shares = indicator.T @ (X > 0) / indicator.sum(axis=0)[:, None]
    return _best_first(np.where(shares >= _COSG_EXPRESSED, scores, -1.0))


def ns_forest(X: NDArray, codes: NDArray) -> NDArray[np.intp]:
    """The ranking of NS-Forest (Aevermann et al. 2021, doi:10.1101/gr.275569.121).

    A random forest per class against the rest ranks the genes by their importance,
    genes whose median in the class is 0 last; the first 15 are ordered by their binary
    score. NS-Forest goes on to choose the few of them of best F score, which makes no
    list of a given length.
    """
    from sklearn.ensemble import RandomForestClassifier

    seen = np.sort(in_turns(t_statistic(X, codes), min(_N_FOREST, X.shape[1])))
    n_classes = codes.max() + 1
    medians = np.array([np.median(X[codes == k], axis=0) for k in range(n_classes)])
    rankings = []
    for k in range(n_classes):
        forest = RandomForestClassifier(
            50, class_weight="balanced", random_state=0, n_jobs=1
        )
        forest.fit(X[:, seen], codes == k)
        importance = np.full(X.shape[1], -1.0)
        importance[seen] = forest.feature_importances_
        importance[medians[k] <= 0] -= 1.0
        order = np.argsort(-importance, kind="stable")
        own = np.where(medians[k] > 0, medians[k], 1.0)
        others = np.delete(medians, k, axis=0)
        binary = np.maximum(0.0, 1.0 - others / own).sum(axis=0) / max(1, len(others))
        binary[medians[k] <= 0] = 0.0
        first = order[:_N_BINARY]
        order[:_N_BINARY] = first[np.argsort(-binary[first], kind="stable")]
        rankings.append(order)
    return np.array(rankings)


def t_statistic(X: NDArray, codes: NDArray) -> NDArray[np.intp]:
    """Welch's t of each class against the rest, for genes that are higher in
    the class.
    """
    rankings = []
    for k in range(codes.max() + 1):
        inside, outside = X[codes == k], X[codes != k]
        gap = inside.mean(axis=0) - outside.mean(axis=0)
        spread = inside.var(axis=0, ddof=1) / len(inside)
        spread = spread + outside.var(axis=0, ddof=1) / len(outside)
        rankings.append(gap / np.sqrt(np.where(spread > 0, spread, np.inf)))
    return _best_first(np.array(rankings))


def highly_variable(X: NDArray, codes: NDArray) -> NDArray[np.intp]:
    """Genes of largest variance beyond that of genes of a similar mean; the same
    for all.
    """
    means, variances = X.mean(axis=0), X.var(axis=0)
    order = np.argsort(means, kind="stable")
    excess = np.zeros(X.shape[1])
    for part in np.array_split(order, min(20, max(1, len(order) // 20))):
        middle = np.median(variances[part])
        width = np.median(np.abs(variances[part] - middle))
        excess[part] = (variances[part] - middle) / (width if width > 0 else 1.0)
    return np.argsort(-excess, kind="stable")[None, :]


def random_genes(X: NDArray, codes: NDArray) -> NDArray[np.intp]:
    """Genes at random, of those that vary."""
    varies = np.flatnonzero(X.var(axis=0) > 0)
    rest = np.setdiff1d(np.arange(X.shape[1]), varies)
    return np.append(np.random.default_rng(0).permutation(varies), rest)[None, :]


def in_turns(rankings: NDArray, n: int) -> NDArray[np.intp]:
    """The first n genes of all rankings, one of each class after the other,
    each once.
    """
    genes = list(dict.fromkeys(rankings.T.ravel().tolist()))
    return np.array(genes[:n], dtype=np.intp)


def _best_first(scores: NDArray) -> NDArray[np.intp]:
    return np.argsort(-scores, axis=1, kind="stable")


RANKINGS: dict[str, Ranking] = {
    "COSG": cosg,
    "NS-Forest": ns_forest,
    "t statistic": t_statistic,
    "highly variable": highly_variable,
    "random": random_genes,
}
