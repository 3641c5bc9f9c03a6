"""What the classifiers cost and gain: genes, time, settings, and the second source."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import get, ordered, tuned_parameters
from optirank.benchmark.reporting.statistics import PLACE, at_place, by_pair, compare, places


def genes(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean number of genes, one row per task, scenario and classifier.

    `percent_sparsest` is the share of pairs in which a classifier of `sparse_ones` needs no more
    genes than each of the others; ties count for all of them, so shares can exceed 100 together.
    """
    frame = _by_classifier(
        scores,
        n=("n_genes", "count"),
        n_genes=("n_genes", "mean"),
        n_genes_se=("n_genes", "sem"),
        n_features=("n_features", "mean"),
    )
    shares = {place: sparsest(at_place(scores, *place)) for place in places(scores)}
    frame["percent_sparsest"] = [
        shares[row.task, row.scenario].get(row.classifier, np.nan) for row in frame.itertuples()
    ]
    return frame


def sparse_ones(names: Iterable[str]) -> list[str]:
    """Return those whose numbers of genes are compared, optirank first."""
    found = [name for name in ordered(names) if get(name).compare_genes]
    return sorted(found, key=lambda name: not name.startswith("optirank"))


def sparsest(rows: pd.DataFrame) -> dict[str, float]:
    """Return how often (%) each is among the sparsest, where all of them have models."""
    names = sparse_ones(rows["classifier"])
    table = by_pair(rows, "n_genes")[names].dropna()
    if len(names) < 2 or table.empty:
        return {}
    least = table.min(axis=1)
    return {name: 100 * float((table[name] <= least).mean()) for name in names}


def run_times(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the CPU time of one fit, and of all grids of a task."""
    return _by_classifier(
        scores,
        n=("fit_seconds", "count"),
        fit_seconds=("fit_seconds", "mean"),
        fit_seconds_se=("fit_seconds", "sem"),
        n_settings=("n_settings", "max"),
        unit_seconds=("unit_seconds", "mean"),
        grid_seconds=("unit_seconds", "sum"),
    )


def _by_classifier(scores: pd.DataFrame, **columns: tuple[str, str]) -> pd.DataFrame:
    """Return one row per task, scenario and classifier, in the order of the tables."""
    found = scores.groupby([*PLACE, "classifier"], sort=False).agg(**columns).reset_index()
    rank = {name: k for k, name in enumerate(ordered(found["classifier"]))}
    place = {one: k for k, one in enumerate(places(scores))}
    found["_order"] = [
        (place[row.task, row.scenario], rank[row.classifier]) for row in found.itertuples()
    ]
    return found.sort_values("_order", ignore_index=True).drop(columns="_order")


def multi_minus_single(scores: pd.DataFrame) -> pd.DataFrame:
    """Return what the second source adds, where a task and classifier have both scenarios."""
    records = []
    for task in scores["task"].drop_duplicates():
        single, multi = (by_pair(at_place(scores, task, name)) for name in ("single", "multi"))
        for name in ordered(set(single.columns) & set(multi.columns)):
            both = pd.concat({"multi": multi[name], "single": single[name]}, axis=1).dropna()
            found = compare(both["multi"], both["single"])
            records.append(
                {
                    "task": task,
                    "classifier": name,
                    "single": single[name].mean(),
                    "multi": multi[name].mean(),
                    "pairs": found.n,
                    "difference": found.mean,
                    "se": found.se,
                    "percent_better": 100 * found.better / found.n if found.n else np.nan,
                    "p_value": found.p_value,
                    "sign": found.sign,
                }
            )
    columns = "task classifier single multi pairs difference se percent_better p_value sign"
    return pd.DataFrame(records, columns=columns.split())


def chosen_settings(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the setting chosen for each binary problem and test part, with mean scores there."""
    keys = [*PLACE, "positive", "part", "classifier"]
    groups = scores.groupby(keys, sort=False)
    frame = groups.agg(
        **{name: (name, "first") for name in tuned_parameters()},
        n_settings=("n_settings", "max"),
        folds=("split", "nunique"),
        validation=("validation", "mean"),
        test=("test", "mean"),
        n_genes=("n_genes", "mean"),
    )
    return frame.reset_index()
