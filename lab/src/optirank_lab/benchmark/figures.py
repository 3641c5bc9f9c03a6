"""The figures of a report, drawn by matplotlib with its defaults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.files import replacing
from optirank_lab.benchmark.classifiers import CLASSIFIERS, ordered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "*o^sDvX<p>HdP8h"
_WIDTH = 8.0  # inches: the text of a page
_DOTS = 160  # per inch of a .png
_ACCURACY = "balanced accuracy (%)"
_SIDE_BY_SIDE = 1.02  # factor between lines, so that their bars can be told apart


def look(name: str) -> dict[str, str]:
    """Colour and marker of a classifier, by its place in the registry."""
    place = ordered({*CLASSIFIERS, name}).index(name)
    return {"color": f"C{place % 10}", "marker": _MARKERS[place % len(_MARKERS)]}


def means_figure(standings: pd.DataFrame) -> Figure:
    """The mean of each classifier with its interval, best on top."""
    figure, (ax,) = _new_figure(0.9 + 0.28 * len(standings))
    for place, row in enumerate(standings.to_dict("records")):
        style = look(row["classifier"])
        ends = [100 * row["low"], 100 * row["high"]]
        if np.isfinite(ends).all():
            ax.plot(ends, [place, place], color=style["color"])
        mark: dict[str, Any] = {"markersize": 7, "linestyle": "none", **style}
        ax.plot(100 * row["mean"], place, **mark)
    ax.set_yticks(range(len(standings)), list(standings["classifier"]))
    ax.invert_yaxis()
    ax.set_xlabel(_ACCURACY)
    return figure


def tasks_figure(table: pd.DataFrame, standings: pd.DataFrame) -> Figure:
    """Every task in a row, with one mark per classifier."""
    figure, (ax,) = _new_figure(1.4 + 0.22 * len(table))
    for name in reversed(list(standings["classifier"])):
        mark: dict[str, Any] = {"linestyle": "none", "alpha": 0.8, **look(name)}
        ax.plot(100 * table[name], np.arange(len(table)), label=name, **mark)
    ax.set_yticks(range(len(table)), [str(name) for name in table.index], fontsize=8)
    ax.set_ylim(-0.7, len(table) - 0.3)
    ax.invert_yaxis()
    ax.set_xlabel(_ACCURACY)
    figure.legend(
        loc="outside upper center", ncols=5, fontsize=8, frameon=False, reverse=True
    )
    return figure


def genes_figure(scores: pd.DataFrame, standings: pd.DataFrame) -> Figure:
    """Mean accuracy against the median number of genes, on a logarithmic axis."""
    figure, (ax,) = _new_figure(4.0)
    needed = scores.groupby("classifier")["n_genes"].median()
    for row in standings.to_dict("records"):
        name = row["classifier"]
        mark: dict[str, Any] = {"linestyle": "none", "markersize": 8, **look(name)}
        ax.plot(needed.loc[name], 100 * row["mean"], label=name, **mark)
    ax.set(xscale="log", xlabel="genes that the model needs", ylabel=_ACCURACY)
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


def sweeps_figure(table: pd.DataFrame) -> Figure:
    """Mean accuracy along each sweep of the synthetic experiment."""
    labels = list(dict.fromkeys(table["sweep"]))
    figure, axes = _new_figure(3.2, len(labels))
    names = ordered(set(table.columns) - {"sweep", "value"})
    for ax, label in zip(axes, labels, strict=True):
        rows = table[table["sweep"] == label]
        for name in names:
            line: dict[str, Any] = {"label": name, **look(name)}
            ax.plot(rows["value"], 100 * rows[name], **line)
        ax.set_xlabel(label)
    axes[0].set_ylabel(_ACCURACY)
    handles, legend = axes[0].get_legend_handles_labels()
    figure.legend(handles, legend, loc="outside upper center", ncols=5, frameon=False)
    return figure


def curve_figure(means: pd.DataFrame) -> Figure:
    """Accuracy against the number of genes, one line per method with its interval.

    ``means`` has the columns ``method``, ``n_genes``, ``mean``, ``low`` and ``high``.
    """
    figure, (ax,) = _new_figure(4.6)
    for place, (method, rows) in enumerate(means.groupby("method", sort=False)):
        by_genes = rows.sort_values("n_genes")
        mean = by_genes["mean"].to_numpy()
        below = mean - by_genes["low"].to_numpy()
        above = by_genes["high"].to_numpy() - mean
        ax.errorbar(
            by_genes["n_genes"].to_numpy() * _SIDE_BY_SIDE ** (place - 3),
            100 * mean,
            100 * np.array([below, above]),
            label=str(method),
            color=f"C{place}",
            marker=_MARKERS[place % len(_MARKERS)],
            linewidth=2.5 if method == "panel" else 1.2,
            elinewidth=0.6,
        )
    ax.set(xscale="log", xlabel="genes", ylabel=f"mean {_ACCURACY}")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure as .png and .svg; the same figure gives the same files."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path.with_name(f"{path.name}.png")) as temporary:
        figure.savefig(temporary, format="png", dpi=_DOTS)
    with (
        replacing(path.with_name(f"{path.name}.svg")) as temporary,
        matplotlib.rc_context({"svg.hashsalt": "optirank"}),
    ):
        figure.savefig(
            temporary, format="svg", transparent=True, metadata={"Date": None}
        )


def _new_figure(height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes = figure.subplots(1, columns, sharey=True, squeeze=False).ravel().tolist()
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.3)
        ax.set_axisbelow(True)
    return figure, axes
