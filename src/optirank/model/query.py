"""What a query looks like beside the training data, measured on the way through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.model.adaptation import FEWEST, Adaptation, fit_adaptation, profile_shares
from optirank.model.experience import Experience, panel_ranks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.model.missing import BoundModel

_MEASURED = 5000  # samples at most that a query is judged by, evenly spread
_RANKED = 2000  # of these, whose ranks are looked at
_SHIFTED = 0.1  # of the separation of a class: from here its scores are called shifted
_SHRUNK = 0.5  # of the trained separation: below, scores are called much closer together


@dataclass(frozen=True)
class QueryReport:
    """How a query differs from the training data."""

    adaptation: Adaptation
    scores: NDArray  # of samples evenly spread over the query, before adapting
    problems: tuple[str, ...]  # the class of each binary problem
    expected: NDArray  # (2, problems): mean held-out score outside and inside of the class
    shares: NDArray | None  # (classes,): estimated shares of the classes
    between: float  # share of the samples that lie between classes
    expected_between: float  # of held-out samples
    weight_lost: float  # by missing genes, in the class that loses most

    @property
    def n_shifted(self) -> int:
        """Number of binary problems whose scores are shifted."""
        return int(np.count_nonzero(np.abs(self.adaptation.shifts) > _SHIFTED))

    @property
    def scale(self) -> float:
        """Median separation of the scores, relative to that of held-out samples."""
        return float(np.median(self.adaptation.scales))

    def differences(self) -> list[str]:
        """In which ways the query is unlike the training data, in words; none where it is alike."""
        found = []
        if self.weight_lost > 0.2:
            found.append(f"{self.weight_lost:.0%} of the weights of a class are lost")
        if not self.adaptation.possible:
            return found
        if self.n_shifted:
            n = len(self.adaptation.shifts)
            what = "the scores are" if n == 1 else f"the scores of {_classes(self.n_shifted)}"
            found.append(f"{what} shifted")
        if self.scale < _SHRUNK:
            found.append(f"scores differ by {self.scale:.0%} of what they did in training")
        if self.between > 0.1 + 2.0 * self.expected_between:
            found.append(
                f"{self.between:.0%} of the samples lie between classes, compared with "
                f"{self.expected_between:.0%} of held-out samples"
            )
        return found

    def no_promise(self) -> str:
        """Why no error rate is promised for the query."""
        return f"no error rate can be promised for this query: {'; '.join(self.differences())}"

    def words(self, adapted: bool) -> str:
        """One note: what was seen, and what adapting does or would do."""
        n, changed = self.adaptation.n_samples, self.adaptation.changed
        if not self.adaptation.possible:
            few = f"{n} samples are" if n != 1 else "1 sample is"
            return f"{few} too few to adapt to ({FEWEST} are needed): nothing was changed"
        found = self.differences()
        seen = "; ".join(found) if found else "the scores are where held-out samples had theirs"
        if adapted:
            return f"{seen}; adapting to the query changed {changed:.1%} of the labels"
        would = f"would change {changed:.1%} of the labels" if changed else "would change no label"
        return f"{seen}; adapting to the query (--adapt, adapt=True) {would}"


class QueryMeter:
    """Collects what is needed of a query, block after block.

    Parameters
    ----------
    bound : the model, bound to the query's columns.
    experience : what the model remembers of held-out samples.
    n_samples : of the query.
    """

    def __init__(self, bound: BoundModel, experience: Experience, n_samples: int) -> None:
        self.experience = experience
        here = bound.parts.positions[bound.match.present]
        # the panel's genes that the query has, among those remembered and among the columns read
        _, self.remembered, self.read = np.intersect1d(experience.genes, here, return_indices=True)
        self.problems = tuple(str(label) for label in bound.parts.problem_classes)
        self.weight_lost = max(loss.weight_lost for loss in bound.losses)
        self._step = max(1, -(-n_samples // _MEASURED))
        self._rank_step = max(1, -(-n_samples // _RANKED))
        self._seen = self._ranked = 0
        self._scores: list[NDArray] = []
        self._sums = np.zeros(len(self.read))

    def add(self, X: Any, scores: NDArray) -> None:
        """Take note of a block: the columns of the panel's genes, and the samples' scores."""
        first = -self._seen % self._step
        self._scores.append(scores[first :: self._step])
        some = np.arange(-self._seen % self._rank_step, X.shape[0], self._rank_step)
        self._seen += X.shape[0]
        if len(some) and len(self.read) > 1:
            self._sums += self.ranks(X[some]).sum(axis=0)
            self._ranked += len(some)

    def ranks(self, X: Any) -> NDArray:
        """Ranks among the panel's genes that are remembered."""
        return panel_ranks(X[:, self.read])

    def familiarity(self, X: Any, scores: NDArray) -> NDArray:
        """How much samples look like the class they are given."""
        return self.experience.familiarity(scores, self.ranks(X), self.remembered)

    def report(self) -> QueryReport:
        """What there is to say once all blocks were added."""
        scores = np.concatenate(self._scores) if self._scores else np.zeros(0)
        shares = None
        if self._ranked:
            profiles = self.experience.profiles[:, self.remembered]
            shares = profile_shares(self._sums / self._ranked, profiles)
        return QueryReport(
            adaptation=fit_adaptation(scores, self.experience, shares),
            scores=scores,
            problems=self.problems,
            expected=np.array([self.experience.outside, self.experience.inside]),
            shares=shares,
            between=self.experience.share_between(scores),
            expected_between=self.experience.between,
            weight_lost=self.weight_lost,
        )


def _classes(n: int) -> str:
    return "1 class are" if n == 1 else f"{n} classes are"
