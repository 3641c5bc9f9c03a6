"""All statistics of the results on whole tasks, computed once for tables, figures and page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import ordered
from optirank.benchmark.reporting import rankings
from optirank.benchmark.reporting.analysis import shift_of, sort_rows, task_means
from optirank.benchmark.reporting.statistics import PLACE, at_place, places

if TYPE_CHECKING:
    from optirank.benchmark.reporting.whole_results import WholeResults

OURS = "optirank"  # the tool that others are compared with on the tasks that they have
_COSTS = ("n_genes", "fit_seconds", "predict_1000", "peak_bytes")


@dataclass(frozen=True)
class WholeAnalysis:
    """The results on whole tasks in the order of the tables, and every statistic of them.

    `summary` has one row per task, scenario and tool with scores. `means` has one row per task and
    one column per tool; tasks with two scenarios count once, with a single source. `block` is the
    part of it that the means over tasks are taken over (see `rankings.common_block`), and `overall`
    has one row per tool, the best mean rank first.
    """

    scores: pd.DataFrame
    gaps: pd.DataFrame
    tasks: pd.DataFrame
    summary: pd.DataFrame
    means: pd.DataFrame
    block: pd.DataFrame
    overall: pd.DataFrame
    ranking: rankings.Ranking | None
    wilcoxon: pd.DataFrame

    def tools(self) -> list[str]:
        """Return all tools with scores or gaps."""
        return ordered([*self.scores["tool"], *self.gaps["tool"]])

    def places(self) -> list[tuple[str, str]]:
        """Return every (task, scenario) with scores or gaps, in the order of the tasks."""
        both = pd.concat([self.summary[PLACE], self.gaps[PLACE]], ignore_index=True)
        return places(sort_rows(both, self.tasks))

    def shift(self, task: str) -> str:
        """Return the kind of shift of a task."""
        return shift_of(self.tasks, task)


def analyse_whole(whole: WholeResults, tasks: pd.DataFrame) -> WholeAnalysis:
    """Compute every statistic of the results; `tasks` say what each task is, in order."""
    scores = sort_rows(whole.scores, tasks).dropna(subset=["test"])
    gaps = sort_rows(whole.gaps, tasks)
    summary = summarise(scores)
    means = task_means(summary.rename(columns={"tool": "classifier"}))
    block = rankings.common_block(means)
    tools = ordered([*scores["tool"], *gaps["tool"]])
    return WholeAnalysis(
        scores=scores,
        gaps=gaps,
        tasks=tasks,
        summary=summary,
        means=means,
        block=block,
        overall=over_tasks(summary, means, block, tools, n_tasks=_count_tasks(scores, gaps)),
        ranking=rankings.rank(means),
        wilcoxon=rankings.signed_ranks(means, means.columns),
    )


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores, ranks and costs, one row per task, scenario and tool.

    Scores, genes and times are means over splits; `predict_1000` is the time of predicting 1000
    samples. Ranks are among the tools with scores there; equal ones share the better rank.
    """
    scores = scores.assign(predict_1000=1000 * scores["predict_seconds"] / scores["n_test"])
    frame = (
        scores.groupby([*PLACE, "tool"], sort=False)
        .agg(
            version=("version", "first"),
            n=("test", "count"),
            mean=("test", "mean"),
            se=("test", "sem"),
            **{
                name: (name, "mean")
                for name in ("validation", "unassigned", "n_genes", "n_features", "fit_seconds")
            },
            predict_1000=("predict_1000", "mean"),
            peak_bytes=("peak_bytes", "max"),
            start_bytes=("start_bytes", "max"),
        )
        .reset_index()
    )
    rounded = frame["mean"].astype(float).round(12)
    by_place = rounded.groupby([frame[name] for name in PLACE], sort=False)
    frame["rank"] = by_place.rank(ascending=False, method="min")
    order = {name: k for k, name in enumerate(ordered(frame["tool"]))}
    found = [
        at_place(frame, *place).sort_values("tool", key=lambda names: names.map(order))
        for place in places(frame)
    ]
    return pd.concat(found, ignore_index=True) if found else frame


def _count_tasks(*frames: pd.DataFrame) -> int:
    """Return the number of tasks with scores or gaps, without those of two sources alone."""
    return len({task for one in frames for task in one.loc[one["scenario"] != "multi", "task"]})


def over_tasks(
    summary: pd.DataFrame,
    means: pd.DataFrame,
    block: pd.DataFrame,
    tools: list[str],
    *,
    n_tasks: int,
) -> pd.DataFrame:
    """Return one row per tool: means of scores, medians of genes and times, the largest memory.

    Of `n_tasks` a tool has no scores on `gaps`. A tool within the `block` is judged by the tasks of
    the block (`in_block`), any other by the tasks that it has, without a mean rank. `ours` is the
    mean of optirank over the same tasks, if it has them.
    """
    ranks = rankings.ranks(block)
    records = []
    for tool in tools:
        inside = tool in block.columns
        own = means.index[means[tool].notna()] if tool in means else pd.Index([])
        counted = block.index if inside else own
        rows = summary[(summary["tool"] == tool) & (summary["scenario"] != "multi")]
        rows = rows[rows["task"].isin(counted)]
        costs = rows[list(_COSTS)].astype(float)
        records.append(
            {
                "tool": tool,
                "version": rows["version"].iloc[0] if len(rows) else "",
                "in_block": inside,
                "tasks": len(counted),
                "gaps": n_tasks - len(own),
                "mean": rows["mean"].mean(),
                "mean_rank": ranks[tool].mean() if inside else np.nan,
                "first": int((ranks[tool] == ranks.min(axis=1)).sum()) if inside else 0,
                "ours": means.loc[counted, OURS].mean(skipna=False) if OURS in means else np.nan,
                "validation": rows["validation"].mean(),
                "unassigned": rows["unassigned"].mean(),
                **costs.drop(columns="peak_bytes").median().to_dict(),
                "peak_bytes": costs["peak_bytes"].max(),
            }
        )
    columns = (
        "tool version in_block tasks gaps mean mean_rank first ours validation unassigned n_genes"
        " fit_seconds predict_1000 peak_bytes"
    )
    frame = pd.DataFrame(records, columns=columns.split())
    frame["_minus"] = -frame["mean"].astype(float)
    by = ["in_block", "mean_rank", "_minus"]
    frame = frame.sort_values(by, ascending=[False, True, True], kind="stable", ignore_index=True)
    return frame.drop(columns="_minus")
