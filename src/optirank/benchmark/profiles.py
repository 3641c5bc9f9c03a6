"""How thoroughly the benchmark is run: the paper's grids, or a quick look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optirank.benchmark.classifiers import Classifier


@dataclass(frozen=True)
class Profile:
    """Grids, number of genes and of splits; None leaves the paper's."""

    name: str
    n_top: int = 500  # genes selected at each end of the correlation with the label
    n_splits: int | None = None
    grids: dict[str, tuple] = field(default_factory=dict)
    n_trees: int | None = None

    def grid(self, classifier: Classifier) -> dict[str, tuple]:
        """The grid of a classifier."""
        return {key: self.grids.get(key, values) for key, values in classifier.grid.items()}

    def trees(self, classifier: Classifier) -> dict[str, int]:
        """Options of a forest."""
        if self.n_trees is None:
            return {}
        return {"n_trees" if classifier.name == "SCN" else "n_estimators": self.n_trees}

    def record(self) -> dict[str, object]:
        """What must not change between runs into the same folder."""
        return {
            "profile": self.name,
            "n_top": self.n_top,
            "n_splits": self.n_splits,
            "n_trees": self.n_trees,
            "grids": {key: list(values) for key, values in self.grids.items()},
        }


PAPER = Profile("paper")
QUICK = Profile(
    "quick",
    n_top=100,
    n_splits=3,
    grids={"n_reference": (0.05, 0.2, 1.0), "l1": (0.0, 1e-3), "l2": (1e-3, 1e-1)},
    n_trees=100,
)
PROFILES = {profile.name: profile for profile in (PAPER, QUICK)}
