"""The tables of the pages, each computed from the CSV files of results/; `TABLES` names them all.

A page marks a table by a comment line directly above it, such as ``<!-- results: curve -->``;
``fill_tables.py`` writes the table there. Accuracies are balanced, in %. Intervals are 95 %, by
drawing tissues, since pairs of one tissue are not independent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from optirank_lab.benchmark.statistics import bootstrap_interval

RESULTS = Path(__file__).resolve().parent.parent / "results"
DEFAULTS = (2.0, 0.1)  # strength of simulated platforms and last l2 of the panel model
PLATFORM_PAIRS = (  # the benchmark's tasks of single cells between platforms, one source
    ("baron_h1", "segerstolpe_1000g"),
    ("baron_h1", "xin_980g"),
    ("segerstolpe_1000g", "baron_h1"),
    ("tm_10x_immune", "zilionis_mouse_immune"),
    ("zilionis_mouse_immune", "tm_10x_immune"),
)
TIE = 1e-9  # accuracies that differ by less are the same
TABLES: dict[str, Callable[[], pd.DataFrame]] = {}


def table(function: Callable[[], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
    """Enter a function into `TABLES` under its name; its values are text."""
    TABLES[function.__name__] = function
    return function


def read(name: str) -> pd.DataFrame:
    """The table of a CSV of results/."""
    return pd.read_csv(RESULTS / f"{name}.csv", comment="#", dtype={"k": str})


def by_pairs(found: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean over pairs, and over tissues (of their means) with its interval."""
    rows = []
    for key, part in found.groupby(keys, sort=False):
        tissues = part.groupby("tissue")["balanced_accuracy"].mean()
        low, high = bootstrap_interval(tissues, tissues.index)
        rows.append(
            dict(zip(keys, key, strict=True))
            | {
                "pairs": part["pair"].nunique(),
                "over pairs": part["balanced_accuracy"].mean(),
            }
            | {"over tissues": tissues.mean(), "low": low, "high": high}
        )
    return pd.DataFrame(rows)


def against(one: pd.Series, other: pd.Series) -> str:
    """Pairs won, tied and lost."""
    gap = (one - other).dropna()
    return f"{(gap > TIE).sum()} / {(gap.abs() <= TIE).sum()} / {(gap < -TIE).sum()}"


@table
def curve() -> pd.DataFrame:
    """Mean over pairs by method and number of genes."""
    found = read("curve")
    sizes = sorted(found["k"].unique(), key=lambda k: (k == "all", k.rjust(9)))
    wide = found.pivot_table(index="method", columns="k", values="balanced_accuracy")
    order = wide.mean(axis=1).sort_values(ascending=False).index
    order = ["panel", *(name for name in order if name != "panel")]
    return _text(wide.loc[order, sizes].map(percent), "genes")


@table
def peers_at_100() -> pd.DataFrame:
    """The panel of 100 genes against every other method, at 100 genes and with all."""
    found = read("curve")
    wide = found.pivot_table(
        index="pair", columns=["method", "k"], values="balanced_accuracy"
    )
    tissues = (
        found.drop_duplicates("pair").set_index("pair")["tissue"].reindex(wide.index)
    )
    ours, rows = wide["panel", "100"], []
    for method, k in wide:
        if k in ("100", "all"):
            one = wide[method, k]
            rows.append(
                {
                    "method": method,
                    "genes": k,
                    "mean": one.mean(),
                    "interval": interval(*bootstrap_interval(one, tissues)),
                    "median": percent(one.median()),
                    "lowest": percent(one.min()),
                    "panel won / tied / lost": "–"
                    if method == "panel"
                    else against(ours, one),
                }
            )
    rows.sort(key=lambda row: -row["mean"])
    return pd.DataFrame([row | {"mean": percent(row["mean"])} for row in rows])


@table
def panel_pairs() -> pd.DataFrame:
    """The panel model through `train`, by number of genes, beside the recipe."""
    found = read("panel_pairs")
    wide = found.pivot_table(
        index="pair", columns=["model", "genes", "adapted"], values="balanced_accuracy"
    )
    rows = []
    means = by_pairs(found, ["genes", "adapted", "model"]).set_index(
        ["genes", "adapted", "model"]
    )
    for adapted in (False, True):
        for size in sorted(found["genes"].unique()):
            ours, other = (
                means.loc[size, adapted, name] for name in ("optirank", "scikit-learn")
            )
            one, two = (
                wide[name, size, adapted] for name in ("optirank", "scikit-learn")
            )
            rows.append(
                {
                    "genes": str(size),
                    "query": "adapted" if adapted else "as it is",
                    "panel, over pairs": percent(ours["over pairs"]),
                    "over tissues": percent(ours["over tissues"]),
                    "interval": interval(ours["low"], ours["high"]),
                    "recipe, over pairs": percent(other["over pairs"]),
                    "over tissues ": percent(other["over tissues"]),
                    "won / tied / lost": against(one, two),
                }
            )
    return pd.DataFrame(rows)


