"""What plots share: axes, colours, heat maps, columns, figures as files and images."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optirank._util.files import replacing
from optirank._util.words import some
from optirank.data.profiles import DataError, need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Place = Axes | Figure | None  # where to draw: see `axes_for`
else:  # typing.get_type_hints works where matplotlib is not installed
    Axes = Figure = Place = Any

# Okabe and Ito's colours, safe for the colour-blind; their yellow cannot be seen on
# white
BLUE = "#0072B2"
LIGHT_BLUE = "#7ABBE6"
ORANGE = "#D55E00"
GREY = "#999999"
DARK = "#333333"
COLOURS = (
    BLUE,
    ORANGE,
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#8C6BB1",
)
ERROR_BARS: dict[str, Any] = {
    "color": BLUE,
    "marker": "o",
    "markersize": 4.5,
    "elinewidth": 1,
    "capsize": 2.5,
}
CHOSEN: dict[str, Any] = {
    "linestyle": "none",
    "marker": "D",
    "markersize": 9,
    "color": ORANGE,
    "markeredgecolor": "white",
    "zorder": 5,
}
LEGEND: dict[str, Any] = {"frameon": False, "fontsize": "small"}
LEGEND_ABOVE: dict[str, Any] = {
    "loc": "lower right",
    "bbox_to_anchor": (1, 1),
    **LEGEND,
}
_STYLE: dict[Any, Any] = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "optirank",  # the same figure is the same file
    "svg.fonttype": "none",  # the browser has fonts for every script
    "text.parse_math": False,  # a dollar sign in a label is a dollar sign
}


def axes_for(place: Any, width: float, height: float) -> Axes:
    """Axes to draw on, open above and on the right: those given, else new ones of a
    size in inches.

    An empty figure that is given gets this size, and axes.
    """
    if hasattr(place, "set_size_inches"):
        place.set_size_inches(width, height)
        ax = place.subplots()
    else:
        plt = need("matplotlib.pyplot", "report", "drawing")
        size = (width, height)
        ax = place or plt.subplots(figsize=size, layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def figure_of(ax: Axes) -> Figure:
    """The whole figure of some axes, which may be in a part of it."""
    return ax.figure.canvas.figure


def save_figure(ax: Axes, path: str | Path) -> Path:
    """Write the figure of some axes, in the format the name says, and close it."""
    plt = need("matplotlib.pyplot", "report", "drawing")
    path = Path(path)
    figure_format = path.suffix[1:].lower()
    try:
        if figure_format not in ax.figure.canvas.get_supported_filetypes():
            raise DataError(
                f"{path}: figures are written as .png, .svg or .pdf: use such a name"
            )
        with replacing(path) as temporary:
            figure_of(ax).savefig(temporary, dpi=160, format=figure_format)
    finally:
        plt.close(figure_of(ax))
    return path


def figure_image(draw: Callable[..., Any], *shown: Any, **options: Any) -> str:
    """What ``draw(*shown)`` draws, as an image that needs no other file."""
    import matplotlib
    from matplotlib.figure import Figure

    target = io.StringIO()
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # The browser has a font for a glyph that matplotlib lacks
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure = Figure(layout="constrained")
        draw(*shown, **options, ax=figure)
        figure.savefig(target, format="svg", metadata={"Date": None}, transparent=True)
    return svg_address(target.getvalue())


def svg_address(svg: str) -> str:
    """An SVG as the address of an image."""
    content = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return f"data:image/svg+xml;base64,{content}"


def column(data: Any, name: str) -> NDArray:
    """A column of a data frame, or of an AnnData's ``obs``, missing values as None."""
    frame = data.obs if hasattr(data, "obs") else data
    if not hasattr(frame, "columns"):
        raise TypeError(f"give an AnnData or a data frame, not a {type(data).__name__}")
    if name not in frame.columns:
        raise DataError(
            f"there is no column {name!r}: there are {some(frame.columns, 20)}"
        )
    values = frame[name].astype(object)
    return values.where(values.notna(), None).to_numpy(dtype=object)


def record_of(data: Any, key: str) -> Any:
    """What :func:`optirank.tl.annotate` left in ``uns`` under a key; {} without it."""
    return getattr(data, "uns", {}).get(key, {})


def heat_map(
    ax: Axes,
    values: NDArray,
    rows: Sequence[object],
    columns: Sequence[object],
    *,
    cmap: str,
    limits: tuple[float, float],
    bar: str,
    gap: float = 1.0,
) -> None:
    """Draw a matrix with names on both axes and a bar of its colours; NaN is white.

    White lines as wide as ``gap`` are between the cells.
    """
    low, high = limits
    image = ax.imshow(
        values, cmap=cmap, vmin=low, vmax=high, aspect="auto", interpolation="nearest"
    )
    ax.set_yticks(range(len(rows)), [str(name) for name in rows])
    ax.set_xticks(range(len(columns)), [str(name) for name in columns])
    if len(columns) > 3 or max((len(str(name)) for name in columns), default=0) > 12:
        slant(ax)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    colour_bar = ax.figure.colorbar(
        image, ax=ax, label=bar, fraction=0.05, pad=0.02, aspect=30
    )
    colour_bar.outline.set_visible(False)
    if gap:
        ax.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=gap)
        ax.tick_params(which="minor", length=0)


def slant(ax: Axes) -> None:
    """Turn the names below the axes by 45 degrees."""
    ax.tick_params(axis="x", rotation=45)
    for text in ax.get_xticklabels():
        text.set(ha="right", rotation_mode="anchor")


def name_rows(
    ax: Axes,
    names: Sequence[str],
    bare: Sequence[str] = ("top", "right", "left"),
    **look: Any,
) -> None:
    """Write names beside rows, the first on top; ``bare`` sides have no line."""
    ax.set_yticks(range(len(names)), names, **look)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines[[*bare]].set_visible(False)


def short(name: object, limit: int = 32) -> str:
    """A name that fits beside a figure: the middle of a long one is left out."""
    text = str(name)
    if len(text) <= limit:
        return text
    end = limit // 3
    return f"{text[: limit - end - 1].rstrip()}…{text[-end:].lstrip()}"
