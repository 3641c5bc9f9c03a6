"""The figures of a comparison, with matplotlib's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import CLASSIFIERS, ordered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 8.0  # inches: the width of the page's text


def _look(name: str) -> dict[str, str]:
    """Colour and marker of a classifier; grey for one that the registry does not have."""
    one = CLASSIFIERS.get(name)
    return {"color": one.colour, "marker": one.marker} if one else {"color": "#777", "marker": "h"}


def _new(height: float, columns: int = 1, **options) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes = figure.subplots(1, columns, **options)
    for ax in np.atleast_1d(axes):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.3)
        ax.set_axisbelow(True)
    return figure, axes


def means(standings: pd.DataFrame) -> Figure:
    """The mean of each classifier with its interval, best on top."""
    figure, ax = _new(0.9 + 0.28 * len(standings))
    for k, one in enumerate(standings.itertuples()):
        if np.isfinite(one.low):
            ax.plot([100 * one.low, 100 * one.high], [k, k], color=_look(one.classifier)["color"])
        ax.plot(100 * one.mean, k, ms=7, linestyle="none", **_look(one.classifier))
    ax.set_yticks(range(len(standings)), standings["classifier"])
    ax.invert_yaxis()
    ax.set_xlabel("balanced accuracy (%)")
    return figure


def tasks(table: pd.DataFrame, standings: pd.DataFrame) -> Figure:
    """Every task in a row, with one mark per classifier."""
    figure, ax = _new(1.4 + 0.22 * len(table))
    for name in reversed(list(standings["classifier"])):
        ax.plot(100 * table[name], np.arange(len(table)), ls="none", alpha=0.8, label=name,
                **_look(name))  # fmt: skip
    ax.set_yticks(range(len(table)), [str(name) for name in table.index], fontsize=8)
    ax.set_ylim(-0.7, len(table) - 0.3)
    ax.invert_yaxis()
    ax.set_xlabel("balanced accuracy (%)")
    figure.legend(loc="outside upper center", ncols=5, fontsize=8, frameon=False, reverse=True)
    return figure


def genes(scores: pd.DataFrame, standings: pd.DataFrame) -> Figure:
    """Mean accuracy against the median number of genes, which is on a logarithmic axis."""
    figure, ax = _new(4.0)
    needed = scores.groupby("classifier")["n_genes"].median()
    for one in standings.itertuples():
        ax.plot(needed[one.classifier], 100 * one.mean, ls="none", ms=8, label=one.classifier,
                **_look(one.classifier))  # fmt: skip
    ax.set(xscale="log", xlabel="genes that the model needs", ylabel="balanced accuracy (%)")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure


def sweeps(table: pd.DataFrame) -> Figure:
    """Mean accuracy along each sweep of the synthetic experiment."""
    labels = list(dict.fromkeys(table["sweep"]))
    figure, axes = _new(3.2, len(labels), sharey=True)
    names = ordered(set(table.columns) - {"sweep", "value"})
    for ax, label in zip(np.atleast_1d(axes), labels, strict=True):
        rows = table[table["sweep"] == label]
        for name in names:
            ax.plot(rows["value"], 100 * rows[name], label=name, **_look(name))
        ax.set_xlabel(label)
    np.atleast_1d(axes)[0].set_ylabel("balanced accuracy (%)")
    handles, names = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=5, frameon=False)
    return figure


def curve(means: pd.DataFrame) -> Figure:
    """Accuracy against the number of genes, one line per method with its interval.

    ``means`` has the columns ``method``, ``n_genes``, ``mean``, ``low`` and ``high``.
    """
    figure, ax = _new(4.6)
    columns = ("n_genes", "mean", "low", "high")
    for k, (method, rows) in enumerate(means.groupby("method", sort=False)):
        rows = rows.sort_values("n_genes")
        genes, mean, low, high = (rows[name].to_numpy() for name in columns)
        ax.errorbar(
            genes * 1.02 ** (k - 3),  # side by side, so that the bars can be seen
            100 * mean,
            100 * np.array([mean - low, high - mean]),
            label=method,
            color=f"C{k}",
            marker="osv^D<>pX"[k % 9],
            linewidth=2.5 if method == "panel" else 1.2,
            elinewidth=0.6,
        )
    ax.set(xscale="log", xlabel="genes", ylabel="mean balanced accuracy (%)")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    return figure
