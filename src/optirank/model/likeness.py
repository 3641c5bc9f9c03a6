"""What a model stores of its training data to compare a query with.

`Likeness` says how much samples look like their label, `FurtherGenes` are mean ranks of
genes that have no part in the labels, and `ValueCounter` finds the scale of values and
their zeros.

The likeness of a sample is the correlation of its panel ranks with the mean panel ranks
of its label in training, divided by the median of the same over held-out samples that
got this label: 1 is typical. On another platform it is lower for all samples alike.

Ranks within a sample do not change under any rising function of its values, so counts,
CPM and log(CPM + 1) are all the same to a model on ranks. They do change when each gene
is scaled or centred, smoothed or imputed, and zeros are ties.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optirank._util.numbers import row_correlations
from optirank._util.words import note
from optirank.model.confidence import class_codes

_ENOUGH = 101  # held-out samples of a label from which it has a median of its own
MANY_ZEROS = 0.1  # share of zeros from which data are those of single cells
MORE_ZEROS = 0.35  # a third of the panel more is tied: a guess, not measured
SCALED = (
    "ranks within a sample change when genes are scaled or centred: if they were, give "
    "counts or their logarithm (layer=)"
)


@dataclass(frozen=True)
class Likeness:
    """Mean ranks of each class, and the typical score of held-out samples."""

    profiles: NDArray[np.float32]  # (classes, genes): mean scaled rank among the panel
    medians: NDArray[np.float32]  # (classes,): of held-out samples given that label
    n_samples: int  # held-out samples

    def __post_init__(self) -> None:
        n_classes = len(self.profiles)
        if self.medians.shape != (n_classes,) or not np.isfinite(self.medians).all():
            raise ValueError(f"the typical scores are not {n_classes} finite numbers")
        if not np.isfinite(self.profiles).all():
            raise ValueError("the mean ranks of classes are NaN or infinite")

    def relative(
        self, ranks: NDArray, labels: NDArray, present: NDArray | slice = slice(None)
    ) -> NDArray[np.float64]:
        """How much samples look like the class they are given, as a share of the median
        of held-out samples of the same label: 1 is typical; NaN where these have none
        above 0.

        Parameters
        ----------
        ranks : (n, q), centred ranks among the panel's genes that are present.
        labels : the position of the class each sample is given.
        present : which genes of the panel these are, a mask or positions; all by
            default.
        """
        profiles = self.profiles[:, present].astype(np.float64)
        profiles -= profiles.mean(axis=1, keepdims=True)
        sizes = np.sqrt((profiles**2).sum(axis=1))[labels]
        sizes *= np.sqrt(np.einsum("ij,ij->i", ranks, ranks))
        products = np.zeros(len(labels))
        for label in np.unique(labels):
            rows = labels == label
            products[rows] = np.einsum("ij,j->i", ranks[rows], profiles[label])
        scores = np.divide(products, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
        medians = self.medians.astype(np.float64)[labels]
        return scores / np.where(medians > 0, medians, np.nan)


def fit_likeness(
    ranks: ArrayLike, y: ArrayLike, predicted: ArrayLike, classes: NDArray
) -> Likeness:
    """Fit the score on held-out samples.

    Parameters
    ----------
    ranks : (n, genes), ranks of training samples among the genes of the model's panel
        (``optirank.ranks.scoring.panel_ranks``).
    y : their labels.
    predicted : the labels they were given while held out, None for those that were not.
    classes : the model's classes.
    """
    ranks = np.asarray(ranks, dtype=float)
    predicted = np.asarray(predicted, dtype=object)
    truth = class_codes(y, classes)
    counts = np.bincount(truth, minlength=len(classes))
    sums = np.zeros((len(classes), ranks.shape[1]))
    np.add.at(sums, truth, ranks)
    profiles = (sums / counts[:, None]).astype(np.float32)
    held_out = np.array([label is not None for label in predicted])
    ranks, truth = ranks[held_out], truth[held_out]
    given = class_codes(predicted[held_out].astype(classes.dtype), classes)
    compared = profiles[given].astype(float)
    own = np.flatnonzero((given == truth) & (counts[truth] > 1))
    others = counts[truth[own]][:, None] - 1
    # Without the sample itself
    compared[own] = (sums[truth[own]] - ranks[own]) / others
    scores = row_correlations(ranks, compared)
    of_labels = [scores[given == code] for code in range(len(classes))]
    medians = [
        np.median(own if len(own) >= _ENOUGH else scores).astype(np.float32)
        for own in of_labels
    ]
    return Likeness(profiles, np.array(medians), len(ranks))


@dataclass(frozen=True, eq=False)
class FurtherGenes:
    """Mean ranks of each class over genes outside the panel.

    The genes are ranked among themselves, from -1/2 to 1/2. No score depends on them:
    `optirank.panel.further` compares them with those of a query.
    """

    genes: NDArray[np.object_]  # (genes,): names
    means: NDArray[np.float16]  # (classes, genes)

    def __post_init__(self) -> None:
        if len(set(self.genes.tolist())) < len(self.genes):
            raise ValueError("the further genes have a name more than once")
        if not (np.abs(self.means) <= 0.5).all():
            raise ValueError("the mean ranks of further genes are not all within 1/2")

    def found_among(
        self, names: Iterable[str], used: Collection[str]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Columns of the genes that some data have, and the mean ranks of these.

        ``names`` are the genes of the data, ``used`` those of the panel that labels
        them, which must have no part: a larger panel than the model's own may have
        some of the further genes.
        """
        from optirank.data.genes import match_genes  # loads pandas

        columns = match_genes(self.genes.tolist(), names).columns
        there = (columns >= 0) & ~np.isin(self.genes, list(used))
        return columns[there], self.means[:, there].astype(np.float64)


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
        n_negative = np.count_nonzero(values < 0)
        self._counts += np.array([n_values, n_zero, n_negative])
        if self._scale is None and values.size:
            from optirank._util.numbers import value_scale  # scipy loads

            self._scale = value_scale(block)

    def merge(self, other: ValueCounter) -> None:
        """Count the values of another one."""
        self._counts += other._counts
        self._scale = self._scale or other._scale

    def result(self) -> dict[str, Any]:
        """``scale`` (counts, linear or log) and the shares of all values that are
        ``zeros`` and ``negative``; empty where there were no values.
        """
        if self._scale is None:
            return {}
        n_values, n_zero, n_negative = self._counts.tolist()
        return {
            "scale": self._scale,
            "zeros": round(n_zero / n_values, 6),
            "negative": round(n_negative / n_values, 6),
        }


def note_values(query: Mapping[str, Any], trained: Mapping[str, Any]) -> None:
    """Note how the values of a query differ from those of training, in ways that
    matter.
    """
    if not query or not trained:
        return
    if query["negative"] and not trained["negative"]:
        note(
            f"{query['negative']:.1%} of the values are negative, and none were in the "
            f"training data: {SCALED}"
        )
    if not query["zeros"] and trained["zeros"] >= MANY_ZEROS:
        note(
            f"no value is zero, and {trained['zeros']:.0%} were in the training data: "
            "that is usual for a microarray; smoothed or imputed values would change "
            "ranks"
        )
    elif query["zeros"] - trained["zeros"] > MORE_ZEROS:
        note(
            f"{query['zeros']:.0%} of the values are zero, and "
            f"{trained['zeros']:.0%} were in the training data: zeros are ties, so "
            "labels are less certain; a larger panel may do better"
        )
