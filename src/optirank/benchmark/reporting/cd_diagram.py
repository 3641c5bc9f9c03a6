"""The critical-difference diagram: classifiers on an axis of mean ranks, best on the left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optirank.benchmark.reporting.style import look, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from optirank.benchmark.reporting.rankings import Ranking

_ROW = 0.3  # inches between two names
_GROUP = 0.13  # inches between two bars of groups


def draw_ranking(found: Ranking) -> Figure:
    """Draw a ranking. Bars join classifiers whose mean ranks do not differ significantly.

    The better half has its names on the left and the others on the right; heights are in inches, so
    that names never overlap however many there are.
    """
    k = len(found.mean_ranks)
    left = (k + 1) // 2
    bars = _levels(found)
    first = -0.24 - _GROUP * (max(bars, default=-1) + 1) - 0.12
    bottom = first - _ROW * (left - 1) - 0.2
    top = 0.85
    figure = new_figure(9.2, top - bottom)
    ax = figure.subplots()
    ax.set(xlim=_limits(found), ylim=(bottom, top))
    ax.set_axis_off()
    _axis(ax, k)
    _critical(ax, found)
    for group, level in zip(found.groups, bars, strict=True):
        y = -0.2 - _GROUP * level
        ends = [found.mean_ranks[group[0]] - 0.03, found.mean_ranks[group[-1]] + 0.03]
        ax.plot(ends, [y, y], color="#222222", lw=4.5, solid_capstyle="butt", zorder=2)
    for place, (name, value) in enumerate(found.mean_ranks.items()):
        row = place if place < left else k - 1 - place
        _name(ax, name, value, first - _ROW * row, k, on_left=place < left)
    return figure


def _limits(found: Ranking) -> tuple[float, float]:
    """Return the ends of the axis with room for the names, in proportion to its length."""
    k = len(found.mean_ranks)
    room = 0.5 * max(k - 1, 1)
    return 1 - room, max(k + room, 1 + found.critical_difference + 0.1)


def _axis(ax: Axes, k: int) -> None:
    ax.plot([1, k], [0, 0], color="#222222", lw=1.2)
    for rank in range(1, k + 1):
        ax.plot([rank, rank], [0, 0.08], color="#222222", lw=1.2)
        ax.text(rank, 0.12, str(rank), ha="center", va="bottom", fontsize=10)
    ax.text((k + 1) / 2, 0.62, "mean rank (1 is best)", ha="center", va="bottom", fontsize=10)


def _critical(ax: Axes, found: Ranking) -> None:
    start, end, y = 1.0, 1 + found.critical_difference, 0.45
    ax.plot([start, end], [y, y], color="#222222", lw=1.2)
    for x in (start, end):
        ax.plot([x, x], [y - 0.05, y + 0.05], color="#222222", lw=1.2)
    words = f"critical difference {found.critical_difference:.2f} "
    ax.text(start, y, words, ha="right", va="center", fontsize=10)


def _levels(found: Ranking) -> list[int]:
    """Return a level for each group, so that bars on one level do not touch."""
    ends: list[float] = []
    levels = []
    for group in found.groups:  # from left to right
        start, end = found.mean_ranks[group[0]], found.mean_ranks[group[-1]]
        level = next((k for k, last in enumerate(ends) if last + 0.1 < start), len(ends))
        ends[level:] = [end, *ends[level + 1 :]]
        levels.append(level)
    return levels


def _name(ax: Axes, name: str, value: float, y: float, k: int, *, on_left: bool) -> None:
    room = 0.05 * max(k - 1, 1)
    edge = 1 - room if on_left else k + room
    ax.plot([value, value, edge], [0, y, y], color="#888888", lw=1.0, zorder=1)
    ax.plot(value, 0, ms=8, mec="white", mew=0.6, ls="", zorder=3, clip_on=False, **look(name))
    shown = f"{name}  {value:.2f} " if on_left else f" {value:.2f}  {name}"
    ax.text(edge, y, shown, ha="right" if on_left else "left", va="center", fontsize=11)
