"""What a training gives back: the model and all there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank.workflow.searching import balanced_accuracy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.workflow.planning import Plan

_BINS = 10


@dataclass(frozen=True)
class TrainingResult:
    """A trained model, how well it does on held-out data, and how it came about.

    Attributes
    ----------
    model : OptirankClassifier, or AnovaRankLogisticRegression where the reference set was given
        Fitted on all samples, with ``calibration_`` and ``rejection_`` where asked for; ready for
        :func:`optirank.save`.
    held_out : DataFrame
        One line a held-out sample: ``label``, ``predicted``, ``confidence``, ``fold``, ``source``
        (where sources were left out) and ``score_<class>``.
    per_class : DataFrame
        A line a class: ``n_samples``, ``n_held_out``, ``recall``, ``precision`` and
        ``balanced_accuracy`` (of the class against the rest).
    by_fold : DataFrame
        A line a fold: what was left out, ``n_held_out`` and ``balanced_accuracy``.
    balanced_accuracy, standard_error : float
        Mean over the folds of the balanced accuracy, and its standard error.
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
    timings : dict
        Seconds of each part.
    """

    model: Any
    plan: Plan
    label: str
    batch: str | None
    source: str
    held_out: pd.DataFrame
    per_class: pd.DataFrame
    by_fold: pd.DataFrame
    balanced_accuracy: float
    standard_error: float
    optimism: float
    settings: dict
    path: pd.DataFrame
    genes: list[str]
    notes: list[str]
    timings: dict[str, float]

    def confusion(self) -> pd.DataFrame:
        """Held-out samples by true class (rows) and class given (columns)."""
        classes = list(self.model.classes_)
        table = pd.crosstab(self.held_out["label"], self.held_out["predicted"])
        return table.reindex(index=classes, columns=classes, fill_value=0)

    def reliability(self) -> pd.DataFrame:
        """Held-out samples by confidence: ``confidence`` (mean), ``accuracy``, ``n_samples``."""
        confidence = self.held_out["confidence"].to_numpy(dtype=float)
        correct = (self.held_out["label"] == self.held_out["predicted"]).to_numpy()
        place = np.clip((confidence * _BINS).astype(int), 0, _BINS - 1)
        rows = [
            (confidence[place == k].mean(), correct[place == k].mean(), int((place == k).sum()))
            for k in np.unique(place)
        ]
        return pd.DataFrame(rows, columns=["confidence", "accuracy", "n_samples"])


def class_table(y: NDArray, held_out: pd.DataFrame, classes: NDArray) -> pd.DataFrame:
    """How each class does among the held-out samples; NaN where nothing can be said."""
    truth, given = held_out["label"].to_numpy(), held_out["predicted"].to_numpy()
    rows = []
    for one in classes:
        inside, called = truth == one, given == one
        recall = (called & inside).sum() / inside.sum() if inside.any() else np.nan
        precision = (called & inside).sum() / called.sum() if called.any() else np.nan
        rest = (~called & ~inside).sum() / (~inside).sum() if (~inside).any() else np.nan
        rows.append(
            {
                "n_samples": int((y == one).sum()),
                "n_held_out": int(inside.sum()),
                "recall": recall,
                "precision": precision,
                "balanced_accuracy": (recall + rest) / 2,
            }
        )
    return pd.DataFrame(rows, index=pd.Index(classes, name="class"))


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
