"""The tables of whole tasks: the tools over all tasks, and optirank against each of the others."""

from __future__ import annotations

import numpy as np
import pandas as pd

from optirank.benchmark.reporting import ranking_tables, whole_task_tables
from optirank.benchmark.reporting.layout import (
    Cell,
    Table,
    listing,
    number,
    p_value,
    points,
    seconds,
    text,
    word,
)
from optirank.benchmark.reporting.whole_analysis import OURS, WholeAnalysis
from optirank.benchmark.reporting.whole_task_tables import MEGABYTE, missing_genes

OVERALL = "whole_overall"


def build(found: WholeAnalysis) -> list[Table]:
    """Return every table of whole tasks that the results have something for."""
    if not found.tools():
        return []
    tables = [overall(found), whole_task_tables.scores(found)]
    if not found.gaps.empty:
        tables.append(whole_task_tables.gaps(found.gaps))
    if OURS in found.means and len(found.means.columns) > 1:
        tables.append(_against(found.wilcoxon))
    if not found.wilcoxon.empty:
        title = "All pairs of tools over tasks, Wilcoxon's test with Holm's correction"
        names = list(found.means.columns)
        tables.append(
            ranking_tables.matrix(found.wilcoxon, names, name="whole_wilcoxon", title=title)
        )
    if not found.summary.empty:
        tables += whole_task_tables.by_task(found)
    return [*tables, whole_task_tables.tools(found)]


def overall(found: WholeAnalysis) -> Table:
    """Return one row per tool, over tasks."""
    frame = found.overall
    everyone = bool(frame["in_block"].all())
    n = len(found.block)
    caption = (
        f"Accuracy: balanced accuracy in % on the test sets, mean over {n} "
        f"{'task' if n == 1 else 'tasks'}{_without(found)}. Against {OURS}: the difference of the "
        "two means over the same tasks. Rank: mean rank over these tasks (1 is best, ties share "
        "their mean). Same data: balanced accuracy on held-out samples of the training data set, "
        "where a task has them. Unassigned: share of samples without a label; they count as wrong. "
        "Genes, training and prediction: median over tasks; times are CPU seconds of one thread, "
        "prediction per 1000 samples (on small test sets mostly the fixed cost of a call). Memory: "
        "the largest peak of the tool's process, with its libraries and the data."
    )
    if frame["gaps"].any():
        caption += " Gaps: number of tasks without a score of the tool."
    if not everyone:
        caption += (
            " † Has no score on some of these tasks: it is judged by the tasks that it has, and "
            "not ranked."
        )

    def accuracy(row) -> Cell:
        cell = number(100 * row.mean, 1)
        return Cell(cell.text + "†" * bool(row.tasks and not row.in_block), cell.sort)

    shown = {
        word("tool"): lambda row: text(row.tool),
        "tasks": lambda row: number(row.tasks),
        "gaps": lambda row: number(row.gaps),
        "accuracy (%)": accuracy,
        f"against {OURS} (points)": lambda row: points(
            np.nan if row.tool == OURS else row.mean - row.ours
        ),
        "rank": lambda row: number(row.mean_rank, 2),
        "same data (%)": lambda row: number(100 * row.validation, 1),
        "unassigned (%)": lambda row: number(100 * row.unassigned, 1),
        "genes": lambda row: number(row.n_genes),
        "training (s)": lambda row: Cell(seconds(row.fit_seconds), row.fit_seconds),
        "prediction (s)": lambda row: Cell(seconds(row.predict_1000), row.predict_1000),
        "memory (MB)": lambda row: number(row.peak_bytes / MEGABYTE),
        word("missing genes reported"): lambda row: text(missing_genes(row.tool)),
    }
    if not frame["gaps"].any():
        del shown["gaps"]
    if OURS not in found.means:
        del shown[f"against {OURS} (points)"]
    return listing(OVERALL, "All tools over whole tasks", caption, shown, frame, by="in_block")


def _without(found: WholeAnalysis) -> str:
    """Return which tasks are left out of the means, as the end of a phrase."""
    left_out = [str(task) for task in found.means.index if task not in found.block.index]
    if not left_out:
        return ""
    return f" (not {', '.join(left_out)}, where one of the ranked tools has no score)"


def _against(frame: pd.DataFrame) -> Table:
    """Return optirank against each other tool, turned round where it is the second of a pair."""
    second = frame[frame["column"] == OURS]
    turned = second.rename(
        columns={"row": "column", "column": "row", "wins": "losses", "losses": "wins"}
    ).assign(mean_difference=-second["mean_difference"], sign=-second["sign"])
    rows = pd.concat([turned[frame.columns], frame[frame["row"] == OURS]], ignore_index=True)
    return listing(
        "whole_against",
        f"{OURS} against each of the other tools, over whole tasks",
        "A task counts once, where both tools have a score. The difference is the mean over these "
        f"tasks, positive where {OURS} is better. Wilcoxon's signed-rank test is two-sided and "
        f"exact; Holm's correction is for all {len(frame)} pairs of tools. "
        f"{ranking_tables.NOT_INDEPENDENT}",
        {
            word(f"{OURS} against"): lambda row: text(row.column),
            "tasks": lambda row: number(row.tasks),
            "wins": lambda row: number(row.wins),
            "losses": lambda row: number(row.losses),
            "ties": lambda row: number(row.ties),
            "difference (points)": lambda row: points(row.mean_difference, sign=row.sign),
            "p, Wilcoxon": lambda row: p_value(row.p_wilcoxon),
            "p, Holm": lambda row: p_value(row.p_holm),
        },
        rows,
    )
