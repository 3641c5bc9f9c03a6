"""Whether the labels of a query can be right as a whole, told without any truth.

*Agreement*: do the samples that got one label differ from those that got another, in
genes outside the panel, as in the training data? *Likeness*: do samples look like the
class that they were given, as much as held-out samples of the training did? And how
much of the *panel* is missing: labels that rest on less than half of it, and that
nothing else checks, are not trusted. The rule was chosen on the sets of eight tissues
and judged on seventy others (``benchmarks/study_agreement.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optirank._util.words import counted, note, some, warn
from optirank.panel.further import FEWEST_GENES, FEWEST_SAMPLES, Agreement

ALARM_BELOW = 0.25  # agreement: few right queries have less, most wrong ones do
DOUBT_BELOW = 0.45  # agreement: below, likeness decides
UNLIKE = 0.6  # likeness: less, and a doubt is an alarm
UNLIKE_UNCHECKED = 0.5  # the same, where there is no agreement
MOST = 0.5  # share of the panel: labels with more missing must be checked
LOW_LABEL = 0.4  # agreement of a label below which it is named
UNLIKELY = (
    "these samples do not look like the training data (wrong tissue, wrong species, "
    "scrambled genes, or scaled values): their labels may all be wrong"
)


class Checks:
    """What checks the labels of a query as a whole.

    Parameters
    ----------
    classes : names of the model's classes.
    n_samples : samples of the query.
    compared : the agreement of the labels; None where the model stores no further
        genes.
    likeness : the median of the samples, see `Labels`.
    missing : the share of the panel's genes that the query lacks.
    """

    def __init__(
        self,
        classes: Sequence[Any],
        n_samples: int,
        compared: Agreement | None,
        likeness: float,
        missing: float = 0.0,
    ) -> None:
        self.classes = classes
        self.n_samples = n_samples
        self.compared = compared
        self.likeness = likeness
        self.missing = missing

    @property
    def agreement(self) -> float | None:
        """Over all labels; None where they cannot be checked."""
        return None if self.compared is None else self.compared.overall

    @property
    def by_label(self) -> dict[str, float]:
        """The agreement of each label of at least three samples."""
        by_code = {} if self.compared is None else self.compared.by_label
        return {str(self.classes[code]): value for code, value in by_code.items()}

    def say(self) -> None:
        """Warn where the labels may all be wrong; note the agreement, or why there is
        none, and name labels of low agreement.
        """
        if self.agreement is None:
            note(f"the labels cannot be checked by other genes: {self.unchecked}")
            if self.likeness < UNLIKE_UNCHECKED:
                warn(UNLIKELY)
            if self.missing > MOST:
                warn(
                    f"{self.missing:.0%} of the panel's genes are missing, and nothing "
                    "else checks the labels: they may all be wrong"
                )
            return
        note(f"agreement of other genes {self.agreement:.2f}")
        lowest_first = sorted((value, name) for name, value in self.by_label.items())
        low = [
            f"{name} {value:.2f}" for value, name in lowest_first if value < LOW_LABEL
        ]
        is_doubtful = self.agreement < DOUBT_BELOW and self.likeness < UNLIKE
        if self.agreement < ALARM_BELOW or is_doubtful:
            warn(
                f"{UNLIKELY}. Genes outside the panel do not confirm the labels "
                f"(agreement {self.agreement:.2f})"
            )
        elif low:
            note(
                f"{counted(len(low), 'label agrees', 'labels agree')} little with "
                f"the training data in other genes: {some(low)}; look at the "
                "markers of these"
            )

    @property
    def unchecked(self) -> str:
        """Why there is no agreement, and what follows."""
        if self.compared is None:
            return (
                "the model stores none, because its training data had too few genes "
                "outside the panel that differ between the classes"
            )
        if self.compared.n_genes < FEWEST_GENES:
            return (
                f"the query has {self.compared.n_genes} of those that the model "
                f"stores; a check takes {FEWEST_GENES}, or fewer that agree clearly"
            )
        return (
            f"a check takes two labels with at least {FEWEST_SAMPLES} samples each; "
            f"the query has {counted(self.n_samples, 'sample', 'samples')}"
        )
