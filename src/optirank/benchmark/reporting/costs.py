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
    frames = []
    for place in places(scores):
        rows = at_place(scores, *place)
        frame = _means(rows, place, "n_genes").rename(
            columns={"mean": "n_genes", "se": "n_genes_se"}
        )
        offered = rows.groupby("classifier")["n_features"].mean()
        frame["n_features"] = frame["classifier"].map(offered)
        frame["percent_sparsest"] = frame["classifier"].map(sparsest(rows))
        frames.append(frame)
    columns = [*PLACE, "classifier", "n", "n_genes", "n_genes_se", "n_features", "percent_sparsest"]
    return _joined(frames, columns)


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
    frames = []
    for place in places(scores):
        rows = at_place(scores, *place)
        names = {"mean": "fit_seconds", "se": "fit_seconds_se"}
        frame = _means(rows, place, "fit_seconds").rename(columns=names)
        groups = rows.groupby("classifier")
        frame["n_settings"] = frame["classifier"].map(groups["n_settings"].max())
        frame["unit_seconds"] = frame["classifier"].map(groups["unit_seconds"].mean())
        frame["grid_seconds"] = frame["classifier"].map(groups["unit_seconds"].sum())
        frames.append(frame)
    columns = [*PLACE, "classifier", "n", "fit_seconds", "fit_seconds_se"]
    return _joined(frames, [*columns, "n_settings", "unit_seconds", "grid_seconds"])


def _means(rows: pd.DataFrame, place: tuple[str, str], column: str) -> pd.DataFrame:
    table = by_pair(rows, column).reindex(columns=ordered(rows["classifier"]))
    return pd.DataFrame(
        {
            "task": place[0],
            "scenario": place[1],
            "classifier": table.columns,
            "n": table.count().to_numpy(),
            "mean": table.mean().to_numpy(),
            "se": table.sem().to_numpy(),
        }
    )


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


def _joined(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    return (
        pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)
    )
