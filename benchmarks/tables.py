"""The tables of the pages, each computed from the CSV files of results/; `TABLES` names them all.

A page marks a table by a comment line directly above it, such as ``<!-- results: curve -->``;
``fill_tables.py`` writes the table there. Accuracies are balanced, in %. Intervals are 95 %, by
drawing tissues, since pairs of one tissue are not independent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from optirank._util.metrics import in_percent as percent
from optirank_lab.benchmark.report import interval
from optirank_lab.benchmark.rivals import ALL, METHODS, PANEL, TOOLS
from optirank_lab.benchmark.statistics import (
    PairedComparison,
    bootstrap_interval,
    compare,
    over_tissues,
)
from optirank_lab.benchmark.tasks import SAME_PLATFORM

RESULTS = Path(__file__).resolve().parent.parent / "results"
DEFAULTS = (2.0, 0.1)  # strength of simulated platforms and last l2 of the panel model
PLATFORM_PAIRS = (  # the benchmark's tasks of single cells between platforms, one source
    ("baron_h1", "segerstolpe_1000g"),
    ("baron_h1", "xin_980g"),
    ("segerstolpe_1000g", "baron_h1"),
    ("tm_10x_immune", "zilionis_mouse_immune"),
    ("zilionis_mouse_immune", "tm_10x_immune"),
)
LARGE_CALIBRATION_ERROR = 0.1  # a confidence of 0.9 that is right 8 times of 10
TIE = 1e-9  # accuracies that differ by less are the same
TABLES: dict[str, Callable[[], pd.DataFrame]] = {}


def table(function: Callable[[], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
    """Enter a function into `TABLES` under its name; its values are text."""
    TABLES[function.__name__] = function
    return function


def read(name: str) -> pd.DataFrame:
    """The table of a CSV of results/."""
    return pd.read_csv(RESULTS / f"{name}.csv", comment="#", dtype={"k": str})


def across_platforms(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of pairs of two platforms."""
    return rows[rows["shift"] != SAME_PLATFORM]


