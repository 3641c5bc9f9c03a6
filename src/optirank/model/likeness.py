"""What a model stores of its training data to compare a query with.

`Likeness` is the out-of-distribution score, `FurtherGenes` are mean ranks of genes that
have no part in the labels, and `ValueShares` the scale of values and their zeros.

The likeness of a sample is the correlation of its panel ranks with the mean panel ranks
of its label in training. The threshold is a quantile of the same score over held-out
samples of that label, so ``rate`` is the share of known samples that lose their label.

On another platform all correlations are lower: by .06 to .15 in the median over real
pairs, and nine tenths by less than .33. So the median shortfall of a query, its
*shift*, is forgiven, but only up to a cap: samples of another tissue, or with shuffled
genes, fall short by more, and must not raise each other. Few samples say little about
the shift of their platform: their median counts beside a typical shift.

Ranks within a sample do not change under any rising function of its values, so counts,
CPM and log(CPM + 1) are all the same to a model on ranks. They do change when each gene
is scaled or centred, smoothed or imputed, and zeros are ties.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank._util.metrics import row_correlations
from optirank.io.genes import match_genes
from optirank.model.confidence import class_codes

N_LEVELS = 101  # percentiles; a class with as many held-out samples has its own
# Forgiven: .3 finds a tenth fewer shuffled cells, .1 loses twice as many
_MAX_SHIFT = 0.2
_TYPICAL_SHIFT = 0.1  # of real pairs of platforms, where a query has few samples
_PRIOR_SAMPLES = 20  # samples that the typical shift counts for

INVERTED_BELOW = (
    0.15  # no query of a right pair correlates as negatively with all classes
)
INVERTED = (
    "the genes of these samples are in the opposite order of those of every class of "
    "the training data: if less is more, as in Ct values of qPCR, give invert=True, "
    "or the negative values"
)
CHANCE = 1.5  # standard deviations of a correlation by chance, where genes are few
MANY_ZEROS = 0.1  # share of zeros from which data are those of single cells
MORE_ZEROS = 0.35  # a third of the panel more is tied: a guess, not measured
SCALED = (
    "ranks within a sample change when genes are scaled or centred: if they were, give "
    "counts or their logarithm (layer=)"
)


@dataclass(frozen=True)
class Likeness:
    """Mean ranks of each class, and percentiles of the score over held-out samples."""

    profiles: NDArray[np.float32]  # (classes, genes): mean scaled rank among the panel
    levels: NDArray[np.float32]  # (classes, 101): of held-out samples given that label
    n_samples: int  # held-out samples

    def __post_init__(self) -> None:
        n_levels = (len(self.profiles), N_LEVELS)
        if self.levels.shape != n_levels or (np.diff(self.levels, axis=1) < 0).any():
            raise ValueError(
                "the out-of-distribution score has no rising percentiles per class"
            )

    def score(
        self, ranks: NDArray, labels: NDArray, present: NDArray | slice = slice(None)
    ) -> NDArray[np.float64]:
        """How much samples look like the class they are given: a correlation.

        Parameters
        ----------
        ranks : (n, q), ranks among the panel's genes that are present.
        labels : the position of the class each sample is given.
        present : which genes of the panel these are, a mask or positions; all by
            default.
        """
        return row_correlations(ranks, self.profiles[:, present][labels])

    def shift(self, scores: NDArray, labels: NDArray) -> float:
        """By how much the scores fall short of those of held-out samples, in
        the median.
        """
        if not len(scores):
            return 0.0
        return float(np.median(self._quantiles(0.5)[labels] - scores))

    def relative(self, scores: NDArray, labels: NDArray) -> float | None:
        """The median score, as a share of that of held-out samples of the same labels.

        A model of noisy samples has low scores itself, so that a shift says less.
        """
        if not len(scores):
            return None
        own = float(np.median(self._quantiles(0.5)[labels]))
        return float(np.median(scores)) / own if own > 0 else None

    def unknown(
        self, scores: NDArray, labels: NDArray, rate: float
    ) -> NDArray[np.bool_]:
        """Which samples of a query look like no class.

        Parameters
        ----------
        scores : of all samples of the query (:meth:`score`).
        labels : the position of the class each is given.
        rate : the share of held-out samples whose label would be withheld.
        """
        if not 0 < rate < 1:
            raise ValueError(
                f"unknown rate {rate!r}: use a share between 0 and 1, such as 0.01"
            )
        forgiven = forgiven_shift(self.shift(scores, labels), len(scores))
        return scores + forgiven < self._quantiles(rate)[labels]

    def _quantiles(self, share: float) -> NDArray[np.float64]:
        """A quantile of the held-out scores of each class."""
        shares = np.linspace(0.0, 1.0, N_LEVELS)
        return np.array([np.interp(share, shares, levels) for levels in self.levels])


def forgiven_shift(shift: float, n_samples: int) -> float:
    """How much of a query's shift is put down to its platform."""
    weighted = n_samples * max(0.0, shift) + _PRIOR_SAMPLES * _TYPICAL_SHIFT
    return min(_MAX_SHIFT, weighted / (n_samples + _PRIOR_SAMPLES))


