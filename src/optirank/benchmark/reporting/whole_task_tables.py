"""Tables of whole tasks with one column per tool, the table of gaps, and what the tools are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import Classifier, get
from optirank.benchmark.reporting.analysis import place_title
from optirank.benchmark.reporting.layout import (
    NONE,
    Cell,
    Column,
    Table,
    breaks,
    listing,
    number,
    seconds,
    text,
    with_error,
    word,
)
from optirank.benchmark.reporting.statistics import at_place
from optirank.benchmark.reporting.whole_analysis import WholeAnalysis
from optirank.benchmark.reporting.whole_results import NOT_RUN

MEGABYTE = 1e6
_STAGES = {
    "install": "not installed",
    "start": "did not start",
    "fit": "failed in training",
    "predict": "failed in prediction",
    "time": "time limit",
    "memory": "out of memory",
    NOT_RUN: NOT_RUN,
}
_LONGEST = 160  # characters of a reason below a table; the table of gaps has all of it


@dataclass(frozen=True)
class _Quantity:
    """One number of each tool on each task."""

    name: str
    title: str
    caption: str
    show: Callable[..., Cell]


def _memory(row) -> Cell:
    peak, start = row.peak_bytes / MEGABYTE, row.start_bytes / MEGABYTE
    beyond = f" (+{max(peak - start, 0):.0f})" if np.isfinite(peak - start) else ""
    return Cell(number(peak).text + beyond, peak)


_QUANTITIES = (
    _Quantity(
        "whole_same_data",
        "Whole tasks, scores on the same data set",
        "Balanced accuracy in % on held-out samples of the training data set (mean over splits), "
        "where a task has such samples besides its test set.",
        lambda row: number(100 * row.validation, 1),
    ),
    _Quantity(
        "whole_unassigned",
        "Whole tasks, samples without a label",
        "Share in % of the test samples that get no label; they count as wrong.",
        lambda row: number(100 * row.unassigned, 1),
    ),
    _Quantity(
        "whole_genes",
        "Whole tasks, number of genes",
        "Number of genes that the trained model needs, mean over splits. Tools choose among all "
        "genes that the data sets of a task have in common.",
        lambda row: number(row.n_genes),
    ),
    _Quantity(
        "whole_training",
        "Whole tasks, CPU time of training",
        "CPU seconds of one training (one thread), mean over splits.",
        lambda row: Cell(seconds(row.fit_seconds), row.fit_seconds),
    ),
    _Quantity(
        "whole_prediction",
        "Whole tasks, CPU time of prediction",
        "CPU seconds per 1000 samples (one thread), mean over splits. They are computed from the "
        "time of the whole test set, so small sets show mostly the fixed cost of a call.",
        lambda row: Cell(seconds(row.predict_1000), row.predict_1000),
    ),
    _Quantity(
        "whole_memory",
        "Whole tasks, peak memory",
        "Peak memory of the tool's process in MB. In parentheses: how much of it was added after "
        "the start, when libraries and data had been loaded.",
        _memory,
    ),
)
BY_TASK = tuple(one.name for one in _QUANTITIES)


def by_task(found: WholeAnalysis) -> list[Table]:
    """Return one table per quantity, with one row per task and one column per tool."""
    return [
        _matrix(
            found,
            one.name,
            one.title,
            one.caption,
            _grid(found, one.show, lambda row: Cell(stage_words(row.stage))),
        )
        for one in _QUANTITIES
    ]


def scores(found: WholeAnalysis) -> Table:
    """Return the test scores; the reasons of gaps are footnotes in the caption."""
    letters: dict[str, str] = {}

    def score(row) -> Cell:
        words = with_error(100 * row.mean, 100 * row.se, 1)
        return Cell(f"{words} ({row.rank:.0f})", float(row.mean), bold=row.rank == 1)

    def gap(row) -> Cell:
        words = stage_words(row.stage)
        if row.stage == NOT_RUN:
            return Cell(words)
        letter = letters.setdefault(f"{row.tool}: {row.reason}", _letter(len(letters)))
        return Cell(f"{words} ({letter})")

    grid = _grid(found, score, gap)
    caption = (
        "Balanced accuracy in % on the test set of each task, over all classes: mean ± standard "
        "error over splits, with the rank among the tools that have a score. Bold: the best."
    )
    if letters:
        notes = (f"({letter}) {_short(reason)}" for reason, letter in letters.items())
        caption += f" Gaps: {' '.join(notes)}"
    return _matrix(found, "whole_scores", "Whole tasks, test scores", caption, grid)


def stage_words(stage: str) -> str:
    """Return what a cell says where a tool has no result."""
    return _STAGES.get(stage, "failed")


Grid = dict[tuple[str, str], list[Cell]]  # by task and scenario, one cell per tool


def _grid(found: WholeAnalysis, show: Callable[..., Cell], gap: Callable[..., Cell]) -> Grid:
    rows = {}
    for place in found.places():
        cells = {row.tool: gap(row) for row in at_place(found.gaps, *place).itertuples()}
        cells |= {row.tool: show(row) for row in at_place(found.summary, *place).itertuples()}
        rows[place] = [cells.get(tool, Cell(NONE)) for tool in found.tools()]
    return rows


def _matrix(found: WholeAnalysis, name: str, title: str, caption: str, grid: Grid) -> Table:
    columns = [word("task", latex="{}"), *map(Column, found.tools())]
    rows = [[text(place_title(*place)), *cells] for place, cells in grid.items()]
    shifts = breaks(found.shift(task) for task, _ in grid)
    return Table(name, title, caption, columns, rows, found.summary, shifts)


def gaps(frame: pd.DataFrame) -> Table:
    """Return one row per tool and reason, with the tasks."""
    named = frame.assign(place=[place_title(row.task, row.scenario) for row in frame.itertuples()])
    rows = (
        named.groupby(["tool", "stage", "reason"], sort=False)["place"]
        .agg(n="count", tasks=", ".join)
        .reset_index()
    )
    return listing(
        "whole_gaps",
        "Gaps: tools without a result",
        "The command that made these results tries the gaps again.",
        {
            word("tool"): lambda row: text(row.tool),
            word("what"): lambda row: text(stage_words(row.stage)),
            "tasks": lambda row: number(row.n),
            word("reason"): lambda row: text(row.reason),
            word("names"): lambda row: text(row.tasks),
        },
        frame,
        rows=rows,
        by="tool",
    )


def tools(found: WholeAnalysis) -> Table:
    """Return what each tool is."""
    versions = found.overall.set_index("tool")["version"]
    frame = pd.DataFrame({"tool": found.tools()})
    frame["what"] = [one.words if (one := entry(name)) else "" for name in frame["tool"]]
    frame["version"] = [versions[name] for name in frame["tool"]]
    frame["missing_genes"] = [missing_genes(name) for name in frame["tool"]]
    return listing(
        "whole_tools",
        "The tools",
        "Each tool is trained on all classes of a task at once, with its defaults, on all genes "
        "that the data sets of the task have in common.",
        {
            word("tool"): lambda row: text(row.tool),
            word("what"): lambda row: text(row.what),
            word("version"): lambda row: text(row.version),
            word("missing genes reported"): lambda row: text(row.missing_genes),
        },
        frame,
    )


def missing_genes(tool: str) -> str:
    """Return whether a tool reports genes that a query lacks."""
    return one.missing_genes if (one := entry(tool)) else ""


def entry(tool: str) -> Classifier | None:
    """Return what is known of a tool, or None for one that this version does not know."""
    try:
        return get(tool)
    except ValueError:
        return None


def _letter(k: int) -> str:
    """Return a, b, ..., z, aa, ab, ..."""
    first, last = divmod(k, 26)
    return (_letter(first - 1) if first else "") + chr(ord("a") + last)


def _short(reason: str) -> str:
    reason = " ".join(reason.split()).rstrip(".")
    return (reason if len(reason) <= _LONGEST else reason[: _LONGEST - 1].rstrip() + "…") + "."
