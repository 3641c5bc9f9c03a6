"""Statistics of a comparison: means and differences over tissues, wins, tests.

A table of scores has one row per task and one column per classifier. Tasks of one
tissue are not independent: they share samples, genes or both. So intervals are over
tissues: of a mean by a bootstrap that draws tissues, of a difference between two
classifiers by Student's t, since a bootstrap of few tissues is too narrow. Two
classifiers are compared by the differences within tissues, each of which is averaged
first.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from optirank_lab.benchmark.classifiers import ordered

LEVEL = 0.05  # of tests and intervals: the paper's
# Fewer tissues show nothing about others: their bootstrap is narrow, and wrong.
FEWEST_TISSUES = 5
FEWEST_VALUES = 3  # of an interval by Student's t, which is as wide as they ask for
_DRAWS = 2000  # of the bootstrap: the ends of the interval vary by about 0.1 points
_EQUAL = 1e-9  # closer than this, two scores are the same
_DIGITS = 9  # of scores that are compared, for the same reason


def task_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean test score over problems and splits: tasks x classifiers."""
    table = scores.pivot_table(
        index="task", columns="classifier", values="test", sort=False
    )
    return table.reindex(columns=ordered(table.columns))


def bootstrap_interval(values: ArrayLike, tissues: ArrayLike) -> tuple[float, float]:
    """95 % interval of a mean over tasks, tissues being drawn with all their tasks.

    NaN where there are fewer than five tissues. Missing values are left out.
    """
    frame = pd.DataFrame(
        {"value": np.asarray(values, dtype=float), "tissue": np.asarray(tissues)}
    ).dropna()
    groups = frame.groupby("tissue")["value"].agg(["sum", "size"]).to_numpy()
    if len(groups) < FEWEST_TISSUES:
        return float("nan"), float("nan")
    drawn = np.random.default_rng(0).integers(len(groups), size=(_DRAWS, len(groups)))
    means = groups[drawn, 0].sum(axis=1) / groups[drawn, 1].sum(axis=1)
    low, high = np.quantile(means, [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)


def t_interval(values: ArrayLike) -> tuple[float, float]:
    """95 % interval of the mean of a few values, by Student's t.

    ``mean ± t(n - 1) s / sqrt(n)``; NaN where there are fewer than three values.
    """
    from scipy.stats import t

    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if len(known) < FEWEST_VALUES:
        return float("nan"), float("nan")
    error = known.std(ddof=1) / np.sqrt(len(known))
    half = float(t.ppf(1 - LEVEL / 2, len(known) - 1) * error)
    return float(known.mean()) - half, float(known.mean()) + half


def over_tissues(values: pd.Series, tissues: pd.Series) -> pd.Series:
    """The mean of each tissue's tasks; tasks without a value are left out.

    ``values`` and ``tissues`` are indexed by task.
    """
    known = values.dropna()
    means: Any = known.groupby(tissues.reindex(known.index)).mean()
    return means


@dataclass(frozen=True)
class PairedComparison:
    """How one classifier does beside another on the tasks that both have.

    Differences are those of the first minus the second. ``mean``, ``low`` and ``high``
    are over tissues, whose tasks are averaged first; the median is that of the tissues'
    differences. ``tissues`` and ``tasks`` are won, tied and lost.
    """

    mean: float
    low: float
    high: float
    median: float
    sign_p: float
    tissues: tuple[int, int, int]
    tasks: tuple[int, int, int]


def compare(
    first: pd.Series, second: pd.Series, tissues: pd.Series
) -> PairedComparison:
    """Paired differences over tissues, with an interval and a sign test.

    All are indexed by task; tasks that either classifier lacks are left out.
    """
    difference = (first - second).dropna()
    difference = difference.where(difference.abs() >= _EQUAL, 0.0)
    by_tissue = over_tissues(difference, tissues)
    by_tissue = by_tissue.where(by_tissue.abs() >= _EQUAL, 0.0)
    won, tied, lost = won_tied_lost(by_tissue)
    low, high = t_interval(by_tissue)
    return PairedComparison(
        mean=float(by_tissue.mean()),
        low=low,
        high=high,
        median=float(by_tissue.median()),
        sign_p=sign_test(won, lost),
        tissues=(won, tied, lost),
        tasks=won_tied_lost(difference),
    )


def won_tied_lost(differences: ArrayLike) -> tuple[int, int, int]:
    """How many differences are positive, next to nothing, and negative."""
    values = np.asarray(differences, dtype=float)
    won = int((values >= _EQUAL).sum())
    lost = int((values <= -_EQUAL).sum())
    tied = int((np.abs(values) < _EQUAL).sum())
    return won, tied, lost


def sign_test(won: int, lost: int) -> float:
    """Two-sided p of the exact sign test; ties have no say. 1 where all are tied."""
    from scipy.stats import binomtest

    if won + lost == 0:
        return 1.0
    return float(binomtest(won, won + lost).pvalue)


def standings(table: pd.DataFrame, tissues: pd.Series) -> pd.DataFrame:
    """Each classifier over the tasks that it has: mean, interval, median, wins.

    The best mean comes first. ``won``, ``tied`` and ``lost`` count comparisons with all
    other classifiers, task by task. ``rank`` is the mean rank over the tasks that all
    classifiers have.
    """
    of_tasks = tissues.reindex(table.index)
    intervals = [bootstrap_interval(table[name], of_tasks) for name in table]
    ranks = table.dropna().round(_DIGITS).rank(axis=1, ascending=False)
    frame = pd.DataFrame(
        {
            "tasks": table.count(),
            "mean": table.mean(),
            "low": [low for low, _ in intervals],
            "high": [high for _, high in intervals],
            "median": table.median(),
            "worst": table.min(),
            "rank": ranks.mean(),
        },
        index=table.columns,
    )
    counts = wins(table).groupby("row")[["won", "tied", "lost"]].sum()
    frame = frame.join(counts).rename_axis("classifier").reset_index()
    complete = frame["tasks"] == frame["tasks"].max()
    order = frame.assign(complete=complete).sort_values(
        ["complete", "mean"], ascending=False
    )
    return order.drop(columns="complete").reset_index(drop=True)


def wins(table: pd.DataFrame) -> pd.DataFrame:
    """Tasks won, tied and lost by each ordered pair of classifiers.

    ``mean_difference`` is that of the row minus the column.
    """
    records = []
    for row, column in permutations(table.columns, 2):
        difference = differences(table[row], table[column])
        won, tied, lost = won_tied_lost(difference)
        records.append(
            {
                "row": row,
                "column": column,
                "won": won,
                "tied": tied,
                "lost": lost,
                "mean_difference": difference.mean() if len(difference) else np.nan,
            }
        )
    columns = ("row", "column", "won", "tied", "lost", "mean_difference")
    return pd.DataFrame(records, columns=pd.Index(columns))


def differences(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Differences of pairs that have both values; those next to nothing are 0."""
    difference = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    known = difference[np.isfinite(difference)]
    return np.where(np.abs(known) < _EQUAL, 0.0, known)


def calibration_error(confidence: NDArray, right: NDArray, n_bins: int = 10) -> float:
    """Expected calibration error: confidences against the shares of right labels.

    Samples are put into ``n_bins`` bins of equal width by their confidence; the error
    is the mean over samples of ``|mean confidence - share of right labels|`` of their
    bin.
    """
    if not len(confidence):
        return float("nan")
    bins = np.minimum((np.asarray(confidence) * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, np.asarray(confidence, dtype=float), n_bins)
    gaps -= np.bincount(bins, np.asarray(right, dtype=float), n_bins)
    return float(np.abs(gaps).sum() / len(bins))


def t_test(first: ArrayLike, second: ArrayLike) -> float:
    """Two-sided p of the paired t-test.

    1 with fewer than two pairs or without any difference.
    """
    from scipy.stats import ttest_1samp

    difference = differences(first, second)
    if len(difference) < 2 or not difference.any():
        return 1.0
    if difference.std() < _EQUAL:  # always the same difference
        return 0.0
    result: Any = ttest_1samp(difference, 0.0)
    return float(result.pvalue)


def paired_tests(scores: pd.DataFrame) -> pd.DataFrame:
    """The paper's comparison within each task: a paired t-test over problems and
    splits.

    The splits of a task share their test samples, so the pairs are not independent and
    the test rejects too often. ``better`` is the share of the pairs on which the row is
    better; ``sign`` is 1 where it is better at 5 %, -1 where it is worse, else 0.
    """
    records = []
    groups: Any = scores.groupby(["group", "task"], sort=False)
    for (group, task), rows in groups:
        pairs = rows.pivot_table(
            index=["problem", "part", "split"], columns="classifier", values="test"
        )
        for row, column in permutations(ordered(pairs.columns), 2):
            difference = differences(pairs[row], pairs[column])
            pairs_known = len(difference) > 0
            mean = float(difference.mean()) if pairs_known else np.nan
            p_value = t_test(pairs[row], pairs[column])
            records.append(
                {
                    "group": group,
                    "task": task,
                    "row": row,
                    "column": column,
                    "pairs": len(difference),
                    "better": float((difference > 0).mean()) if pairs_known else np.nan,
                    "mean_difference": mean,
                    "p_value": p_value,
                    "sign": int(np.sign(mean)) if p_value < LEVEL else 0,
                }
            )
    columns = ("group", "task", "row", "column")
    measured = ("pairs", "better", "mean_difference", "p_value", "sign")
    return pd.DataFrame(records, columns=pd.Index((*columns, *measured)))


def left_out(table: pd.DataFrame) -> pd.DataFrame:
    """What a choice is worth on a tissue that had no part in it.

    The table has the columns ``pair``, ``tissue`` (at least two), ``setting`` and
    ``score``: every pair with every setting. What is returned has one row per tissue:
    the ``setting`` of the best mean over the pairs of all other tissues, of equal ones
    the first; its mean ``score`` on the tissue; the ``best`` mean of any setting there,
    which a choice made with the tissue could reach at most; and the number of pairs.
    The last row has the means over all pairs.
    """
    settings = list(dict.fromkeys(table["setting"]))
    wide: Any = table.pivot_table(
        index=["tissue", "pair"], columns="setting", values="score"
    )[settings]
    tissues = wide.index.get_level_values("tissue")
    rows = []
    for tissue in dict.fromkeys(table["tissue"]):
        own_means = wide[tissues == tissue].mean()
        other_means = wide[tissues != tissue].mean()
        chosen = other_means.round(_DIGITS).idxmax()
        rows.append(
            {
                "tissue": tissue,
                "pairs": int((tissues == tissue).sum()),
                "setting": chosen,
                "score": own_means[chosen],
                "best": own_means.max(),
            }
        )
    frame = pd.DataFrame(rows)
    weights = frame["pairs"] / frame["pairs"].sum()
    total = {
        "tissue": "all",
        "pairs": frame["pairs"].sum(),
        "setting": "",
        "score": (frame["score"] * weights).sum(),
        "best": (frame["best"] * weights).sum(),
    }
    return pd.concat([frame, pd.DataFrame([total])], ignore_index=True)
