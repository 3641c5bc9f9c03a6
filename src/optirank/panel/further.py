"""Genes outside the panel: they check the labels that it gave, and correct them.

A panel labels samples with few genes; data have thousands of others.

*Agreement.* If the labels are right, the samples that got label c differ from those
that got other labels, in the other genes, as they do in the reference. Over genes
outside the panel, ranked among themselves in each sample (from -1/2 to 1/2),

    d_c = mean of the samples of label c - mean of these means over the labels,

and the agreement is the correlation of ``d`` of the reference with ``d`` of the query,
over all labels of at least three samples and all genes that both have; by label, that
of the rows. It needs no truth: a query of another tissue, or with scrambled genes, has
almost none.

*Learning from the query.* A panel was found on another platform, and its labels are
mostly right. So a regression on the ranks of the query's own genes, taught by the
surest of these labels, corrects many of the others.

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

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from optirank._util.numbers import PerSample, as_dense, row_correlations
from optirank._util.work import threads_in_use
from optirank.panel.samples import DrawnSamples, Pass
from optirank.ranks.scoring import panel_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.samples import ClassSums

N_GENES = 1000  # outside the panel, those of largest t statistic
_LEAST_T = 3.0  # one gene in 400 has such a t statistic by chance: it tells no class
FEWEST_GENES = 50  # fewer genes of a query show nothing but a clear agreement
CLEAR = 2.0  # standard errors of a correlation by chance, 1 / sqrt(genes)
FEWEST_SAMPLES = 3  # of a label that is looked at
MOST_SAMPLES = 2000  # of a query, evenly spaced: more change little, and cost time

_N_TEACHING = 2000  # of the query; more or fewer made no difference over real pairs
_ROUNDS = 2  # one gains less by half a point, five no more
_KEEP = 0.8  # of the samples of each label, the surest; 0.5 to 0.9 are equal
_FEWEST = 3  # samples of a label to learn from, where it has so many
_MOST = 500  # samples of a label to learn from: more cost time and gain nothing
_C = 0.01  # scikit-learn's inverse penalty: 0.1 loses on queries of a single class
_LEAST = 1e-6  # probability of a class, and that of a class that no sample got
_LEAST_OF_PANEL = 1e-9
_HALVINGS = 30  # of the range of powers: its logarithm is then known to eight digits


class Agreement:
    """How labels differ in other genes, in the reference and in the query.

    Attributes
    ----------
    labels : positions of the classes that were looked at: those of at least three
        samples of the query, where there are two or more of them; else none.
    reference, query : (labels, genes), differences from the mean of the labels.
    n_genes : genes that were compared.
    overall : the agreement over all labels; None where there is none.
    by_label : that of each label that was looked at, by its position.
    """

    def __init__(self, labels: NDArray, reference: NDArray, query: NDArray) -> None:
        self.labels = labels
        self.reference = reference
        self.query = query
        self.n_genes = reference.shape[1]
        self.overall: float | None = None
        self.by_label: dict[int, float] = {}
        if len(labels):
            whole = row_correlations(reference.reshape(1, -1), query.reshape(1, -1))
            self.overall = float(whole[0])
            of_labels = row_correlations(reference, query).tolist()
            self.by_label = dict(zip(labels.tolist(), of_labels, strict=True))


class RanksByLabel:
    """Sums of the ranks of some genes among themselves, by label."""

    def __init__(self, n_classes: int) -> None:
        self._counts: NDArray = np.zeros(n_classes)
        self._sums: NDArray = np.zeros((n_classes, 1))

    def add(self, block: Any, codes: NDArray) -> None:
        """Take samples with their labels, which are positions of classes."""
        if not block.shape[0]:
            return
        n_genes = block.shape[1]
        ranks = panel_ranks(block) - (n_genes - 1) / (2 * n_genes)
        # Not a product of matrices, whose last digits depend on the machine
        sums = np.zeros((len(self._counts), n_genes))
        for code in np.unique(codes):
            sums[code] = ranks[codes == code].sum(axis=0)
        self._counts = self._counts + np.bincount(codes, minlength=len(self._counts))
        self._sums = self._sums + sums

    def merge(self, other: RanksByLabel) -> None:
        """Take those of the samples that follow."""
        self._counts = self._counts + other._counts
        self._sums = self._sums + other._sums

    def result(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Samples of each label, and their mean ranks; zeros where there are none."""
        sizes = np.maximum(self._counts, 1.0)[:, None]
        return self._counts, self._sums / sizes


