"""Statistics of a benchmark: means, ranks, paired tests, and tests over whole tasks.

Two units of observation occur. Within a task it is the *pair*: one binary problem, one test part
and one fold, at which two classifiers are compared. Over tasks it is the task, by its mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from optirank.benchmark.classifiers import ordered

LEVEL = 0.05
SCENARIOS = ("", "single", "multi")
PLACE = ["task", "scenario"]
PAIR = ["positive", "part", "split"]
_EQUAL = 1e-12  # closer than this, two scores are the same


@dataclass(frozen=True)
class Comparison:
    """Two classifiers over the same pairs; `better` counts pairs in which the first is ahead."""

    n: int
    mean: float
    se: float
    better: int
    worse: int
    p_value: float

    @property
    def ties(self) -> int:
        """Pairs with equal scores."""
        return self.n - self.better - self.worse

    @property
    def significant(self) -> bool:
        """Whether the t-test rejects equality at the level of 5 %."""
        return bool(self.p_value < LEVEL)

    @property
    def sign(self) -> int:
        """1 where the first is significantly better, -1 where it is worse, else 0."""
        return int(np.sign(self.mean)) if self.significant else 0


def compare(first: ArrayLike, second: ArrayLike) -> Comparison:
    """Return the paired comparison, with a two-sided t-test.

    Pairs with a missing value are left out; fewer than two pairs, or no difference at all, leave p
    at 1.
    """
    differences = _differences(first, second)
    n = len(differences)
    mean = float(differences.mean()) if n else np.nan
    se = float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    return Comparison(n, mean, se, better, worse, _t_test(differences))


def _differences(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    differences = differences[np.isfinite(differences)]
    return np.where(np.abs(differences) < _EQUAL, 0.0, differences)


def _t_test(differences: NDArray[np.float64]) -> float:
    from scipy.stats import ttest_1samp

    if len(differences) < 2 or not differences.any():
        return 1.0
    if differences.std() < _EQUAL:  # always the same difference
        return 0.0
    return float(ttest_1samp(differences, 0.0).pvalue)


def sign_test(differences: ArrayLike) -> float:
    """Return the two-sided p of the exact sign test; zeros are left out."""
    from scipy.stats import binomtest

    differences = _differences(differences, 0.0)
    n, positive = int((differences != 0).sum()), int((differences > 0).sum())
    return float(binomtest(positive, n).pvalue) if n else 1.0


def signed_rank_test(differences: ArrayLike) -> float:
    """Return the two-sided p of Wilcoxon's signed-rank test, exact with ties, without zeros."""
    from scipy.stats import rankdata

    differences = _differences(differences, 0.0)
    differences = differences[differences != 0]
    if not len(differences):
        return 1.0
    ranks = np.rint(2 * rankdata(np.round(np.abs(differences), 12))).astype(int)  # twice: whole
    chance = np.ones(1)  # of each sum of the positive ranks, signs being coin flips
    for rank in ranks:
        longer = np.zeros(len(chance) + rank)
        longer[: len(chance)] += chance / 2
        longer[rank:] += chance / 2
        chance = longer
    observed = int(ranks[differences > 0].sum())
    tail = min(chance[: observed + 1].sum(), chance[observed:].sum())
    return float(min(1.0, 2 * tail))


def places(scores: pd.DataFrame) -> list[tuple[str, str]]:
    """Return every (task, scenario) with scores, in the order of the rows."""
    return list(scores[PLACE].drop_duplicates().itertuples(index=False, name=None))


def at_place(scores: pd.DataFrame, task: str, scenario: str) -> pd.DataFrame:
    """Return the rows of one task in one scenario."""
    return scores[(scores["task"] == task) & (scores["scenario"] == scenario)]


