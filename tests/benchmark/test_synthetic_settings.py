"""The points, sweeps and units of the synthetic experiment."""

from __future__ import annotations

import pytest

from optirank.benchmark.synthetic import (
    EXTENDED_GRID,
    PAPER_GRID,
    Point,
    Settings,
    parse_sweeps,
)


def test_the_default_point_is_the_papers():
    assert Settings().base == Point(50, 40, 1000, 0.2, 0.05)


def test_points_shared_by_sweeps_come_once():
    points = Settings().points()
    assert len(points) == len(set(points)) == 1 + 3 + 5 + 5
    assert points[0] == Point()


def test_samples_grow_with_the_genes():
    sizes = [(p.n_genes, p.n_samples, p.n_perturbed) for p in Settings().sweep_points("d")]
    assert sizes == [(50, 1000, 40), (100, 2000, 40), (150, 3000, 40), (200, 4000, 40)]


def test_every_point_has_every_repeat():
    settings = Settings(repeats=3, sweeps=("tau",))
    assert len(settings.draws()) == 3 * 6
    units = settings.plan().units
    assert len(units) == len({unit.path for unit in units}) == 3 * 6 * 6 * 4


def test_the_extended_grid_holds_the_papers_and_reports_both():
    paper, extended = (set(grid.grids["l2"]) for grid in (PAPER_GRID, EXTENDED_GRID))
    assert paper < extended
    assert extended - paper == {1e-6, 1e-5}
    assert Settings().grids() == [EXTENDED_GRID, PAPER_GRID]
    assert Settings(grid=PAPER_GRID).grids() == [PAPER_GRID]


@pytest.mark.parametrize(
    ("text", "names"),
    [("none", ()), ("all", ("d", "dp", "tau")), ("tau,d", ("tau", "d")), ("d, d", ("d",))],
)
def test_sweeps_are_read_from_text(text, names):
    assert parse_sweeps(text) == names


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"repeats": 0}, "repeats=0"),
        ({"seed": -1}, "seed=-1"),
        ({"sweeps": ("x",)}, "no sweep is called 'x'"),
        ({"base": Point(n_genes=41)}, "40 perturbed of 41 genes"),
        ({"base": Point(n_genes=30, n_perturbed=10), "sweeps": ("dp",)}, "30 perturbed of 30"),
        ({"base": Point(n_samples=49), "sweeps": ()}, "49 samples"),
        ({"base": Point(tau=float("nan")), "sweeps": ()}, "tau=nan"),
    ],
)
def test_impossible_settings_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        Settings(**bad)