def further_genes(sums: ClassSums, panel: NDArray, n: int = N_GENES) -> NDArray:
    """Rising positions of the genes outside a panel that tell the classes best.

    None where too few tell them to check anything, as in the data of an assay.
    """
    correlations = np.abs(sums.correlations()).max(axis=0)
    n_free = max(sums.sizes.sum() - 2, 1)
    t = correlations * np.sqrt(n_free / np.maximum(1.0 - correlations**2, 1e-12))
    telling = np.setdiff1d(np.flatnonzero(t >= _LEAST_T), panel)
    if len(telling) < FEWEST_GENES:
        return np.zeros(0, np.intp)
    return sums.best_genes(n, among=telling)


def agreement_of(reference: NDArray, counts: NDArray, means: NDArray) -> Agreement:
    """Compare mean ranks (classes, genes) of the reference with those of samples by
    label, of which `RanksByLabel` gives the numbers and means.

    Fewer than 50 genes compare nothing, unless their agreement is too high for chance.
    """
    labels = np.flatnonzero(counts >= FEWEST_SAMPLES)
    if len(labels) >= 2 and reference.shape[1]:
        both = reference[labels].astype(np.float64), means[labels]
        compared = Agreement(labels, *(own - own.mean(axis=0) for own in both))
        bound = CLEAR if compared.n_genes < FEWEST_GENES else -np.inf
        if compared.overall * np.sqrt(compared.n_genes) > bound:
            return compared
    return Agreement(labels[:0], reference[:0], means[:0])


def learn_from_query(probabilities: NDArray, run_pass: Pass, n_genes: int) -> NDArray:
    """Probabilities of the query's samples after learning from the query itself.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_classes)
        Probabilities of the panel model for all samples of the query.
    run_pass : callable
        Runs over the same samples, with all genes that the query has.
    n_genes : int
        How many these are.

    Returns
    -------
    array of shape (n_samples, n_classes)
        The probabilities given where all samples have one label, or no gene varies.
    """
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
                np.zeros(n_genes, np.uint64),
                probabilities.shape[1],
                per_class=0,
            )
            run_pass([looking])
            genes = looking.sums.best_genes(_N_TEACHING)
            if len(genes) < 2:
                return current
        of_query = _of_query(current, genes, run_pass)
        current = softmax(0.5 * of_panel + 0.5 * np.log(of_query), axis=1)
    return current


def _of_query(current: NDArray, genes: NDArray, run_pass: Pass) -> NDArray:
    """What a regression says that the surest of the current labels teach."""
    from sklearn.linear_model import LogisticRegression

    from optirank.ranks.orders import doubled_ranks  # loads numba

    def ranks(block: Any) -> NDArray:
        doubled = doubled_ranks(as_dense(block), threads_in_use())
        return doubled.astype(np.float32) / np.float32(2 * block.shape[1])

    labels = current.argmax(axis=1)
    rows = _surest(current, labels)
    teaching = PerSample(ranks)
    run_pass([teaching], genes, rows=rows)
    means = teaching.result().mean(axis=0)
    model = LogisticRegression(C=_C, class_weight="balanced", max_iter=500, tol=1e-3)
    model.fit(teaching.result() - means, labels[rows])
    given = PerSample(lambda block: model.predict_proba(ranks(block) - means))
    run_pass([given], genes)
    probabilities = np.full(current.shape, _LEAST)
    probabilities[:, model.classes_] = np.maximum(given.result(), _LEAST)
    return probabilities / probabilities.sum(axis=1, keepdims=True)


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
