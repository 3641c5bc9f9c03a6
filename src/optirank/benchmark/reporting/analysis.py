"""All statistics of a benchmark's results, computed once for tables, figures and page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from optirank.benchmark.classifiers import ordered
from optirank.benchmark.reporting import costs, rankings, statistics
from optirank.benchmark.reporting.results import TASK_COLUMNS, score_columns
from optirank.benchmark.reporting.statistics import SCENARIOS

if TYPE_CHECKING:
    from optirank.benchmark.reporting.results import Results

# In the order of the paper's tables: from no shift to the largest.
SHIFTS = {
    "none": "no shift",
    "batch": "batch",
    "biological": "biological",
    "platform": "platform",
    "technology": "technology",
}
SCENARIO_TITLES = {"": "one source", "single": "single-source", "multi": "multi-source"}

SCENARIO_NOTES = {
    "": "Trained on one source.",
    "single": "Single-source: the second source is not used, except for the ANOVA of ANrank-lr.",
    "multi": "Multi-source: both sources are merged for training.",
}


@dataclass(frozen=True)
class Analysis:
    """The results in the order of the tables, and every statistic of them."""

    scores: pd.DataFrame
    tasks: pd.DataFrame
    summary: pd.DataFrame
    pairwise: pd.DataFrame
    over_tasks: pd.DataFrame
    standings: pd.DataFrame
    genes: pd.DataFrame
    times: pd.DataFrame
    gains: pd.DataFrame
    settings: pd.DataFrame
    means: pd.DataFrame  # one row per task, one column per classifier
    ranking: rankings.Ranking | None  # over these
    wilcoxon: pd.DataFrame

    def shift(self, task: str) -> str:
        """Return the kind of shift of a task."""
        return shift_of(self.tasks, task)

    def scenarios(self) -> list[str]:
        """Return the scenarios with scores."""
        return [name for name in SCENARIOS if (self.scores["scenario"] == name).any()]


def analyse(results: Results) -> Analysis:
    """Compute every statistic of the results."""
    tasks = _with_columns(results.tasks, TASK_COLUMNS)
    scores = _with_columns(results.scores, score_columns())
    tasks = sort_rows(tasks, tasks)
    scores = sort_rows(scores, tasks).dropna(subset=["test"])
    summary, pairwise = statistics.summary(scores), statistics.pairwise(scores)
    means = task_means(summary[summary["complete"].astype(bool)])
    return Analysis(
        scores=scores,
        tasks=tasks,
        summary=summary,
        pairwise=pairwise,
        over_tasks=statistics.over_tasks(summary, pairwise),
        standings=statistics.standings(summary),
        genes=costs.genes(scores),
        times=costs.run_times(scores),
        gains=costs.multi_minus_single(scores),
        settings=costs.chosen_settings(scores),
        means=means,
        ranking=rankings.rank(means),
        wilcoxon=rankings.signed_ranks(means, means.columns),
    )


def task_means(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the mean scores, one row per task and one column per classifier.

    A task with two scenarios counts once, with a single source, so that a task has one row.
    """
    rows = summary[summary["scenario"] != "multi"]
    means = rows.pivot_table(index="task", columns="classifier", values="mean", sort=False)
    return means.reindex(columns=ordered(rows["classifier"]))


def training_sets(tasks: pd.DataFrame, names: list[str]) -> list[str]:
    """Return the training set of each task named, in the scenario that `task_means` counts."""
    rows = tasks[tasks["scenario"] != "multi"].drop_duplicates("task").set_index("task")
    return [str(rows["sources"].get(name, name)) for name in names]


def shift_of(tasks: pd.DataFrame, task: str) -> str:
    """Return the kind of shift of a task."""
    found = tasks.loc[tasks["task"] == task, "shift"]
    return str(found.iloc[0]) if len(found) else ""


def _with_columns(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    frame = frame.reindex(columns=list(columns))
    for name in ("scenario", "title", "shift", "kind", "sources", "target", "classes", "note"):
        if name in frame:
            frame[name] = frame[name].astype(object).where(frame[name].notna(), "")
    return frame


def sort_rows(frame: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by kind of shift, then as the tasks come, then by scenario."""
    known = tasks.drop_duplicates("task").set_index("task")["shift"]
    order = list(SHIFTS)
    keys = pd.DataFrame(
        {
            "shift": [
                order.index(shift) if (shift := known.get(task)) in order else len(order)
                for task in frame["task"]
            ],
            "task": [
                known.index.get_loc(task) if task in known.index else len(known)
                for task in frame["task"]
            ],
            "name": frame["task"].astype(str).to_numpy(),
            "scenario": [
                SCENARIOS.index(name) if name in SCENARIOS else len(SCENARIOS)
                for name in frame["scenario"]
            ],
        },
    )
    order = keys.sort_values(list(keys), kind="stable").index
    return frame.iloc[order].reset_index(drop=True)


def place_title(task: str, scenario: str) -> str:
    """Return a task's name with its scenario."""
    return f"{task} ({SCENARIO_TITLES.get(scenario, scenario)})" if scenario else task


def scenario_name(base: str, scenario: str) -> str:
    """Return the name of a table of one scenario, fit for a file."""
    name = f"{base}_{scenario}" if scenario else base
    return re.sub(r"[^\w.+-]+", "_", name)
