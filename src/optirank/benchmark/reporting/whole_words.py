"""The results on whole tasks in sentences, each computed from the numbers."""

from __future__ import annotations

import numpy as np

from optirank.benchmark.reporting.layout import seconds
from optirank.benchmark.reporting.whole_analysis import OURS, WholeAnalysis
from optirank.benchmark.reporting.words import count, listed


def summarise_whole(found: WholeAnalysis) -> list[str]:
    """Return a short account of the results on whole tasks."""
    tools, tasks = found.tools(), len({task for task, _ in found.places()})
    known = found.summary["task"].nunique()
    who = tools[0] if len(tools) == 1 else f"Each of {len(tools)} tools"
    some = (
        f"; {known} of them {'has' if known == 1 else 'have'} scores" if 0 < known < tasks else ""
    )
    sentences = [
        f"{who} is trained on all classes of a task at once, on {count(tasks, 'task')}{some}."
    ]
    if found.summary.empty:
        return [*sentences, "There are no scores: every tool has a gap on every task."]
    return [one for one in (*sentences, _order(found), _costs(found), _gaps(found)) if one]


def _order(found: WholeAnalysis) -> str:
    ranked = found.overall[found.overall["in_block"]]
    tasks = count(len(found.block), "task")
    if len(ranked) < 2:
        row = found.overall.iloc[0]
        return (
            f"{row['tool']} has a mean balanced accuracy of {100 * row['mean']:.1f} % over "
            f"{count(int(row['tasks']), 'task')}."
        )
    shown = [
        f"{row.tool} ({row.mean_rank:.2f}, {100 * row.mean:.1f} %)" for row in ranked.itertuples()
    ]
    return (
        f"From best to worst, with the mean rank and the mean balanced accuracy over {tasks}: "
        f"{', '.join(shown)}."
    )


def _costs(found: WholeAnalysis) -> str:
    """What the best ranked tool costs, beside optirank if that is another one."""
    known = found.overall[np.isfinite(found.overall["n_genes"].astype(float))]
    names = list(dict.fromkeys([*known["tool"].head(1), *known.loc[known["tool"] == OURS, "tool"]]))
    if not names:
        return ""
    rows = known.set_index("tool")
    shown = [
        f"{name} needs {rows['n_genes'][name]:.0f} genes and {seconds(rows['fit_seconds'][name])} "
        "CPU seconds of training"
        for name in names
    ]
    return f"In the median task, {listed(shown)}."


def _gaps(found: WholeAnalysis) -> str:
    lacking = found.overall[found.overall["gaps"] > 0]
    if lacking.empty:
        return ""
    shown = [f"{row.tool} ({count(row.gaps, 'task')})" for row in lacking.itertuples()]
    return f"Without a result on some tasks: {', '.join(shown)}."
