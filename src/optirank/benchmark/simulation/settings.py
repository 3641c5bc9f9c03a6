"""What the synthetic experiment runs: points, sweeps, grids and units of work.

Only the standard library is imported here, so that the command line can show its help quickly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

L2_FLOOR = 1e-7  # stands in for l2 = 0, which has no minimiser on separable data
FOLDS = 5
TEST_SHARE = 0.3
CLASSIFIERS = ("lr", "rank-lr", "optirank", "oracle")


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
class Grid:
    """The hyper-parameters tried: `l2` for every classifier, `n_reference` for optirank."""

    name: str
    l2: tuple[float, ...]
    n_reference: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.0)


PAPER_GRID = Grid("paper", l2=(0.0, 1e-4, 1e-3, 1e-2, 1e-1))
EXTENDED_GRID = Grid("extended", l2=(0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1))
GRIDS = {grid.name: grid for grid in (EXTENDED_GRID, PAPER_GRID)}


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
class Unit:
    """One (point, repeat): what is computed, stored and resumed as a whole."""

    point: Point
    repeat: int

    @property
    def key(self) -> str:
        """A name that holds every value, fit for a file."""
        return f"{self.point.key}-r{self.repeat}"

    @property
    def weight(self) -> float:
        """Rough share of the work, for the time left."""
        return float(self.point.n_samples * self.point.n_genes)


@dataclass(frozen=True)
class Settings:
    """The whole experiment. Settings that differ in more than repeats and sweeps do not mix."""

    repeats: int = 4
    sweeps: tuple[str, ...] = tuple(SWEEPS)
    grid: Grid = EXTENDED_GRID
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
        """Return the points of one sweep; with d, the samples grow to keep n/d."""
        sweep = SWEEPS[name]
        points = [replace(self.base, **{sweep.field: value}) for value in sweep.values]
        if name == "d":
            ratio = self.base.n_samples / self.base.n_genes
            points = [replace(point, n_samples=round(ratio * point.n_genes)) for point in points]
        return points

    def points(self) -> list[Point]:
        """Return every point once, the default one first."""
        points = [self.base]
        for name in self.sweeps:
            points += self.sweep_points(name)
        return list(dict.fromkeys(points))

    def units(self) -> list[Unit]:
        """Return every unit of work; first repeats of all points come first."""
        return [Unit(point, repeat) for repeat in range(self.repeats) for point in self.points()]

    def grids(self) -> list[Grid]:
        """Return the grids selected from: a grid that holds the paper's reports that one too."""
        holds_paper = set(PAPER_GRID.l2) <= set(self.grid.l2)
        return [self.grid, PAPER_GRID] if holds_paper and self.grid != PAPER_GRID else [self.grid]


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
