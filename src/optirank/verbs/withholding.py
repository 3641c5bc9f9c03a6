"""Which labels are given: the threshold for a sensitivity of one of two classes, and
labels that are withheld, with the reasons.

A model of two classes gives the label of the higher score. Where it costs more to miss
one class than to call it falsely, a user asks for a sensitivity of that class, and the
threshold on its probability follows from the held-out samples of the training. With n
held-out samples of the class, it is the k-th largest of their probabilities with
``k = ceil(sensitivity (n + 1))``: a further sample of the class is then above it with
at least the probability that was asked for (as in conformal prediction).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.metrics import wilson
from optirank._util.names import counted, ends_in_percent, percent, some
from optirank.model.confidence import raise_threshold
from optirank.model.tree import SURE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.model import Model, Predictor
    from optirank.verbs.options import PredictOptions
    from optirank.verbs.query import Query

NO_INFORMATION = "no information: all genes of the panel have the same value"
LOW_CONFIDENCE = "confidence below the threshold"
UNKNOWN = "looks like no class of the training data"
STRICT = "the labels may all be wrong, see the alarm (strict)"
NOT_KEPT = "the labels may all be wrong, see the alarm: no error can be kept"
_FEW_GENES = 5  # outside the largest tie: below, a label rests on very little


def withhold(
    query: Query, confidence: NDArray, options: PredictOptions
) -> tuple[NDArray[np.object_], dict[str, Any], list[str]]:
    """Decide which labels are given.

    ``confidence`` is (n, levels) where labels are a tree: the coarsest label is
    withheld where it is unsure, and without a threshold of the user or of the training
    a label must be more probable than all others together.

    Where there is an alarm, no target error can be kept: it is an aim on data like the
    training, and all labels are withheld.

    Returns
    -------
    Of each sample why its label is withheld, "" where it is given; the ``threshold`` of
    confidence and the ``threshold_reason``, if there is one; and notes.
    """
    reasons = np.full(len(confidence), "", dtype=object)
    notes = []
    if options.unknown_rate is not None:
        score = query.predictor.likeness_score
        unknown = score.unknown(
            query.likeness, query.labels_looked_at, options.unknown_rate
        )
        reasons[unknown] = UNKNOWN
        notes.append(
            f"{unknown.sum()} of {len(unknown)} samples ({percent(unknown.mean())}) "
            "look like no class, and their labels are withheld; of held-out samples it "
            f"was {percent(options.unknown_rate)}"
        )
    target = target_error(query.predictor.model, options)
    threshold, why = _threshold(query.predictor, confidence, options, target)
    rule = {}
    if threshold is not None:
        rule = {"threshold": float(threshold), "threshold_reason": why}
        by_level = confidence.reshape(len(confidence), -1)
        below = by_level[:, 0] < threshold
        reasons[below] = LOW_CONFIDENCE
        coarser = ~below & (by_level[:, -1] < threshold)
        notes.append(f"{_how_many(below, coarser)}: {why}")
    if target is not None:
        aim = f"an error of {percent(target)} is an aim on data like the training"
        if query.alarms:
            reasons[:] = NOT_KEPT
            notes.append(
                f"{aim}, and for these there is an alarm: all labels are withheld"
            )
        elif query.trust.agreement is None:
            notes.append(
                f"{aim}: whether these are like it cannot be checked by other genes"
            )
    reasons[query.genes_apart == 0] = NO_INFORMATION
    notes += _tied_notes(query.genes_apart)
    if options.strict and query.alarms:
        reasons[:] = STRICT
    return reasons, rule, notes


def target_error(model: Model, options: PredictOptions) -> float | None:
    """The share of wrong labels to allow, as asked for or as the model was trained;
    None where labels are withheld by another rule, or none are.
    """
    target = options.target_error
    trained = model.panel.error_control  # of the model's own size
    other_rule = options.threshold is not None or options.sensitivity
    if target is None and trained is not None and not other_rule:
        target = trained.target_error
    return None if target == 1 else target  # 1: withhold none


def _threshold(
    predictor: Predictor,
    confidence: NDArray,
    options: PredictOptions,
    target: float | None,
) -> tuple[float | None, str]:
    """The confidence below which labels are withheld, and where it comes from."""
    by_level = confidence.ndim == 2
    if options.threshold is not None:
        why = f"asked for a confidence of at least {options.threshold:g}"
        return options.threshold, why
    if target is None:
        if not by_level or options.target_error == 1 or options.sensitivity:
            return None, ""
        return SURE, (
            "a label of the tree is given where it is more probable than all others "
            "together"
        )
    control = predictor.panel.error_control
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
    by_held_out = control.at(target, by_level=by_level)
    threshold = raise_threshold(confidence, by_held_out.threshold, target)
    if threshold <= by_held_out.threshold:
        return threshold, by_held_out.reason
    return threshold, (
        f"the query's own confidences ask for at least {threshold:.3f}, so that "
        f"{percent(target)} of the labels given are expected to be wrong; by held-out "
        f"samples it would be {by_held_out.threshold:.3f}"
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


def _tied_notes(genes_apart: NDArray[np.intp]) -> list[str]:
    """In how many samples all genes of the panel, or nearly all, have one value."""
    notes = []
    tied = genes_apart == 0
    if tied.any():
        what = counted(int(tied.sum()), "sample has", "samples have")
        notes.append(
            f"{what} the same value in all genes of the panel, and no label is given"
        )
    few = (genes_apart < _FEW_GENES) & ~tied
    if few.any():
        notes.append(
            f"in {counted(int(few.sum()), 'sample', 'samples')} all but "
            f"{_FEW_GENES - 1} or fewer genes of the panel have the same value: "
            "labels there rest on few genes"
        )
    return notes


def operating_point(model: Model, asked: Mapping[str, float]) -> tuple[int, float, str]:
    """The threshold for a sensitivity of one class of a model of two.

    Parameters
    ----------
    model : trained, with its held-out probabilities.
    asked : the class that is to be found, and the sensitivity.

    Returns
    -------
    The position of the class, the probability from which labels are this class, and
    what that costs by the held-out samples, in words.
    """
    if len(asked) != 1:
        raise ValueError(
            f"sensitivities of {some(asked)}: give one, the other class follows"
        )
    ((name, share),) = asked.items()
    names = [str(label) for label in model.classes]
    if len(names) != 2:
        raise ValueError(
            f"a sensitivity of {name!r}: the model has {len(names)} classes "
            f"({some(names)}), and a threshold on one of them says nothing of the "
            "others: use a model of two classes"
        )
    if name not in names:
        raise ValueError(
            f"a sensitivity of {name!r}: the model's classes are {some(names)}"
        )
    if not 0 < share < 1:
        raise ValueError(
            f"sensitivity {share!r} of {name!r}: use a share between 0 and 1, such as "
            "0.95"
        )
    held_out = model.card.held_out_probabilities
    if any(not held_out.get(label) for label in names):
        raise ValueError(
            f"a sensitivity of {name!r}: this model stores no held-out probabilities "
            "for its panel; use the model as it was trained, with its own number of "
            "genes"
        )
    code = names.index(name)
    of_class = np.array(held_out[name])
    of_other = np.array(held_out[names[1 - code]])
    if code == 0:  # stored are the probabilities of the second class
        of_class = 1.0 - of_class
        of_other = 1.0 - of_other
    of_class = np.sort(of_class)
    rank = math.ceil(share * (len(of_class) + 1) - 1e-9)
    if rank > len(of_class):
        most = len(of_class) / (len(of_class) + 1)
        raise ValueError(
            f"sensitivity {share:g} of {name!r}: {len(of_class)} held-out samples can "
            f"show at most {most:.3f}: ask for less, or train on more samples"
        )
    threshold = float(of_class[-rank])
    sensitivity, specificity = (
        share_in_words(hits.mean(), *map(float, wilson(hits.mean(), len(hits))))
        for hits in (of_class >= threshold, of_other < threshold)
    )
    return (
        code,
        threshold,
        f"labels are {name} from a probability of {threshold:.3f}: on held-out samples "
        f"of the training a sensitivity of {sensitivity} (asked for: {percent(share)}) "
        f"and a specificity of {specificity}",
    )


def share_in_words(share: float, low: float, high: float) -> str:
    """A share with its interval, in percent."""
    ends = ends_in_percent(share, low, high)
    return f"{percent(share)} (95 % interval {ends[0]} to {ends[1]} %)"