@table
def adaptation() -> pd.DataFrame:
    """Plain and adapted accuracy by the composition of the query."""
    rows = []
    for query, part in read("adaptation").groupby("query", sort=False):
        tissues = part.groupby("tissue")[["plain", "adapted"]].mean().mean()
        rows.append(
            {
                "query": query,
                "pairs": str(len(part)),
                "plain": percent(part["plain"].mean()),
                "adapted": percent(part["adapted"].mean()),
                "better / same / worse": against(part["adapted"], part["plain"]),
                "plain, over tissues": percent(tissues["plain"]),
                "adapted, over tissues": percent(tissues["adapted"]),
            }
        )
    return pd.DataFrame(rows)


@table
def error_control() -> pd.DataFrame:
    """For each error asked for: pairs on which it was kept, labels given, pairs without labels."""
    rows = []
    for target, part in read("error_control").groupby("target"):
        some = part[part["n_given"] > 0]
        error = some["n_wrong"] / some["n_given"]
        rows.append(
            {
                "asked for": percent(target, 0) + " %",
                "pairs without labels": f"{len(part) - len(some)} of {len(part)}",
                "error at most that, of pairs with labels": f"{(error <= target).sum()} "
                f"of {len(some)}",
                "classes counted equally": f"{(some['error_classes_equal'] <= target).sum()} "
                f"of {len(some)}",
                "labels given there": percent(
                    (some["n_given"] / some["n_query"]).mean()
                ),
                "median error": percent(error.median()),
                "mean error": percent(error.mean()),
                "mean error without control": percent(
                    (some["n_wrong_of_all"] / some["n_query"]).mean()
                ),
            }
        )
    return pd.DataFrame(rows)


@table
def unknown() -> pd.DataFrame:
    """Classes left out of training: how they are told from the others."""
    found = read("unknown")
    kinds = {"all": found, **dict(iter(found.groupby("tissue")))}
    return pd.DataFrame(
        {
            "tissue": name,
            "classes left out": str(len(part)),
            "AUC, correlation": f"{part['auc_correlation'].mean():.3f}",
            "AUC, largest probability": f"{part['auc_probability'].mean():.3f}",
            "unknown found": percent(part["unknown_found"].mean()),
            "known lost": percent(part["known_lost"].mean()),
        }
        for name, part in kinds.items()
    )


@table
def missing() -> pd.DataFrame:
    """Accuracy with genes missing from the query."""
    found = read("missing")
    wide = found.pivot_table(
        index="genes", columns="missing", values="balanced_accuracy"
    )
    wide.columns = [f"{percent(share, 0)} % missing" for share in wide.columns]
    return _text(wide.map(percent), "genes of the panel")


@table
def small() -> pd.DataFrame:
    """Tasks with few training samples: mean over seeds, and its standard deviation."""
    found = read("small")
    keys = ["task", "method", "seed"]
    wide, mean = _with_spread(
        found.groupby(keys)["balanced_accuracy"].mean().reset_index(), *keys[:2]
    )
    order = found["task"].unique()
    wide, mean = (one.loc[order, found["method"].unique()] for one in (wide, mean))
    wide.insert(
        0,
        "training samples",
        found.groupby("task")["n_train"].median().map("{:.0f}".format),
    )
    wide.loc["mean"] = ["", *mean.mean().map(percent)]
    return _text(wide, "task")


@table
def synthetic() -> pd.DataFrame:
    """The synthetic data with and without the shift."""
    found = read("synthetic")
    wide, mean = _with_spread(found, "method", "tau")
    wide.columns = [f"tau = {tau:g}" for tau in wide.columns]
    wide["lost to the shift"] = (mean[0.0] - mean[0.2]).map(percent)
    return _text(wide.loc[found["method"].unique()], "method")


@table
def tissues() -> pd.DataFrame:
    """The constants of the panel model, chosen without the tissue."""
    found = chosen_without(read("tissues"))
    numbers = ["chosen without it", "defaults", "best in hindsight"]
    found[numbers] = found[numbers].map(percent)
    setting = (
        found["strength"].map("{:g}".format) + ", " + found["l2"].map("{:g}".format)
    )
    found.insert(1, "strength, l2", setting.where(found["strength"].notna(), ""))
    return found.drop(columns=["strength", "l2"])


