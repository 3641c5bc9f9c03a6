"""Whether the labels of a query can be right as a whole, told without any truth.

Three things are known. *Agreement*: do the samples that got one label differ from those
that got another, in genes outside the panel, as in the training data? And *likeness*:
do samples look like the class that they were given, as much as held-out samples of the
training did? And how much of the *panel* is missing: labels that rest on less than half
of it, and that nothing else checks, are not trusted. The rule was chosen on the sets of
eight tissues and judged on seventy others (``benchmarks/study_agreement.py``); figures
in words are of these.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from optirank._util.names import counted, some
from optirank.panel.further import FEWEST_GENES, FEWEST_SAMPLES

if TYPE_CHECKING:
    from optirank.panel.further import Agreement

ALARM_BELOW = 0.25  # agreement: few right queries have less, most wrong ones do
DOUBT_BELOW = 0.45  # agreement: below, likeness decides
UNLIKE = 0.6  # share of the model's own likeness: less, and a doubt is an alarm
UNLIKE_UNCHECKED = 0.5  # the same, where nothing else is known
MOST = 0.5  # share of the panel: labels with more missing must be checked
ADAPT_FROM = 0.3  # agreement: learning from a query gains less below, and loses more
SUGGEST_ADAPT = 50  # samples from which learning from the query is worth trying
LOW_LABEL = 0.4  # agreement of a label below which it is named


class Step(NamedTuple):
    """What the queries of the study with an agreement below ``end`` were."""

    end: float
    right: float  # share of the queries of the right tissue
    wrong: float  # share of those of another
    accuracy: float  # mean balanced accuracy of the right ones


STEPS = (  # results/agreement.csv; a test compares
    Step(0.25, 0.02, 0.79, 0.72),
    Step(0.45, 0.16, 0.17, 0.75),
    Step(0.65, 0.25, 0.04, 0.80),
    Step(0.85, 0.34, 0.0, 0.86),
    Step(1.0, 0.22, 0.0, 0.92),
)
UNLIKELY = (
    "these samples do not look like the training data (wrong tissue, wrong species, "
    "scrambled genes, or scaled values): their labels may all be wrong"
)

LACKING = (
    "{:.0%} of the panel's genes are missing, and nothing else checks the labels: they "
    "may all be wrong"
)


def is_alarm(
    agreement: float | None, likeness: float | None, missing: float = 0.0
) -> bool:
    """Whether labels may all be wrong, of what is known of their query.

    ``missing`` is the share of the panel's genes that the query lacks.
    """
    likeness = float("inf") if likeness is None else likeness
    if agreement is None:
        return likeness < UNLIKE_UNCHECKED or missing > MOST
    doubted = agreement < DOUBT_BELOW and likeness < UNLIKE
    return agreement < ALARM_BELOW or doubted


@dataclass(frozen=True)
class Trust:
    """What checks the labels of a query as a whole.

    Attributes
    ----------
    classes : names of the model's classes.
    n_samples : samples of the query.
    compared : the agreement of the labels that the panel gave; None where the model
        stores no further genes.
    likeness : the median likeness of the samples, as a share of that of held-out
        samples of the same labels; None where the model cannot tell.
    missing : the share of the panel's genes that the query lacks.
    """

    classes: Sequence[str]
    n_samples: int
    compared: Agreement | None = None
    likeness: float | None = None
    missing: float = 0.0

    @property
    def agreement(self) -> float | None:
        """The agreement over all labels; None where they cannot be checked."""
        return None if self.compared is None else self.compared.overall

    @cached_property
    def by_label(self) -> dict[str, float]:
        """The agreement of each label of at least three samples."""
        if self.compared is None:
            return {}
        return {
            str(self.classes[label]): value
            for label, value in self.compared.by_label.items()
        }

    @property
    def alarmed(self) -> bool:
        """Whether the labels may all be wrong."""
        return is_alarm(self.agreement, self.likeness, self.missing)

    @property
    def adapt_helps(self) -> bool:
        """Whether learning from the query is worth advising, as ``adapt="auto"``
        does.
        """
        return (
            self.agreement is not None
            and self.agreement >= ADAPT_FROM
            and not self.alarmed
            and self.n_samples >= SUGGEST_ADAPT
        )

    @property
    def low_labels(self) -> dict[str, float]:
        """Labels whose samples may mostly be of other classes, the lowest first."""
        named = sorted(self.by_label.items(), key=lambda entry: entry[1])
        return {label: value for label, value in named if value < LOW_LABEL}

    def alarms(self) -> list[str]:
        """What says that the labels may all be wrong."""
        if not self.alarmed:
            return []
        if self.agreement is None:
            lacking = [LACKING.format(self.missing)] if self.missing > MOST else []
            return [*([UNLIKELY] if is_alarm(None, self.likeness) else []), *lacking]
        return [
            f"{UNLIKELY}. Genes outside the panel do not confirm the labels "
            f"(agreement {self.agreement:.2f})"
        ]

    def notes(self) -> list[str]:
        """One sentence on the agreement, and one that names labels of low
        agreement.
        """
        if self.agreement is None:
            return [f"the labels cannot be checked by other genes: {self.unchecked}"]
        notes = [f"agreement of other genes {self.agreement:.2f}: {self.meaning}"]
        if self.low_labels and not self.alarmed:
            named = [f"{label} {value:.2f}" for label, value in self.low_labels.items()]
            notes.append(
                f"{counted(len(named), 'label agrees', 'labels agree')} little with "
                f"the training data in other genes: {some(named)}; look at the "
                "markers of these"
            )
        return notes

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

    @property
    def meaning(self) -> str:
        """What an agreement says, by the queries of the study."""
        assert self.agreement is not None
        starts = [-1.0, *(step.end for step in STEPS)]
        number = min(bisect(starts, self.agreement), len(STEPS)) - 1
        step = STEPS[number]
        between = f"{starts[number]:g} to {step.end:g}"
        if not number:
            between = f"below {step.end:g}"
        return (
            f"{between} in {step.right:.0%} of real queries of the right tissue and "
            f"{step.wrong:.0%} of those of another; {step.accuracy:.0%} of the labels "
            "of the right ones were right (mean over classes)"
        )
