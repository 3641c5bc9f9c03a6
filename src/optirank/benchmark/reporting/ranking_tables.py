"""What is said of a ranking over tasks: its caption, and the matrix of the pairwise tests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from optirank.benchmark.reporting.layout import (
    Cell,
    Column,
    Table,
    p_value,
    points,
    text,
    tone,
    word,
)
from optirank.benchmark.reporting.rankings import Ranking

NOT_INDEPENDENT = (
    "Tasks that share a training set or a test set are not independent, so the p-values are too "
    "small and the critical difference is too short."
)


def caption(found: Ranking, sources: Iterable[str]) -> str:
    """Return what a critical-difference diagram shows; `sources` are the tasks' training sets."""
    n, k = len(found.tasks), len(found.mean_ranks)
    sets = len(set(sources))
    several = "each with a training set of its own" if sets == n else f"with {sets} training sets"
    parts = [f"Mean ranks of {k} classifiers over {n} tasks ({several}), 1 being best."]
    if np.isfinite(found.p_value):
        p = "p < 0.001" if found.p_value < 0.0005 else f"p = {found.p_value:.3f}"
        parts.append(
            f"Friedman's test that all are equal: chi-squared = {found.statistic:.1f} with {k - 1} "
            f"degrees of freedom, {p}."
        )
    parts.append(
        "Bars join classifiers whose mean ranks differ by less than Nemenyi's critical difference "
        f"at 5 %, {found.critical_difference:.2f}."
    )
    if found.n_known > n:
        parts.append(
            f"{found.n_known - n} of {found.n_known} tasks are left out: not all of these "
            "classifiers have scores there."
        )
    if found.left_out:
        verb = "it has" if len(found.left_out) == 1 else "they have"
        parts.append(
            f"Not ranked, because {verb} no score on some of these tasks: "
            f"{', '.join(found.left_out)}."
        )
    return " ".join([*parts, NOT_INDEPENDENT])


def matrix(frame: pd.DataFrame, names: list[str], *, name: str, title: str) -> Table:
    """Return the table of `rankings.signed_ranks`: differences above the diagonal, p below."""
    pairs = {(row.row, row.column): row for row in frame.itertuples()}
    rows = []
    for i, first in enumerate(names):
        line = [text(first)]
        for j, second in enumerate(names):
            found = pairs.get((first, second) if i < j else (second, first))
            if i == j or found is None:
                line.append(Cell(""))
            elif i < j:
                line.append(points(found.mean_difference, sign=found.sign))
            else:
                p = p_value(found.p_holm)
                line.append(Cell(p.text, p.sort, tone=tone(-found.sign)))
        rows.append(line)
    words = (
        "Above the diagonal: mean difference in balanced accuracy over the tasks that both have, "
        "row less column, in points. Below: p-value of Wilcoxon's signed-rank test over these "
        f"tasks (two-sided, exact), adjusted by Holm's method for {len(frame)} comparisons. Bold "
        "green: the row is significantly better than the column (5 %); red italic: worse. "
        f"{NOT_INDEPENDENT}"
    )
    return Table(name, title, words, [word(""), *map(Column, names)], rows, frame)
