"""Classifiers compared over tasks: mean ranks, Friedman, Nemenyi, and Wilcoxon with Holm.

The unit of observation is the task, by its mean score. The methods are those that Demšar recommends
(Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7, 2006).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from optirank.benchmark.reporting.statistics import LEVEL, sign_and_size, signed_rank_test

_DIGITS = 12  # scores that agree in so many decimals are equal


@dataclass(frozen=True)
class Ranking:
    """Mean ranks over the tasks that all ranked classifiers have; 1 is best.

    `groups` are the largest groups of neighbours whose mean ranks differ by less than the critical
    difference. `left_out` are classifiers without scores on some of `tasks`, with the number of
    tasks that they have.
    """

    mean_ranks: dict[str, float]  # best first
    tasks: list[str]
    statistic: float
    p_value: float
    critical_difference: float
    groups: list[tuple[str, ...]]
    left_out: dict[str, int]
    n_known: int  # tasks with any score


def rank(scores: pd.DataFrame) -> Ranking | None:
    """Return the ranking of the columns by their scores on the rows, or None below two of each.

    Missing scores are allowed: the ranking is over `common_block`. Friedman's test needs three
    classifiers; with two, its statistic and p-value are missing.
    """
    scores = scores.dropna(how="all").dropna(how="all", axis=1)
    block = common_block(scores)
    n, k = block.shape
    if n < 2 or k < 2:
        return None
    means = ranks(block).mean().sort_values(kind="stable")
    statistic, p_value = friedman(block.to_numpy())
    critical = critical_difference(k, n)
    others = scores.drop(columns=block.columns).count()
    return Ranking(
        mean_ranks={str(name): float(value) for name, value in means.items()},
        tasks=[str(task) for task in block.index],
        statistic=statistic,
        p_value=p_value,
        critical_difference=critical,
        groups=neighbours(means, critical),
        left_out={str(name): int(count) for name, count in others.items()},
        n_known=len(scores),
    )


def common_block(scores: pd.DataFrame) -> pd.DataFrame:
    """Return rows and columns without a missing score.

    Of all such blocks, it is the one with the largest rows^2 x (columns - 1). Rows count more than
    columns, because a row that is left out is lost for all columns: a column that lacks a few rows
    is left out; a row is left out if several columns lack it, as in an unfinished run. Of equal
    blocks, the one with the first rows is taken.
    """
    known = scores.notna().to_numpy()
    # The rows of a column as the bits of a number, the first row highest: there can be as many
    # sets of rows as there are sets of columns.
    bits = [1 << k for k in reversed(range(len(known)))]
    columns = [sum(bit for bit, there in zip(bits, one, strict=True) if there) for one in known.T]
    rows: set[int] = set()
    for pattern in set(columns):  # all intersections of the columns' rows
        rows |= {pattern} | {one & pattern for one in rows}

    def size(block: int) -> tuple[int, int, int, int]:
        n = block.bit_count()
        k = sum(one & block == block for one in columns)
        return n**2 * (k - 1), n, k, block

    best = max((block for block in rows if block), key=size, default=0)
    inside = [bool(best & bit) for bit in bits]
    return scores.loc[inside, [bool(best) and one & best == best for one in columns]]


def ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the rank of each column within each row: 1 is best, equal scores share their mean."""
    return scores.round(_DIGITS).rank(axis=1, ascending=False, method="average")


def friedman(scores: ArrayLike) -> tuple[float, float]:
    """Return Friedman's statistic, corrected for ties, and its p-value.

    With mean ranks R_j of k columns over n rows it is 12 n / (k (k + 1)) * sum (R_j - (k + 1)/2)^2,
    divided by 1 - sum (t^3 - t) / (n k (k^2 - 1)) over the groups of t equal scores in a row.
    Columns that are equal everywhere have the statistic 0 and p = 1.
    """
    from scipy.stats import friedmanchisquare

    scores = np.asarray(scores, dtype=float).round(_DIGITS)
    if scores.shape[1] < 3:
        return np.nan, np.nan
    if (scores == scores[:, :1]).all():
        return 0.0, 1.0
    found = friedmanchisquare(*scores.T)
    return float(found.statistic), float(found.pvalue)


def critical_difference(k: int, n: int, level: float = LEVEL) -> float:
    """Return Nemenyi's critical difference of the mean ranks of k classifiers over n tasks.

    It is q sqrt(k (k + 1) / (6 n)), with q the quantile of the studentized range of k values with
    infinitely many degrees of freedom, divided by sqrt(2).
    """
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - level, k, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))


def neighbours(means: pd.Series, critical: float) -> list[tuple[str, ...]]:
    """Return the largest groups within less than a critical difference, from ascending values."""
    values, names = means.to_numpy(), [str(name) for name in means.index]
    ends = [int(np.searchsorted(values, value + critical)) for value in values]
    return [
        tuple(names[start:end])
        for start, end in enumerate(ends)
        if end - start > 1 and (start == 0 or end > ends[start - 1])
    ]


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Return p-values adjusted by Holm's step-down method for as many tests.

    The i-th smallest of m becomes the largest of (m - j + 1) p_(j) over j <= i, at most 1.
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * p_values[order]))
    return adjusted


def signed_ranks(scores: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Return every pair of classifiers compared by Wilcoxon's test, over the tasks that both have.

    One row per unordered pair, in the order of `names`; `p_holm` is adjusted for all of them, and
    `sign` is 1 where the first is better at 5 % by it, -1 where it is worse.
    """
    records = []
    for row, column in combinations(names, 2):
        differences = (scores[row] - scores[column]).dropna().round(_DIGITS)
        if len(differences):
            records.append(
                {
                    "row": row,
                    "column": column,
                    **sign_and_size(differences),
                    "p_wilcoxon": signed_rank_test(differences),
                }
            )
    columns = ["row", "column", "tasks", "wins", "losses", "ties", "mean_difference", "p_wilcoxon"]
    frame = pd.DataFrame(records, columns=columns)
    frame["p_holm"] = holm(frame["p_wilcoxon"])
    better = np.sign(frame["mean_difference"].astype(float)).astype(int)
    frame["sign"] = better.where(frame["p_holm"] < LEVEL, 0)
    return frame
