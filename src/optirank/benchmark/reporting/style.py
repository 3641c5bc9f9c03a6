"""What all figures and pages of the experiments share: fonts, lines, images in a page."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure

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


def look(name: str) -> dict[str, str]:
    """Return colour and marker of a classifier; grey for one that this version does not know."""
    from optirank.benchmark.classifiers import get

    try:
        return get(name).look
    except ValueError:
        return {"color": "#777777", "marker": "X"}


def data_uri(path: Path) -> str:
    """Return an SVG file as an address that holds the whole image."""
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode("ascii")


def template(name: str) -> Template:
    """Return a page's template."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("optirank.benchmark.reporting", "templates"),
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
