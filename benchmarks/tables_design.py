"""Tables of panels for assays: lists of genes by several methods, and models on
other assays.
"""

from __future__ import annotations

import pandas as pd
from tables import mean_over_tissues, number, percent, read, table, tissues_of

_OURS = "optirank"
_CLASSIFIERS = ("panel model", "logistic regression", "random forest")
_LISTS = (_OURS, "COSG", "NS-Forest", "t statistic", "highly variable", "random")


@table
def designs() -> pd.DataFrame:
    """Lists by several methods on another platform, mean over tissues, imaging
    pairs apart.
    """
    rows = read("design")
    return _wide(rows[~rows["imaging"]])


@table
def designs_imaging() -> pd.DataFrame:
    """The same for the pairs from sequencing to imaging."""
    rows = read("design")
    return _wide(rows[rows["imaging"]])


@table
def assays() -> pd.DataFrame:
    """Models of 100 genes on queries that have few of them: three ways to label.

    Means are over the queries that the model's own panel labels; where a class has no
    gene left, it refuses.
    """
    rows = read("assays")
    random = rows["genes"] == "random"
    sizes = rows["n_genes"].astype(str) + " genes at random"
    rows["query has"] = sizes.where(random, "the genes of " + rows["genes"])
    records = []
    for name, part in rows.groupby("query has", sort=False):
        both = part.dropna(subset=["own panel"])
        record = {
            "query has": name,
            "queries": str(len(part)),
            "of the 100": f"{part['present'].mean():.0f}",
            "own panel refuses": str(int(part["own panel"].isna().sum())),
            "best panel refuses": str(int(part["best panel"].isna().sum())),
        }
        for column in ("own panel", "best panel", "trained for it"):
            record[column] = percent(both[column].mean()) if len(both) else "–"
        record["trained for it, all queries"] = percent(part["trained for it"].mean())
        records.append(record)
    return pd.DataFrame(records)


@number
def design_pairs() -> str:
    """Pairs of the study of lists, without the imaging pairs."""
    rows = read("design")
    return str(rows[~rows["imaging"]]["pair"].nunique())


@number
def design_tissues() -> str:
    """Tissues of these pairs."""
    rows = read("design")
    return str(tissues_of(rows[~rows["imaging"]]).nunique())


def _wide(rows: pd.DataFrame) -> pd.DataFrame:
    """Lists and classifiers as rows, sizes as columns."""
    means = mean_over_tissues(rows, ["classifier", "list", "k"]).unstack()
    sizes = sorted(means.columns, key=int)
    order = [(classifier, name) for classifier in _CLASSIFIERS for name in _LISTS]
    shown = means.loc[order, sizes].map(percent)
    shown.index = pd.Index([f"{name}, {classifier}" for classifier, name in order])
    return shown.rename_axis(index="list, classifier", columns=None).reset_index()
