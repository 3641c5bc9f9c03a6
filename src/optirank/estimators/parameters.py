"""What a parameter of an estimator may be, in scikit-learn's constraints and in
words.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    make_constraint,
)

from optirank._util.names import some


class InWords:
    """What a parameter may be, as scikit-learn's constraints and in words."""

    def __init__(self, words: str, *constraints: Any) -> None:
        self._words = words
        self._constraints = [make_constraint(constraint) for constraint in constraints]

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether a constraint allows the value."""
        return any(one.is_satisfied_by(value) for one in self._constraints)

    def __str__(self) -> str:
        return self._words


class Several(InWords):
    """A sequence of at least one value, each of which the constraints allow, if any."""

    def is_satisfied_by(self, value: Any) -> bool:
        """Whether this is such a sequence."""
        if isinstance(value, str) or not hasattr(value, "__len__") or not len(value):
            return False
        one_is_satisfied = super().is_satisfied_by
        return not self._constraints or all(one_is_satisfied(one) for one in value)


def one_of(*names: str) -> InWords:
    """One of some strings."""
    return InWords(f"one of {', '.join(map(repr, names))}", StrOptions(set(names)))


FROM_ZERO = Interval(Real, 0, None, closed="left")
PENALTY = InWords("a finite number of at least 0", FROM_ZERO)
CLASS_WEIGHT = InWords(
    "'balanced', None or a dict of one weight per class",
    StrOptions({"balanced"}),
    None,
    dict,
)
POSITIVE = InWords(
    "a positive, finite number", Interval(Real, 0, None, closed="neither")
)
FROM_ONE = InWords(
    "a finite number of at least 1", Interval(Real, 1, None, closed="left")
)
TOLERANCE = InWords(
    "a number between 0 and 1, such as 1e-5", Interval(Real, 0, 1, closed="neither")
)


def check_parameter(name: str, value: object, constraints: list) -> None:
    """Refuse a value that no constraint allows, naming value and remedy."""
    allowed: list[Any] = [
        one if isinstance(one, InWords) else make_constraint(one) for one in constraints
    ]
    if not any(one.is_satisfied_by(value) for one in allowed):
        words = " or ".join(str(one) for one in allowed)
        raise InvalidParameterError(f"{name}={value!r}: use {words}")


def weights_of_classes(given: dict, classes: NDArray) -> NDArray:
    """The weight of each class, 1 where the dict has no entry."""
    labels = classes.tolist()
    if unknown := [label for label in given if label not in labels]:
        raise ValueError(
            f"class_weight names {unknown[0]!r}, which is not a class of y: the "
            f"classes are {some(labels, 20)}"
        )
    for label, weight in given.items():
        check_parameter(f"class_weight[{label!r}]", weight, [POSITIVE])
    return np.array([float(given.get(label, 1.0)) for label in labels])
