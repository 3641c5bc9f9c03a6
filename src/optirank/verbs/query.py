"""One pass over the samples of a query, and whether its labels can be right as a whole.

Scores and what else there is to know of the samples are accumulators; `Query` has their
results. Whether labels can be right is told without any truth, by three things.
*Agreement*: do the samples that got one label differ from those that got another, in
genes outside the panel, as in the training data? *Likeness*: do samples look like the
class that they were given, as much as held-out samples of the training did? And how
much of the *panel* is missing: labels that rest on less than half of it, and that
nothing else checks, are not trusted. The rule was chosen on the sets of eight tissues
and judged on seventy others (``benchmarks/study_agreement.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.matrices import GeneMoments, PerSample, as_dense
from optirank._util.names import counted, some
from optirank.data.passes import block_rows, run_pass
from optirank.model.likeness import ValueCounter
from optirank.panel.further import (
    FEWEST_GENES,
    FEWEST_SAMPLES,
    RanksByLabel,
    agreement_of,
    every_so_many,
)
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank._util.matrices import Look, Progress
    from optirank.data.profiles import Profiles
    from optirank.model import Predictor
    from optirank.panel.further import Agreement

_BLOCK_SAMPLES = 4096  # read together: more save no time


class Query:
    """What one pass over a query's samples gives.

    Attributes
    ----------
    profiles : the query.
    predictor : the model, bound to these genes.
    scores : of all samples.
    values : shares of zeros and negative values.
    genes_apart : of each sample, the genes of the panel outside its largest tie.
    likeness : of every so many-th sample.
    labels_looked_at : the labels, as positions, of the samples whose likeness is known.
    standardised : whether the values were standardised per gene.
    trust : what checks the labels as a whole.
    alarms : what says that the labels may be wrong as a whole.
    """

    def __init__(
        self,
        profiles: Profiles,
        predictor: Predictor,
        *,
        progress: Progress | None = None,
    ) -> None:
        self.profiles = profiles
        self.predictor = predictor
        n_samples = profiles.n_samples
        model = predictor.model
        n_classes = len(model.classes)
        few = every_so_many(n_samples)
        looks = _looks(predictor)
        known = predictor.panel.likeness
        if known is not None:
            looks["likeness"] = PerSample(_likeness_of(predictor), every=few)
        columns, means = _further(profiles, predictor)
        read = np.union1d(predictor.columns, columns)  # rising: CSR rows stay sorted
        dense = np.searchsorted(read, predictor.columns)
        if len(columns):
            labelling = replace(predictor, columns=dense, n_columns=len(read))
            looks["ranks"] = RanksByLabel(
                lambda block, _: best_class(labelling.scores(block)),
                n_classes,
                np.searchsorted(read, columns),
                few,
            )
        size = min(_BLOCK_SAMPLES, block_rows(len(read)))
        ranks = [looks.pop("ranks")] if "ranks" in looks else []
        of_panel = PanelLooks(list(looks.values()), dense)
        run_pass(profiles, [of_panel, *ranks], read, size=size, progress=progress)
        found = dict(zip(looks, of_panel.result(), strict=True))
        for look in ranks:
            found["ranks"] = look.result()
        self.scores: NDArray = found["scores"]
        self.genes_apart: NDArray = found["genes_apart"]
        self.likeness: NDArray = found.get("likeness", np.zeros(0))
        self.labels_looked_at: NDArray = best_class(self.scores[::few])
        self.values: dict[str, Any] = found["values"]
        self.standardised: bool = found["moments"]
        typical = None
        if known is not None:
            relative = known.relative(self.likeness, self.labels_looked_at)
            typical = float(np.median(relative))
        none = np.zeros(n_classes), np.zeros((n_classes, 0))
        counts, of_labels = found.get("ranks", none)
        self.trust = Trust(
            classes=model.classes.tolist(),
            n_samples=n_samples,
            compared=model.further and agreement_of(means, counts, of_labels),
            likeness=typical,
            missing=1.0 - float(predictor.match.present.mean()),
        )
        self.alarms = [*predictor.alarms(), *self.trust.alarms()]


class PanelLooks:
    """Looks at the genes of a panel alone, which are made an array once for all.

    ``columns`` are those of a block.
    """

    def __init__(self, looks: list[Look], columns: NDArray) -> None:
        self._looks = looks
        self._columns = columns

    def add(self, block: Any, rows: slice) -> None:
        """Look at the samples of a block."""
        values = as_dense(block[:, self._columns])
        for look in self._looks:
            look.add(values, rows)

    def merge(self, other: PanelLooks) -> None:
        """Take what others have seen of the samples that follow."""
        for look, following in zip(self._looks, other._looks, strict=True):
            look.merge(following)

    def result(self) -> list[Any]:
        """What each of them looked for."""
        return [look.result() for look in self._looks]


def _looks(predictor: Predictor) -> dict[str, Look]:
    """What is gathered of the panel's genes in every query: a further look goes
    here.
    """
    return {
        "scores": PerSample(predictor.narrowed().scores),
        "genes_apart": PerSample(genes_apart),
        "values": ValueCounter(),
        "moments": GeneMoments(),
    }


def _likeness_of(predictor: Predictor) -> Callable[[NDArray], NDArray]:
    """What gives the likeness of the samples of a block to their labels."""
    narrowed = predictor.narrowed()
    return lambda block: narrowed.likeness(block, best_class(narrowed.scores(block)))


def _further(profiles: Profiles, predictor: Predictor) -> tuple[NDArray, NDArray]:
    """Positions of the genes that check the labels, and their mean ranks by class."""
    further = predictor.model.further
    if further is None:
        return np.zeros(0, np.intp), np.zeros((0, 0))
    used = predictor.panel.genes.tolist()
    columns, means = further.found_among(profiles.genes.tolist(), used)
    kept = ~np.isin(columns, predictor.columns)
    return columns[kept], means[:, kept]


def genes_apart(X: Any) -> NDArray[np.intp]:
    """Of each sample, the number of its values outside its largest group of equal ones.

    In single cells that group is mostly the zeros. A sample in which all values are
    equal has 0, and its genes have no order.
    """
    values = as_dense(X)
    ordered = np.sort(values, axis=1)
    n_samples, n_genes = ordered.shape
    begins = np.ones(ordered.shape, dtype=bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(begins)  # groups end where the next begins, in every row
    sizes = np.diff(np.append(starts, ordered.size))
    largest = np.zeros(n_samples, np.intp)
    np.maximum.at(largest, starts // max(1, n_genes), sizes)
    return n_genes - largest


ALARM_BELOW = 0.25  # agreement: few right queries have less, most wrong ones do
DOUBT_BELOW = 0.45  # agreement: below, likeness decides
UNLIKE = 0.6  # share of the model's own likeness: less, and a doubt is an alarm
UNLIKE_UNCHECKED = 0.5  # the same, where nothing else is known
MOST = 0.5  # share of the panel: labels with more missing must be checked
LOW_LABEL = 0.4  # agreement of a label below which it is named


UNLIKELY = (
    "these samples do not look like the training data (wrong tissue, wrong species, "
    "scrambled genes, or scaled values): their labels may all be wrong"
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


class Trust:
    """What checks the labels of a query as a whole.

    Parameters
    ----------
    classes : names of the model's classes.
    n_samples : samples of the query.
    compared : the agreement of the labels that the panel gave; None where the model
        stores no further genes.
    likeness : the median likeness of the samples, as a share of that of held-out
        samples of the same labels; None where the model cannot tell.
    missing : the share of the panel's genes that the query lacks.

    Attributes
    ----------
    agreement : over all labels; None where they cannot be checked.
    by_label : the agreement of each label of at least three samples.
    alarmed : whether the labels may all be wrong.
    """

    def __init__(
        self,
        classes: Sequence[str],
        n_samples: int,
        compared: Agreement | None = None,
        likeness: float | None = None,
        missing: float = 0.0,
    ) -> None:
        self.classes = classes
        self.n_samples = n_samples
        self.compared = compared
        self.likeness = likeness
        self.missing = missing
        self.agreement: float | None = None
        self.by_label: dict[str, float] = {}
        if compared is not None:
            self.agreement = compared.overall
            for label, value in compared.by_label.items():
                self.by_label[str(classes[label])] = value
        self.alarmed = is_alarm(self.agreement, likeness, missing)

    def alarms(self) -> list[str]:
        """What says that the labels may all be wrong."""
        if not self.alarmed:
            return []
        if self.agreement is not None:
            return [
                f"{UNLIKELY}. Genes outside the panel do not confirm the labels "
                f"(agreement {self.agreement:.2f})"
            ]
        alarms = [UNLIKELY] if is_alarm(None, self.likeness) else []
        if self.missing > MOST:
            alarms.append(
                f"{self.missing:.0%} of the panel's genes are missing, and nothing "
                "else checks the labels: they may all be wrong"
            )
        return alarms

    def notes(self) -> list[str]:
        """One sentence on the agreement, and one that names labels of low
        agreement.
        """
        if self.agreement is None:
            return [f"the labels cannot be checked by other genes: {self.unchecked}"]
        notes = [f"agreement of other genes {self.agreement:.2f}"]
        lowest_first = sorted(self.by_label.items(), key=lambda entry: entry[1])
        low = [
            f"{label} {share:.2f}" for label, share in lowest_first if share < LOW_LABEL
        ]
        if low and not self.alarmed:
            notes.append(
                f"{counted(len(low), 'label agrees', 'labels agree')} little with "
                f"the training data in other genes: {some(low)}; look at the "
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
