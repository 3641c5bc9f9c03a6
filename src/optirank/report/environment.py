"""The one jinja environment of all pages, and figures as pages hold them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optirank._util.metrics import ends_in_percent, percent
from optirank._util.names import counted
from optirank.io.data import need
from optirank.pl.axes import as_svg

if TYPE_CHECKING:
    from jinja2 import Template


def check_report() -> None:
    """Raise, before any work, where what a page needs is not installed."""
    need("jinja2", "report", "the report")
    need("matplotlib", "report", "the report")


def page_template(name: str, package: str = "optirank.report") -> Template:
    """A template of a package, which may extend the templates of this room.

    ``base.html.jinja`` has the look of all pages, ``parts.html.jinja`` their parts.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    packages = dict.fromkeys([package, "optirank.report"])
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(room, "templates") for room in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.globals["counted"] = counted
    environment.globals["ends_in_percent"] = ends_in_percent
    environment.globals["zip"] = zip
    return environment.get_template(name)


def figure_image(draw: Callable[..., Any], width: float, height: float) -> str:
    """What ``draw`` draws on axes of a size in inches, as the address of an image."""
    return svg_address(as_svg(draw, width, height))


def svg_address(svg: str) -> str:
    """An SVG as the address of an image that needs no other file."""
    content = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return f"data:image/svg+xml;base64,{content}"
