"""Which labels are withheld: those of little confidence, and those of samples like no class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.panel import carried
from optirank.model.promises import Outcomes, fit_rejection, known_truth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.model.experience import Experience
    from optirank.model.prior import Prior


def rejection_threshold(
    model: Any,
    threshold: float | None = None,
    target_error: float | None = None,
    prior: Prior = "balanced",
) -> tuple[float | None, str]:
    """The confidence below which labels are withheld, None where none are, and why it is that."""
    if threshold is not None and target_error is not None:
        raise ValueError("give a threshold or a target error, not both")
    if threshold is not None:
        if not 0 <= threshold <= 1:
            raise ValueError(f"threshold={threshold!r}: use a confidence between 0 and 1")
        return threshold, f"asked for a confidence of at least {threshold:g}"
    if target_error is None:
        return None, ""
    if prior != "balanced":
        raise ValueError(
            f"target error {target_error:g} with another prior than balanced: errors of held-out "
            "samples are known for balanced probabilities alone; give a threshold instead"
        )
    kept = carried(model, "rejection_")
    if kept is None or not np.isclose(kept.target_error, target_error):
        summary = carried(model, "training_summary_") or {}
        held_out = summary.get("held_out")
        if "subset_of" in summary or not isinstance(held_out, dict):
            why = "does not know how its held-out samples did"
            if "subset_of" in summary:
                why = "has fewer classes than it was trained and judged with"
            raise ValueError(
                f"target error {target_error:g}: the model {why}, so no threshold can be derived "
                "from an error: give a threshold instead"
            )
        experience = carried(model, "experience_")
        confidence = np.asarray(held_out.get("confidence", ()), dtype=float)
        kept = fit_rejection(
            confidence,
            held_out.get("correct"),
            target_error,
            truth=known_truth(held_out, len(confidence)),
            elsewhere=Outcomes.from_summary(summary),
            between=None if experience is None else experience.between,
        )
    return kept.threshold, kept.reason


def check_unknown_rate(experience: Experience | None, rate: float | None) -> None:
    """Refuse a rate that is no share, and a model that knows nothing of held-out samples."""
    if rate is None:
        return
    if not 0 < rate < 1:
        raise ValueError(f"unknown rate {rate!r}: use a share between 0 and 1, such as 0.01")
    if experience is None:
        raise ValueError(
            f"unknown rate {rate:g}: the model does not know what held-out samples look like: "
            "train it with this version of optirank, or give a threshold instead"
        )


def unknown_words(unknown: NDArray, rate: float) -> str:
    """How many samples look like no class, in words."""
    return (
        f"{np.mean(unknown):.1%} of the samples look like no class, and their labels are withheld; "
        f"of held-out samples of the training classes it was {rate:.1%}"
    )
