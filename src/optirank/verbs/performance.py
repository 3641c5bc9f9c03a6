"""How well labels fit the truth: the tables of a training page and of an evaluation,
and the accuracy of the sizes of a panel.

Every table counts the samples that it is given and no others: held-out samples for a
training, the samples of a labelled query for an evaluation. Labels that are withheld
are counted apart, by class. Shares are of the labels given; the sensitivity of all
samples, withheld or not, stands beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.numbers import balanced, wilson
from optirank._util.words import in_percent, percent
from optirank.model.file import as_model

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_BINS = 10  # of confidence, as in most reliability diagrams
MEASURES = {
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "ppv": "PPV",
    "npv": "NPV",
}


@dataclass(frozen=True)
class Performance:
    """Truth against labels.

    Attributes
    ----------
    classes : the model's classes, as text.
    n_samples, n_right, n_withheld : numbers of samples; those withheld have no label.
    balanced_accuracy, interval : mean sensitivity of the classes that have samples, and
        its 95 % interval.
    per_class : one line per class: ``n`` (true samples with a label), ``sensitivity``,
        ``specificity``, ``ppv``, ``npv``, each with ``_low`` and ``_high``, ``auc`` and
        ``average_precision``. NaN where there is nothing to count.
    confusion : samples by true class (rows) and label (columns); the last column are
        labels withheld, where there are any.
    reliability : labels by confidence: ``confidence`` (mean), ``accuracy``, ``low``,
        ``high``, ``n_samples``.
    curves : of each class that has samples inside and outside of it, its ROC and
        precision-recall curve against the rest: ``false_positives``, ``recall``,
        ``precision``.
    """

    classes: tuple[str, ...]
    n_samples: int
    n_right: int
    n_withheld: int
    balanced_accuracy: float
    interval: tuple[float, float]
    of_all: float
    per_class: pd.DataFrame
    confusion: pd.DataFrame
    reliability: pd.DataFrame
    curves: dict[str, pd.DataFrame] = field(repr=False)

    @property
    def n_given(self) -> int:
        """Number of labels given."""
        return self.n_samples - self.n_withheld

    @property
    def auc(self) -> float:
        """Mean over the classes of the area under the ROC curve."""
        return float(self.per_class["auc"].mean())

    @property
    def bias(self) -> float:
        """By how much the mean confidence exceeds the share of right labels."""
        table = self.reliability
        n = max(1, int(table["n_samples"].sum()))
        return float(
            (table["n_samples"] * (table["confidence"] - table["accuracy"])).sum() / n
        )

    @property
    def counted(self) -> str:
        """Over how many classes the accuracy is, where it is not over all of them."""
        n_counted = int((self.per_class["n"] > 0).sum())
        n_classes = len(self.classes)
        return "" if n_counted == n_classes else f"{n_counted} of {n_classes} classes"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        return {
            "per_class": self.per_class,
            "confusion": self.confusion,
            "reliability": self.reliability,
        }

    def headline(self) -> str:
        """The balanced accuracy with its interval, and what it leaves out."""
        low, high = self.interval
        interval = f"{in_percent(low)} to {percent(high)}"
        text = f"{percent(self.balanced_accuracy)} (95 % interval {interval})"
        if self.counted:
            text += f" over {self.counted}"
        if self.n_withheld:
            text += f" of labels given, {percent(self.of_all)} of all samples"
        return text


def performance(
    truth: ArrayLike,
    predicted: ArrayLike,
    probabilities: ArrayLike,
    classes: Sequence[Any],
    withheld: ArrayLike | None = None,
) -> Performance:
    """Compare labels with the truth; both are of ``classes``, the columns of
    ``probabilities``.

    The label of a sample that is ``withheld`` is the one it would have had. PPV and NPV
    are those at the shares that the classes have among these samples.
    """
    names = pd.Index([str(name) for name in classes])
    true, chosen = (
        names.get_indexer(pd.Index(np.asarray(labels, dtype=object)).map(str))
        for labels in (truth, predicted)
    )
    shares = np.asarray(probabilities, dtype=float)
    is_given = np.ones(len(true), dtype=bool)
    if withheld is not None:
        is_given = ~np.asarray(withheld, dtype=bool)
    k = len(names)
    pairs = true[is_given] * k + chosen[is_given]
    table = np.bincount(pairs, minlength=k * k).reshape(k, k)
    n_withheld = np.bincount(true[~is_given], minlength=k)
    confusion = pd.DataFrame(table, index=names.rename("true class"), columns=names)
    if not is_given.all():
        confusion.insert(k, "withheld", n_withheld, allow_duplicates=True)
    sizes = table.sum(axis=1)
    per_class = _measures_by_class(table, n_withheld, names)
    curves = {}
    areas = np.full((k, 2), np.nan)
    for code, name in enumerate(names):
        is_class = true == code
        if is_class.any() and not is_class.all():
            curves[name], *areas[code] = _curve(is_class, shares[:, code])
    per_class[["auc", "average_precision"]] = areas
    confidence = shares[np.arange(len(chosen)), chosen]
    accuracy, interval = balanced(table.diagonal(), sizes)
    return Performance(
        classes=tuple(names),
        n_samples=len(true),
        n_right=int(table.diagonal().sum()),
        n_withheld=int(n_withheld.sum()),
        balanced_accuracy=accuracy,
        interval=interval,
        of_all=balanced(table.diagonal(), sizes + n_withheld)[0],
        per_class=per_class,
        confusion=confusion,
        reliability=reliability_table(confidence[is_given], (true == chosen)[is_given]),
        curves=curves,
    )


def reliability_table(confidence: ArrayLike, correct: ArrayLike) -> pd.DataFrame:
    """Labels in bins of confidence: their mean confidence, the share that is right,
    intervals.
    """
    confidence = np.asarray(confidence, dtype=float)
    correct = np.asarray(correct, dtype=float)
    place = np.clip((confidence * _BINS).astype(int), 0, _BINS - 1)
    counts = np.bincount(place, minlength=_BINS)
    bins = np.flatnonzero(counts)
    n_samples = counts[bins]
    accuracy = np.bincount(place, correct, _BINS)[bins] / n_samples
    low, high = wilson(accuracy, n_samples)
    return pd.DataFrame(
        {
            "confidence": np.bincount(place, confidence, _BINS)[bins] / n_samples,
            "accuracy": accuracy,
            "low": low,
            "high": high,
            "n_samples": n_samples,
            "bin": bins / _BINS,
        }
    )


def _measures_by_class(
    table: NDArray, withheld: NDArray, names: pd.Index
) -> pd.DataFrame:
    """The measures of each class with intervals, from the confusion of labels given
    and the numbers of labels withheld.
    """
    sizes = table.sum(axis=1)
    right = table.diagonal()
    outside = sizes.sum() - sizes
    called = table.sum(axis=0)
    true_negative = outside - called + right
    counts = {
        "sensitivity": (right, sizes),
        "specificity": (true_negative, outside),
        "sensitivity_of_all": (right, sizes + withheld),
        "ppv": (right, called),
        "npv": (true_negative, table.sum() - called),
    }
    columns: dict[str, Any] = {"n": sizes, "withheld": withheld}
    for measure, (hits, of) in counts.items():
        with np.errstate(invalid="ignore", divide="ignore"):
            share = hits / of
        low, high = wilson(share, of)
        columns |= {measure: share, f"{measure}_low": low, f"{measure}_high": high}
    return pd.DataFrame(columns, index=names.rename("class"))


def _curve(is_class: NDArray, score: NDArray) -> tuple[pd.DataFrame, float, float]:
    """The curves of a class over all thresholds, the area under the ROC curve and the
    average precision; equal scores are one threshold.
    """
    # scikit-learn's curves are the same, and take long to load
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(score[order])), len(order) - 1)
    hits = np.cumsum(is_class[order])[ends]
    precision = hits / (ends + 1)
    recall = np.append(0.0, hits / is_class.sum())
    false = np.append(0.0, (ends + 1 - hits) / (~is_class).sum())
    area = (np.diff(false) * (recall[1:] + recall[:-1])).sum() / 2
    # More than 200 points of a curve cannot be seen
    drawn = np.unique(np.linspace(0, len(precision) - 1, 200).astype(int))
    curve = pd.DataFrame(
        {
            "false_positives": np.append(0.0, false[1:][drawn]),
            "recall": np.append(0.0, recall[1:][drawn]),
            "precision": np.append(precision[0], precision[drawn]),
        }
    )
    return curve, float(area), float((np.diff(recall) * precision).sum())


def size_table(model: Any) -> pd.DataFrame:
    """The panels in a model, one line per size: ``n_genes``, accuracy, ``chosen``.

    ``balanced_accuracy`` and ``standard_error`` are NaN for sizes that were not
    measured; ``chosen`` is the size of the model itself.
    """
    fitted = as_model(model)
    names = pd.Index(["n_genes", "balanced_accuracy", "standard_error"])
    curve = pd.DataFrame([*fitted.card.curve], columns=names).set_index("n_genes")
    table = curve.reindex(sorted({*fitted.panels, *curve.index})).reset_index()
    return table.assign(chosen=table["n_genes"] == fitted.n_genes)