def looks_inverted(mean_ranks: NDArray, class_means: NDArray) -> bool:
    """Whether the genes of a query are in the opposite order of those of all classes.

    So are Ct values of qPCR, of which less is more, and every label is then reversed.
    Two classes whose means are each other's opposite hide it. After negation, 5 of the
    queries of 17 real pairs are found by their panels of about 100 genes, and 11 of
    those of 16 by 1000 further genes; of queries of other tissues and of shuffled
    genes, 1 in 100 is. The limit was chosen on the same pairs.

    Parameters
    ----------
    mean_ranks : (genes,), mean ranks of the query's samples among these genes.
    class_means : (classes, genes), those of each class of the training data.
    """
    queries = np.broadcast_to(mean_ranks, class_means.shape)
    limit = max(INVERTED_BELOW, CHANCE / np.sqrt(class_means.shape[1]))
    return bool((row_correlations(queries, class_means) < -limit).all())


def fit_likeness(
    ranks: ArrayLike, y: ArrayLike, predicted: ArrayLike, classes: NDArray
) -> Likeness:
    """Fit the score on held-out samples.

    Parameters
    ----------
    ranks : (n, genes), ranks of training samples among the genes of the model's panel
        (``optirank.ranks.scoring.panel_ranks``).
    y : their labels; every class must have one.
    predicted : the labels they were given while held out, None for those that were not.
    classes : the model's classes.
    """
    ranks = np.asarray(ranks, dtype=float)
    predicted = np.asarray(predicted, dtype=object)
    truth = class_codes(y, classes)
    counts = np.bincount(truth, minlength=len(classes))
    if not counts.all():
        raise ValueError(f"no sample is of class {classes[counts.argmin()]}")
    sums = np.zeros((len(classes), ranks.shape[1]))
    np.add.at(sums, truth, ranks)
    profiles = (sums / counts[:, None]).astype(np.float32)
    held_out = np.array([label is not None for label in predicted])
    ranks = ranks[held_out]
    truth = truth[held_out]
    given = class_codes(predicted[held_out].astype(classes.dtype), classes)
    compared = profiles[given].astype(float)
    own = np.flatnonzero((given == truth) & (counts[truth] > 1))
    others = counts[truth[own]][:, None] - 1
    # Without the sample itself
    compared[own] = (sums[truth[own]] - ranks[own]) / others
    scores = row_correlations(ranks, compared)
    shares = np.linspace(0.0, 1.0, N_LEVELS)
    levels = np.tile(np.quantile(scores, shares), (len(classes), 1))
    for code in range(len(classes)):
        of_class = scores[given == code]
        if len(of_class) >= N_LEVELS:
            levels[code] = np.quantile(of_class, shares)
    return Likeness(profiles, levels.astype(np.float32), len(ranks))


