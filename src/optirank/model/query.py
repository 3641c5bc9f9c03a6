"""What a query looks like beside the training data: its values, and whether adapting may help.

Ranks within a sample do not change under any rising function of its values, so counts, CPM and
log(CPM + 1) are all the same to a model on ranks. They do change when each gene is scaled or
centred, smoothed or imputed, and zeros are ties. A model stores shares of its training data, over
the genes of its panel, in ``training_summary_["values"]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from optirank.model.adaptation import Adaptation

_MORE_ZEROS = 0.35  # above training: a third of the panel more is tied; a guess, not measured
_SOME_ZEROS = 0.1  # share of zeros in training from which a query without any is told
_CHANGED = 0.05  # share of labels: fewer change on the training data and on related platforms
_FEW_CHANGED = 5  # labels: fewer change by chance in a small query
_SCALED = (
    "ranks within a sample change when genes are scaled or centred: if they were, give counts or "
    "their logarithm (layer=, --layer)"
)


@dataclass
class ValueSummary:
    """Zeros, negative values and the scale of data, added up block by block."""

    n: int = 0
    n_zero: int = 0
    n_negative: int = 0
    scale: str | None = None  # of the first block with values: counts, linear or log

    def add(self, X: Any) -> None:
        """Count the values of a block, dense or sparse."""
        values = X.data if hasattr(X, "indptr") else np.asarray(X)
        n = int(np.prod(X.shape))
        self.n += n
        self.n_zero += n - int(np.count_nonzero(values))
        self.n_negative += int(np.count_nonzero(values < 0))
        if self.scale is None and values.size:
            from optirank.preprocessing.scales import value_scale  # scipy loads

            self.scale = value_scale(X)

    @property
    def zeros(self) -> float:
        """Share of the values that are zero."""
        return self.n_zero / max(1, self.n)

    @property
    def negative(self) -> float:
        """Share of the values that are negative."""
        return self.n_negative / max(1, self.n)

    def to_plain(self) -> dict[str, Any]:
        """As ``training_summary_["values"]`` has it."""
        shares = {"zeros": round(self.zeros, 6), "negative": round(self.negative, 6)}
        return {"scale": self.scale, **shares}

    def notes(self, trained: Any) -> list[str]:
        """How these values differ from those of the training data, in ways that matter.

        ``trained`` is ``training_summary_["values"]``; None or another form gives no notes.
        """
        shares = [trained.get(key) for key in ("zeros", "negative")] if trained else [None]
        if not self.n or not all(isinstance(share, float | int) for share in shares):
            return []
        zeros, negative = shares
        notes = []
        if self.n_negative and not negative:
            notes.append(
                f"{self.negative:.1%} of the values are negative, and none were in the training "
                f"data: {_SCALED}"
            )
        if not self.n_zero and zeros >= _SOME_ZEROS:
            notes.append(
                f"no value is zero, and {zeros:.0%} were in the training data: that is usual for a "
                "microarray; smoothed or imputed values would change ranks"
            )
        elif self.zeros - zeros > _MORE_ZEROS:
            notes.append(
                f"{self.zeros:.0%} of the values are zero, and {zeros:.0%} were in the training "
                "data: zeros are ties, so labels are less certain; a larger panel may do better"
            )
        return notes


def adaptation_note(adaptation: Adaptation, adapted: bool) -> str | None:
    """What adapting did, or that it may help; None where there is nothing to say."""
    n, changed = adaptation.n_samples, adaptation.n_changed
    if adapted:
        return f"adapting to the query changed {changed} of {n} labels"
    if changed < max(_FEW_CHANGED, _CHANGED * n):
        return None
    return (
        f"the classes may be shifted in this query: adapting to it would change {changed} of {n} "
        "labels (--adapt, adapt=True)"
    )
