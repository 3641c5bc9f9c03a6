"""Names beside points of a figure, placed so that they do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_RADII = (8, 15, 24, 35, 48, 64, 84, 110)  # points from a mark to its name
# Off the axes first, where a mark may have lines of its own.
_ANGLES = np.deg2rad([30, 150, 330, 210, 60, 120, 300, 240, 0, 180, 90, 270, 45, 135, 315, 225])
_TURNS = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])
_LINE = 13  # points; a name further away gets a line to its mark
_MARK = 6  # points around a mark that no name may cover
_PAD = 1.5  # points kept free around a name


def label_points(ax: Axes, x: Sequence[float], y: Sequence[float], names: Sequence[str]) -> None:
    """Write a name beside each point; the limits and scales of the axes must be set.

    Each name takes the nearest place within the axes at which it covers no mark and no other name;
    where there is none, that with the least overlap. Points with close neighbours come first.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patheffects import withStroke

    figure = ax.figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()  # the layout moves the axes
    unit = figure.dpi / 72  # pixels per point
    marks = ax.transData.transform(np.column_stack([x, y])) / unit
    frame = ax.get_window_extent().extents / unit
    taken = [np.concatenate([mark - _MARK, mark + _MARK]) for mark in marks]
    for k in _crowded_first(marks):
        label = ax.annotate(
            names[k], (x[k], y[k]), (0, 0), textcoords="offset points", va="bottom", fontsize=10
        )
        box = label.get_window_extent(renderer)
        size = np.array([box.width, box.height]) / unit
        corner = _place(marks[k], size, taken, frame)
        taken.append(np.concatenate([corner - _PAD, corner + size + _PAD]))
        label.set_position(tuple(corner - marks[k]))
        label.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
        nearest = np.clip(marks[k], corner, corner + size)
        if np.hypot(*(nearest - marks[k])) > _LINE:
            ends = ax.transData.inverted().transform(np.stack([marks[k], nearest]) * unit)
            ax.plot(*ends.T, color="#999999", lw=0.8, zorder=1, scalex=False, scaley=False)


def _crowded_first(marks: NDArray) -> list[int]:
    """Return the points by the distance to their nearest neighbour, in points."""
    gaps = np.linalg.norm(marks[:, None] - marks[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    return np.argsort(gaps.min(axis=1), kind="stable").tolist() if len(marks) > 1 else [0]


def _place(mark: NDArray, size: NDArray, taken: list[NDArray], frame: NDArray) -> NDArray:
    """Return the lower left corner of a name of that size: the first free place, or the best."""
    best, least = mark, np.inf
    for radius in _RADII:
        for turn in _TURNS:
            side = np.where(np.abs(turn) > 0.1, np.sign(turn), 0)  # of the mark, in each direction
            corner = mark + radius * turn - (1 - side) / 2 * size
            box = np.concatenate([corner, corner + size])
            covered = sum(_overlap(box, other) for other in taken)
            outside = size.prod() - _overlap(box, frame)
            if covered + 10 * outside < least - 1e-9:
                best, least = corner, covered + 10 * outside
        if least <= 1e-9:
            break
    return best


def _overlap(one: NDArray, other: NDArray) -> float:
    """Return the common area of two boxes (left, bottom, right, top)."""
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    return float(sides.clip(min=0).prod())
