"""Tables of panels for assays: lists of genes by several methods, and models on
other assays.
"""

from __future__ import annotations

import pandas as pd
from tables import (
    difference,
    mean_over_tissues,
    number,
    percent,
    read,
    table,
    tissues_of,
)

from optirank_lab.benchmark.statistics import compare

_OURS = "optirank"
_CLASSIFIERS = ("panel model", "logistic regression", "random forest")
_FIRST = "list, classifier"
_LISTS = (_OURS, "COSG", "NS-Forest", "t statistic", "highly variable", "random")


@table
def designs() -> pd.DataFrame:
    """Lists by several methods on another platform, mean over tissues, imaging
    pairs apart.
    """
    rows = read("design")
    return _wide(rows[~rows["imaging"]])


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
    """Lists as rows, sizes as columns: all lists under the panel model, and
    optirank's under the other classifiers.
    """
    means = mean_over_tissues(rows, ["classifier", "list", "k"]).unstack()
    sizes = sorted(means.columns, key=int)
    order = [(_CLASSIFIERS[0], name) for name in _LISTS]
    order += [(classifier, _OURS) for classifier in _CLASSIFIERS[1:]]
    shown = means.loc[order, sizes].map(percent)
    shown.index = pd.Index([f"{name}, {classifier}" for classifier, name in order])
    return shown.rename_axis(index=_FIRST, columns=None).reset_index()


@number
def design_minus_lr() -> str:
    """Panel model minus logistic regression, with optirank's lists of 100 genes."""
    return _panel_minus(_CLASSIFIERS[1])


@number
def design_minus_forest() -> str:
    """Panel model minus random forest, with optirank's lists of 100 genes."""
    return _panel_minus(_CLASSIFIERS[2])


@number
def design_200() -> str:
    """Pairs with lists of 200 genes."""
    rows = read("design")
    of_size = (rows["k"] == "200") & ~rows["imaging"]
    return str(rows[of_size]["pair"].nunique())


def _ours_of_100() -> pd.DataFrame:
    """The rows of optirank's lists of 100 genes, without imaging."""
    rows = read("design")
    return rows[(rows["list"] == _OURS) & (rows["k"] == "100") & ~rows["imaging"]]


def _panel_minus(classifier: str) -> str:
    """The paired difference over tissues with its interval."""
    rows = _ours_of_100()
    wide = rows.pivot_table(
        index="pair", columns="classifier", values="balanced_accuracy"
    )
    return difference(
        compare(wide[_CLASSIFIERS[0]], wide[classifier], tissues_of(rows))
    )
