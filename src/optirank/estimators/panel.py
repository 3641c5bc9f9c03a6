"""The fitted arrays of a linear classifier on ranks, with the genes of its panel alone.

Prediction needs the panel's columns and nothing else. A model from a file holds these
(:class:`PanelArrays`), and makes the full-size attributes (``coef_`` and the like) when they are
asked for; of a fitted model they are cut out of the full-size ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.votes import is_vote, vote_shares
from optirank.ranks.scoring import ScoreRows, probabilities, score_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SPREAD = ("coef_", "reference_weights_", "reference_", "mean_ranks_")
_CARRIED = (
    "_panel",
    "_file",
    "mean_ranks_",
    "training_summary_",
    "calibration_",
    "rejection_",
    "experience_",
)


@dataclass(frozen=True)
class PanelArrays:
    """Weights and reference weights over the p genes of a panel."""

    positions: NDArray  # (p,): the columns of the panel's genes in the training data
    n_features: int
    coef: NDArray  # (rows, p)
    reference_weights: NDArray  # (rows, p)
    mean_ranks: NDArray | None = None  # (rows, p): mean relative ranks in training

    def trimmed(self) -> PanelArrays:
        """The same without genes that have neither a weight nor a reference weight."""
        needed = ((self.reference_weights > 0) | (self.coef != 0)).any(axis=0)
        if needed.all():
            return self
        return PanelArrays(
            self.positions[needed],
            self.n_features,
            self.coef[:, needed],
            self.reference_weights[:, needed],
            None if self.mean_ranks is None else self.mean_ranks[:, needed],
        )

    def take(self, rows: NDArray, signs: NDArray) -> PanelArrays:
        """Some of the rows, their weights multiplied by signs, with the genes these need."""
        return PanelArrays(
            self.positions,
            self.n_features,
            self.coef[rows] * signs[:, None],
            self.reference_weights[rows],
            None if self.mean_ranks is None else self.mean_ranks[rows],
        ).trimmed()

    def spread(self, columns: NDArray) -> NDArray:
        """The panel's columns among those of all genes, zero elsewhere."""
        full = np.zeros((len(columns), self.n_features), columns.dtype)
        full[:, self.positions] = columns
        return full


class PanelAttributes:
    """Full-size attributes that are made on demand where a model holds ``_panel``."""

    def __getattr__(self, name: str) -> Any:
        panel = self.__dict__.get("_panel")
        if panel is not None and name == "genes_":
            self.genes_ = np.zeros(panel.n_features, dtype=bool)
            self.genes_[panel.positions] = True
            return self.genes_
        unknown = panel is None or name not in _SPREAD
        if unknown or (name == "mean_ranks_" and panel.mean_ranks is None):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        # All at once, and the panel's columns go: what a user changes then counts everywhere.
        gamma = panel.spread(panel.reference_weights)
        full = {"coef_": panel.spread(panel.coef), "reference_weights_": gamma}
        full["reference_"] = gamma > 0
        if panel.mean_ranks is not None:
            full["mean_ranks_"] = panel.spread(panel.mean_ranks)
        self.__dict__ |= {"genes_": self.genes_} | full | self.__dict__
        del self._panel
        return self.__dict__[name]


def panel_arrays(model: Any) -> PanelArrays:
    """The panel's columns of a fitted linear classifier on ranks."""
    held = vars(model).get("_panel")
    if held is not None and not any(name in vars(model) for name in _SPREAD):
        return held
    coef, gamma = np.asarray(model.coef_), np.asarray(model.reference_weights_)
    means = getattr(model, "mean_ranks_", None)
    panel = np.flatnonzero(((gamma > 0) | (coef != 0)).any(axis=0))
    return PanelArrays(
        panel,
        coef.shape[1],
        coef[:, panel],
        gamma[:, panel],
        None if means is None else np.asarray(means)[:, panel],
    )


def model_rows(model: Any) -> tuple[ScoreRows, NDArray]:
    """The rows that score samples, and the columns of the training data they look at."""
    panel = panel_arrays(model)
    intercept = np.asarray(model.intercept_)
    rows = score_rows(panel.coef, panel.reference_weights, intercept, model.ties)
    return rows, panel.positions


def carried(model: Any, name: str) -> Any:
    """What a model carries beyond its fit, itself or as the best model of a search; else None."""
    best = getattr(model, "best_estimator_", None)
    return getattr(model, name, getattr(best, name, None))


def link_offset(model: Any) -> float:
    """The offset of :func:`optirank.ranks.scoring.probabilities` for the scores of a model.

    Minus infinity, a softmax, where several classes share one reference set; else 0.
    """
    shared = getattr(model, "shared_reference", False) and len(model.classes_) > 2
    return -np.inf if shared else 0.0


def plain_probabilities(model: Any, scores: NDArray) -> NDArray:
    """Probabilities that a model gives to scores without a calibration.

    Logistic functions of the scores, see :func:`link_offset`; of a vote of pairs, shares of votes.
    """
    if is_vote(model):
        return vote_shares(scores, int(model.k_.max()))
    return probabilities(scores, offset=link_offset(model))


def forget_training(model: Any) -> None:
    """Drop what a model carries of an earlier fit, before it is fitted again."""
    for name in _CARRIED:
        vars(model).pop(name, None)
