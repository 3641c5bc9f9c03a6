"""How many labels there are, and how well they fit the truth: confusion, reliability, ROC.

The ``draw_`` functions draw tables of `optirank.workflow`; `optirank.pl` has the public ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.report.common import (
    BLUE,
    COLOURS,
    DARK,
    GREY,
    ORANGE,
    axes_for,
    cells_between,
    finish,
    heat_map,
    short,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from optirank.estimators.optirank_cv import OptirankClassifierCV
else:  # typing.get_type_hints works without importing them
    Axes = OptirankClassifierCV = Any

_SURE = (BLUE, "#7ABBE6", "#F2A66B", ORANGE)  # of labels, the most confident first
_FEW = 10  # labels of a bin from which on it is drawn full
_WITH_ERRORS = {
    "color": BLUE,
    "marker": "o",
    "markersize": 4.5,
    "elinewidth": 1,
    "capsize": 2.5,
}
_CHOSEN = {"linestyle": "none", "marker": "D", "markersize": 9, "color": ORANGE}
_CHOSEN |= {"markeredgecolor": "white", "zorder": 5}


def draw_confusion(ax: Axes, counts: pd.DataFrame) -> None:
    """Samples by true class (rows) and label (columns): colours are shares of the row."""
    from matplotlib import rcParams

    table = counts.to_numpy()
    sizes = table.sum(axis=1)
    with np.errstate(invalid="ignore"):
        shares = table / sizes[:, None]
    rows = [
        f"{short(name)} ({size})"
        for name, size in zip(counts.index, sizes, strict=True)
    ]
    columns = [short(name) for name in counts.columns]
    n_cells = max(table.shape)
    heat_map(
        ax,
        shares,
        rows,
        columns,
        cmap="Blues",
        limits=(0, 1),
        bar="share of the true class",
    )
    cells_between(ax, *table.shape, min(1.0, 20 / n_cells))
    ax.set(xlabel="label given", ylabel="true class (samples)")
    if n_cells <= 15:  # numbers fit in the cells of so many classes
        for i, j in zip(*np.nonzero(table), strict=True):
            colour = "white" if shares[i, j] > 0.55 else DARK
            size = "small" if table[i, j] < 10_000 else "x-small"
            ax.text(
                j,
                i,
                str(table[i, j]),
                ha="center",
                va="center",
                color=colour,
                fontsize=size,
            )
        return
    cell = ax.get_window_extent().height / ax.figure.dpi * 72 / n_cells
    if (
        cell < 1.5 * rcParams["font.size"]
    ):  # names no higher than the cells, upright below them
        ax.tick_params(labelsize=min(rcParams["font.size"], max(4.0, 0.8 * cell)))
        for text in ax.get_xticklabels():
            text.set(rotation=90, ha="center", va="top", rotation_mode="default")


def confusion_size(classes: Sequence[object]) -> tuple[float, float]:
    """Width and height, in inches, of a figure in which the cells of all classes are square."""
    matrix = len(classes) * min(0.5, max(0.125, 12.5 / len(classes)))
    letters = max(len(short(name)) for name in classes) * (
        0.075 if len(classes) > 28 else 0.095
    )
    return matrix + letters + 2.6, matrix + 0.75 * letters + 1.1


def draw_labels(ax: Axes, table: pd.DataFrame) -> None:
    """Samples of each label by steps of confidence, as a bar, with their number and share."""
    from matplotlib.patches import Patch

    rows, left, handles, texts = np.arange(len(table)), np.zeros(len(table)), [], []
    for name, colour in zip(table.columns[3:], (*_SURE, GREY), strict=True):
        ax.barh(rows, table[name], left=left, color=colour, height=0.72)
        left += table[name].to_numpy()
        if colour != GREY or table[name].any():
            handles.append(Patch(color=colour, label=name))
    look = {
        "va": "center",
        "fontsize": "small",
        "textcoords": "offset points",
        "in_layout": False,
    }
    for row, n, share in zip(rows, left, table["share"], strict=True):
        texts.append(
            ax.annotate(f"{n:,.0f} ({100 * share:.1f} %)", (n, row), (4, 0), **look)
        )
    ax.set_yticks(rows, [short(name, 24) for name in table.index])
    ax.set(ylim=(len(table) - 0.4, -0.6), xticks=[])
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    look = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": len(handles)}
    look |= {
        "handlelength": 1.0,
        "handletextpad": 0.4,
        "columnspacing": 1.0,
        "frameon": False,
    }
    look |= {"alignment": "left", "fontsize": "small", "title_fontsize": "small"}
    ax.legend(handles=handles, title="confidence", **look)
    ax.figure.draw_without_rendering()  # beside the longest bar there is room for its number
    room = max(text.get_window_extent().width for text in texts) + 0.1 * ax.figure.dpi
    ax.set_xlim(0, left.max() / max(1 - room / ax.get_window_extent().width, 0.3))


def labels_size(table: pd.DataFrame) -> tuple[float, float]:
    """Width and height, in inches, of a figure of `draw_labels`: it can be read on a phone."""
    return 4.4, 0.8 + 0.3 * len(table)


def draw_reliability(ax: Axes, table: pd.DataFrame) -> None:
    """Share of right labels against confidence, with 95 % intervals, and how many there are above.

    Bins of fewer than 10 labels are hollow.
    """
    ax.plot(
        [0, 1],
        [0, 1],
        color=GREY,
        linestyle="--",
        linewidth=1,
        label="as confident as right",
    )
    few = (table["n_samples"] < _FEW).to_numpy()
    for mine, fill, name in (
        (~few, BLUE, "labels given"),
        (few, "white", f"fewer than {_FEW}"),
    ):
        part = table[mine]
        if len(part):
            below = (part["accuracy"] - part["low"]).clip(lower=0).to_numpy()
            above = (part["high"] - part["accuracy"]).clip(lower=0).to_numpy()
            look = {
                "markerfacecolor": fill,
                "linestyle": "-" if fill == BLUE else "none",
            }
            look |= _WITH_ERRORS | {"yerr": [below, above], "label": name}
            ax.errorbar(part["confidence"], part["accuracy"], **look)
    ax.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        xlabel="confidence",
        ylabel="share right",
    )
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="best", frameon=False, fontsize="small")
    top = ax.inset_axes([0, 1.03, 1, 0.16], sharex=ax)
    width = 0.1 if len(table) < 2 else float(np.diff(table["bin"]).min())
    top.bar(
        table["bin"],
        table["n_samples"],
        width=width,
        align="edge",
        color=BLUE,
        alpha=0.35,
    )
    top.set_ylabel("labels", fontsize="small")
    top.tick_params(labelbottom=False, length=0, labelsize="x-small")
    top.spines[["top", "right"]].set_visible(False)


def draw_curves(ax: Axes, curves: Mapping[str, Any], kind: str = "roc") -> None:
    """ROC (``"roc"``) or precision-recall (``"pr"``) curves, one per class against the rest.

    Of more classes than there are colours, those of the smallest area are named and coloured.
    """
    area = {
        name: one.auc if kind == "roc" else one.average_precision
        for name, one in curves.items()
    }
    named = sorted(area, key=lambda name: (area[name], name))[: len(COLOURS)]
    if len(curves) == 2:  # one curve says it all
        named = named[-1:] if area[named[0]] == area[named[1]] else named
    for name in (name for name in curves if name not in named and len(curves) > 2):
        _curve(ax, curves[name], kind, color=GREY, linewidth=0.7, alpha=0.6)
    for name, colour in zip(named, COLOURS, strict=False):
        label = f"{short(name, 24)}: {area[name]:.3f}"
        _curve(ax, curves[name], kind, color=colour, linewidth=1.6, label=label)
    if kind == "roc":
        ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
        ax.set(xlabel="1 − specificity", ylabel="sensitivity")
    else:
        ax.set(xlabel="sensitivity (recall)", ylabel="PPV (precision)")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)
    title = (
        "area"
        if len(curves) <= len(COLOURS)
        else f"area, lowest of {len(curves)} classes"
    )
    place = "lower right" if kind == "roc" else "lower left"
    ax.legend(
        loc=place, frameon=False, fontsize="small", title=title, title_fontsize="small"
    )


def _curve(ax: Axes, curve: Any, kind: str, **look: Any) -> None:
    if kind == "roc":
        ax.plot(curve.false_positives, curve.recall, **look)
    else:
        ax.plot(curve.recall, curve.precision, drawstyle="steps-post", **look)


def draw_sizes(ax: Axes, curve: pd.DataFrame) -> None:
    """Held-out accuracy against the number of genes, with standard errors, and the one chosen."""
    curve = curve.dropna(subset=["balanced_accuracy"]).sort_values("n_genes")
    accuracy, error = 100 * curve["balanced_accuracy"], 100 * curve["standard_error"]
    label = "held-out samples" + (", ± standard error" if error.notna().any() else "")
    ax.errorbar(
        curve["n_genes"], accuracy, yerr=error.fillna(0), label=label, **_WITH_ERRORS
    )
    for row in curve[curve["chosen"].astype(bool)].itertuples():
        accuracy = 100 * row.balanced_accuracy
        label = f"chosen: {row.n_genes:.0f} genes, {accuracy:.1f} %"
        ax.plot(row.n_genes, accuracy, label=label, **_CHOSEN)
    ax.set_xscale("log")
    ticks = curve["n_genes"].to_numpy()
    ax.set_xticks(ticks, [f"{n:.0f}" for n in ticks])
    ax.minorticks_off()
    ax.set(xlabel="genes in the panel", ylabel="balanced accuracy (%)")
    ax.grid(visible=True, axis="y", color="#e6e6e6")
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower right", frameon=False, fontsize="small")


def selection_path(
    model: OptirankClassifierCV, *, ax: Axes | None = None, show: bool = False
) -> Axes:
    """Validation score against the number of genes, with the setting that was selected.

    The line joins the best setting at each number of genes, with standard errors over the folds;
    grey dots are the other settings. The band reaches from the best mean score to one standard
    error below it: the one-standard-error rule selects the leftmost setting in it.

    Parameters
    ----------
    model : OptirankClassifierCV
        Fitted.
    ax, show
        As in :func:`optirank.pl.confusion`.

    Returns
    -------
    matplotlib Axes
    """
    path, results = model.one_se_path(), model.cv_results_
    n_genes, scores = results["mean_n_genes"], results["mean_test_score"]
    best, selected = (path[path[which]].iloc[0] for which in ("best", "selected"))
    front = path.sort_values(["n_genes", "score"], ascending=[True, False])
    front = front[
        front["score"] > front["score"].cummax().shift(fill_value=float("-inf"))
    ]
    ax = axes_for(ax, 5.5, 3.8)
    low = best["score"] - best["standard_error"]
    band = "within one standard error of the best"
    ax.axhspan(low, best["score"], color=BLUE, alpha=0.12, linewidth=0, label=band)
    ax.plot(
        n_genes, scores, ".", markersize=5, color=GREY, alpha=0.6, label="all settings"
    )
    label, error = "best of as few genes, ± standard error", front["standard_error"]
    ax.errorbar(
        front["n_genes"], front["score"], yerr=error, label=label, **_WITH_ERRORS
    )
    label = f"selected: {selected['n_genes']:.0f} genes, {selected['score']:.3f}"
    ax.plot(selected["n_genes"], selected["score"], label=label, **_CHOSEN)
    # A wide range of sizes needs a logarithmic axis
    if min(n_genes) > 0 and max(n_genes) > 20 * min(n_genes):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    scoring = model.scoring if isinstance(model.scoring, str) else "score"
    ax.set(xlabel="genes needed (mean over folds)")
    ax.set_ylabel(f"{scoring.replace('_', ' ')}, validation")
    ax.spines[["top", "right"]].set_visible(False)
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)}
    ax.legend(**place, ncols=2, fontsize="small", frameon=False)
    return finish(ax, show)
