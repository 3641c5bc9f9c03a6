"""Operating points: the threshold at which a class is found with a given sensitivity.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.metrics import ends_in_percent, percent, wilson
from optirank._util.names import some

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from optirank.model import Model
    from optirank.workflow.performance import Performance


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold on the probability of one of two classes.

    Attributes
    ----------
    name, other : the class that is to be found, and the other one.
    code : the position of the class among the two.
    asked : the sensitivity that was asked for.
    threshold : the label is ``name`` where its probability is at least this.
    sensitivity, specificity : of held-out samples, each with its 95 % interval.
    """

    name: str
    other: str
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
    asked : the class and the sensitivity, as a mapping or as ``CLASS=SHARE``; None for
        none.
    """
    if not asked:
        return None
    name, share = _asked(asked)
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
    of_class, of_other = (
        np.sort(_of_class(held_out[label], code)) for label in (name, names[1 - code])
    )
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
        other=names[1 - code],
        code=code,
        asked=share,
        threshold=threshold,
        sensitivity=_share(of_class >= threshold),
        specificity=_share(of_other < threshold),
    )


def held_out_probabilities(
    truth: ArrayLike, probabilities: NDArray, classes: NDArray
) -> dict[str, tuple[float, ...]]:
    """Of a model of two classes, by true class: the probabilities of the second.

    They rise, so that they do not tell which sample is which. Nothing for more classes.
    """
    if len(classes) != 2:
        return {}
    of_samples = np.asarray(truth).astype(str)
    return {
        name: tuple(np.sort(probabilities[of_samples == name, 1]).tolist())
        for name in map(str, classes)
    }


def _asked(asked: Mapping[str, float] | str) -> tuple[str, float]:
    """The class and the sensitivity that was asked for."""
    if not isinstance(asked, str):
        if len(asked) != 1:
            raise ValueError(
                f"sensitivities of {some(asked)}: give one, the other class follows"
            )
        return next((str(name), float(share)) for name, share in asked.items())
    name, _, share = asked.rpartition("=")
    try:
        number: Any = float(share)
    except ValueError:
        number = None
    if not name or number is None:
        raise ValueError(
            f"sensitivity {asked!r}: write CLASS=SHARE, such as 'er positive=0.95'"
        )
    return name, number


def _of_class(of_second: tuple[float, ...], code: int) -> NDArray:
    """Probabilities of one of two classes, from those of the second."""
    values = np.array(of_second)
    return values if code == 1 else 1.0 - values


def _share(hits: NDArray[np.bool_]) -> tuple[float, float, float]:
    share = float(hits.mean())
    low, high = wilson(share, len(hits))
    return share, float(low), float(high)


def _in_words(share: tuple[float, float, float]) -> str:
    low, high = ends_in_percent(*share)
    return f"{percent(share[0])} (95 % interval {low} to {high} %)"
