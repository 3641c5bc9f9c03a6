"""What kind of values data hold, and whether those of a query are of the kind of the training data.

Ranks within a sample do not change under any rising function of its values, so counts, CPM and
log(CPM + 1) are all the same to a model on ranks. They do change when each gene is scaled or
centred, smoothed or imputed. Such values are recognised: some are negative where none were, or none
are zero where many were. A model on values (lr) also depends on the scale: counts, logarithms and
other values are told apart by whole numbers and by the largest value. A model remembers the kind of
its training data, over the genes of its panel, in ``training_summary_["values"]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_VERSION = 1
_MANY_ZEROS = 0.1  # share of zeros in the training data from which a query should have some
_FEW_ZEROS = 0.1  # of the trained share: below, zeros are called gone
_OTHER_ZEROS = 0.35  # difference of the shares of zeros that is told
_LARGEST_LOG = 30.0  # logarithms of expression values are below, whatever their base
_SCALES = {
    "counts": "counts (whole numbers, some large)",
    "logarithms": "logarithms",
    "linear": "values on a linear scale, of which no logarithm was taken",
}
_REMEDY = (
    "ranks within a sample change when genes are scaled, centred, smoothed or imputed: if so, give "
    "counts or their logarithm (layer=, --layer)"
)


@dataclass
class ValueKinds:
    """Counts of values, added up block by block."""

    n: int = 0
    n_zero: int = 0
    n_negative: int = 0
    whole: bool = True
    largest: float = 0.0

    def add(self, X: Any) -> None:
        """Count the values of a block, dense or sparse."""
        values = X.data if hasattr(X, "indptr") else np.asarray(X)
        n = int(np.prod(X.shape))
        self.n += n
        self.n_zero += n - int(np.count_nonzero(values))
        self.n_negative += int(np.count_nonzero(values < 0))
        self.largest = max(self.largest, float(values.max(initial=0)))
        if self.whole and values.dtype.kind == "f":
            self.whole = bool((values == np.rint(values)).all())

    @property
    def zeros(self) -> float:
        """Share of the values that are zero."""
        return self.n_zero / max(1, self.n)

    @property
    def negative(self) -> float:
        """Share of the values that are negative."""
        return self.n_negative / max(1, self.n)

    def to_plain(self) -> dict[str, Any]:
        """As the model file keeps it."""
        shares = {"zeros": round(self.zeros, 6), "negative": round(self.negative, 6)}
        rest = {"whole_numbers": self.whole, "largest": round(self.largest, 3)}
        return {"version": _VERSION, **shares, **rest}

    def own_notes(self) -> list[str]:
        """What is odd about training data."""
        if not self.n_negative or self.n_zero:
            return []
        return [
            f"{self.negative:.0%} of the values are negative and none is zero: if genes were "
            f"scaled or centred, a query must be so too, and {_REMEDY}"
        ]

    def differences(self, trained: Any) -> list[str]:
        """How a query differs from what a model remembers, in sentences; none where it is alike.

        ``trained`` comes from a file: whatever is not of the known form says nothing.
        """
        if not self.n or not isinstance(trained, dict) or trained.get("version") != _VERSION:
            return []
        zeros, negative = trained.get("zeros"), trained.get("negative")
        if not isinstance(zeros, float | int) or not isinstance(negative, float | int):
            return []
        found = []
        if self.n_negative and not negative:
            found.append(
                f"{self.negative:.1%} of the values are negative, and none were in the training "
                f"data: {_REMEDY}"
            )
        elif not self.n_negative and negative > 0.01:
            found.append(
                f"no value is negative, and {negative:.1%} were in the training data: if they were "
                "scaled or centred, scale the query in the same way, or train on counts"
            )
        if zeros >= _MANY_ZEROS and self.zeros < _FEW_ZEROS * zeros:
            found.append(
                f"{self.zeros:.1%} of the values are zero, and {zeros:.0%} were in the training "
                "data: that is usual for another platform, such as a microarray; otherwise, "
                f"{_REMEDY}"
            )
        elif abs(self.zeros - zeros) > _OTHER_ZEROS:
            found.append(
                f"{self.zeros:.0%} of the values are zero, and {zeros:.0%} were in the training "
                "data: zeros are ties, so expect less certain labels; a model trained on data of "
                "this kind may do better"
            )
        return found


def scale_difference(query: ValueKinds, trained: Any) -> list[str]:
    """For a model on values: whether the query is on another scale than the training data.

    ``trained`` comes from a file: whatever is not of the known form says nothing.
    """
    if not query.n or not isinstance(trained, dict) or trained.get("version") != _VERSION:
        return []
    whole, largest = trained.get("whole_numbers"), trained.get("largest")
    if not isinstance(whole, bool) or not isinstance(largest, float | int):
        return []
    before, now = _scale(whole, largest), _scale(query.whole, query.largest)
    if before == now:
        return []
    return [
        f"the values look like {_SCALES[now]}, and those of the training data like "
        f"{_SCALES[before]}: this model uses values and not ranks, so its labels are wrong unless "
        "the query is on the scale of the training data (layer=, --layer)"
    ]


def _scale(whole: bool, largest: float) -> str:
    if largest <= _LARGEST_LOG and not whole:
        return "logarithms"
    return "counts" if whole else "linear"


def value_kinds(X: Any) -> ValueKinds:
    """The kinds of all values of a matrix."""
    kinds = ValueKinds()
    kinds.add(X)
    return kinds
