"""Tables of the model in use: confidence, error control, adapting, unknown types,
missing genes.
"""

from __future__ import annotations

import pandas as pd
from tables import (
    across_platforms,
    against,
    as_text,
    number,
    percent,
    read,
    table,
    tissue_mean,
    with_spread,
)

from optirank_lab.benchmark.tasks import SAME_PLATFORM

LARGE_CALIBRATION_ERROR = 0.1  # a confidence of 0.9 that is right 8 times of 10
FEW = 100  # samples of a query


@table
def calibration() -> pd.DataFrame:
    """Expected calibration error of the panel of 100 on the query, over pairs."""
    return calibration_of(read("calibration"))


def calibration_of(rows: pd.DataFrame, tissue: str = "tissues") -> pd.DataFrame:
    """Calibration by platforms and adaptation: mean, median, worst, too sure."""
    records = []
    for adapted, of_kind in rows.groupby("adapted"):
        groups = {
            "across platforms": across_platforms(of_kind),
            "one platform": of_kind[of_kind["shift"] == SAME_PLATFORM],
        }
        for name, part in groups.items():
            if part.empty:
                continue
            error = part["calibration_error"]
            large = (error > LARGE_CALIBRATION_ERROR).sum()
            above = (part["confidence"] > part["accuracy"]).sum()
            worst = part.loc[error.idxmax()]
            mean = tissue_mean(part, "calibration_error")
            records.append(
                {
                    "pairs": f"{name} ({len(part)})",
                    "labels": "adapted" if adapted else "plain",
                    "mean over pairs": f"{error.mean():.3f}",
                    f"over {tissue}": f"{mean:.3f}",
                    "median": f"{error.median():.3f}",
                    f"above {LARGE_CALIBRATION_ERROR:g}": f"{large} of {len(part)}",
                    "worst": f"{error.max():.3f} ({worst['pair']})",
                    "too sure": f"{above} of {len(part)}",
                    "mean confidence": percent(part["confidence"].mean()),
                    "right": percent(part["accuracy"].mean()),
                }
            )
    return pd.DataFrame(records)


@table
def adaptation() -> pd.DataFrame:
    """Plain and adapted accuracy by the composition of the query."""
    records = []
    rows = across_platforms(read("adaptation"))
    for (genes, query), part in rows.groupby(["genes", "query"], sort=False):
        records.append(
            {
                "query": query,
                "genes": str(genes),
                "pairs": str(len(part)),
                "plain, over tissues": percent(tissue_mean(part, "plain")),
                "adapted, over tissues": percent(tissue_mean(part, "adapted")),
                "plain, over pairs": percent(part["plain"].mean()),
                "adapted, over pairs": percent(part["adapted"].mean()),
                "better / same / worse": against(part["adapted"], part["plain"]),
            }
        )
    return pd.DataFrame(records)


@table
def error_control() -> pd.DataFrame:
    """For each error asked for: pairs on which it was kept, with and without the
    control.
    """
    return error_control_of(across_platforms(read("error_control")))


