"""Results as tables: every fit, every selected model, means with standard errors, the paper's."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pandas as pd

from optirank.benchmark.simulation.settings import CLASSIFIERS, Point, Settings, Unit

LABELS = {
    "lr": "lr: expression itself",
    "rank-lr": "rank-lr: ranks among all genes",
    "optirank": "optirank: ranks among learned genes",
    "oracle": "oracle: ranks among the true genes",
}
_POINT = list(asdict(Point()))


@dataclass(frozen=True)
class Published:
    """What others report for the default point, as text with its error where there is one."""

    paper: str
    code: str
    paper_cosine: str = ""
    code_cosine: str = ""


PUBLISHED = {
    "lr": Published("78 ± 2", "78.9"),
    "rank-lr": Published("80 ± 3", "80.4"),
    "optirank": Published("96 ± 0.4", "95.3", "0.95 ± 0.03", "0.85"),
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

    The published figures stand beside it where the default point is the paper's.
    """
    here = at_point(summary, settings.base)
    published = settings.base == Point()
    grids = [grid.name for grid in settings.grids()]
    header = ["classifier"]
    for grid in grids:
        header += [f"accuracy % ({grid} grid)", f"cosine ({grid} grid)"]
    if published:
        header += ["in the paper (cosine)", "published code (cosine)"]
    rows = []
    for name in CLASSIFIERS:
        row = [LABELS[name]]
        for grid in grids:
            cell = here[(here["grid"] == grid) & (here["classifier"] == name)].iloc[0]
            row.append(_with_error(cell, "balanced_accuracy", factor=100.0, digits=1))
            row.append(_with_error(cell, "cosine", factor=1.0, digits=2))
        if published:
            row += _published_cells(name)
        rows.append(row)
    return header, rows


def _with_error(cell: pd.Series, column: str, *, factor: float, digits: int) -> str:
    mean, error = cell[column], cell[f"{column}_se"]
    if pd.isna(mean):
        return "–"
    text = f"{factor * mean:.{digits}f}"
    return text if pd.isna(error) else f"{text} ± {factor * error:.{digits}f}"


def _published_cells(name: str) -> list[str]:
    numbers = PUBLISHED.get(name)
    if numbers is None:
        return ["–", "–"]
    pairs = ((numbers.paper, numbers.paper_cosine), (numbers.code, numbers.code_cosine))
    return [f"{score} ({cosine})" if cosine else score for score, cosine in pairs]


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
