"""What a training gives back: the model and all there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.calibration import calibration_curve
from sklearn.metrics import multilabel_confusion_matrix, precision_recall_fscore_support

from optirank.tuning.scoring import balanced_accuracy
from optirank.tuning.selection import standard_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.workflow.planning import Plan

_BINS = 10


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """A trained model, how well it does on held-out data, and how it came about.

    Attributes
    ----------
    model : OptirankClassifier, or AnovaRankLogisticRegression where the reference set was given
        Fitted on all samples, with ``calibration_`` and ``rejection_`` where asked for; ready for
        :func:`optirank.save`.
    held_out : DataFrame
        One line per held-out sample: ``label``, ``predicted``, ``confidence``, ``fold``, ``source``
        (where sources were left out) and ``score_<class>``.
    elsewhere : DataFrame
        The held-out samples on simulated platforms, where the search has scored any: ``platform``,
        ``fold``, ``label``, ``predicted`` and ``confidence``.
    per_class : DataFrame
        One line per class: ``n_samples``, ``n_held_out``, ``recall``, ``precision`` and
        ``balanced_accuracy`` (of the class against the rest).
    by_fold : DataFrame
        One line per fold: what was left out, ``n_held_out`` and ``balanced_accuracy``.
    balanced_accuracy, standard_error : float
        Mean over the folds of the balanced accuracy, and its standard error: over the folds, or
        from the number of samples of each class where one part was held out.
    optimism : float
        By how much that is flattered by having chosen the settings on the same folds: what is lost
        when each fold's setting is chosen by the other folds.
    settings : dict
        The chosen setting.
    path : DataFrame
        All settings: ``n_genes``, ``score``, ``standard_error``, ``selected``, ``best``.
    genes : list of str
        The genes that the model needs.
    notes : list of str
        What was left out, decided or went less well, in words.
    warnings : list of str
        Those of the notes that say that the model is weak.
    timings : dict
        Seconds of each part.
    """

    model: Any
    plan: Plan
    label: str
    batch: str | None
    source: str
    held_out: pd.DataFrame
    elsewhere: pd.DataFrame
    per_class: pd.DataFrame
    by_fold: pd.DataFrame
    balanced_accuracy: float
    standard_error: float
    optimism: float
    settings: dict
    path: pd.DataFrame
    genes: list[str]
    notes: list[str]
    warnings: list[str]
    timings: dict[str, float]

    def confusion(self) -> pd.DataFrame:
        """Held-out samples by true class (rows) and class given (columns)."""
        classes = list(self.model.classes_)
        table = pd.crosstab(self.held_out["label"], self.held_out["predicted"])
        return table.reindex(index=classes, columns=classes, fill_value=0)

    def accuracy_elsewhere(self) -> tuple[float, float] | None:
        """Lowest and highest balanced accuracy over simulated platforms, None without any.

        The figure of a platform is the mean over the folds, as on held-out samples.
        """
        if self.elsewhere.empty:
            return None
        found = [
            fold_table(one)["balanced_accuracy"].mean()
            for _, one in self.elsewhere.groupby("platform", sort=True)
        ]
        return float(min(found)), float(max(found))

    def reliability(self) -> pd.DataFrame:
        """Held-out samples by confidence: ``confidence`` (mean), ``accuracy``, ``n_samples``."""
        confidence = self.held_out["confidence"].to_numpy(dtype=float)
        correct = (self.held_out["label"] == self.held_out["predicted"]).to_numpy()
        accuracy, mean = calibration_curve(correct, confidence, n_bins=_BINS)
        edges = np.linspace(0.0, 1.0, _BINS + 1)
        counts = np.bincount(np.searchsorted(edges[1:-1], confidence), minlength=_BINS)
        n_samples = counts[counts > 0]
        return pd.DataFrame({"confidence": mean, "accuracy": accuracy, "n_samples": n_samples})


def class_table(y: NDArray, held_out: pd.DataFrame, classes: NDArray) -> pd.DataFrame:
    """How each class does among the held-out samples; NaN where nothing can be said."""
    truth, given = held_out["label"].to_numpy(), held_out["predicted"].to_numpy()
    precision, recall, _, n_held_out = precision_recall_fscore_support(
        truth, given, labels=classes, zero_division=np.nan
    )
    others = multilabel_confusion_matrix(truth, given, labels=classes)[:, 0]  # true and false calls
    with np.errstate(invalid="ignore"):
        specificity = others[:, 0] / others.sum(axis=1)
    return pd.DataFrame(
        {
            "n_samples": [int((y == one).sum()) for one in classes],
            "n_held_out": n_held_out,
            "recall": recall,
            "precision": precision,
            "balanced_accuracy": (recall + specificity) / 2,
        },
        index=pd.Index(classes, name="class"),
    )


def fold_table(held_out: pd.DataFrame) -> pd.DataFrame:
    """How each fold does, with the sources that it left out."""
    rows = []
    for fold, part in held_out.groupby("fold", sort=True):
        left_out = ", ".join(sorted(part["source"].unique())) if "source" in part else ""
        truth, given = part["label"].to_numpy(), part["predicted"].to_numpy()
        rows.append(
            {
                "fold": fold,
                "left_out": left_out,
                "n_held_out": len(part),
                "n_classes": part["label"].nunique(),
                "balanced_accuracy": balanced_accuracy(truth, given),
            }
        )
    return pd.DataFrame(rows)


def held_out_error(held_out: pd.DataFrame, by_fold: pd.DataFrame) -> float:
    """Standard error of the mean balanced accuracy.

    A single fold says nothing about the spread over folds. Its figure is a mean of K shares, of
    ``r_k`` right labels among ``n_k`` samples each, with the variance ``sum_k p_k (1 - p_k) / n_k /
    K^2`` where ``p_k = (r_k + 1) / (n_k + 2)``, so that a class without an error is not certain.
    """
    if len(by_fold) > 1:
        return float(standard_error(by_fold["balanced_accuracy"].to_numpy()))
    right = (held_out["label"] == held_out["predicted"]).groupby(held_out["label"])
    n = right.size().to_numpy(dtype=float)
    share = (right.sum().to_numpy() + 1) / (n + 2)
    return float(np.sqrt((share * (1 - share) / n).sum()) / len(n))
