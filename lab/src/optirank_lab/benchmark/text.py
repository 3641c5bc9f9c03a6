"""The tables of a report as text: shares in percent, intervals, times, Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from optirank._util.words import NO_NUMBER, in_percent
from optirank_lab.benchmark import statistics
from optirank_lab.benchmark.synthetic import SWEEPS, Settings

_MINUTE = 60
_HOUR = 3600


@dataclass
class Comparison:
    """Classifiers compared on some tasks: their scores, and the statistics of them."""

    name: str
    scores: pd.DataFrame
    table: pd.DataFrame = field(init=False)  # tasks x classifiers
    tissues: pd.Series = field(init=False)  # of each task; the task where it has none
    standings: pd.DataFrame = field(init=False)
    wins: pd.DataFrame = field(init=False)
    tests: pd.DataFrame = field(init=False)

    def __post_init__(self) -> None:
        self.table = statistics.task_means(self.scores)
        named: Any = self.scores.drop_duplicates("task").set_index("task")["tissue"]
        self.tissues = named.where(named != "", named.index.to_series())
        self.standings = statistics.standings(self.table, self.tissues)
        self.wins = statistics.wins(self.table)
        self.tests = statistics.paired_tests(self.scores)


def interval(low: float, high: float) -> str:
    """An interval of shares as text in percent."""
    return f"{in_percent(low)} to {in_percent(high)}" if np.isfinite(low) else NO_NUMBER


def duration(seconds: float) -> str:
    """A time in the unit that suits it: seconds, minutes or hours."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} seconds"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.1f} minutes"
    return f"{seconds / _HOUR:.1f} hours"


def _number(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else NO_NUMBER


def markdown(frame: pd.DataFrame) -> str:
    """A Markdown table; numbers are expected as text."""
    header = [str(column) for column in frame.columns]
    ruler = ["---"] + ["---:"] * (frame.shape[1] - 1)
    rows = [
        [str(cell).replace("|", "\\|") for cell in row]
        for row in frame.itertuples(index=False)
    ]
    lines = [header, ruler, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def standings_text(comparison: Comparison) -> pd.DataFrame:
    """The table of means as text."""
    genes = comparison.scores.groupby("classifier")["n_genes"].median()
    rows = [
        {
            "classifier": row["classifier"],
            "mean": in_percent(row["mean"]),
            "95 % interval": interval(row["low"], row["high"]),
            "won": _number(row["won"], ".0f"),
            "tied": _number(row["tied"], ".0f"),
            "lost": _number(row["lost"], ".0f"),
            "genes": f"{genes.loc[row['classifier']]:.0f}",
            "median": in_percent(row["median"]),
            "worst": in_percent(row["worst"]),
            "rank": _number(row["rank"], ".1f"),
            "tasks": str(row["tasks"]),
        }
        for row in comparison.standings.to_dict("records")
    ]
    return pd.DataFrame(rows)


def wins_text(comparison: Comparison) -> pd.DataFrame:
    """Tasks won, tied and lost, as text: the row against the column."""
    names = list(comparison.standings["classifier"])
    both = pd.Index(names, dtype=object)
    cells = pd.DataFrame("", index=both, columns=both)
    for row in comparison.wins.to_dict("records"):
        text = f"{row['won']}/{row['tied']}/{row['lost']}"
        cells.loc[row["row"], row["column"]] = text
    return cells.rename_axis("").reset_index()


def by_task_text(comparison: Comparison) -> pd.DataFrame:
    """Every task as text.

    A star marks what is not significantly worse than the best of the task.
    """
    worse = comparison.tests[comparison.tests["sign"] < 0]
    losers = {*zip(worse["task"], worse["row"], worse["column"], strict=True)}
    names = list(comparison.standings["classifier"])
    rows = []
    for task in comparison.table.index:
        values = comparison.table.loc[task]
        best = values.idxmax()
        row = {"task": task, "tissue": comparison.tissues[task]}
        for name in names:
            is_close = np.isfinite(values[name]) and (task, name, best) not in losers
            row[name] = in_percent(values[name]) + ("*" if is_close else "")
        rows.append(row)
    return pd.DataFrame(rows)


def costs_text(comparison: Comparison) -> pd.DataFrame:
    """Genes and times as text: medians over fits."""
    titles = {
        "n_genes": "genes",
        "n_features": "of",
        "fit_seconds": "one fit (s)",
        "predict_seconds": "labelling (s)",
        "unit_seconds": "whole search (s)",
    }
    medians: Any = comparison.scores.groupby("classifier")[list(titles)].median()
    medians = medians.reindex(comparison.standings["classifier"])
    text = medians.map(lambda value: _number(value, ".3g"))
    return text.rename(columns=titles).reset_index()


def sweep_table(scores: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Mean score of each classifier at each point of each sweep."""
    means = scores.pivot_table(index="kind", columns="classifier", values="test")
    rows = []
    for name in settings.sweeps:
        sweep = SWEEPS[name]
        for point in settings.sweep_points(name):
            if point.key in means.index:
                place = {"sweep": sweep.label, "value": getattr(point, sweep.field)}
                rows.append(place | means.loc[point.key].to_dict())
    return pd.DataFrame(rows)


def sweeps_text(sweeps: pd.DataFrame) -> pd.DataFrame:
    """The sweeps as text, in percent."""
    points = sweeps[["sweep"]].assign(value=sweeps["value"].map("{:g}".format))
    return points.join(sweeps.drop(columns=["sweep", "value"]).map(in_percent))
