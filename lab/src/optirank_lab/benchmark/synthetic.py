"""The paper's synthetic experiment as a source of tasks: points, sweeps and repeats."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from optirank_lab.benchmark.classifiers import BINARY, SYNTHETIC, names_for
from optirank_lab.benchmark.designs import Design, Profile
from optirank_lab.benchmark.engine import Plan, units_of
from optirank_lab.benchmark.sets import Set
from optirank_lab.benchmark.splits import folds_and_final
from optirank_lab.benchmark.tasks import BenchmarkTask

_PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 0.0)
_SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)
_PANELS = (10, 20, 30, 50)  # genes of a panel: those of its path
POSITIVE = "1"


def _grid(name: str, l2: tuple[float, ...]) -> Profile:
    """Settings in order of preference: of equal scores the smaller set, the stronger
    penalty.
    """
    grids = {"n_reference": _SIZES, "l1": (0.0,), "l2": l2, "n_genes": _PANELS}
    return Profile(name, n_top=None, grids=grids)


PAPER_GRID = _grid("paper", _PENALTIES)
EXTENDED_GRID = _grid("extended", (*_PENALTIES[:-1], 1e-5, 1e-6, 0.0))
GRIDS = {grid.name: grid for grid in (EXTENDED_GRID, PAPER_GRID)}

# What others report for the default point, balanced accuracy in %; the cosine is
# optirank's.
PUBLISHED = {
    "in the paper": {"lr": "78", "rank-lr": "80", "optirank": "96", "cosine": "0.95"},
    "published code": {
        "lr": "78.9",
        "rank-lr": "80.4",
        "optirank": "95.3",
        "cosine": "0.85",
    },
}


@dataclass(frozen=True)
class Point:
    """One setting of the synthetic model, see `make_unstable_ranks`."""

    n_genes: int = 50
    n_perturbed: int = 40
    n_samples: int = 1000
    tau: float = 0.2
    sigma: float = 0.05
    weights: str = "folded"

    @property
    def key(self) -> str:
        """A name that holds every value, fit for a file."""
        counts = f"d{self.n_genes}-p{self.n_perturbed}-n{self.n_samples}"
        shifts = f"tau{self.tau:g}-sigma{self.sigma:g}"
        other = "" if self.weights == Point.weights else f"-{self.weights}"
        return f"{counts}-{shifts}{other}"


class Sweep(NamedTuple):
    """One axis along which the default point is moved."""

    field: str
    label: str
    values: tuple[float, ...]


SWEEPS = {
    "d": Sweep("n_genes", "number of genes d", (50, 100, 150, 200)),
    "dp": Sweep(
        "n_perturbed", "number of perturbed genes d_P", (0, 10, 20, 30, 35, 40)
    ),
    "tau": Sweep("tau", "size of the shift τ", (0.0, 0.125, 0.25, 0.375, 0.5)),
}


@dataclass(frozen=True)
class Settings:
    """The whole experiment, a source of tasks: one per point and repeat.

    Settings that differ in more than repeats and sweeps do not mix.
    """

    repeats: int = 4
    sweeps: tuple[str, ...] = tuple(SWEEPS)
    grid: Profile = EXTENDED_GRID
    base: Point = field(default_factory=Point)
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("repeats", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)}: use at least {least}")
        unknown = [name for name in self.sweeps if name not in SWEEPS]
        if unknown:
            known = ", ".join(SWEEPS)
            raise ValueError(
                f"no sweep is called {unknown[0]!r}: use none, all or some of {known}"
            )
        for point in self.points():
            if not 0 <= point.n_perturbed <= point.n_genes - 2:
                raise ValueError(
                    f"{point.n_perturbed} perturbed of {point.n_genes} genes: at least "
                    "2 genes have to stay stable, and none can be fewer than 0"
                )
            if point.n_samples < 50:
                few = f"{point.n_samples} samples"
                raise ValueError(
                    f"{few}: use at least 50, so that folds have both labels"
                )
        object.__setattr__(self, "grid", self._grid_of_points())

    def _grid_of_points(self) -> Profile:
        """The grid without panels of more genes than some point has."""
        most = min(point.n_genes for point in self.points())
        panels = self.grid.grids.get("n_genes", ())
        grids = {**self.grid.grids, "n_genes": tuple(k for k in panels if k <= most)}
        return replace(self.grid, grids=grids) if panels else self.grid

    def sweep_points(self, name: str) -> list[Point]:
        """The points of one sweep; with d, the samples grow to keep n/d."""
        sweep = SWEEPS[name]
        points = [replace(self.base, **{sweep.field: value}) for value in sweep.values]
        if name == "d":
            ratio = self.base.n_samples / self.base.n_genes
            points = [
                replace(point, n_samples=round(ratio * point.n_genes))
                for point in points
            ]
        return points

    def points(self) -> list[Point]:
        """Every point once, the default one first."""
        moved = [point for name in self.sweeps for point in self.sweep_points(name)]
        return list(dict.fromkeys([self.base, *moved]))

    def tasks(self) -> dict[str, tuple[Point, int]]:
        """Point and number of the repeat of each task; first repeats of all points
        come first.
        """
        draws = product(range(self.repeats), self.points())
        return {f"{point.key}-r{repeat}": (point, repeat) for repeat, point in draws}

    def plan(self) -> Plan:
        """The units: five folds, which choose the settings, and a fit to all training
        samples.
        """
        plan = Plan(tasks=list(self.tasks()))
        for name in plan.tasks:
            (design,) = self.designs(name)
            plan.designs[name] = design.describe()
            plan.units += units_of(design, {BINARY: names_for(SYNTHETIC)}, self.grid)
        return plan

    def designs(self, name: str) -> list[Design]:
        """Draw the data of a task and split them.

        All points of a repeat share its seed, so that they differ by what they name.
        """
        from optirank.datasets import make_unstable_ranks

        point, repeat = self.tasks()[name]
        random_state = int(
            np.random.SeedSequence([self.seed, repeat]).generate_state(1)[0]
        )
        data = make_unstable_ranks(**asdict(point), random_state=random_state)
        genes = np.array([f"gene{j}" for j in range(point.n_genes)])
        title = f"data set {repeat + 1}"
        task = BenchmarkTask(name, title, "none", point.key, title, scheme="synthetic")
        return [
            Design(
                task=task,
                source=Set(name, data.X, data.X, data.y.astype(str), genes),
                tests={name: None},
                tested=[task],
                classes=["0", POSITIVE],
                positives=[POSITIVE],
                splits=folds_and_final(data.y, random_state),
                seed=self.seed,
                truth=data.reference,
            )
        ]


def parse_sweeps(text: str) -> tuple[str, ...]:
    """Read ``none``, ``all`` or names separated by commas."""
    if text in ("none", "all"):
        return tuple(SWEEPS) if text == "all" else ()
    return tuple(dict.fromkeys(name.strip() for name in text.split(",")))
