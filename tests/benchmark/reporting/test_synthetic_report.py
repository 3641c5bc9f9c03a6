"""Tables, figures and the page, from results as a whole experiment would have them."""

from __future__ import annotations

import re
from dataclasses import asdict
from importlib import util

import numpy as np
import pandas as pd
import pytest

from optirank.benchmark.profiles import Profile
from optirank.benchmark.reporting import synthetic_figures as figures
from optirank.benchmark.reporting import synthetic_report as report
from optirank.benchmark.reporting.style import new_figure
from optirank.benchmark.reporting.synthetic_table import (
    at_point,
    display_rows,
    gather,
    markdown,
    summary_frame,
)
from optirank.benchmark.running.storage import Storage
from optirank.benchmark.synthetic import EXTENDED_GRID, Point, Settings, classifier_names

CLASSIFIERS = ["lr", "rank-lr", "optirank", "oracle"]
SETTINGS = Settings(repeats=3)
MEANS = {"lr": 0.79, "rank-lr": 0.81, "optirank": 0.96, "oracle": 0.97}


def made_up(settings: Settings) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Results with known scores: a mean per classifier, with 0.01 less, nothing and 0.01 more."""
    fits, selected = [], []
    for point, repeat in settings.draws().values():
        for name in CLASSIFIERS:
            record = {
                **asdict(point),
                "repeat": repeat,
                "classifier": name,
                "l2": 1e-3,
                "n_reference": 0.2 if name == "optirank" else np.nan,
                "cosine": np.nan if name == "lr" else 0.9,
                "seconds": 0.01,
                "converged": True,
            }
            score = MEANS[name] + 0.01 * (repeat - 1)
            more = {"validation_balanced_accuracy": score}
            fits += [{**record, **more, "fold": fold} for fold in range(5)]
            for grid in settings.grids():
                more = {"grid": grid.name, "test_balanced_accuracy": score}
                selected.append({**record, **more})
    return pd.DataFrame(fits), pd.DataFrame(selected)


def summary_of(settings: Settings) -> pd.DataFrame:
    return summary_frame(made_up(settings)[1])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, report.write(SETTINGS, *made_up(SETTINGS), folder, {"python": "3.99.1"})


def test_means_and_standard_errors_are_over_repeats():
    summary = at_point(summary_of(SETTINGS), Point())
    row = summary[(summary["classifier"] == "lr") & (summary["grid"] == "extended")].iloc[0]
    assert row["repeats"] == 3
    assert row["balanced_accuracy"] == pytest.approx(0.79)
    assert row["balanced_accuracy_se"] == pytest.approx(0.01 / np.sqrt(3))


def test_the_table_stands_beside_the_published_figures():
    summary = summary_of(SETTINGS)
    header, rows = display_rows(summary, SETTINGS)
    assert header[1:] == [*CLASSIFIERS, "cosine"]
    assert rows[0] == [
        "here",
        "79.0 ± 0.6",
        "81.0 ± 0.6",
        "96.0 ± 0.6",
        "97.0 ± 0.6",
        "0.90 ± 0.00",
    ]
    assert rows[2] == ["in the paper", "78 ± 2", "80 ± 3", "96 ± 0.4", "–", "0.95 ± 0.03"]
    assert rows[3] == ["published code", "78.9", "80.4", "95.3", "–", "0.85"]
    text = markdown(header, rows)
    assert text.count("\n") == 6
    assert len({line.count("|") for line in text.splitlines()}) == 1


def test_another_point_has_no_published_figures_and_one_repeat_no_error():
    settings = Settings(repeats=1, sweeps=(), base=Point(60, 30, 800))
    summary = summary_of(settings)
    _, rows = display_rows(summary, settings)
    assert [row[0] for row in rows] == ["here", "here, paper grid"]
    assert rows[0][1] == "78.0"


def test_all_panels_are_drawn_as_png_and_svg(written):
    folder, result = written
    panels = {f"{quantity}-{sweep}" for quantity, sweep in figures.PANELS}
    assert set(result.figures) == panels | {"picture", "default"}
    for name in result.figures:
        assert (folder / "figures" / f"{name}.png").stat().st_size > 5000
        assert (folder / "figures" / f"{name}.svg").stat().st_size > 5000


def test_the_tables_have_every_row(written):
    folder, _ = written
    n_units = len(SETTINGS.draws())
    assert len(pd.read_csv(folder / "fits.csv")) == n_units * 5 * len(CLASSIFIERS)
    assert len(pd.read_csv(folder / "selected.csv")) == n_units * 2 * len(CLASSIFIERS)
    assert len(pd.read_csv(folder / "summary.csv")) == 14 * 2 * len(CLASSIFIERS)
    assert len(pd.read_csv(folder / "table.csv")) == 2 * len(CLASSIFIERS)


def test_the_page_holds_every_figure_and_no_outside_link(written):
    folder, result = written
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/svg+xml;base64,') == len(result.figures)
    targets = re.findall(r"""(?:src|href|action|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert targets
    assert all(target.startswith("data:") for target in targets)
    assert "http" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", page)
    assert "@import" not in page
    for row in result.rows:
        for cell in row:
            assert cell in page
    assert "Python 3.99.1" in page  # of the machine that ran


def test_without_the_extra_the_tables_are_written_and_the_line_is_named(tmp_path, monkeypatch):
    find = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "jinja2" else find(name))
    settings = Settings(repeats=1, sweeps=())
    result = report.write(settings, *made_up(settings), tmp_path)
    assert result.missing == "pip install 'optirank[report]'"
    assert result.page is None
    assert (tmp_path / "table.md").is_file()


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        (Point(), 1.0),
        (Point(n_perturbed=30), 1.0),
        (Point(n_perturbed=35), np.sqrt(15 / 20)),
        (Point(n_genes=150), np.sqrt(110 / 120)),
    ],
)
def test_the_ceiling_of_the_cosine_is_what_the_sizes_tried_allow(point, expected):
    assert figures.best_cosine(point, SETTINGS.grid.grids["n_reference"]) == pytest.approx(expected)


