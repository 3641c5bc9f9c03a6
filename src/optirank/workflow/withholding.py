"""Which labels are withheld, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.metrics import percent
from optirank._util.names import counted
from optirank.model.confidence import check_target_error, raise_threshold
from optirank.model.tree import SURE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.model import Predictor
    from optirank.workflow.options import PredictOptions
    from optirank.workflow.query import Query
    from optirank.workflow.trust import Trust

NO_INFORMATION = "no information: all genes of the panel have the same value"
LOW_CONFIDENCE = "confidence below the threshold"
UNKNOWN = "looks like no class of the training data"
STRICT = "the labels may all be wrong, see the alarm (strict)"
NOT_KEPT = "the query does not look like the training data: no error can be kept"
_FEW_GENES = 5  # outside the largest tie: below, a label rests on very little


@dataclass
class Withholding:
    """Which labels of a query are withheld.

    Attributes
    ----------
    reasons : of each sample, why its label is withheld; "" where it is given.
    threshold : the confidence below which labels are withheld, if any.
    threshold_reason : where it comes from.
    notes : sentences for the reader.
    """

    reasons: NDArray[np.object_]
    threshold: float | None = None
    threshold_reason: str = ""
    notes: list[str] = field(default_factory=list)


def withhold(
    query: Query,
    confidence: NDArray,
    options: PredictOptions,
) -> Withholding:
    """Decide which labels are given.

    ``confidence`` is (n, levels) where labels are a tree: the coarsest label is
    withheld where it is unsure, and without a threshold of the user or of the training
    a label must be more probable than all others together.

    Where the query's ``trust`` says that the labels may all be wrong, no target error
    can be kept: it is an aim on data like the training, and all labels are withheld.
    """
    decision = Withholding(np.full(len(confidence), "", dtype=object))
    if options.unknown_rate is not None:
        _withhold_unknown(decision, query, options.unknown_rate)
    target = _set_threshold(decision, query.predictor, confidence, options)
    if confidence.ndim == 2 and decision.threshold is None and not _gives_all(options):
        decision.threshold = SURE
        decision.threshold_reason = (
            "labels of a tree are more probable than all others together"
        )
    if decision.threshold is not None:
        _withhold_unsure(decision, confidence, decision.threshold)
    if target is not None:
        _withhold_untrusted(decision, target, query.trust)
    _withhold_tied(decision, query.genes_apart)
    return decision


def _gives_all(options: PredictOptions) -> bool:
    """Whether each sample gets one of the classes, however unsure."""
    return options.target_error == 1 or bool(options.sensitivity)


def _withhold_unknown(decision: Withholding, query: Query, rate: float) -> None:
    """Withhold labels of samples that look like no class."""
    score = query.predictor.likeness_score
    unknown = score.unknown(query.likeness, query.labels_looked_at, rate)
    decision.reasons[unknown] = UNKNOWN
    decision.notes.append(
        f"{unknown.sum()} of {len(unknown)} samples ({percent(unknown.mean())}) look "
        "like no class, and their labels are withheld; of held-out samples it was "
        f"{percent(rate)}"
    )


def _set_threshold(
    decision: Withholding,
    predictor: Predictor,
    confidence: NDArray,
    options: PredictOptions,
) -> float | None:
    """The confidence below which labels are withheld, as asked for or as trained.

    Returns the target error that it is to keep, where it is to keep one.
    """
    if options.threshold is not None:
        decision.threshold = options.threshold
        decision.threshold_reason = (
            f"asked for a confidence of at least {options.threshold:g}"
        )
        return None
    control = predictor.panel.error_control
    target = options.target_error
    trained = predictor.model.panel.error_control  # of the model's own size
    if target is None and trained is not None and not options.sensitivity:
        target = trained.target_error
    if target is None or target == 1:  # 1: withhold none
        return None
    check_target_error(target)
    if predictor.left_out:
        raise ValueError(
            f"target error {target:g}: the model without some of its classes was never "
            "judged; give a threshold instead"
        )
    if control is None:
        raise ValueError(
            f"target error {target:g}: the model stores no errors of held-out samples; "
            "give a threshold instead"
        )
    by_held_out = control.at(target, by_level=confidence.ndim == 2)
    decision.threshold = raise_threshold(confidence, by_held_out.threshold, target)
    decision.threshold_reason = by_held_out.reason
    if decision.threshold > by_held_out.threshold:
        decision.threshold_reason = (
            f"the query's own confidences ask for at least {decision.threshold:.3f}, "
            f"so that {percent(target)} of the labels given are expected to be wrong; "
            f"by held-out samples it would be {by_held_out.threshold:.3f}"
        )
    return target


def _withhold_unsure(
    decision: Withholding, confidence: NDArray, threshold: float
) -> None:
    """Withhold labels of low confidence."""
    by_level = confidence.ndim == 2
    below = (confidence[:, 0] if by_level else confidence) < threshold
    decision.reasons[below] = LOW_CONFIDENCE
    what = "no label is withheld"
    if below.any():
        share = percent(below.mean())
        what = f"{below.sum()} of {len(below)} labels ({share}) are withheld"
    if by_level:
        coarse = ~below & (confidence[:, -1] < threshold)
        what += f", {coarse.sum()} ({percent(coarse.mean())}) are coarser than a class"
    decision.notes.append(f"{what}: {decision.threshold_reason}")


def _withhold_untrusted(decision: Withholding, target: float, trust: Trust) -> None:
    """Withhold all labels where the error cannot be kept; say where nobody knows."""
    if trust.alarmed:
        decision.reasons[:] = NOT_KEPT
        decision.notes.append(
            f"an error of {percent(target)} is an aim on data like the training, and "
            "these do not look like it: all labels are withheld"
        )
    elif trust.agreement is None:
        decision.notes.append(
            f"an error of {percent(target)} is an aim on data like the training: "
            "whether these are like it cannot be checked by other genes"
        )


def _withhold_tied(decision: Withholding, genes_apart: NDArray) -> None:
    """Withhold labels of samples without information; say where there is little."""
    tied = genes_apart == 0
    decision.reasons[tied] = NO_INFORMATION
    if tied.any():
        what = counted(int(tied.sum()), "sample has", "samples have")
        decision.notes.append(
            f"{what} the same value in all genes of the panel, and no label is given"
        )
    few = (genes_apart < _FEW_GENES) & ~tied
    if few.any():
        decision.notes.append(
            f"in {counted(int(few.sum()), 'sample', 'samples')} all but "
            f"{_FEW_GENES - 1} or fewer genes of the panel have the same value: "
            "labels there rest on few genes"
        )