def error_control_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Kept on how many pairs, those that could not be served, the worst pair,
    labels given.
    """
    records = []
    for target, part in rows.groupby("target"):
        given = part[part["n_given"] > 0]
        error = given["n_wrong"] / given["n_given"]
        equal = given["error_classes_equal"] <= target
        without = part["n_wrong_of_all"] / part["n_query"]
        worst = "–"
        if len(given):
            place = error.idxmax()
            worst = f"{percent(error[place])} ({given.loc[place, 'pair']})"
        records.append(
            {
                "asked for": percent(target, 0) + " %",
                "kept": f"{(error <= target).sum()} of {len(given)}",
                "classes counted equally": f"{equal.sum()} of {len(given)}",
                "not served": f"{len(part) - len(given)} of {len(part)}",
                "labels given": percent((given["n_given"] / given["n_query"]).mean()),
                "mean error": percent(error.mean()),
                "worst": worst,
                "kept without control": f"{(without <= target).sum()} of {len(part)}",
                "mean error without": percent(without.mean()),
                "of the pairs served": percent(without[given.index].mean()),
            }
        )
    return pd.DataFrame(records)


@table
def error_simulation() -> pd.DataFrame:
    """How often labels are given whose true error is above the one asked for."""
    rows = read("error_simulation")
    rows = rows.assign(share=rows["exceeded"] / rows["draws"])
    wide = rows.pivot_table(
        index=["world", "held_out", "target"],
        columns="rule",
        values="share",
        sort=False,
    )
    served = rows[rows["rule"] == "fixed sequence"]
    served = served.set_index(["world", "held_out", "target"])
    records = []
    for key, shares in wide.iterrows():
        world, held_out, target = key
        of_draws = served.loc[key, "given"] / served.loc[key, "draws"]
        records.append(
            {
                "confidences": world,
                "held-out samples": str(held_out),
                "asked for": f"{percent(target, 0)} %",
                "served": f"{percent(of_draws, 0)} %",
                "exceeded": _share(shares["fixed sequence"]),
                "lowest threshold that passes": _share(shares["lowest that passes"]),
                "no control": _share(shares["none"]),
            }
        )
    return pd.DataFrame(records)


def _share(value: float) -> str:
    return f"{percent(value, 0)} %"


@table
def unknown() -> pd.DataFrame:
    """Classes left out of training: how they are told from the others."""
    rows = read("unknown")
    kinds = {"all": rows, **dict(iter(rows.groupby("tissue")))}
    return pd.DataFrame(
        {
            "tissue": name,
            "classes left out": str(len(part)),
            "AUC, correlation": f"{part['auc_correlation'].mean():.3f}",
            "AUC, largest probability": f"{part['auc_probability'].mean():.3f}",
            "known lost": percent(part["known_lost"].mean()),
            "unknown found": percent(part["unknown_found"].mean()),
        }
        for name, part in kinds.items()
    )


@table
def unknown_queries() -> pd.DataFrame:
    """Share of labels withheld by the composition of the query, and queries with
    the alarm.
    """
    rows = read("unknown")
    wrong = read("wrong_tissue")
    served = wrong[wrong["refused"].isna() | (wrong["refused"] == "")]
    lines = [
        ("known samples, whole query", rows["known_lost"], rows["alarm_query"]),
        ("known samples, each alone", rows["known_lost_singly"], None),
        ("class left out, in the whole query", rows["unknown_found"], None),
        ("class left out, each sample alone", rows["found_singly"], None),
        (
            "class left out, alone in the query",
            rows["found_alone"],
            rows["alarm_alone"],
        ),
        ("shuffled genes", rows["shuffled_found"], rows["alarm_shuffled"]),
        ("samples of another tissue", served["found"], served["alarm"]),
    ]
    return pd.DataFrame(
        {
            "samples": name,
            "queries": str(len(shares)),
            "labels withheld": percent(shares.mean()),
            "queries with the alarm": "–"
            if alarms is None
            else f"{int(alarms.astype(bool).sum())} of {len(alarms)}",
        }
        for name, shares, alarms in lines
    )


@table
def missing() -> pd.DataFrame:
    """Accuracy with genes missing from the query, over tissues."""
    return missing_of(across_platforms(read("missing")))


def missing_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over tissues by genes of the panel and share that is missing."""
    rows = rows[rows["model"] == "optirank"] if "model" in rows else rows
    by_tissue = rows.groupby(["genes", "missing", "tissue"])["balanced_accuracy"].mean()
    wide = by_tissue.groupby(level=["genes", "missing"]).mean().unstack()
    wide.index = wide.index.astype(int)
    wide.columns = [f"{percent(share, 0)} % missing" for share in wide.columns]
    return as_text(wide.map(percent), "genes of the panel")


@table
def small() -> pd.DataFrame:
    """Tasks with few training samples: mean over seeds, and its standard deviation."""
    rows = read("small")
    keys = ["task", "method", "seed"]
    means = rows.groupby(keys)["balanced_accuracy"].mean().reset_index()
    wide, mean = with_spread(means, *keys[:2])
    order = rows["task"].unique(), rows["method"].unique()
    wide = wide.loc[order[0], order[1]]
    mean = mean.loc[order[0], order[1]]
    n_train = rows.groupby("task")["n_train"].median().map("{:.0f}".format)
    wide.insert(0, "training samples", n_train)
    wide.loc["mean"] = ["", *mean.mean().map(percent)]
    return as_text(wide, "task")


