"""How thoroughly an experiment is run: its grids, and the numbers of genes and splits."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optirank.benchmark.classifiers import Classifier


@dataclass(frozen=True)
class Profile:
    """What replaces the grids of the classifiers, by parameter; what is not named stays."""

    name: str
    n_top: int | None = 500  # genes selected at each end of the correlation; None: all genes
    n_splits: int | None = None  # None: all
    platforms: tuple[float, ...] = (0.5, 0.5, 1.0, 1.0)  # simulated, by their strengths
    grids: dict[str, tuple] = field(default_factory=dict)
    whole_splits: int = 5  # at most, of whole tasks
    whole_seconds: float = 900.0  # limit of one tool on one whole task

    def grid(self, classifier: Classifier) -> dict[str, tuple]:
        """The grid of a classifier."""
        return {key: self.grids.get(key, values) for key, values in classifier.grid.items()}

    def seconds(self, classifier: Classifier, n_train: int) -> float:
        """Rough CPU time of a unit with 1000 genes."""
        fixed, slope = classifier.cost
        share = prod(map(len, self.grid(classifier).values())) / classifier.n_settings
        return (fixed + slope * n_train) * share

    def record(self) -> dict[str, object]:
        """What must not change between runs into the same folder."""
        return {
            "profile": self.name,
            "n_top": self.n_top,
            "n_splits": self.n_splits,
            "platforms": list(self.platforms),
            "grids": {key: list(values) for key, values in self.grids.items()},
        }


PAPER = Profile("paper")
QUICK = Profile(
    "quick",
    n_top=100,
    n_splits=3,
    whole_splits=1,
    whole_seconds=180.0,
    grids={
        "n_reference": (0.05, 0.2, 1.0),
        "l1": (0.0, 1e-3),
        "l2": (1e-3, 1e-1),
        "n_trees": (100,),
        "n_estimators": (100,),
    },
)
