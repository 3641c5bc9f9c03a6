"""The paper's synthetic experiment as a source of tasks: points, sweeps, repeats and grids."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from optirank.benchmark.classifiers import get, names_for
from optirank.benchmark.designs import Design
from optirank.benchmark.profiles import Profile
from optirank.benchmark.running.plan import Plan
from optirank.benchmark.running.storage import Unit
from optirank.benchmark.sets import Set
from optirank.benchmark.splits import FOLDS, folds_and_final
from optirank.benchmark.tasks import Task

_PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 0.0)
_SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)
POSITIVE = "1"


def _grid(name: str, l2: tuple[float, ...]) -> Profile:
    """Settings in order of preference: of equal scores the smaller set, the stronger penalty."""
    grids = {"n_reference": _SIZES, "l1": (0.0,), "l2": l2}
    return Profile(name, n_top=None, platforms=(), grids=grids)


PAPER_GRID = _grid("paper", _PENALTIES)
EXTENDED_GRID = _grid("extended", tuple(sorted({*_PENALTIES, 1e-5, 1e-6}, reverse=True)))
GRIDS = {grid.name: grid for grid in (EXTENDED_GRID, PAPER_GRID)}


@dataclass(frozen=True)
class Point:
    """One setting of the synthetic model."""

    n_genes: int = 50
    n_perturbed: int = 40
    n_samples: int = 1000
    tau: float = 0.2
    sigma: float = 0.05

    @property
    def key(self) -> str:
        """A name that holds every value, fit for a file."""
        return (
            f"d{self.n_genes}-p{self.n_perturbed}-n{self.n_samples}"
            f"-tau{self.tau:g}-sigma{self.sigma:g}"
        )

    @property
    def n_stable(self) -> int:
        """Size of the true reference set."""
        return self.n_genes - self.n_perturbed


@dataclass(frozen=True)
class Sweep:
    """One axis along which the default point is moved."""

    name: str
    field: str
    label: str
    values: tuple[float, ...]


SWEEPS = {
    sweep.name: sweep
    for sweep in (
        Sweep("d", "n_genes", "number of genes d", (50, 100, 150, 200)),
        Sweep("dp", "n_perturbed", "number of perturbed genes d_P", (0, 10, 20, 30, 35, 40)),
        Sweep("tau", "tau", "size of the shift τ", (0.0, 0.125, 0.25, 0.375, 0.5)),
    )
}


@dataclass(frozen=True)
class Settings:
    """The whole experiment. Settings that differ in more than repeats and sweeps do not mix."""

    repeats: int = 4
    sweeps: tuple[str, ...] = tuple(SWEEPS)
    grid: Profile = EXTENDED_GRID
    base: Point = field(default_factory=Point)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats={self.repeats}: use at least 1")
        if self.seed < 0:
            raise ValueError(f"seed={self.seed}: use a whole number of at least 0")
        unknown = [name for name in self.sweeps if name not in SWEEPS]
        if unknown:
            raise ValueError(f"no sweep is called {unknown[0]!r}: choose among {', '.join(SWEEPS)}")
        for point in self.points():
            if not 0 <= point.n_perturbed <= point.n_genes - 2:
                raise ValueError(
                    f"{point.n_perturbed} perturbed of {point.n_genes} genes: at least 2 genes "
                    "have to stay stable, and none can be fewer than 0"
                )
            if point.n_samples < 50:
                raise ValueError(
                    f"{point.n_samples} samples: use at least 50, so that folds have both labels"
                )
            if not (point.tau >= 0 and point.sigma > 0):
                raise ValueError(
                    f"tau={point.tau}, sigma={point.sigma}: use a tau of at least 0 and a sigma "
                    "above 0"
                )

    def sweep_points(self, name: str) -> list[Point]:
        """The points of one sweep; with d, the samples grow to keep n/d."""
        sweep = SWEEPS[name]
        points = [replace(self.base, **{sweep.field: value}) for value in sweep.values]
        if name == "d":
            ratio = self.base.n_samples / self.base.n_genes
            points = [replace(point, n_samples=round(ratio * point.n_genes)) for point in points]
        return points

    def points(self) -> list[Point]:
        """Every point once, the default one first."""
        points = [self.base]
        for name in self.sweeps:
            points += self.sweep_points(name)
        return list(dict.fromkeys(points))

    def draws(self) -> dict[str, tuple[Point, int]]:
        """Points and repeats by name of their task; first repeats of all points come first."""
        return {
            task_name(point, repeat): (point, repeat)
            for repeat in range(self.repeats)
            for point in self.points()
        }

    def grids(self) -> list[Profile]:
        """The grids selected from: a grid that holds the paper's reports that one too."""
        paper, own = set(PAPER_GRID.grids["l2"]), set(self.grid.grids["l2"])
        return [self.grid, PAPER_GRID] if paper < own else [self.grid]

    def plan(self) -> Plan:
        """The units: five folds, which choose the settings, and a fit to all training samples."""
        names = classifier_names()
        units = [
            Unit(task, "", split, 0, POSITIVE, name, self._weight(name, point))
            for task, (point, _) in self.draws().items()
            for split in range(FOLDS + 1)
            for name in names
        ]
        return Plan(units=units, tasks=list(self.draws()), classifiers=names)

    def _weight(self, name: str, point: Point) -> float:
        return self.grid.seconds(get(name), point.n_samples) * point.n_genes


def classifier_names() -> list[str]:
    """Who is compared: those with few settings first, what is told the truth last."""
    known = [get(name) for name in names_for("synthetic")]
    known.sort(key=lambda one: (one.needs is not None, one.n_settings))
    return [one.name for one in known]


def task_name(point: Point, repeat: int) -> str:
    """Name of the task of one point and repeat."""
    return f"{point.key}-r{repeat}"


def data_seed(seed: int, repeat: int) -> int:
    """The seed of a repeat. All points share it, so that they differ by what they name."""
    return int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])


@dataclass(frozen=True)
class SyntheticTasks:
    """Draws data sets of the synthetic model; a task is one point and repeat."""

    draws: tuple[tuple[str, tuple[Point, int]], ...]
    seed: int

    @classmethod
    def of(cls, settings: Settings) -> SyntheticTasks:
        """The tasks of an experiment."""
        return cls(tuple(settings.draws().items()), settings.seed)

    def designs(self, name: str) -> list[Design]:
        """Draw the data of a task and split them."""
        from optirank.datasets import make_unstable_ranks

        point, repeat = dict(self.draws)[name]
        random_state = data_seed(self.seed, repeat)
        data = make_unstable_ranks(
            point.n_samples,
            point.n_genes,
            point.n_perturbed,
            tau=point.tau,
            sigma=point.sigma,
            random_state=random_state,
        )
        genes = np.array([f"gene{j}" for j in range(point.n_genes)])
        return [
            Design(
                task=Task(name, "synthetic", "none", "synthetic"),
                source=Set(name, data.X, data.X, data.y.astype(str), genes),
                tests={name: None},
                classes=["0", POSITIVE],
                positives=[POSITIVE],
                splits=folds_and_final(data.y, random_state),
                seed=self.seed,
                truth=data.reference,
            )
        ]


def parse_sweeps(text: str) -> tuple[str, ...]:
    """Read ``none``, ``all`` or names separated by commas."""
    if text == "none":
        return ()
    if text == "all":
        return tuple(SWEEPS)
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = [name for name in names if name not in SWEEPS]
    if unknown:
        raise ValueError(
            f"no sweep is called {unknown[0]!r}: use none, all or names out of {','.join(SWEEPS)}"
        )
    return names