@dataclass(frozen=True, eq=False)
class FurtherGenes:
    """Mean ranks of each class over genes outside the panel.

    The genes are ranked among themselves, from -1/2 to 1/2. No score depends on them:
    `optirank.panel.further` compares them with those of a query.
    """

    genes: NDArray[np.object_]  # (genes,): names
    means: NDArray[np.float16]  # (classes, genes)

    def __post_init__(self) -> None:
        if self.means.ndim != 2 or self.means.shape[1] != len(self.genes):
            raise ValueError(
                f"mean ranks of shape {self.means.shape} do not fit the "
                f"{len(self.genes)} further genes"
            )
        if len(set(self.genes.tolist())) < len(self.genes):
            raise ValueError("the further genes have a name more than once")
        if not self.means.size or not (np.abs(self.means) <= 0.5).all():
            raise ValueError("the mean ranks of further genes are not all within 1/2")

    def of_classes(self, kept: NDArray[np.intp]) -> FurtherGenes:
        """Those of some of the classes."""
        return FurtherGenes(self.genes, self.means[kept])

    def found_among(
        self, names: Iterable[str], used: Collection[str]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Columns of the genes that some data have, and the mean ranks of these.

        ``names`` are the genes of the data, ``used`` those of the panel that labels
        them, which must have no part: a larger panel than the model's own may have
        some of the further genes.
        """
        columns = match_genes(self.genes.tolist(), names).columns
        there = columns >= 0
        there &= ~np.isin(self.genes, list(used))
        return columns[there], self.means[:, there].astype(np.float64)


@dataclass(frozen=True)
class ValueShares:
    """The scale of values, and the shares of them that are zero or negative."""

    scale: str | None = None  # counts, linear or log; None where there were no values
    zeros: float = 0.0
    negative: float = 0.0

    def __str__(self) -> str:
        return f"{self.scale}, {self.zeros:.0%} zeros"


class ValueCounter:
    """Zeros, negative values and the scale of data, accumulated block by block."""

    def __init__(self) -> None:
        self._counts = np.zeros(3, dtype=np.int64)  # of all values, zeros and negative
        self._scale: str | None = None

    def add(self, block: Any, rows: slice | None = None) -> None:
        """Count the values of a block, dense or sparse."""
        values = block.data if hasattr(block, "indptr") else np.asarray(block)
        n_values = int(np.prod(block.shape))
        n_zero = n_values - np.count_nonzero(values)
        counts = [n_values, n_zero, np.count_nonzero(values < 0)]
        self._counts = self._counts + np.array(counts)
        if self._scale is None and values.size:
            from optirank._util.matrices import value_scale  # scipy loads

            self._scale = value_scale(block)

    def merge(self, other: ValueCounter) -> None:
        """Count the values of another one."""
        self._counts = self._counts + other._counts
        self._scale = self._scale or other._scale

    def result(self) -> ValueShares:
        """The shares of all values that were added."""
        zeros, negative = (self._counts[1:] / max(1, self._counts[0])).tolist()
        return ValueShares(self._scale, round(zeros, 6), round(negative, 6))


def value_notes(query: ValueShares, trained: ValueShares) -> list[str]:
    """How the values of a query differ from those of training, in ways that matter."""
    if query.scale is None or trained.scale is None:
        return []
    notes = []
    if query.negative and not trained.negative:
        notes.append(
            f"{query.negative:.1%} of the values are negative, and none were in the "
            f"training data: {SCALED}"
        )
    if not query.zeros and trained.zeros >= MANY_ZEROS:
        notes.append(
            f"no value is zero, and {trained.zeros:.0%} were in the training data: "
            "that is usual for a microarray; smoothed or imputed values would change "
            "ranks"
        )
    elif query.zeros - trained.zeros > MORE_ZEROS:
        notes.append(
            f"{query.zeros:.0%} of the values are zero, and {trained.zeros:.0%} were "
            "in the training data: zeros are ties, so labels are less certain; a "
            "larger panel may do better"
        )
    return notes