def by_pairs(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean over pairs, and over tissues (of their means) with its interval."""
    records = []
    for key, part in rows.groupby(keys, sort=False):
        tissues = part.groupby("tissue")["balanced_accuracy"].mean()
        low, high = bootstrap_interval(tissues, tissues.index)
        records.append(
            dict(zip(keys, key, strict=True))
            | {
                "pairs": part["pair"].nunique(),
                "over pairs": part["balanced_accuracy"].mean(),
                "over tissues": tissues.mean(),
                "low": low,
                "high": high,
            }
        )
    return pd.DataFrame(records)


def against(first: pd.Series, second: pd.Series) -> str:
    """Pairs won, tied and lost."""
    gap = (first - second).dropna()
    return f"{(gap > TIE).sum()} / {(gap.abs() <= TIE).sum()} / {(gap < -TIE).sum()}"


def counts(won_tied_lost: tuple[int, int, int]) -> str:
    """Won, tied and lost as text."""
    return " / ".join(map(str, won_tied_lost))


def difference(comparison: PairedComparison) -> str:
    """A mean difference in points with its sign and interval."""
    mean = f"{100 * comparison.mean:+.1f}"
    if pd.isna(comparison.low):
        return mean
    return f"{mean} ({100 * comparison.low:+.1f} to {100 * comparison.high:+.1f})"


def p_value(p: float) -> str:
    """A p value with two digits."""
    return f"{p:.2g}" if p >= 0.001 else "< 0.001"


def tissues_of(rows: pd.DataFrame) -> pd.Series:
    """The tissue of each pair."""
    return rows.drop_duplicates("pair").set_index("pair")["tissue"]


def mean_over_tissues(rows: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Mean over tissues of each group; pairs of one tissue are averaged first."""
    by_tissue = rows.groupby([*keys, "tissue"], sort=False)["balanced_accuracy"].mean()
    return by_tissue.groupby(level=keys, sort=False).mean()


@table
def curve() -> pd.DataFrame:
    """Mean over tissues by method and number of genes, pairs across platforms."""
    rows = across_platforms(read("curve"))
    sizes = sorted(rows["k"].unique(), key=lambda k: (k == ALL, k.rjust(9)))
    wide = mean_over_tissues(rows, ["method", "k"]).unstack()
    order = [name for name in (*METHODS, *TOOLS) if name in wide.index]
    return _text(wide.loc[order, sizes].map(percent), "genes")


@table
def rivals() -> pd.DataFrame:
    """The panel of 100 genes against every other method, at 100 genes and with all."""
    return rivals_of(across_platforms(read("curve")))


def rivals_of(rows: pd.DataFrame, tissue: str = "tissues") -> pd.DataFrame:
    """The panel of 100 genes minus each method: paired differences over tissues."""
    wide = rows.pivot_table(
        index="pair", columns=["method", "k"], values="balanced_accuracy"
    )
    tissues = tissues_of(rows)
    genes = rows.groupby(["method", "k"])["n_genes"].median()
    ours = wide[PANEL, "100"]
    shown = [key for key in wide if key[1] in ("100", ALL) or key == (PANEL, "30")]
    records = []
    for key in shown:
        scores = wide[key]
        comparison = compare(ours, scores, tissues)
        same = key == (PANEL, "100")
        records.append(
            {
                "method": key[0],
                "genes (median)": f"{genes[key]:.0f}",
                "pairs": str(scores.count()),
                f"mean over {tissue}": over_tissues(scores, tissues).mean(),
                "median of pairs": percent(scores.median()),
                "lowest": percent(scores.min()),
                f"panel of 100 minus it, over {tissue}": "–"
                if same
                else difference(comparison),
                f"{tissue} won / tied / lost": "–"
                if same
                else counts(comparison.tissues),
                "p (sign test)": "–" if same else p_value(comparison.sign_p),
                "pairs won / tied / lost": "–" if same else counts(comparison.tasks),
            }
        )
    mean = f"mean over {tissue}"
    records.sort(key=lambda record: -record[mean])
    return pd.DataFrame([record | {mean: percent(record[mean])} for record in records])


@table
def same_platform() -> pd.DataFrame:
    """Pairs within one platform, apart from the others: 30 and 100 genes, and all."""
    rows = read("curve")
    rows = rows[rows["shift"] == SAME_PLATFORM]
    shown = rows["k"].isin(["30", "100", ALL])
    wide = rows[shown].pivot_table(
        index=["method", "k"], columns="pair", values="balanced_accuracy"
    )
    order = [
        (name, k)
        for name in (*METHODS, *TOOLS)
        for k in ("30", "100", ALL)
        if (name, k) in wide.index
    ]
    text = wide.loc[order].map(percent)
    text.index = [f"{name}, {k} genes" for name, k in order]
    return _text(text, "method")


@table
def seeds() -> pd.DataFrame:
    """Mean over tissues: its mean and range over the seeds."""
    means = mean_over_tissues(read("seeds"), ["method", "seed"])
    groups = means.groupby(level="method", sort=False)
    frame = pd.DataFrame(
        {
            "seeds": groups.count().astype(str),
            "mean": groups.mean().map(percent),
            "lowest": groups.min().map(percent),
            "highest": groups.max().map(percent),
        }
    )
    return _text(frame, "method")


@table
def calibration() -> pd.DataFrame:
    """Expected calibration error of the panel of 100 on the query, over pairs."""
    rows = read("calibration")
    groups = {
        "across platforms": across_platforms(rows),
        "one platform": rows[rows["shift"] == SAME_PLATFORM],
    }
    records = []
    for name, part in groups.items():
        if part.empty:
            continue
        worst = part.loc[part["calibration_error"].idxmax()]
        large = (part["calibration_error"] > LARGE_CALIBRATION_ERROR).sum()
        above = (part["confidence"] > part["accuracy"]).sum()
        records.append(
            {
                "pairs": f"{name} ({len(part)})",
                "mean error": f"{part['calibration_error'].mean():.3f}",
                "over tissues": f"{_tissue_mean(part, 'calibration_error'):.3f}",
                "median": f"{part['calibration_error'].median():.3f}",
                f"above {LARGE_CALIBRATION_ERROR:g}": f"{large} of {len(part)}",
                "worst": f"{worst['calibration_error']:.3f} ({worst['pair']})",
                "too sure": f"{above} of {len(part)}",
            }
        )
    return pd.DataFrame(records)


def _tissue_mean(rows: pd.DataFrame, column: str) -> float:
    return rows.groupby("tissue")[column].mean().mean()


@table
def ablation() -> pd.DataFrame:
    """Each part of the panel model changed alone: difference to the model as it is."""
    rows = across_platforms(read("ablation"))
    tissues = tissues_of(rows)
    records = []
    for (size, missing), part in rows.groupby(["genes", "missing"]):
        wide = part.pivot_table(
            index="pair", columns="variant", values="balanced_accuracy", sort=False
        )
        whole = wide[wide.columns[0]]
        for variant in wide:
            comparison = compare(wide[variant], whole, tissues)
            same = variant == wide.columns[0]
            records.append(
                {
                    "genes": str(size),
                    "missing": f"{percent(missing, 0)} %",
                    "variant": variant,
                    "mean over tissues": percent(
                        over_tissues(wide[variant], tissues).mean()
                    ),
                    "minus the first": "–" if same else difference(comparison),
                    "tissues better / same / worse": "–"
                    if same
                    else counts(comparison.tissues),
                }
            )
    return pd.DataFrame(records)


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
    """For each error asked for: pairs on which it was kept, with and without the control."""
    return error_control_of(read("error_control"))


def error_control_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Kept on how many pairs, those that could not be served, the worst pair, labels given."""
    records = []
    for target, part in rows.groupby("target"):
        given = part[part["n_given"] > 0]
        error = given["n_wrong"] / given["n_given"]
        without = part["n_wrong_of_all"] / part["n_query"]
        worst = "–"
        if len(given):
            place = error.idxmax()
            worst = f"{percent(error[place])} ({given.loc[place, 'pair']})"
        records.append(
            {
                "asked for": percent(target, 0) + " %",
                "kept": f"{(error <= target).sum()} of {len(given)}",
                "classes counted equally": (
                    f"{(given['error_classes_equal'] <= target).sum()} of {len(given)}"
                ),
                "not served": f"{len(part) - len(given)} of {len(part)}",
                "labels given": percent((given["n_given"] / given["n_query"]).mean()),
                "mean error": percent(error.mean()),
                "worst": worst,
                "without control, kept": f"{(without <= target).sum()} of {len(part)}",
                "mean error ": percent(without.mean()),
                "of the pairs served": percent(without[given.index].mean()),
            }
        )
    return pd.DataFrame(records)


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


def _text(wide: pd.DataFrame, name: str) -> pd.DataFrame:
    """The index as a first column of that name."""
    found = wide.rename_axis(index=name, columns=None).reset_index()
    return found.astype({name: str})
