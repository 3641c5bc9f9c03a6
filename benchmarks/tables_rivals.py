"""Tables of the comparisons: the panel beside its rivals, its parts."""

from __future__ import annotations

import pandas as pd
from tables import (
    across_platforms,
    as_text,
    counts,
    difference,
    mean_over_tissues,
    modality_of,
    number,
    p_value,
    percent,
    read,
    table,
    tissues_of,
)

from optirank_lab.benchmark.curve import ALL, CURVE_METHODS, PANEL, TOOLS
from optirank_lab.benchmark.statistics import compare, over_tissues
from optirank_lab.benchmark.tasks import SAME_PLATFORM, SCALED_REFERENCE

NEAREST_MEAN = "nearest class mean"
SAME = "–"


def curve_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over tissues by method and number of genes."""
    sizes = sorted(rows["k"].unique(), key=lambda k: (k == ALL, k.rjust(9)))
    wide = mean_over_tissues(rows, ["method", "k"]).unstack()
    order = [name for name in (*CURVE_METHODS, *TOOLS) if name in wide.index]
    text = wide.loc[order, sizes].map(percent).rename(columns={ALL: "all candidates"})
    text.index = [named(name, rows) for name in order]
    return as_text(text, "genes")


def named(method: str, rows: pd.DataFrame) -> str:
    """The name of a method, with its pairs where it lacks some."""
    known = rows[rows["balanced_accuracy"].notna()]
    n_pairs = known["pair"].nunique()
    n_own = known.loc[known["method"] == method, "pair"].nunique()
    return method if n_own == n_pairs else f"{method} ({n_own} of {n_pairs} pairs)"


@table
def rivals() -> pd.DataFrame:
    """The panel of 100 genes against the best variant of each other method."""
    return best_of_each(rivals_of(across_platforms(read("curve"))))


def rivals_of(rows: pd.DataFrame, tissue: str = "problems") -> pd.DataFrame:
    """The panel of 100 genes minus each method: paired differences over tissues.

    The index has the method and the number of genes asked for.
    """
    wide = rows.pivot_table(
        index="pair", columns=["method", "k"], values="balanced_accuracy"
    )
    tissues = tissues_of(rows)
    genes = rows.groupby(["method", "k"])["n_genes"].median()
    ours = wide[PANEL, "100"]
    mean = f"mean over {tissue}"
    keys, records = [], []
    for key in wide:
        if key[1] not in ("100", ALL) and key != (PANEL, "30"):
            continue
        scores = wide[key]
        by_tissue = over_tissues(scores, tissues)
        record = {
            "method": named(key[0], rows),
            "genes (median)": f"{genes[key]:.0f}",
            mean: by_tissue.mean(),
        }
        records.append(record | _beside(ours, scores, tissues, tissue, key))
        keys.append(key)
    index = pd.MultiIndex.from_tuples(keys, names=["method", "k"])
    table_of = pd.DataFrame(records, index=index)
    table_of = table_of.sort_values(mean, ascending=False, kind="stable")
    table_of[mean] = table_of[mean].map(percent)
    return table_of


def _beside(
    ours: pd.Series,
    scores: pd.Series,
    tissues: pd.Series,
    tissue: str,
    key: tuple[str, str],
) -> dict[str, str]:
    """How the panel of 100 does beside a method."""
    comparison = compare(ours, scores, tissues)
    texts = {
        "panel of 100 minus it": difference(comparison),
        f"{tissue} won / tied / lost": counts(comparison.tissues),
        "p (sign test)": p_value(comparison.sign_p),
    }
    return dict.fromkeys(texts, SAME) if key == (PANEL, "100") else texts


@table
def readme_rivals() -> pd.DataFrame:
    """The comparisons in short, without the counts of problems."""
    columns = [
        "method",
        "genes (median)",
        "mean over problems",
        "panel of 100 minus it",
    ]
    return rivals()[columns].rename(columns={"mean over problems": "mean"})


def best_of_each(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of `rivals_of` with the best variant and number of genes of each
    method; the panel keeps both of its sizes.
    """
    family = rows["method"].str.split(",").str[0]
    best = ~family.duplicated() | (family == PANEL)  # the rows are sorted by their mean
    return rows[best]


