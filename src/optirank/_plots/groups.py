"""Names of groups of columns under a heat map, kept apart where the groups are narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank._plots.common import GREY, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

_SLANTED = 1.75  # heights of a letter between names at 45 degrees that do not touch
_LAID_OUT = 0.7  # of the width of the axes, what the names beside them may leave
_LEADER = 9.0  # points between the cells and names that are moved
_SMALLEST = 4.0  # points


def group_width(n_groups: int) -> float:
    """Inches of a figure in which the names of so many groups have room."""
    return max(7.5, 3.5 + 0.25 * n_groups)


def spread(positions: ArrayLike, gap: float, low: float, high: float) -> NDArray:
    """Positions at least ``gap`` apart in [low, high], as near to the given ones as possible.

    With q_k = v_k + k gap, where v does not fall, the squared distances are least for the isotonic
    regression v of positions_k - k gap. The positions given must not fall, and
    (n - 1) gap <= high - low.
    """
    from sklearn.isotonic import isotonic_regression

    steps = gap * np.arange(len(np.asarray(positions)))
    end = max(low, high - steps[-1])
    return isotonic_regression(np.asarray(positions) - steps, y_min=low, y_max=end) + steps


def name_groups(ax: Axes, starts: NDArray, ends: NDArray, names: Sequence[object]) -> None:
    """Write the name of each group of columns below it; lines lead to names that are moved."""
    from matplotlib import rcParams
    from matplotlib.collections import LineCollection

    centres, total = (starts + ends - 1) / 2, float(ends[-1])
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    width = _LAID_OUT * box.width / dpi * 72
    size = min(rcParams["font.size"], width / (_SLANTED * max(1, len(names) - 1)))
    size = max(_SMALLEST, size)
    gap = min(_SLANTED * size / width * total, total / max(1, len(names) - 1))
    moved = (np.diff(centres) < gap).any()
    places = spread(centres, gap, -0.5, total - 0.5) if moved else centres
    ax.set_xticks(places, [short(name) for name in names])
    ax.tick_params(axis="x", rotation=45, labelsize=size, pad=_LEADER + 2 if moved else 2)
    for text in ax.get_xticklabels():
        text.set(ha="right", rotation_mode="anchor")
    if not moved:
        return
    depth = -_LEADER / (box.height / dpi * 72)
    lines = [[(a, 0.0), (b, depth)] for a, b in zip(centres, places, strict=True)]
    leaders = LineCollection(
        lines, colors=GREY, linewidths=0.6, transform=ax.get_xaxis_transform(), clip_on=False
    )
    ax.add_collection(leaders, autolim=False)
