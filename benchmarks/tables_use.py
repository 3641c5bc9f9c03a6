"""Tables of the model in use: confidence, error control, adapting, unknown types,
missing genes.
"""

from __future__ import annotations

import pandas as pd
from tables import (
    across_platforms,
    against,
    difference,
    number,
    percent,
    read,
    table,
    tissue_mean,
    tissues_of,
)

from optirank_lab.benchmark.statistics import PairedComparison, compare, over_tissues

PANEL = "panel"
NEAREST_MEAN = "nearest class mean"
LARGE_CALIBRATION_ERROR = 0.1  # a confidence of 0.9 that is right 8 times of 10


@table
def product() -> pd.DataFrame:
    """Models as `train` makes them, on the whole query: accuracy, calibration."""
    return product_of(across_platforms(read("product")))


def product_of(rows: pd.DataFrame) -> pd.DataFrame:
    """By the size asked for: means over problems, plain and after adapting."""
    rows = rows.assign(adapted=rows["adapted"].astype(str) == "True")
    problems = tissues_of(rows)
    wide = rows.pivot_table(
        index="pair", columns=["asked_for", "adapted"], values="balanced_accuracy"
    )
    records = []
    for size, part in rows.groupby("asked_for", sort=False):
        plain, adapted = part[~part["adapted"]], part[part["adapted"]]
        gain = compare(wide[size, True], wide[size, False], problems)
        median = f"by default (median {plain['genes'].median():.0f})"
        records.append(
            {
                "genes": median if size == "auto" else str(size),
                "balanced accuracy": percent(tissue_mean(plain, "balanced_accuracy")),
                "adapted minus plain": difference(gain),
                "mean confidence": percent(tissue_mean(plain, "confidence")),
                "right": percent(tissue_mean(plain, "accuracy")),
                "calibration error": f"{tissue_mean(plain, 'calibration_error'):.3f}",
                "the same, adapted": f"{tissue_mean(adapted, 'calibration_error'):.3f}",
            }
        )
    return pd.DataFrame(records)


@table
def adaptation() -> pd.DataFrame:
    """Plain and adapted accuracy of 100 genes by the composition of the query."""
    records = []
    rows = across_platforms(read("adaptation")).query("genes == 100")
    for query, part in rows.groupby("query", sort=False):
        records.append(
            {
                "query": query,
                "problems": str(part["tissue"].nunique()),
                "plain": percent(tissue_mean(part, "plain")),
                "adapted": percent(tissue_mean(part, "adapted")),
                "adapted minus plain": difference(gain_of(part, "plain", "adapted")),
                "pairs better / same / worse": against(part["adapted"], part["plain"]),
            }
        )
    return pd.DataFrame(records)


def gain_of(rows: pd.DataFrame, before: str, after: str) -> PairedComparison:
    """Paired differences of two columns, over tissues."""
    by_pair = rows.set_index("pair")
    return compare(by_pair[after], by_pair[before], by_pair["tissue"])


@table
def error_control() -> pd.DataFrame:
    """For each error asked for: pairs on which it was kept, with and without the
    control.
    """
    return error_control_of(across_platforms(read("error_control")))


def error_control_of(rows: pd.DataFrame, tissue: str = "problems") -> pd.DataFrame:
    """Pairs that could not be served, pairs on which the error was kept, errors with
    and without the control.
    """
    records = []
    for target, part in rows.groupby("target"):
        part = with_errors(part)
        shown = part[part["can_be_shown"]]
        given = shown[shown["n_given"] > 0]
        equal = given["error_classes_equal"] <= target
        worst = "–"
        if len(given):
            worst = percent(given["error"].max())
        records.append(
            {
                "asked for": percent(target, 0) + " %",
                "too few held-out samples": f"{len(part) - len(shown)} of {len(part)}",
                "no label given": f"{len(shown) - len(given)} of {len(shown)}",
                "labels given": percent(tissue_mean(shown, "share_given")),
                f"error, over {tissue}": percent(tissue_mean(given, "error")),
                "without control": percent(tissue_mean(given, "error_without")),
                "kept on pairs": f"{(given['error'] <= target).sum()} of {len(given)}",
                "kept, classes counted equally": f"{equal.sum()} of {len(given)}",
                "kept without control": (
                    f"{(given['error_without'] <= target).sum()} of {len(given)}"
                ),
                "highest error of a pair": worst,
            }
        )
    return pd.DataFrame(records)


def with_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of error control with shares: labels given, wrong ones of these and of
    all.
    """
    return rows.assign(
        can_be_shown=rows["can_be_shown"].astype(str) == "True",
        share_given=rows["n_given"] / rows["n_query"],
        error=rows["n_wrong"] / rows["n_given"].where(rows["n_given"] > 0),
        error_without=rows["n_wrong_of_all"] / rows["n_query"],
    )


@table
def missing() -> pd.DataFrame:
    """Accuracy with genes missing from the query, over tissues."""
    return missing_of(across_platforms(read("missing")))


def missing_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over tissues by method, genes and share that is missing, and what 30 %
    cost.
    """
    records = []
    for (model, genes), part in rows.groupby(["model", "genes"], sort=False):
        wide = part.pivot_table(
            index="pair", columns="missing", values="balanced_accuracy"
        )
        tissues = tissues_of(part)
        record = {"method": model, "genes": f"{int(genes)}"}
        for share in wide:
            mean = over_tissues(wide[share], tissues).mean()
            record[f"{percent(share, 0)} % missing"] = percent(mean)
        changed = compare(wide[0.3], wide[0.0], tissues)
        record["change by 30 %"] = difference(changed)
        records.append(record)
    return pd.DataFrame(records)


def _change(share: float, model: str = PANEL) -> str:
    """Points by which a method with 100 genes changes without a share of them."""
    rows = across_platforms(read("missing"))
    rows = rows[(rows["genes"] == 100) & (rows["model"] == model)]
    wide = rows.pivot_table(index="pair", columns="missing", values="balanced_accuracy")
    return difference(compare(wide[share], wide[0.0], tissues_of(rows)))


@number
def change_50() -> str:
    """Change of the panel of 100 without half of its genes."""
    return _change(0.5)


@number
def change_30_beside_nearest_mean() -> str:
    """Change of the panel of 100 without 30 % of its genes, minus that of the nearest
    class mean.
    """
    rows = across_platforms(read("missing"))
    wide = rows[rows["genes"] == 100].pivot_table(
        index="pair", columns=["model", "missing"], values="balanced_accuracy"
    )
    of_panel = wide[PANEL, 0.3] - wide[PANEL, 0.0]
    of_nearest_mean = wide[NEAREST_MEAN, 0.3] - wide[NEAREST_MEAN, 0.0]
    return difference(compare(of_panel, of_nearest_mean, tissues_of(rows)))


def _product(size: str, *, adapted: bool) -> pd.DataFrame:
    """Rows of models of a size, across platforms."""
    rows = across_platforms(read("product"))
    of_size = rows["asked_for"].astype(str) == size
    return rows[of_size & (rows["adapted"] == adapted)]


@number
def adapted_minus_plain() -> str:
    """What learning from the query adds to a model of 100 genes."""
    plain = _product("100", adapted=False).set_index("pair")
    adapted = _product("100", adapted=True).set_index("pair")
    column = "balanced_accuracy"
    return difference(compare(adapted[column], plain[column], plain["tissue"]))


@number
def calibration_large() -> str:
    """Pairs with an expected calibration error above 0.1."""
    error = _product("auto", adapted=False)["calibration_error"]
    return f"{(error > LARGE_CALIBRATION_ERROR).sum()} of {len(error)}"
