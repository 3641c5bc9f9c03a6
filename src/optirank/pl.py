"""Plots, in scanpy's manner: functions that take ``ax=`` and return it.

They take what :mod:`optirank.tl` made: an annotated AnnData, an evaluation, or a trained model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.report.common import axes_for, column, finish, save_figure
from optirank.report.panel import panel, panel_weights
from optirank.report.performance import (
    confusion_size,
    draw_confusion,
    draw_curves,
    draw_labels,
    draw_reliability,
    draw_sizes,
    labels_size,
    selection_path,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:  # typing.get_type_hints works without importing it
    Axes = Any

__all__ = [
    "confusion",
    "labels",
    "panel",
    "panel_sizes",
    "panel_weights",
    "reliability",
    "roc",
    "save_figure",
    "selection_path",
]


def __dir__() -> list[str]:
    return __all__


def confusion(
    data: Any,
    truth: str | None = None,
    key: str = "optirank",
    *,
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """How the samples of each class were labelled: one row per true class, one column per label.

    Colours are shares of the row; up to 15 classes the numbers of samples are written.

    Parameters
    ----------
    data : AnnData, data frame or evaluation
        Annotated by :func:`optirank.tl.annotate`; or a data frame with both columns; or what
        :func:`optirank.tl.evaluate` returns.
    truth : str
        Column of ``obs`` with the true classes; not for an evaluation.
    key : str, default="optirank"
        Column of the labels.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.
    show : bool, default=False
        Whether to show the figure at once.

    Returns
    -------
    matplotlib Axes
    """
    import pandas as pd

    if hasattr(data, "performance"):
        counts = data.performance.confusion
    else:
        true, given = _truth(data, truth), column(data, key)
        table = pd.crosstab(
            pd.Series(true, dtype=object), pd.Series(given, dtype=object)
        )
        if table.empty:
            raise ValueError(f"no sample has both a {truth} and a {key}")
        order = [
            str(one) for one in _uns(data, key).get("classes", ())
        ]  # the others after them
        order += sorted(set(map(str, table.index)) - set(order))
        last = sorted(set(map(str, table.columns)) - set(order))
        rows = [one for one in order if one in table.index or one in table.columns]
        counts = table.reindex(index=rows, columns=[*rows, *last], fill_value=0)
    ax = axes_for(ax, *confusion_size(list(counts.columns)))
    draw_confusion(ax, counts)
    return finish(ax, show)


def reliability(
    data: Any,
    truth: str | None = None,
    key: str = "optirank",
    *,
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """How often labels are right against how confident they are; how many there are above it.

    On the diagonal a confidence of 0.8 means that 8 of 10 such labels are right. Bars are 95 %
    intervals. Labels that were withheld are left out. Parameters as in :func:`confusion`, but a
    data frame needs the column ``key + "_confidence"`` too.
    """
    from optirank.workflow.performance import reliability_table

    if hasattr(data, "performance"):
        table = data.performance.reliability
    else:
        true, given, sure = (
            _truth(data, truth),
            column(data, key),
            column(data, f"{key}_confidence"),
        )
        withheld = str(_uns(data, key).get("withheld_label", "unassigned"))
        known = np.array([one is not None for one in true]) & (given != withheld)
        if not known.any():
            raise ValueError(f"no sample has a {truth} and a label")
        table = reliability_table(sure[known].astype(float), (true == given)[known])
    ax = axes_for(ax, 4.6, 4.6)
    draw_reliability(ax, table)
    return finish(ax, show)


def roc(
    data: Any,
    truth: str | None = None,
    key: str = "optirank",
    *,
    kind: str = "roc",
    ax: Axes | None = None,
    show: bool = False,
) -> Axes:
    """ROC curves (``kind="pr"``: precision-recall curves), one per class against the rest.

    Parameters as in :func:`confusion`; samples of classes that the model does not have are left
    out.
    """
    from optirank.workflow.performance import performance

    if kind not in ("roc", "pr"):
        raise ValueError(f"kind={kind!r}: use 'roc' or 'pr'")
    if hasattr(data, "performance"):
        found = data.performance
    elif "classes" not in _uns(data, key):
        raise ValueError(
            f"adata.uns has no {key!r}: annotate it first with optirank.tl.annotate"
        )
    else:
        true, classes = (
            _truth(data, truth),
            np.asarray(_uns(data, key)["classes"], dtype=object),
        )
        known = np.isin(true.astype(str), classes.astype(str))
        proba = np.asarray(data.obsm[f"{key}_proba"])[known]
        found = performance(true[known], classes[proba.argmax(axis=1)], proba, classes)
    ax = axes_for(ax, 4.6, 4.6)
    draw_curves(ax, found.curves, kind)
    return finish(ax, show)


def labels(
    adata: Any, key: str = "optirank", *, ax: Axes | None = None, show: bool = False
) -> Axes:
    """How many samples got each label: one bar per label, coloured by the model's confidence.

    The most frequent label comes first; labels that were withheld come last, in grey. Parameters as
    in :func:`confusion`, but a data frame needs the column ``key + "_confidence"`` too.
    """
    import pandas as pd

    from optirank.workflow.labels import label_table

    given, sure = column(adata, key), column(adata, f"{key}_confidence")
    known = pd.notna(given) & pd.notna(sure)
    if not known.any():
        raise ValueError(f"no sample has a {key} and a {key}_confidence")
    withheld = str(_uns(adata, key).get("withheld_label", "unassigned"))
    table = label_table(given[known].astype(str), sure[known], withheld)
    ax = axes_for(ax, *labels_size(table))
    draw_labels(ax, table)
    return finish(ax, show)


def panel_sizes(model: Any, *, ax: Axes | None = None, show: bool = False) -> Axes:
    """Accuracy on held-out samples against the number of genes, with the size chosen.

    Parameters
    ----------
    model : a model of :func:`optirank.tl.train`, or the file of one
    ax, show
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    from optirank.workflow.cards import size_table

    ax = axes_for(ax, 6.0, 3.8)
    draw_sizes(ax, size_table(model))
    return finish(ax, show)


def _uns(data: Any, key: str) -> Any:
    return getattr(data, "uns", {}).get(key, {})


def _truth(data: Any, truth: str | None) -> Any:
    if truth is None:
        raise ValueError("truth=: name the column with the true classes")
    return column(data, truth)
