"""How well labels fit the truth: the tables of a training page and of an evaluation.

Every table counts the samples that it is given and no others: held-out samples for a
training, the samples of a labelled query for an evaluation. Labels that are withheld
are counted apart, by class. Shares are of the labels given; the sensitivity of all
samples, withheld or not, stands beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from optirank._util.metrics import balanced, wilson
from optirank._util.names import in_percent, percent

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

TARGETS = (0.01, 0.02, 0.05, 0.1)  # errors that people ask for
_BINS = 10  # of confidence, as in most reliability diagrams
MEASURES = {
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "ppv": "PPV",
    "npv": "NPV",
}


class Curves(NamedTuple):
    """ROC and precision-recall curve of one class against the rest."""

    false_positives: NDArray
    recall: NDArray
    precision: NDArray
    auc: float
    average_precision: float


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
    withholding : what withholding the least confident labels would give on these
        samples: ``target_error``, ``threshold``, ``given`` (share of the labels),
        ``error`` among them.
    curves : of each class that has samples inside and outside of it.
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
    withholding: pd.DataFrame
    curves: dict[str, Curves] = field(repr=False)

    @property
    def n_given(self) -> int:
        """Number of labels given."""
        return self.n_samples - self.n_withheld

    @property
    def auc(self) -> float:
        """Mean over the classes of the area under the ROC curve."""
        return float(np.mean([curve.auc for curve in self.curves.values()] or [np.nan]))

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
            "withholding": self.withholding,
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
    names = tuple(str(name) for name in classes)
    true, given = (
        pd.Index(names).get_indexer(pd.Index(np.asarray(labels, dtype=object)).map(str))
        for labels in (truth, predicted)
    )
    proba = np.asarray(probabilities, dtype=float)
    hidden = (
        np.zeros(len(true), bool)
        if withheld is None
        else np.asarray(withheld, dtype=bool)
    )
    kept = ~hidden
    k = len(names)
    table = np.bincount(true[kept] * k + given[kept], minlength=k * k).reshape(k, k)
    n_hidden = np.bincount(true[hidden], minlength=k)
    confusion = pd.DataFrame(
        table, index=pd.Index(names, name="true class"), columns=pd.Index(names)
    )
    if hidden.any():
        confusion.insert(k, "withheld", n_hidden, allow_duplicates=True)
    sizes = table.sum(axis=1)
    right = table.diagonal()
    curves = {
        name: _curves(true == c, proba[:, c])
        for c, name in enumerate(names)
        if 0 < (true == c).sum() < len(true)
    }
    per_class = _measures_by_class(table, n_hidden, names)
    for measure in ("auc", "average_precision"):
        per_class[measure] = [
            getattr(curves[name], measure) if name in curves else np.nan
            for name in names
        ]
    confidence = proba[np.arange(len(given)), given]
    accuracy, interval = balanced(right, sizes)
    return Performance(
        classes=names,
        n_samples=len(true),
        n_right=int(right.sum()),
        n_withheld=int(hidden.sum()),
        balanced_accuracy=accuracy,
        interval=interval,
        of_all=balanced(right, sizes + n_hidden)[0],
        per_class=per_class,
        confusion=confusion,
        reliability=reliability_table(confidence[kept], (true == given)[kept]),
        withholding=_withholding(confidence, true == given),
        curves=curves,
    )


def reliability_table(confidence: ArrayLike, correct: ArrayLike) -> pd.DataFrame:
    """Labels in bins of confidence: their mean confidence, the share that is right,
    intervals.
    """
    confidence = np.asarray(confidence, dtype=float)
    correct = np.asarray(correct, dtype=float)
    place = np.clip((confidence * _BINS).astype(int), 0, _BINS - 1)
    number = np.bincount(place, minlength=_BINS)
    there = number > 0
    mean = np.bincount(place, confidence, _BINS)[there] / number[there]
    right = np.bincount(place, correct, _BINS)[there] / number[there]
    low, high = wilson(right, number[there])
    return pd.DataFrame(
        {
            "confidence": mean,
            "accuracy": right,
            "low": low,
            "high": high,
            "n_samples": number[there],
            "bin": np.flatnonzero(there) / _BINS,
        }
    )


def _measures_by_class(
    table: NDArray, withheld: NDArray, names: tuple[str, ...]
) -> pd.DataFrame:
    """The measures of each class with intervals, from the confusion of labels given
    and the numbers of labels withheld.
    """
    sizes = table.sum(axis=1)
    right = table.diagonal()
    outside = sizes.sum() - sizes
    called = table.sum(axis=0)
    true_negative = outside - called + right
    n_all = sizes + withheld
    counts = {
        "sensitivity": (right, sizes),
        "specificity": (true_negative, outside),
        "sensitivity_of_all": (right, n_all),
        "ppv": (right, called),
        "npv": (true_negative, table.sum() - called),
    }
    columns: dict[str, Any] = {"n": sizes, "withheld": withheld}
    for measure, (hits, of) in counts.items():
        with np.errstate(invalid="ignore", divide="ignore"):
            share = hits / of
        low, high = wilson(share, of)
        columns |= {measure: share, f"{measure}_low": low, f"{measure}_high": high}
    return pd.DataFrame(columns, index=pd.Index(names, name="class"))


def _curves(positive: NDArray, score: NDArray) -> Curves:
    """Curves over all thresholds; equal scores are one threshold."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(score[order])), len(order) - 1)
    hits = np.cumsum(positive[order])[ends]
    recall = hits / positive.sum()
    false = (ends + 1 - hits) / (~positive).sum()
    precision = hits / (ends + 1)
    steps = np.diff(recall, prepend=0.0)
    before = np.append(0.0, recall[:-1])
    auc = (np.diff(false, prepend=0.0) * (recall + before)).sum() / 2
    # More than 200 points of a curve cannot be seen
    drawn = np.unique(np.linspace(0, len(ends) - 1, 200).astype(int))
    return Curves(
        false_positives=np.append(0.0, false[drawn]),
        recall=np.append(0.0, recall[drawn]),
        precision=np.append(precision[0], precision[drawn]),
        auc=float(auc),
        average_precision=float((steps * precision).sum()),
    )


def _withholding(confidence: NDArray, correct: NDArray) -> pd.DataFrame:
    """For each target error, the most labels of highest confidence that keep it."""
    order = np.argsort(-confidence, kind="stable")
    values = confidence[order]
    error = np.cumsum(~correct[order]) / np.arange(1, len(order) + 1)
    whole = (
        np.append(values[1:] != values[:-1], True) if len(values) else np.zeros(0, bool)
    )
    rows = []
    for target in TARGETS:
        fits = np.flatnonzero(whole & (error <= target))
        last = fits[-1] if fits.size else -1
        rows.append(
            {
                "target_error": target,
                "threshold": values[last] if fits.size else np.nan,
                "given": (last + 1) / max(1, len(values)),
                "error": error[last] if fits.size else np.nan,
            }
        )
    return pd.DataFrame(rows)
