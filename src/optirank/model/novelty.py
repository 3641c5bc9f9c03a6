"""Samples unlike every class of the training data: an out-of-distribution score.

The score of a sample is the correlation of its panel ranks with the mean panel ranks of its label
in training. The threshold is a quantile of the same score over held-out samples of that label, so
``rate`` is the share of known samples that lose their label. It tells classes that were left out of
training better than the largest probability does. A model stores this as ``novelty_``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.model.linear import class_codes, linear_parts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_LEVELS = 101  # percentiles; a class with as many held-out samples has its own
_DIGITS = 5  # of stored mean ranks and levels


@dataclass(frozen=True)
class Novelty:
    """Mean ranks of each class, and percentiles of the score over held-out samples."""

    profiles: (
        NDArray  # (classes, genes): mean scaled rank of each gene among the panel's
    )
    levels: NDArray  # (classes, 101): percentiles of held-out samples given that label
    genes: NDArray  # (genes,): their columns in the training data
    n_samples: int  # held-out samples

    def __post_init__(self) -> None:
        for values in (self.profiles, self.levels):
            if values.ndim != 2 or not values.size or not np.isfinite(values).all():
                raise ValueError("the out-of-distribution score has no finite tables")
        if (
            self.levels.shape != (len(self.profiles), _LEVELS)
            or (np.diff(self.levels) < 0).any()
        ):
            raise ValueError(
                "the out-of-distribution score has no rising percentiles per class"
            )
        if (
            self.genes.shape != self.profiles.shape[1:]
            or (np.diff(self.genes) <= 0).any()
        ):
            raise ValueError(
                "the out-of-distribution score has genes that are no positions"
            )

    def score(
        self, ranks: NDArray, labels: NDArray, genes: NDArray | slice = slice(None)
    ) -> NDArray:
        """How much samples look like the class they are given: a correlation, 1 is most alike.

        Parameters
        ----------
        ranks : (n, q), ranks among the panel's genes that are present.
        labels : the position of the class each sample is given.
        genes : which genes of the panel these are, a mask or positions; all by default.
        """
        return _correlations(ranks, self.profiles[:, genes][labels])

    def unknown(self, scores: NDArray, labels: NDArray, rate: float) -> NDArray:
        """Which samples of a query look like no class.

        On another platform all correlations are lower, and at the held-out threshold nearly all
        samples would be unknown: so where the scores of the query are lower than those of held-out
        samples in their median, they are raised by the difference.

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
        if not len(scores):
            return np.zeros(0, dtype=bool)
        at = np.linspace(0.0, 1.0, _LEVELS)
        limit, middle = (
            np.array([np.interp(share, at, levels) for levels in self.levels])[labels]
            for share in (rate, 0.5)
        )
        return scores + max(0.0, float(np.median(middle - scores))) < limit

    def of_classes(self, kept: NDArray) -> Novelty:
        """The same for some of the classes, by their positions."""
        return replace(self, profiles=self.profiles[kept], levels=self.levels[kept])


def fit_novelty(
    model: Any, ranks: ArrayLike, y: ArrayLike, predicted: ArrayLike
) -> Novelty:
    """Fit the score on held-out samples.

    Parameters
    ----------
    model : the final model.
    ranks : (n, genes), ranks of training samples among the genes of the model's panel
        (:func:`optirank.model.panel_ranks`).
    y : their labels; every class must have one.
    predicted : the labels they were given while held out, None for samples that were not.
    """
    parts, ranks = linear_parts(model), np.asarray(ranks, dtype=float)
    classes = parts.classes
    if ranks.shape != (len(np.asarray(y)), len(parts.positions)):
        raise ValueError(
            f"ranks of shape {ranks.shape} for {len(np.asarray(y))} samples and the "
            f"{len(parts.positions)} genes of the panel"
        )
    truth, predicted = class_codes(y, classes), np.asarray(predicted, dtype=object)
    counts = np.bincount(truth, minlength=len(classes))
    if not counts.all():
        raise ValueError(f"no sample is of class {classes[counts.argmin()]}")
    sums = np.zeros((len(classes), ranks.shape[1]))
    np.add.at(sums, truth, ranks)
    profiles = np.round(sums / counts[:, None], _DIGITS)
    held_out = np.array([label is not None for label in predicted])
    ranks, truth = ranks[held_out], truth[held_out]
    given = class_codes(predicted[held_out].astype(classes.dtype), classes)
    compared = profiles[given]
    own = np.flatnonzero((given == truth) & (counts[truth] > 1))
    n = counts[truth[own]][:, None]
    compared[own] = (sums[truth[own]] - ranks[own]) / (
        n - 1
    )  # without the sample itself
    scores = _correlations(ranks, compared)
    shares = np.linspace(0.0, 1.0, _LEVELS)
    levels = np.tile(np.quantile(scores, shares), (len(classes), 1))
    for k in range(len(classes)):
        if np.count_nonzero(given == k) >= _LEVELS:
            levels[k] = np.quantile(scores[given == k], shares)
    return Novelty(profiles, np.round(levels, _DIGITS), parts.positions, len(ranks))


def _correlations(a: NDArray, b: NDArray) -> NDArray:
    """The correlation of each row of a with the same row of b; 0 where one is constant."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    size = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return np.divide((a * b).sum(axis=1), size, out=np.zeros(len(a)), where=size > 0)