def by_pair(rows: pd.DataFrame, column: str = "test") -> pd.DataFrame:
    """Return one row per pair and one column per classifier, for one task in one scenario."""
    table = rows.pivot_table(index=PAIR, columns="classifier", values=column, aggfunc="mean")
    return table.reindex(columns=ordered(rows["classifier"]))


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """Return means, standard errors and ranks, one row per task, scenario and classifier.

    `bold` marks what is not significantly worse than the best, whose `p_best` is missing;
    `complete` is False where other classifiers have more pairs; ranks are by the pairs that all
    of them have.
    """
    frames = [_summary_of(at_place(scores, *place), place) for place in places(scores)]
    columns = [*PLACE, "classifier", "n", "mean", "se", "rank", "p_best", "bold", "complete"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def _summary_of(rows: pd.DataFrame, place: tuple[str, str]) -> pd.DataFrame:
    pairs = by_pair(rows)
    frame = pd.DataFrame(
        {
            "task": place[0],
            "scenario": place[1],
            "classifier": pairs.columns,
            "n": pairs.count().to_numpy(),
            "mean": pairs.mean().to_numpy(),
            "se": pairs.sem().to_numpy(),
        }
    )
    common = pairs.dropna()  # ranks compare like with like; all pairs where none is common
    compared = (common if len(common) else pairs).mean().to_numpy()
    frame["rank"] = pd.Series(compared.round(12)).rank(ascending=False, method="min")
    best = frame.sort_values("rank", kind="stable")["classifier"].iloc[0]
    against = [
        np.nan if rank == 1 else compare(pairs[best], pairs[name]).p_value
        for name, rank in zip(frame["classifier"], frame["rank"], strict=True)
    ]
    frame["p_best"] = against
    alone = len(frame) == 1
    frame["bold"] = False if alone else ~(frame["p_best"] < LEVEL) & frame["mean"].notna()
    frame["complete"] = frame["n"] == len(pairs)
    return frame


def pairwise(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the comparison of each ordered pair of classifiers in each task and scenario.

    `percent_better` counts pairs in which the row is strictly ahead; ties count for neither.
    """
    records = []
    for place in places(scores):
        pairs = by_pair(at_place(scores, *place))
        for row, column in permutations(pairs.columns, 2):
            found = compare(pairs[row], pairs[column])
            records.append(
                {
                    "task": place[0],
                    "scenario": place[1],
                    "row": row,
                    "column": column,
                    "pairs": found.n,
                    "better": found.better,
                    "worse": found.worse,
                    "ties": found.ties,
                    "percent_better": _percent(found.better, found.n),
                    "percent_worse": _percent(found.worse, found.n),
                    "percent_ties": _percent(found.ties, found.n),
                    "mean_difference": found.mean,
                    "se_difference": found.se,
                    "p_value": found.p_value,
                    "sign": found.sign,
                }
            )
    columns = (
        "task scenario row column pairs better worse ties percent_better percent_worse percent_ties"
        " mean_difference se_difference p_value sign"
    )
    return pd.DataFrame(records, columns=columns.split())


def over_tasks(summaries: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return each ordered pair of classifiers compared over whole tasks, scenario by scenario.

    A task counts once, with its two means; `significant_*` count tasks by the t-test within them.
    """
    records = []
    for scenario in SCENARIOS:
        means = summaries[summaries["scenario"] == scenario].pivot_table(
            index="task", columns="classifier", values="mean", sort=False
        )
        signs = pairs[pairs["scenario"] == scenario]
        for row, column in permutations(ordered(set(means.columns)), 2):
            differences = _differences(means[row], means[column])
            if not len(differences):
                continue
            here = signs[(signs["row"] == row) & (signs["column"] == column)]["sign"]
            records.append(
                {
                    "scenario": scenario,
                    "row": row,
                    "column": column,
                    **sign_and_size(differences),
                    "significant_wins": int((here > 0).sum()),
                    "significant_losses": int((here < 0).sum()),
                    "p_sign": sign_test(differences),
                    "p_wilcoxon": signed_rank_test(differences),
                }
            )
    columns = (
        "scenario row column tasks wins losses ties significant_wins significant_losses"
        " mean_difference p_sign p_wilcoxon"
    )
    return pd.DataFrame(records, columns=columns.split())


def sign_and_size(differences: ArrayLike) -> dict[str, float]:
    """Return how many tasks the first wins, loses and ties, and the mean difference."""
    differences = np.asarray(differences, dtype=float)
    return {
        "tasks": len(differences),
        "wins": int((differences > 0).sum()),
        "losses": int((differences < 0).sum()),
        "ties": int((differences == 0).sum()),
        "mean_difference": float(differences.mean()),
    }


def standings(summaries: pd.DataFrame) -> pd.DataFrame:
    """Return mean rank and mean score of each classifier, over the tasks that all of them have."""
    frames = []
    for scenario in SCENARIOS:
        here = summaries[summaries["scenario"] == scenario]
        everyone = here["classifier"].nunique()
        counts = here.groupby("task")["classifier"].nunique()
        here = here[here["task"].isin(counts.index[counts == everyone])]
        if here.empty:
            continue
        groups = here.groupby("classifier")
        frame = groups.agg(
            tasks=("task", "nunique"),
            mean_rank=("rank", "mean"),
            mean=("mean", "mean"),
            first=("rank", lambda ranks: int((ranks == 1).sum())),
            in_bold=("bold", "sum"),
        ).reindex(ordered(here["classifier"]))
        frames.append(frame.reset_index().assign(scenario=scenario))
    columns = ["scenario", "classifier", "tasks", "mean_rank", "mean", "first", "in_bold"]
    return (
        pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
    )


def _percent(count: int, n: int) -> float:
    return 100 * count / n if n else np.nan
