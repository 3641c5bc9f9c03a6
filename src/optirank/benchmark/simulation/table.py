"""Results as tables: every fit, every selected model, means with standard errors, the paper's."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from optirank.benchmark.simulation.settings import CLASSIFIERS, Point, Settings, Unit

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


def fits_frame(results: dict[Unit, dict]) -> pd.DataFrame:
    """Return one row a fit of the cross-validation."""
    frame = _frame(results, "fits")
    return frame.rename(columns={"balanced_accuracy": "validation_balanced_accuracy"})


def selected_frame(results: dict[Unit, dict]) -> pd.DataFrame:
    """Return one row a selected model, with its score on the test set."""
    names = {
        "balanced_accuracy": "test_balanced_accuracy",
        "validation": "validation_balanced_accuracy",
    }
    return _frame(results, "selected").rename(columns=names)


def _frame(results: dict[Unit, dict], part: str) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {**asdict(unit.point), "repeat": unit.repeat, **record}
            for unit, result in results.items()
            for record in result[part]
        ]
    )


def summary_frame(selected: pd.DataFrame) -> pd.DataFrame:
    """Return means over the repeats with their standard errors, one row a point and classifier."""
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
    here = at_point(summary, settings.base)
    header = ["accuracy (%)", *CLASSIFIERS, "cosine"]
    rows = []
    for grid in settings.grids():
        cells = here[here["grid"] == grid.name].set_index("classifier")
        scores = [
            _with_error(cells.loc[name], "balanced_accuracy", factor=100.0, digits=1)
            for name in CLASSIFIERS
        ]
        overlap = _with_error(cells.loc["optirank"], "cosine", factor=1.0, digits=2)
        source = "here" if grid == settings.grid else f"here, {grid.name} grid"
        rows.append([source, *scores, overlap])
    if settings.base == Point():
        for source, numbers in PUBLISHED.items():
            rows.append([source, *(numbers.get(name, "–") for name in (*CLASSIFIERS, "cosine"))])
    return header, rows


def _with_error(cell: pd.Series, column: str, *, factor: float, digits: int) -> str:
    mean, error = cell[column], cell[f"{column}_se"]
    text = f"{factor * mean:.{digits}f}"
    return text if pd.isna(error) else f"{text} ± {factor * error:.{digits}f}"


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
