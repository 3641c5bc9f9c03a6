"""The tables of a benchmark: scores, tests over tasks, pairwise matrices, genes and times."""

from __future__ import annotations

import pandas as pd

from optirank.benchmark.classifiers import ordered
from optirank.benchmark.reporting import cost_tables, ranking_tables
from optirank.benchmark.reporting.analysis import (
    SCENARIO_NOTES,
    SCENARIO_TITLES,
    SHIFTS,
    Analysis,
    place_title,
    scenario_name,
)
from optirank.benchmark.reporting.layout import (
    NONE,
    Cell,
    Column,
    Table,
    breaks,
    listing,
    number,
    p_value,
    points,
    text,
    tone,
    with_error,
    word,
)

_BOLD = (
    "The rank is in parentheses. Bold: not significantly worse than the best (two-sided paired "
    "t-test, 5 %, over folds and classes)."
)
_FIRST = "optirank"  # the classifier that the others are held against


def build(found: Analysis) -> list[Table]:
    """Return every table that the results have something for."""
    tables = [_summary(found, scenario) for scenario in found.scenarios()]
    if not found.standings.empty:
        tables.append(_standings(found.standings))
    if (found.over_tasks["row"] == _FIRST).any():
        tables.append(_over_tasks(found.over_tasks))
    if not found.wilcoxon.empty:
        names = [name for name in ordered(found.means.columns) if found.means[name].notna().any()]
        title = "All pairs over tasks, Wilcoxon's test with Holm's correction"
        tables.append(ranking_tables.matrix(found.wilcoxon, names, name="wilcoxon", title=title))
    if not found.gains.empty:
        tables.append(_gains(found.gains))
    tables += [cost_tables.genes(found, scenario) for scenario in found.scenarios()]
    if not found.times.empty:
        tables += [cost_tables.fit_times(found), cost_tables.grid_times(found)]
    places = found.pairwise[["task", "scenario"]].drop_duplicates()
    tables += [_pairwise(found, *place) for place in places.itertuples(index=False, name=None)]
    if not found.settings.empty:
        tables.append(cost_tables.settings(found.settings))
    if not found.tasks.empty:
        tables.append(cost_tables.tasks(found.tasks))
    return tables


def _summary(found: Analysis, scenario: str) -> Table:
    frame = found.summary[found.summary["scenario"] == scenario]
    frame = frame.assign(shift=frame["task"].map(found.shift))
    names = ordered(frame["classifier"])
    rows, shifts = [], []
    for task, here in frame.groupby("task", sort=False):
        cells = {row.classifier: _score(row) for row in here.itertuples()}
        shifts.append(found.shift(task))
        rows.append(
            [
                text(task),
                cost_tables.shift_cell(shifts[-1]),
                *(cells.get(name, Cell(NONE)) for name in names),
            ]
        )
    caption = f"Balanced accuracy in % (mean ± standard error over folds and classes). {_BOLD}"
    named = [SHIFTS.get(shift, shift) for shift in dict.fromkeys(shifts)]
    caption += (
        f" Kinds of shift, from top to bottom: {', '.join(named)}. {SCENARIO_NOTES[scenario]}"
    )
    if not frame["complete"].all():
        caption += " † Fewer pairs than others have: the run is not finished there."
    return Table(
        name=scenario_name("summary", scenario),
        title=f"Balanced accuracy by task, {SCENARIO_TITLES[scenario]}",
        caption=caption,
        columns=[word("task", latex="{}"), word("shift", in_latex=False), *map(Column, names)],
        rows=rows,
        frame=frame,
        breaks=breaks(shifts),
    )


def _score(row) -> Cell:
    words = with_error(100 * row.mean, 100 * row.se, 1)
    mark = "" if row.complete else "†"
    return Cell(f"{words} ({row.rank:.0f}){mark}", float(row.mean), bold=bool(row.bold))


