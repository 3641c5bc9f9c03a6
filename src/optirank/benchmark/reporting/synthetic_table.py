"""Results as tables: every fit, every selected model, means with standard errors, the paper's."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank.benchmark.reporting.layout import with_error
from optirank.benchmark.reporting.results import choose
from optirank.benchmark.running.storage import Storage, Unit
from optirank.benchmark.splits import FOLDS
from optirank.benchmark.synthetic import POSITIVE, Point, Settings, classifier_names

if TYPE_CHECKING:
    from optirank.benchmark.profiles import Profile

_POINT = list(asdict(Point()))

# What others report for the default point; the cosine is optirank's.
PUBLISHED = {
    "in the paper": {
        "lr": "78 ± 2",
        "rank-lr": "80 ± 3",
        "optirank": "96 ± 0.4",
        "cosine": "0.95 ± 0.03",
    },
    "published code": {
        "lr": "78.9",
        "rank-lr": "80.4",
        "optirank": "95.3",
        "cosine": "0.85",
    },
}


def gather(settings: Settings, storage: Storage) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the results of an experiment that is run to the end: every fit, every selected model.

    In each grid the setting of best mean validation score is chosen; equal scores go to the smaller
    reference set, then to the stronger penalty, which is the order of the settings.
    """
    fits, selected = [], []
    for task, (point, repeat) in settings.draws().items():
        for name in classifier_names():
            units = [
                storage.load(Unit(task, "", split, 0, POSITIVE, name)) for split in range(FOLDS + 1)
            ]
            same = {**asdict(point), "repeat": repeat, "classifier": name}
            for fold, unit in enumerate(units[:FOLDS]):
                for k, score in enumerate(unit["validation"]):
                    row = {"fold": fold, **_fit(unit, k), "validation_balanced_accuracy": score}
                    fits.append(same | row)
            for grid in settings.grids():
                best = _best(units[:FOLDS], grid)
                validation = float(np.mean([unit["validation"][best] for unit in units[:FOLDS]]))
                (score,) = units[FOLDS]["test"][best]
                row = {
                    "grid": grid.name,
                    **_fit(units[FOLDS], best),
                    "validation_balanced_accuracy": validation,
                    "test_balanced_accuracy": score,
                }
                selected.append(same | row)
    return pd.DataFrame(fits), pd.DataFrame(selected)


def _best(folds: list[dict], grid: Profile) -> int:
    """Position of the setting chosen among those of a grid."""
    allowed = [
        all(value in grid.grids.get(name, (value,)) for name, value in setting.items())
        for setting in folds[0]["settings"]
    ]
    return choose(folds, "best", np.where(allowed, np.arange(len(allowed)), np.inf))


def _fit(unit: dict, k: int) -> dict:
    """What the tables say of one fitted setting."""
    return {
        **{name: value for name, value in unit["settings"][k].items() if name != "l1"},
        "cosine": unit["cosine"][k],
        "seconds": unit["fit_seconds"][k],
        "converged": unit["converged"][k],
    }


def summary_frame(selected: pd.DataFrame) -> pd.DataFrame:
    """Return means over the repeats with standard errors, one row per point and classifier."""
    groups = selected.groupby([*_POINT, "grid", "classifier"], sort=False)
    return groups.agg(
        repeats=("repeat", "size"),
        balanced_accuracy=("test_balanced_accuracy", "mean"),
        balanced_accuracy_se=("test_balanced_accuracy", "sem"),
        cosine=("cosine", "mean"),
        cosine_se=("cosine", "sem"),
        seconds=("seconds", "mean"),
    ).reset_index()


def at_point(frame: pd.DataFrame, point: Point) -> pd.DataFrame:
    """Return the rows of one point."""
    keep = pd.Series(True, index=frame.index)
    for name, value in asdict(point).items():
        keep &= frame[name] == value
    return frame[keep]


def display_rows(summary: pd.DataFrame, settings: Settings) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the paper's table, as text for screen, page and Markdown.

    Scores are test balanced accuracies in percent. The published ones stand below where the default
    point is the paper's.
    """
    here, names = at_point(summary, settings.base), list(dict.fromkeys(summary["classifier"]))
    header = ["accuracy (%)", *names, "cosine"]
    rows = []
    for grid in settings.grids():
        cells = here[here["grid"] == grid.name].set_index("classifier")
        scores = [
            with_error(100 * row["balanced_accuracy"], 100 * row["balanced_accuracy_se"], 1)
            for _, row in cells.loc[names].iterrows()
        ]
        overlap = with_error(*cells.loc["optirank", ["cosine", "cosine_se"]], 2)
        source = "here" if grid == settings.grid else f"here, {grid.name} grid"
        rows.append([source, *scores, overlap])
    if settings.base == Point():
        for source, numbers in PUBLISHED.items():
            rows.append([source, *(numbers.get(name, "–") for name in (*names, "cosine"))])
    return header, rows


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