@table
def synthetic() -> pd.DataFrame:
    """The synthetic data with and without the shift."""
    rows = read("synthetic")
    wide, mean = with_spread(rows, "method", "tau")
    wide.columns = [f"tau = {tau:g}" for tau in wide.columns]
    wide["lost to the shift"] = (mean[0.0] - mean[0.2]).map(percent)
    return as_text(wide.loc[rows["method"].unique()], "method")


@table
def sources() -> pd.DataFrame:
    """Several sources in one training, by what is added to the samples of a source."""
    groups = read("sources").groupby("added", sort=False)
    columns = {
        "left out": groups["left_out"].mean(),
        "joint": groups["joint"].mean(),
        "joint, lowest": groups["joint"].min(),
    }
    return as_text(pd.DataFrame(columns).map(percent), "added")


def _lost_points(share: float) -> str:
    """Points that the panel of 100 loses without a share of its genes."""
    rows = across_platforms(read("missing"))
    rows = rows[(rows["genes"] == 100) & (rows["model"] == "optirank")]
    whole = tissue_mean(rows[rows["missing"] == 0.0], "balanced_accuracy")
    without = tissue_mean(rows[rows["missing"] == share], "balanced_accuracy")
    return f"{100 * (whole - without):.1f}"


@number
def lost_30() -> str:
    """Points lost by the panel of 100 without 30 % of its genes."""
    return _lost_points(0.3)


@number
def lost_50() -> str:
    """Points lost by the panel of 100 without half of its genes."""
    return _lost_points(0.5)


def _control(target: float = 0.05) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of a target error: all pairs across platforms, and those that are served."""
    rows = across_platforms(read("error_control"))
    rows = rows[rows["target"] == target]
    return rows, rows[rows["n_given"] > 0]


@number
def control_error() -> str:
    """Mean error with a target of 5 %."""
    _, given = _control()
    return percent((given["n_wrong"] / given["n_given"]).mean())


@number
def control_without() -> str:
    """Mean error of the same pairs without control."""
    _, given = _control()
    return percent((given["n_wrong_of_all"] / given["n_query"]).mean())


@number
def control_labels() -> str:
    """Share of samples that get a label at 5 %."""
    _, given = _control()
    return percent((given["n_given"] / given["n_query"]).mean())


@number
def control_served() -> str:
    """Pairs that are served at 5 %."""
    return str(len(_control()[1]))


@number
def control_not_served() -> str:
    """Pairs that are not served at 5 %."""
    rows, given = _control()
    return str(len(rows) - len(given))


@number
def control_kept() -> str:
    """Pairs on which 5 % was kept."""
    _, given = _control()
    return str(int((given["n_wrong"] / given["n_given"] <= 0.05).sum()))


@number
def unknown_classes() -> str:
    """Classes that were left out."""
    return str(len(read("unknown")))


@number
def unknown_found_share() -> str:
    """Share of the samples of unknown classes that are found."""
    return percent(read("unknown")["unknown_found"].mean(), 0)


@number
def known_lost_share() -> str:
    """Share of the samples of known classes that are lost."""
    return percent(read("unknown")["known_lost"].mean())


def _adapted(query: str, column: str) -> str:
    rows = across_platforms(read("adaptation"))
    rows = rows[(rows["query"] == query) & (rows["genes"] == 100)]
    return percent(tissue_mean(rows, column))


@table
def adapting() -> pd.DataFrame:
    """Plain and adapted with 100 genes, in few words."""
    words = {
        "whole query": "all samples",
        "one class at 90 %": "one class is 90 % of the samples",
        "one class left out": "a class of the model is absent",
        "one class alone": "samples of a single class",
    }
    return pd.DataFrame(
        {
            "the query has": text,
            "plain": _adapted(query, "plain"),
            "adapted": _adapted(query, "adapted"),
        }
        for query, text in words.items()
    )


@number
def calibration_error_mean() -> str:
    """Mean expected calibration error over pairs across platforms."""
    rows = across_platforms(read("calibration"))
    return f"{rows[~rows['adapted']]['calibration_error'].mean():.3f}"


@number
def calibration_large() -> str:
    """Pairs with an expected calibration error above 0.1."""
    rows = across_platforms(read("calibration"))
    error = rows[~rows["adapted"]]["calibration_error"]
    return f"{(error > LARGE_CALIBRATION_ERROR).sum()} of {len(error)}"
