"""Learning from the query: labels that the panel gave teach the query's own genes.

A panel was found on another platform, with few genes. The query has thousands of genes,
measured on its own platform, and the panel's labels are mostly right. So a regression
on the ranks of the query's own genes, taught by the surest of these labels, corrects
many of the others.

1. The 2000 genes of the query that correlate most with the labels given, ranked among
   themselves in each sample.
2. Logistic regression on these ranks and the surest four fifths of each label, all
   labels counted equally, strongly penalised.
3. Its probabilities are mixed half and half with the panel's, as logarithms, and give
   new labels; everything once more with these.

Samples are read in blocks. The fit takes at most 500 samples per label, so memory does
not grow with the query.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from optirank._util.matrices import PerSample, as_dense
from optirank.panel.sources import DrawnSamples, KeptSamples, Pass
from optirank.ranks.orders import doubled_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.linear_model import LogisticRegression

N_GENES = 2000  # of the query; more or fewer made no difference over real pairs
_ROUNDS = 2  # one gains less by half a point, five no more
_KEEP = 0.8  # of the samples of each label, the surest; 0.5 to 0.9 are equal
_FEWEST = 3  # samples of a label to learn from, where it has so many
_MOST = 500  # samples of a label to learn from: more cost time and gain nothing
_C = 0.01  # scikit-learn's inverse penalty: 0.1 loses on queries of a single class
_LEAST = 1e-6  # probability of a class, and that of a class that no sample got
_LEAST_OF_PANEL = 1e-9
_HALVINGS = 30  # of the range of powers: its logarithm is then known to eight digits


def learn_from_query(
    probabilities: NDArray,
    run_pass: Pass,
    shape: tuple[int, int],
    *,
    n_threads: int = 1,
) -> NDArray:
    """Probabilities of the query's samples after learning from the query itself.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_classes)
        Probabilities of the panel model for all samples of the query.
    run_pass : callable
        Runs over the same samples, with all genes that the query has.
    shape : tuple of int
        Samples and genes of the query.
    n_threads : int
        Threads for the ranks; they change the time alone.

    Returns
    -------
    array of shape (n_samples, n_classes)
        The probabilities given where all samples have one label, or no gene varies.
    """
    if shape[0] != len(probabilities):
        raise ValueError(
            f"the query has {shape[0]} samples and there are probabilities of "
            f"{len(probabilities)}: give one row per sample"
        )
    of_panel = np.log(np.maximum(probabilities, _LEAST_OF_PANEL))
    current = probabilities
    genes = None
    for _ in range(_ROUNDS):
        labels = current.argmax(axis=1)
        if len(np.unique(labels)) < 2:
            return current
        if genes is None:
            looking = DrawnSamples(
                labels,
                np.zeros(shape[1], np.uint64),
                probabilities.shape[1],
                per_class=0,
                n_threads=n_threads,
            )
            run_pass([looking], None)
            genes = looking.sums.best_genes(N_GENES)
            if len(genes) < 2:
                return current
        rows = _surest(current, labels)
        kept = KeptSamples(rows, len(labels))
        run_pass([kept], genes)
        ranks = _ranks(kept.result(), n_threads)
        means = ranks.mean(axis=0)
        model = _fit(ranks - means, labels[rows])
        of_block = functools.partial(
            _probabilities, model=model, means=means, n_threads=n_threads
        )
        given = PerSample(len(labels), of_block)
        run_pass([given], genes)
        of_query = np.full(probabilities.shape, _LEAST)
        of_query[:, model.classes_] = np.maximum(given.result(), _LEAST)
        of_query /= of_query.sum(axis=1, keepdims=True)
        current = softmax(0.5 * of_panel + 0.5 * np.log(of_query), axis=1)
    return current


def sharpened(probabilities: NDArray, mean_confidence: float) -> NDArray:
    """Probabilities ``p^s / sum p^s``, as sure on average as asked for.

    The panel and the regression on the query are both strongly penalised, so their
    mixture is far less sure than it is right. One power s for all samples makes the
    mean of the largest probability that of the panel's calibrated ones. No label
    changes.
    """
    logarithms = np.log(np.maximum(probabilities, _LEAST_OF_PANEL))
    powers = (1e-3, 1e3)
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(powers[0] * powers[1]))
        if softmax(middle * logarithms, axis=1).max(axis=1).mean() < mean_confidence:
            powers = (middle, powers[1])
        else:
            powers = (powers[0], middle)
    return softmax(powers[1] * logarithms, axis=1)


def _surest(probabilities: NDArray, labels: NDArray) -> NDArray:
    """Rising positions of the surest samples of each label.

    Of more than 500, so many are taken, evenly from the surest to the least sure of
    them.
    """
    chosen = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        order = own[np.argsort(-probabilities[own, label], kind="stable")]
        surest = order[: max(_FEWEST, int(np.ceil(_KEEP * len(own))))]
        if len(surest) > _MOST:
            spread = np.linspace(0, len(surest) - 1, _MOST).astype(np.intp)
            surest = surest[spread]
        chosen.append(surest)
    return np.sort(np.concatenate(chosen))


def _ranks(block: Any, n_threads: int) -> NDArray:
    """Ranks of the genes among themselves, from 0 to 1."""
    doubled = doubled_ranks(as_dense(block), n_threads)
    return doubled.astype(np.float32) / np.float32(2 * block.shape[1])


def _probabilities(
    block: Any, model: LogisticRegression, means: NDArray, n_threads: int
) -> NDArray:
    """Probabilities that the regression gives to the samples of a block."""
    return model.predict_proba(_ranks(block, n_threads) - means)


def _fit(X: NDArray, labels: NDArray) -> LogisticRegression:
    """Logistic regression in which all labels count equally."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_C, class_weight="balanced", max_iter=500, tol=1e-3)
    return model.fit(X, labels)
