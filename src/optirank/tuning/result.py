"""What a search found in one unit: settings with their scores, genes and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.tuning.family import Family, Key, Model, Values


@dataclass(frozen=True)
class Setting:
    """One setting of one family."""

    family: Family
    values: Values
    number: int = 0  # of the family in the search

    @property
    def params(self) -> dict[str, object]:
        """Its parameters by name."""
        return self.family.params(self.values)


@dataclass(frozen=True)
class Fit:
    """What is kept of a model."""

    genes: NDArray  # mask
    objective: float
    converged: bool
    seconds: float
    scores: dict[str, NDArray]  # by view
    model: Model | None  # None in a compact result


@dataclass(kw_only=True)
class UnitResult:
    """Scores, genes and times of all settings; a setting is named by its position.

    ``known`` says which classes the training part had. A problem whose class it lacked has no
    models, scores minus infinity and needs no genes. A ``compact`` result keeps scores in single
    precision and no models.
    """

    settings: list[Setting]
    n_genes: int
    n_problems: int
    known: NDArray
    n_scored: dict[str, int]  # samples of each view
    compact: bool = False
    score_seconds: float = 0.0
    n_fits: list[int] = field(default_factory=list)  # of each task that is done
    _fits: dict[tuple[int, int], dict[Key, Fit]] = field(default_factory=dict)

    def add(
        self,
        family: int,
        problem: int,
        models: dict[Key, Model],
        scores: dict[Key, dict[str, NDArray]],
    ) -> None:
        """Add what a task found."""
        kept = self._fits.setdefault((family, problem), {})
        for key, model in models.items():
            found = scores[key]
            if self.compact:
                found = {name: one.astype(np.float32) for name, one in found.items()}
            kept[key] = Fit(
                model.genes,
                model.objective,
                model.converged,
                model.seconds,
                found,
                None if self.compact else model,
            )

    def fits(self, setting: int, problem: int) -> list[Fit]:
        """The fits of a setting, whose scores are averaged; none where the class was lacking."""
        one = self.settings[setting]
        known = self._fits.get((one.number, problem))
        if known is None:
            return []
        return [known[key] for key in one.family.keys_of(one.values, known, self.n_genes)]

    def models(self, setting: int, problem: int) -> list[Model]:
        """The models of a setting, whose scores are averaged; none where the class was lacking."""
        return [fit.model for fit in self.fits(setting, problem)]

    def decision(self, setting: int, view: str, problems: Iterable[int] | None = None) -> NDArray:
        """Decision scores on a view, samples x problems (all, or some)."""
        columns = []
        for problem in range(self.n_problems) if problems is None else problems:
            fits = self.fits(setting, problem)
            if fits:
                columns.append(np.mean([fit.scores[view] for fit in fits], axis=0))
            else:
                columns.append(np.full(self.n_scored[view], -np.inf))
        return np.column_stack(columns)

    def genes(self, setting: int, problems: Iterable[int] | None = None) -> NDArray:
        """Mask of the genes a setting needs, over some or all problems."""
        mask = np.zeros(self.n_genes, dtype=bool)
        for problem in range(self.n_problems) if problems is None else problems:
            for fit in self.fits(setting, problem):
                mask |= fit.genes
        return mask

    def fit_seconds(self, setting: int) -> float:
        """CPU time of a setting's fits, their shares of their chains."""
        return sum(fit.seconds for fit in self._all_fits(setting))

    def converged(self, setting: int) -> bool:
        """Whether all fits of a setting reached their tolerance."""
        return all(fit.converged for fit in self._all_fits(setting))

    def complete(self) -> NDArray:
        """Mask of the settings that were fitted for every class there was to learn."""
        mask = np.ones(len(self.settings), dtype=bool)
        for k in range(len(self.settings)):
            try:
                self._all_fits(k)
            except KeyError:
                mask[k] = False
        return mask

    def keeping(self, settings: Iterable[int]) -> UnitResult:
        """The result of some of the settings, in the order given."""
        return replace(self, settings=[self.settings[k] for k in settings])

    def _all_fits(self, setting: int) -> list[Fit]:
        return [fit for problem in range(self.n_problems) for fit in self.fits(setting, problem)]


def join_settings(results: Sequence[UnitResult]) -> UnitResult:
    """The results of several searches of one unit as one; settings follow each other."""
    settings: list[Setting] = []
    fits: dict[tuple[int, int], dict[Key, Fit]] = {}
    shift = 0
    for one in results:
        settings += [replace(known, number=known.number + shift) for known in one.settings]
        fits |= {(family + shift, problem): found for (family, problem), found in one._fits.items()}
        shift += 1 + max(known.number for known in one.settings)
    return replace(
        results[0],
        settings=settings,
        score_seconds=sum(one.score_seconds for one in results),
        n_fits=[n for one in results for n in one.n_fits],
        _fits=fits,
    )


def gene_counts(results: Iterable[UnitResult], problems: Iterable[int] | None = None) -> NDArray:
    """Numbers of genes, settings x units."""
    return np.array(
        [[one.genes(k, problems).sum() for k in range(len(one.settings))] for one in results]
    ).T
