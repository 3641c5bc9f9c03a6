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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.metrics import wilson
from optirank._util.names import counted, ends_in_percent, percent, some
from optirank.model.confidence import check_target_error, raise_threshold
from optirank.model.tree import SURE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.model import Model, Predictor
    from optirank.workflow.options import PredictOptions
    from optirank.workflow.performance import Performance
    from optirank.workflow.query import Query

NO_INFORMATION = "no information: all genes of the panel have the same value"
LOW_CONFIDENCE = "confidence below the threshold"
UNKNOWN = "looks like no class of the training data"
STRICT = "the labels may all be wrong, see the alarm (strict)"
NOT_KEPT = "the labels may all be wrong, see the alarm: no error can be kept"
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

    Where there is an alarm, no target error can be kept: it is an aim on data like the
    training, and all labels are withheld.
    """
    decision = Withholding(np.full(len(confidence), "", dtype=object))
    if options.unknown_rate is not None:
        _withhold_unknown(decision, query, options.unknown_rate)
    target = target_error(query.predictor.model, options)
    gives_all = options.target_error == 1 or options.sensitivity
    if options.threshold is not None:
        decision.threshold = options.threshold
        decision.threshold_reason = (
            f"asked for a confidence of at least {options.threshold:g}"
        )
    elif target is not None:
        _keep_error(decision, query.predictor, confidence, target)
    elif confidence.ndim == 2 and not gives_all:
        decision.threshold = SURE
        decision.threshold_reason = (
            "a label of the tree is given where it is more probable than all others "
            "together"
        )
    if decision.threshold is not None:
        _withhold_unsure(decision, confidence, decision.threshold)
    if target is not None:
        _withhold_untrusted(decision, target, query)
    _withhold_tied(decision, query.genes_apart)
    if options.strict and query.alarms:
        decision.reasons[:] = STRICT
    return decision


def target_error(model: Model, options: PredictOptions) -> float | None:
    """The share of wrong labels to allow, as asked for or as the model was trained;
    None where labels are withheld by another rule, or none are.
    """
    target = options.target_error
    trained = model.panel.error_control  # of the model's own size
    other_rule = options.threshold is not None or options.sensitivity
    if target is None and trained is not None and not other_rule:
        target = trained.target_error
    if target is None or target == 1:  # 1: withhold none
        return None
    check_target_error(target)
    return target


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


def _keep_error(
    decision: Withholding, predictor: Predictor, confidence: NDArray, target: float
) -> None:
    """The confidence below which labels are withheld to keep a target error."""
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
    by_held_out = control.at(target, by_level=confidence.ndim == 2)
    decision.threshold = raise_threshold(confidence, by_held_out.threshold, target)
    decision.threshold_reason = by_held_out.reason
    if decision.threshold > by_held_out.threshold:
        decision.threshold_reason = (
            f"the query's own confidences ask for at least {decision.threshold:.3f}, "
            f"so that {percent(target)} of the labels given are expected to be wrong; "
            f"by held-out samples it would be {by_held_out.threshold:.3f}"
        )


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
        verb = "is" if below.sum() == 1 else "are"
        what = f"{below.sum()} of {len(below)} labels ({share}) {verb} withheld"
    if by_level:
        coarse = ~below & (confidence[:, -1] < threshold)
        if coarse.any():
            verb = "is" if coarse.sum() == 1 else "are"
            share = percent(coarse.mean())
            what += f", {coarse.sum()} ({share}) {verb} coarser than a class"
    decision.notes.append(f"{what}: {decision.threshold_reason}")


def _withhold_untrusted(decision: Withholding, target: float, query: Query) -> None:
    """Withhold all labels where the error cannot be kept; say where nobody knows."""
    if query.alarms:
        decision.reasons[:] = NOT_KEPT
        decision.notes.append(
            f"an error of {percent(target)} is an aim on data like the training, and "
            "for these there is an alarm: all labels are withheld"
        )
    elif query.trust.agreement is None:
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


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold on the probability of one of two classes.

    Attributes
    ----------
    name : the class that is to be found.
    code : the position of the class among the two.
    asked : the sensitivity that was asked for.
    threshold : the label is ``name`` where its probability is at least this.
    sensitivity, specificity : of held-out samples, each with its 95 % interval.
    """

    name: str
    code: int
    asked: float
    threshold: float
    sensitivity: tuple[float, float, float]
    specificity: tuple[float, float, float]

    def chosen(self, probabilities: NDArray) -> NDArray[np.intp]:
        """The class of each sample, from probabilities (n, 2)."""
        is_found = probabilities[:, self.code] >= self.threshold
        return np.where(is_found, self.code, 1 - self.code)

    def note(self, n_missing: int) -> str:
        """What the threshold is, and what it costs, by the held-out samples."""
        note = (
            f"labels are {self.name} from a probability of {self.threshold:.3f}: on "
            f"held-out samples of the training a sensitivity of "
            f"{_in_words(self.sensitivity)} (asked for: {percent(self.asked)}) and a "
            f"specificity of {_in_words(self.specificity)}"
        )
        if n_missing:
            note += (
                f"; {n_missing} genes of the panel are missing here, and both may be "
                "others without them"
            )
        return note

    def found(self, judged: Performance) -> str:
        """What it gives on the samples of an evaluation."""
        row = judged.per_class.loc[self.name]
        sensitivity, specificity = (
            _in_words((row[name], row[f"{name}_low"], row[f"{name}_high"]))
            for name in ("sensitivity", "specificity")
        )
        return (
            f"for {self.name} a sensitivity of {percent(self.asked)} was asked for; on "
            f"these samples it is {sensitivity}, the specificity {specificity}"
        )


def operating_point(
    model: Model, asked: Mapping[str, float] | str | None
) -> OperatingPoint | None:
    """The threshold for a sensitivity of one class of a model of two.

    Parameters
    ----------
    model : trained, with its held-out probabilities.
    asked : the class and the sensitivity; None for none.
    """
    if not asked:
        return None
    assert not isinstance(asked, str)  # `PredictOptions` has read it
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
    return OperatingPoint(
        name=name,
        code=code,
        asked=share,
        threshold=threshold,
        sensitivity=_share(of_class >= threshold),
        specificity=_share(of_other < threshold),
    )


def _share(hits: NDArray[np.bool_]) -> tuple[float, float, float]:
    share = float(hits.mean())
    low, high = wilson(share, len(hits))
    return share, float(low), float(high)


def _in_words(share: tuple[float, float, float]) -> str:
    low, high = ends_in_percent(*share)
    return f"{percent(share[0])} (95 % interval {low} to {high} %)"