@table
def ablation() -> pd.DataFrame:
    """Each part of the panel of 100 genes changed alone, beside the model as it is."""
    rows = across_platforms(read("ablation"))
    rows = rows[rows["genes"] == 100]
    tissues = tissues_of(rows)
    records = []
    for missing, part in rows.groupby("missing"):
        wide = part.pivot_table(
            index="pair", columns="variant", values="balanced_accuracy"
        )[part["variant"].unique()]
        whole = wide.columns[0]
        for variant in wide:
            comparison = compare(wide[variant], wide[whole], tissues)
            same = variant == whole
            mean = over_tissues(wide[variant], tissues).mean()
            records.append(
                {
                    "variant": variant,
                    "missing": f"{percent(missing, 0)} %",
                    "mean over problems": percent(mean),
                    "minus the first": SAME if same else difference(comparison),
                }
            )
    return pd.DataFrame(records)


@table
def kinds() -> pd.DataFrame:
    """Means by kind of pair: the pairs across platforms of single cells and of bulk
    profiles, then pairs that count in no other table, of one platform and trained on
    values that were standardised per gene.
    """
    rows = read("curve")
    across = across_platforms(rows)
    modality = across["pair"].map(lambda pair: modality_of(pair.split(" to ")[0]))
    parts = {
        "single cells": across[modality == "single-cell"],
        "bulk": across[modality == "bulk"],
        "one platform": rows[rows["shift"] == SAME_PLATFORM],
        "trained on z-scores": rows[rows["shift"] == SCALED_REFERENCE],
    }
    columns = {}
    for name, part in parts.items():
        n_pairs, n_problems = part["pair"].nunique(), part["tissue"].nunique()
        column = f"{name} ({n_pairs} pairs, {n_problems} problems)"
        columns[column] = mean_over_tissues(part, ["method", "k"]).map(percent)
    wide = pd.DataFrame(columns)
    order = rivals().index
    text = wide.loc[order].fillna("–")
    text.index = [f"{name}, {k}" for name, k in order]
    return as_text(text, "method, genes asked for")


def panel_minus(method: str, k: str = ALL, size: str = "100") -> str:
    """The panel minus a method over tissues, in points with the interval."""
    rows = across_platforms(read("curve"))
    wide = rows.pivot_table(
        index="pair", columns=["method", "k"], values="balanced_accuracy"
    )
    if (method, k) not in wide:
        return SAME
    return difference(compare(wide[PANEL, size], wide[method, k], tissues_of(rows)))


@number
def pairs() -> str:
    """Pairs across platforms."""
    return str(across_platforms(read("curve"))["pair"].nunique())


@number
def n_tissues() -> str:
    """Tissues of the pairs across platforms."""
    return str(across_platforms(read("curve"))["tissue"].nunique())


@number
def minus_nearest_mean_30() -> str:
    """The panel of 30 minus the nearest class mean with 30 genes."""
    return panel_minus(NEAREST_MEAN, "30", "30")


@number
def minus_nearest_mean_10() -> str:
    """The panel of 10 minus the nearest class mean with 10 genes."""
    return panel_minus(NEAREST_MEAN, "10", "10")


@number
def papers_minus_lr_ranks() -> str:
    """The paper's classifier minus LR on ranks of all candidates."""
    rows = across_platforms(read("curve"))
    wide = rows.pivot_table(
        index="pair", columns=["method", "k"], values="balanced_accuracy"
    )
    paper = wide["paper's classifier", ALL]
    return difference(compare(paper, wide["LR on ranks", ALL], tissues_of(rows)))


@number
def panel_30_minus_100() -> str:
    """The panel of 30 minus the panel of 100."""
    return panel_minus(PANEL, "100", "30")