def chosen_without(found: pd.DataFrame) -> pd.DataFrame:
    """Per tissue: the setting that is best over the other tissues, and how it does on this one."""
    wide = found.pivot_table(
        index="tissue", columns=["strength", "l2"], values="balanced_accuracy"
    )
    rows = []
    for tissue in wide.index:
        best = wide.drop(index=tissue).mean().idxmax()
        rows.append(
            {
                "tissue": tissue,
                "strength": best[0],
                "l2": best[1],
                "chosen without it": wide.loc[tissue, best],
                "defaults": wide.loc[tissue, DEFAULTS],
                "best in hindsight": wide.loc[tissue].max(),
            }
        )
    found = pd.DataFrame(rows)
    means = found[["chosen without it", "defaults", "best in hindsight"]].mean()
    return pd.concat([found, pd.DataFrame([{"tissue": "mean"} | means.to_dict()])])


@table
def settings() -> pd.DataFrame:
    """Every setting of the constants: mean over tissues."""
    found = (
        read("tissues")
        .groupby(["strength", "l2", "tissue"])["balanced_accuracy"]
        .mean()
    )
    wide = found.groupby(level=[0, 1]).mean().unstack()
    wide.columns = [f"last l2 {l2:g}" for l2 in wide.columns]
    wide.index = [f"{strength:g}" for strength in wide.index]
    return _text(wide.map(percent), "strength of simulated platforms")


@table
def log_values() -> pd.DataFrame:
    """Logistic regression on log values by scale and penalty; the panel of the curve beside it."""
    found, panel = read("log_values"), read("curve")
    panel = panel[(panel["method"] == "panel") & (panel["k"] == "100")]
    platforms = [f"{one} to {other}" for one, other in PLATFORM_PAIRS]
    groups = {
        "single cells, platforms of the benchmark": found["pair"].isin(platforms),
        "single cells": found["kind"] == "single cells",
        "bulk": found["kind"] == "bulk",
    }
    rows = []
    for name, which in groups.items():
        part = found[which]
        mean = part.groupby(["scale", "penalty"])["balanced_accuracy"].mean()
        here = panel["pair"].isin(part["pair"])
        rows.append(
            {
                "pairs": f"{name} ({part['pair'].nunique()})",
                "each set by itself, C = 1": percent(
                    mean["each set by itself", "C = 1"]
                ),
                "penalty 0.1": percent(mean["each set by itself", "0.1"]),
                "as the training set, C = 1": percent(
                    mean["that of the training set", "C = 1"]
                ),
                "penalty 0.1 ": percent(mean["that of the training set", "0.1"]),
                "panel of 100": percent(panel.loc[here, "balanced_accuracy"].mean()),
            }
        )
    return pd.DataFrame(rows)


def _with_spread(
    found: pd.DataFrame, index: str, columns: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean ± standard deviation as text, and the means alone."""
    mean, spread = (
        found.pivot_table(
            index=index, columns=columns, values="balanced_accuracy", aggfunc=how
        )
        for how in ("mean", "std")
    )
    return mean.map(percent) + " ± " + spread.map(percent), mean


@table
def sources() -> pd.DataFrame:
    """Several sources in one training, by what is added to the samples of a source."""
    found = read("sources")
    groups = found.groupby("added", sort=False)
    columns = {
        "left out": groups["left_out"].mean(),
        "joint": groups["joint"].mean(),
        "joint, lowest": groups["joint"].min(),
    }
    return _text(pd.DataFrame(columns).map(percent), "added")


@table
def models() -> pd.DataFrame:
    """Each shipped model on every data set that the labelling model had not seen."""
    return _models("yes")


@table
def dropped_models() -> pd.DataFrame:
    """The same for candidates that are not shipped."""
    return _models("no")


def _models(shipped: str) -> pd.DataFrame:
    found = read("models")
    rows = []
    for (model, name, trained), part in found[found["n"] > 0].groupby(
        ["model", "set", "in_training"], sort=False
    ):
        if (part["shipped"] == shipped).all():
            row = {"model": model, "data set": name, "in training": trained}
            row |= {"classes": str(len(part)), "samples": str(part["n"].sum())}
            rows.append(row | {"accuracy": percent((part["right"] / part["n"]).mean())})
    return pd.DataFrame(rows)


def percent(share: float, digits: int = 1) -> str:
    """A share in %, an en dash where there is none."""
    return "–" if pd.isna(share) else f"{100 * share:.{digits}f}"


def interval(low: float, high: float) -> str:
    """An interval of shares in %."""
    return f"{percent(low)} to {percent(high)}"


def _text(wide: pd.DataFrame, name: str) -> pd.DataFrame:
    """The index as a first column of that name."""
    found = wide.rename_axis(index=name, columns=None).reset_index()
    return found.astype({name: str})