def _standings(frame: pd.DataFrame) -> Table:
    return listing(
        "standings",
        "Standings over tasks",
        "Ranks by mean balanced accuracy (1 is best, ties share the better rank), over the tasks "
        "which every classifier of the scenario has scores for.",
        {
            word("classifier"): lambda row: text(row.classifier),
            word("sources"): lambda row: text(SCENARIO_TITLES[row.scenario]),
            "tasks": lambda row: number(row.tasks),
            "mean rank": lambda row: number(row.mean_rank, 2),
            "mean accuracy (%)": lambda row: number(100 * row.mean, 1),
            "times first": lambda row: number(row.first),
            "times in bold": lambda row: number(row.in_bold),
        },
        frame,
        by="scenario",
    )


def _over_tasks(frame: pd.DataFrame) -> Table:
    return listing(
        "over_tasks",
        f"{_FIRST} against each of the others, over tasks",
        "A task counts once, with the means of the two. Wins and losses in parentheses are those "
        "significant by the t-test within the task. The difference is the mean over tasks, "
        f"positive where {_FIRST} is better; the sign and Wilcoxon tests over tasks are two-sided "
        "and exact. The CSV file has every pair of classifiers.",
        {
            word(f"{_FIRST} against"): lambda row: text(row.column),
            word("sources"): lambda row: text(SCENARIO_TITLES[row.scenario]),
            "tasks": lambda row: number(row.tasks),
            "wins": lambda row: Cell(f"{row.wins} ({row.significant_wins})", float(row.wins)),
            "losses": lambda row: Cell(
                f"{row.losses} ({row.significant_losses})", float(row.losses)
            ),
            "ties": lambda row: number(row.ties),
            "difference (points)": lambda row: points(row.mean_difference),
            "p, sign": lambda row: p_value(row.p_sign),
            "p, Wilcoxon": lambda row: p_value(row.p_wilcoxon),
        },
        frame,
        rows=frame[frame["row"] == _FIRST],
        by="scenario",
    )


def _gains(frame: pd.DataFrame) -> Table:
    return listing(
        "multi_vs_single",
        "What the second source adds",
        "Balanced accuracy with both sources merged (multi) less that with the first alone "
        "(single): mean ± standard error over the folds and classes that both have, with a paired "
        "t-test. Bold green: significantly better; red italic: significantly worse.",
        {
            word("task"): lambda row: text(row.task),
            word("classifier"): lambda row: text(row.classifier),
            "single (%)": lambda row: number(100 * row.single, 1),
            "multi (%)": lambda row: number(100 * row.multi, 1),
            "difference (points)": lambda row: points(row.difference, row.se, row.sign),
            "pairs": lambda row: number(row.pairs),
            "pairs better (%)": lambda row: number(row.percent_better),
            "p": lambda row: p_value(row.p_value),
        },
        frame,
        by="task",
    )


def _pairwise(found: Analysis, task: str, scenario: str) -> Table:
    frame = found.pairwise
    frame = frame[(frame["task"] == task) & (frame["scenario"] == scenario)]
    names = ordered(frame["row"])
    cells = {(row.row, row.column): row for row in frame.itertuples()}
    rows = []
    for i, first in enumerate(names):
        line = [text(first)]
        for j, second in enumerate(names):
            line.append(Cell("") if i == j else _pairwise_cell(cells[first, second], above=i < j))
        rows.append(line)
    return Table(
        name=scenario_name(f"pairwise_{task}", scenario),
        title=f"Pairwise comparison, {place_title(task, scenario)}",
        caption=(
            "Below the diagonal: + where the row is significantly better than the column, − where "
            "it is worse (two-sided paired t-test, 5 %). Above: percentage of pairs (fold and "
            "class) in which the row is strictly better, ties counting for neither; bold green "
            "where it is significantly better, red italic where worse."
        ),
        columns=[word(""), *map(Column, names)],
        rows=rows,
        frame=frame,
        place=(task, scenario),
    )


def _pairwise_cell(row, *, above: bool) -> Cell:
    if not above:
        return Cell({1: "+", -1: "−"}.get(row.sign, ""), tone=tone(row.sign))
    words = f"{row.percent_better:.0f}" if row.pairs else NONE
    return Cell(words, row.percent_better, tone=tone(row.sign))
