"""How well labels fit the truth: confusion, reliability, ROC and precision-recall, and
the classes of a panel for an assay under every condition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from optirank.pl.axes import (
    BLUE,
    COLOURS,
    DARK,
    ERROR_BARS,
    GREY,
    LEGEND,
    LEGEND_ABOVE,
    LIGHT_BLUE,
    ORANGE,
    Axes,
    Place,
    axes_for,
    column,
    heat_map,
    name_rows,
    record_of,
    short,
)

_DIAGONAL: dict[str, Any] = {"color": GREY, "linestyle": "--", "linewidth": 1}
_UNIT = (-0.02, 1.02)  # limits of an axis of shares
# Of each kind of curve: what is across, and what upwards
_CURVES = {
    "roc": ("1 − specificity", "sensitivity"),
    "pr": ("sensitivity (recall)", "PPV (precision)"),
}
_BIN = 0.1  # width of a bin of confidence
_DARK_FROM = 55.0  # per cent: cells on which writing is white
_KINDS = {"test": ORANGE, "as it is": BLUE}  # other conditions are dark
_FEW = 10  # labels of a bin from which on it is drawn full
_WITH_NUMBERS = 15  # classes whose cells have room for numbers


def confusion(
    data: Any,
    truth: str | None = None,
    key: str = "optirank",
    *,
    ax: Axes | None = None,
) -> Axes:
    """How the samples of each class were labelled: a row per class, a column per label.

    Colours are shares of the row; up to 15 classes the numbers of samples are written.

    Parameters
    ----------
    data : AnnData, data frame or evaluation
        Annotated by :func:`optirank.tl.annotate`; or a data frame with both columns; or
        what :func:`optirank.tl.evaluate` returns.
    truth : str
        Column of ``obs`` with the true classes; not for an evaluation.
    key : str, default="optirank"
        Column of the labels.
    ax : matplotlib Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    matplotlib Axes
    """
    if hasattr(data, "performance"):
        return draw_confusion(data.performance.confusion, ax=ax)
    if truth is None:
        raise ValueError("truth=: name the column with the true classes")
    table = pd.crosstab(
        pd.Series(column(data, truth), dtype=object),
        pd.Series(column(data, key), dtype=object),
    )
    if table.empty:
        raise ValueError(f"no sample has both a {truth} and a {key}")
    # The model's classes come first
    classes = [str(name) for name in record_of(data, key).get("classes", ())]
    rows = list(dict.fromkeys([*classes, *map(str, table.index)]))
    columns = list(dict.fromkeys([*rows, *map(str, table.columns)]))
    counts = table.reindex(index=rows, columns=columns, fill_value=0)
    return draw_confusion(counts, ax=ax)


def reliability(evaluation: Any, *, ax: Axes | None = None) -> Axes:
    """How often labels are right against their confidence, and how many there are.

    On the diagonal a confidence of 0.8 means that 8 of 10 such labels are right. Bars
    are 95 % intervals; bins of fewer than 10 labels are hollow. Labels that were
    withheld are left out.

    Parameters
    ----------
    evaluation : Evaluation or TrainingResult
        What :func:`optirank.tl.evaluate` or :func:`optirank.tl.train` returns.
    ax : matplotlib Axes, optional
        As in :func:`confusion`.

    Returns
    -------
    matplotlib Axes
    """
    table = evaluation.performance.reliability
    ax = axes_for(ax, 4.8, 5.0)
    ax.plot([0, 1], [0, 1], label="as confident as right", **_DIAGONAL)
    few = (table["n_samples"] < _FEW).to_numpy()
    hollow = {"markerfacecolor": "white", "linestyle": "none"}
    _points_with_bars(ax, table.loc[~few], "labels given")
    _points_with_bars(ax, table.loc[few], f"fewer than {_FEW}", **hollow)
    ax.set(xlim=_UNIT, ylim=_UNIT, xlabel="confidence", ylabel="share right")
    ax.legend(loc="best", **LEGEND)
    top = ax.inset_axes((0, 1.03, 1, 0.16), sharex=ax)
    top.bar(table["bin"], table["n_samples"], _BIN, align="edge", color=LIGHT_BLUE)
    top.set_ylabel("labels", fontsize="small")
    top.tick_params(labelbottom=False, length=0, labelsize="x-small")
    top.spines[["top", "right"]].set_visible(False)
    return ax


def roc(evaluation: Any, *, kind: str = "roc", ax: Axes | None = None) -> Axes:
    """ROC curves (``kind="pr"``: precision-recall curves), one per class.

    Of more classes than there are colours, those of the smallest area under the ROC
    curve are named and coloured, in both kinds the same. Two classes have one ROC
    curve. Parameters as in :func:`reliability`.
    """
    if kind not in _CURVES:
        raise ValueError(f"kind={kind!r}: use 'roc' or 'pr'")
    ax = axes_for(ax, 4.8, 4.8)
    judged = evaluation.performance
    curves, auc = judged.curves, judged.per_class["auc"]
    named = sorted(curves, key=lambda name: (auc[name], name))[: len(COLOURS)]
    colours = dict(zip(named, COLOURS, strict=False))
    areas = auc if kind == "roc" else judged.per_class["average_precision"]
    others = [name for name in curves if name not in colours]
    drawn = sorted(named, key=lambda name: (areas[name], name))
    if kind == "roc" and len(curves) == 2:
        drawn = list(curves)[1:]
    for name in [*others, *drawn]:
        look: dict[str, Any] = {"color": GREY, "linewidth": 0.7, "alpha": 0.6}
        if name in colours:
            label = f"{short(name, 24)}: {areas[name]:.3f}"
            look = {"color": colours[name], "linewidth": 1.6, "label": label}
        curve = curves[name]
        if kind == "roc":
            ax.plot(curve["false_positives"], curve["recall"], **look)
        else:
            look["drawstyle"] = "steps-post"
            ax.plot(curve["recall"], curve["precision"], **look)
    if kind == "roc":
        ax.plot([0, 1], [0, 1], **_DIAGONAL)
    xlabel, ylabel = _CURVES[kind]
    ax.set(xlim=_UNIT, ylim=_UNIT, aspect="equal", xlabel=xlabel, ylabel=ylabel)
    title = "area"
    if len(curves) > len(COLOURS):
        title = f"area: the {len(COLOURS)} classes of lowest AUC, others grey"
    ax.legend(
        loc="lower right" if kind == "roc" else "lower left",
        title=title,
        title_fontsize="small",
        **LEGEND,
    )
    return ax


def draw_confusion(counts: pd.DataFrame, *, ax: Place = None) -> Axes:
    """Samples by true class (rows) and label (columns), coloured by shares of the row.

    Classes that no sample is of, and none got the label of, are left out.
    """
    given = counts.sum()
    unseen = {
        name
        for name, row in counts.iterrows()
        if not row.any() and not given.get(name, 0)
    }
    rows = [name for name in counts.index if name not in unseen]
    counts = counts.loc[rows, [name for name in counts if name not in unseen]]
    table = counts.to_numpy()
    sizes = table.sum(axis=1)
    with np.errstate(invalid="ignore"):
        shares = table / sizes[:, None]
    columns = [short(name) for name in counts.columns]
    rows = [
        f"{short(name)} ({size})"
        for name, size in zip(counts.index, sizes, strict=True)
    ]
    n_rows, n_columns = table.shape
    n_cells = max(n_rows, n_columns)
    # All cells are square
    matrix = n_columns * min(0.5, max(0.125, 12.5 / n_columns))
    letters = max(map(len, columns)) * (0.075 if n_columns > 28 else 0.095)
    ax = axes_for(ax, matrix + letters + 2.6, matrix + 0.75 * letters + 1.1)
    bar = "share of the true class"
    look: dict[str, Any] = {"cmap": "Blues", "gap": min(1.0, 20 / n_cells)}
    heat_map(ax, shares, rows, columns, limits=(0, 1), bar=bar, **look)
    ax.set(xlabel="label given", ylabel="true class (samples)")
    if n_cells > _WITH_NUMBERS:
        _shrink_names(ax, n_cells)
        return ax
    for row, place in zip(*np.nonzero(table), strict=True):
        number = table[row, place]
        ax.text(
            place,
            row,
            str(number),
            ha="center",
            va="center",
            color="white" if shares[row, place] > 0.55 else DARK,
            fontsize="small" if number < 10_000 else "x-small",
        )
    return ax


def _shrink_names(ax: Axes, n_cells: int) -> None:
    """Make names no higher than the cells, and those below the axes upright."""
    from matplotlib import rcParams

    font_size = rcParams["font.size"]
    height = ax.get_window_extent().height / ax.figure.dpi * 72 / n_cells
    if height >= 1.5 * font_size:
        return
    ax.tick_params(labelsize=min(font_size, max(4.0, 0.8 * height)))
    for text in ax.get_xticklabels():
        text.set(rotation=90, ha="center", va="top", rotation_mode="default")


def _points_with_bars(ax: Axes, table: pd.DataFrame, label: str, **look: Any) -> None:
    """Draw bins of confidence with their intervals."""
    if not len(table):
        return
    below = (table["accuracy"] - table["low"]).clip(lower=0).to_numpy()
    above = (table["high"] - table["accuracy"]).clip(lower=0).to_numpy()
    ax.errorbar(
        table["confidence"],
        table["accuracy"],
        yerr=[below, above],
        label=label,
        **(ERROR_BARS | look),
    )


def draw_conditions(conditions: pd.DataFrame, *, ax: Place = None) -> Axes:
    """Balanced accuracy with its interval under every condition, the lowest class
    as a dot.
    """
    ax = axes_for(ax, 6.2, 1.1 + 0.32 * len(conditions))
    for row, line in enumerate(conditions.to_dict("records")):
        colour = _KINDS.get(line["kind"], DARK)
        accuracy = 100 * line["balanced_accuracy"]
        low, high = 100 * line["low"], 100 * line["high"]
        ax.plot([low, high], [row, row], color=colour, linewidth=2.5, alpha=0.35)
        ax.plot(accuracy, row, "o", color=colour, markersize=7)
        ax.plot(100 * line["lowest"], row, "o", color="none", markeredgecolor=GREY)
    ax.plot([], [], "o", color=DARK, label="mean over classes, 95 % interval")
    ax.plot([], [], "o", color="none", markeredgecolor=GREY, label="lowest class")
    name_rows(ax, [short(name, 44) for name in conditions["condition"]])
    ax.set(xlim=(-2, 102), xlabel="samples labelled right (%)")
    ax.grid(visible=True, axis="x", color="#e6e6e6")
    ax.set_axisbelow(True)
    ax.legend(ncols=2, **LEGEND_ABOVE)
    return ax


def draw_classes(shares: pd.DataFrame, *, ax: Place = None) -> Axes:
    """Sensitivity of classes (rows) under conditions (columns), with numbers."""
    values = 100 * shares.to_numpy(dtype=float)
    n_rows, n_columns = values.shape
    ax = axes_for(ax, 3.8 + 0.55 * n_columns, 3.0 + 0.32 * n_rows)
    rows = [short(name, 24) for name in shares.index]
    columns = [short(name, 44) for name in shares.columns]
    bar = "samples labelled right (%)"
    heat_map(ax, values, rows, columns, cmap="Blues", limits=(0, 100), bar=bar)
    for (row, place), value in np.ndenumerate(values):
        if value == value:
            colour = "white" if value > _DARK_FROM else DARK
            ax.text(place, row, f"{value:.0f}", ha="center", va="center", color=colour)
    return ax