def test_lines_show_the_summary_and_the_oracle_is_dashed():
    summary = summary_of(SETTINGS)
    ax = new_figure(5, 4).subplots()
    figures.draw_panel(ax, SETTINGS, summary, "accuracy", "tau")
    lines = {line.get_label(): line for line in ax.lines}
    assert set(lines) == {"lr", "rank-lr", "optirank", "oracle (ceiling)"}
    np.testing.assert_allclose(lines["optirank"].get_xdata(), [0, 0.125, 0.25, 0.375, 0.5])
    np.testing.assert_allclose(lines["optirank"].get_ydata(), 96.0)
    assert lines["oracle (ceiling)"].get_linestyle() == "--"


class Made(Storage):
    """Units whose scores are given by setting, instead of files."""

    def __init__(self, scores: dict[tuple[float, float], float]) -> None:
        self.scores = scores

    def load(self, unit):
        n = len(self.scores)
        final = unit.split == 5
        return {
            "settings": [{"n_reference": s, "l1": 0.0, "l2": l2} for s, l2 in self.scores],
            "validation": [np.nan] * n if final else list(self.scores.values()),
            "test": [[k / 100] for k in range(n)] if final else [[]] * n,
            "n_genes": [14] * n,
            "cosine": [0.5] * n,
            "fit_seconds": [0.1] * n,
            "converged": [True] * n,
        }


def chosen(scores: dict[tuple[float, float], float]) -> dict[str, tuple[float, float]]:
    """The (reference, l2) chosen in each grid."""
    settings = Settings(repeats=1, sweeps=(), base=Point(14, 4, 60))
    _, selected = gather(settings, Made(scores))
    ours = selected[selected["classifier"] == "optirank"]
    return {row.grid: (row.n_reference, row.l2) for row in ours.itertuples()}


def test_the_best_mean_validation_score_is_chosen_within_the_grid():
    found = chosen({(0.2, 1e-6): 0.95, (0.2, 1e-3): 0.85, (1.0, 0.0): 0.7})
    assert found == {"extended": (0.2, 1e-6), "paper": (0.2, 1e-3)}


def test_equal_scores_go_to_the_smaller_set_then_to_the_stronger_penalty():
    order = [(s, l2) for s in (0.2, 0.4, 0.6) for l2 in EXTENDED_GRID.grids["l2"]]
    equal = {(0.4, 1e-4), (0.2, 1e-4), (0.2, 1e-3), (0.6, 1e-2)}
    found = chosen({setting: 0.9 if setting in equal else 0.1 for setting in order})
    assert found["paper"] == (0.2, 1e-3)


def test_the_grid_lists_settings_in_the_order_of_preference():
    grid: Profile = EXTENDED_GRID
    assert list(grid.grids["n_reference"]) == sorted(grid.grids["n_reference"])
    assert list(grid.grids["l2"]) == sorted(grid.grids["l2"], reverse=True)
    assert classifier_names() == CLASSIFIERS
