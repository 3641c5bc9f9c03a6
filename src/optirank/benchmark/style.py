"""What all figures and pages of the experiments share: fonts, colours, files, images in a page."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from optirank._util.files import write_bytes

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which differ for colour-blind readers too; markers differ besides.
COLOURS = {
    "ANrank-lr": "#CC79A7",
    "SCN": "#E69F00",
    "lr": "#009E73",
    "optirank": "#D55E00",
    "rank-lr": "#0072B2",
    "rf": "#56B4E9",
    "oracle": "#333333",
}
MARKERS = {
    "ANrank-lr": "D",
    "SCN": "v",
    "lr": "s",
    "optirank": "o",
    "rank-lr": "^",
    "rf": "X",
    "oracle": None,
}
_STYLE = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "figure.facecolor": "white",
    "svg.hashsalt": "optirank",
}


def missing_extra() -> str | None:
    """Return the line that installs what figures and pages need, or None if it is there."""
    from importlib.util import find_spec

    if find_spec("matplotlib") and find_spec("jinja2"):
        return None
    return "pip install 'optirank[report]'"


@contextmanager
def style() -> Iterator[None]:
    """Fonts and lines of all figures."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that needs no screen."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG and as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    with style():
        for kind, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
            content = BytesIO()
            figure.savefig(content, format=kind, **options)
            write_bytes(folder / f"{name}.{kind}", content.getvalue())


def data_uri(path: Path) -> str:
    """Return an SVG file as an address that holds the whole image."""
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def template(package: str, name: str) -> Template:
    """Return a page's template from the folder ``templates`` of a package."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"breakable": _breakable, "unbroken": _unbroken}
    return environment.get_template(name)


def _breakable(text: str) -> str:
    """Let a long name break after its underscores."""
    from markupsafe import Markup, escape

    return Markup(str(escape(text)).replace("_", "_<wbr>"))


def _unbroken(text: str) -> str:
    """Keep each word of a heading on one line, with its hyphens."""
    from markupsafe import Markup

    word = Markup('<span class="solid">{}</span>')
    return Markup(" ").join(word.format(part) for part in text.split())
