"""The average of several settings of optirank, as one setting of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optirank.solver.averaging import spread_of, with_unit_spread
from optirank.tuning.families import OptirankFamily
from optirank.tuning.family import Chain, Family, Key, Model, Values

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Member = tuple[float, float, float]  # n_reference, l1, l2


@dataclass(frozen=True)
class AverageFamily(Family):
    """The mean of optirank models, each with scores of unit spread on its training samples.

    It has one setting: the parameters of an OptirankClassifier that averages the ``members``.
    """

    l1s: tuple[float, ...] = ()
    l2s: tuple[float, ...] = ()
    members: tuple[Member, ...] = ()
    side: str = "best"
    candidates: NDArray | None = field(default=None, compare=False)  # mask of genes
    name = "average"
    on_device = True
    names = ("n_reference", "l1", "l2", "side")

    def chains(self, n_genes: int) -> list[Chain]:
        """See :class:`Family`."""
        return self._inner.chains(n_genes) if self.settings() else []

    def fit_chain(self, samples, y, v, chain: Chain) -> dict[Key, Model]:
        """See :class:`Family`."""
        found = self._inner.fit_chain(samples, y, v, chain)
        return {
            key: with_unit_spread(model, self.scores(samples, model))
            for key, model in found.items()
        }

    def start_of(self, chain: Chain, n_genes: int) -> tuple[int, str]:
        """See :class:`Family`."""
        return self._inner.start_of(chain, n_genes)

    def spread(self, scores: NDArray) -> float:
        """See :class:`Family`: the standard deviation."""
        return spread_of(scores)

    def keys_of(self, setting: Values, models: Mapping[Key, Model], n_genes: int) -> list[Key]:
        """See :class:`Family`."""
        inner = self._inner
        return [
            key for member in inner.settings() for key in inner.keys_of(member, models, n_genes)
        ]

    @property
    def _inner(self) -> OptirankFamily:
        """The members as a family of their own."""
        settings = [(*member, self.side) for member in self.members]
        names = ("tol", "max_iter", "ties", "warm_start", "candidates")
        options = {name: getattr(self, name) for name in names}
        return OptirankFamily((), (), sides=(self.side,), **options).keeping(settings)

    def _grid(self) -> list[Values]:
        columns = zip(*self.members, strict=True)
        values = [one[0] if len(set(one)) == 1 else one for one in columns]
        return [(*values, self.side)]
