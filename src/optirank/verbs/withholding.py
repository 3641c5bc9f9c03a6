"""Which labels are given: those of at least some confidence.

The threshold is given, or follows from a target error: it is the one that held-out
samples of the training show, or a higher one where the query's own confidences say that
more labels are wrong than asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import counted, percent
from optirank.model.confidence import raise_threshold
from optirank.model.tree import SURE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.model import Predictor
    from optirank.verbs.options import PredictOptions
    from optirank.verbs.query import Query

NO_INFORMATION = "no information: all genes of the panel have the same value"
LOW_CONFIDENCE = "confidence below the threshold"


def withhold(
    query: Query, confidence: NDArray, options: PredictOptions
) -> tuple[NDArray[np.object_], dict[str, Any], list[str]]:
    """Decide which labels are given.

    ``confidence`` is (n, levels) where labels are a tree: the coarsest label is
    withheld where it is unsure, and without a threshold of the user a label must be
    more probable than all others together.

    Returns
    -------
    Of each sample why its label is withheld, "" where it is given; the ``threshold`` of
    confidence and the ``threshold_reason``, if there is one; and notes.
    """
    reasons = np.full(len(confidence), "", dtype=object)
    notes = []
    threshold, why = _threshold(query.predictor, confidence, options)
    rule = {}
    if threshold is not None:
        rule = {"threshold": float(threshold), "threshold_reason": why}
        by_level = confidence.reshape(len(confidence), -1)
        below = by_level[:, 0] < threshold
        reasons[below] = LOW_CONFIDENCE
        coarser = ~below & (by_level[:, -1] < threshold)
        notes.append(f"{_how_many(below, coarser)}: {why}")
    if options.target_error is not None:
        aim = f"an error of {percent(options.target_error)} is an aim on data like "
        if query.alarms:
            notes.append(f"{aim}the training, and for these there is an alarm")
        elif query.trust.agreement is None:
            notes.append(
                f"{aim}the training: whether these are like it cannot be checked by "
                "other genes"
            )
    tied = query.genes_apart == 0
    reasons[tied] = NO_INFORMATION
    if tied.any():
        what = counted(int(tied.sum()), "sample has", "samples have")
        notes.append(
            f"{what} the same value in all genes of the panel, and no label is given"
        )
    return reasons, rule, notes


def _threshold(
    predictor: Predictor, confidence: NDArray, options: PredictOptions
) -> tuple[float | None, str]:
    """The confidence below which labels are withheld, and where it comes from."""
    by_level = confidence.ndim == 2
    target = options.target_error
    if options.threshold is not None:
        why = f"asked for a confidence of at least {options.threshold:g}"
        return options.threshold, why
    if target is None:
        if not by_level:
            return None, ""
        return SURE, (
            "a label of the tree is given where it is more probable than all others "
            "together"
        )
    control = predictor.panel.error_control
    if control is None:
        raise ValueError(
            f"target error {target:g}: the model stores no errors of held-out samples; "
            "give a threshold instead"
        )
    by_held_out, why = control.at(target, by_level=by_level)
    threshold = raise_threshold(confidence, by_held_out, target)
    if threshold <= by_held_out:
        return threshold, why
    return threshold, (
        f"the query's own confidences ask for at least {threshold:.3f}, so that "
        f"{percent(target)} of the labels given are expected to be wrong; by held-out "
        f"samples it would be {by_held_out:.3f}"
    )


def _how_many(below: NDArray[np.bool_], coarser: NDArray[np.bool_]) -> str:
    """How many labels are withheld, and how many are of a coarser level, in words."""
    what = "no label is withheld"
    if below.any():
        verb = "is" if below.sum() == 1 else "are"
        share = percent(below.mean())
        what = f"{below.sum()} of {len(below)} labels ({share}) {verb} withheld"
    if coarser.any():
        verb = "is" if coarser.sum() == 1 else "are"
        share = percent(coarser.mean())
        what += f", {coarser.sum()} ({share}) {verb} coarser than a class"
    return what
