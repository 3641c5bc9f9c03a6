"""Pages of a training, an evaluation, a design, labels, or one sample: one file
each.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from optirank import __version__
from optirank._util.files import check_outputs, write_text
from optirank._util.words import counted, ends_in_percent, percent
from optirank.data.profiles import need
from optirank.report.labels import labels_view, sample_view
from optirank.report.truth import design_view, evaluation_view, training_view
from optirank.verbs.cards import card_tables, model_card
from optirank.verbs.design import DesignResult
from optirank.verbs.evaluation import Evaluation
from optirank.verbs.labels import Labels
from optirank.verbs.training import TrainingResult

if TYPE_CHECKING:
    from jinja2 import Template

    from optirank.verbs.options import Result

__all__ = ["check_report", "page_template", "render_page", "write_page"]


def check_report() -> None:
    """Raise, before any work, where what a page needs is not installed."""
    need("jinja2", "report", "the report")
    need("matplotlib", "report", "the report")


def write_page(result: Result, path: str | os.PathLike[str]) -> Path:
    """Write the page of a result, whole or not at all.

    The same result gives the same bytes.
    """
    check_report()
    path = Path(path)
    check_outputs({"the report": path}, (), force=True)
    write_text(path, render_page(result))
    return path


def render_page(result: Result) -> str:
    """The page of a result as text."""
    if isinstance(result, DesignResult):
        template, view = "design", design_view(result)
    elif isinstance(result, Evaluation):
        template, view = "evaluation", evaluation_view(result)
    elif isinstance(result, TrainingResult):
        template, view = "training", training_view(result)
    elif isinstance(result, Labels) and result.explanation is not None:
        template, view = "sample", sample_view(result)
    elif isinstance(result, Labels):
        template, view = "labels", labels_view(result)
    else:
        raise TypeError(f"a {type(result).__name__} has no page")
    shared = {
        "version": __version__,
        "python": platform.python_version(),
        "calibrated": result.model.panel.calibration is not None,
        "card": model_card(result.model),
        "card_tables": card_tables(result.model),
    }
    return page_template(f"{template}.html.jinja").render(shared | view)


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
    shared = {"counted": counted, "ends_in_percent": ends_in_percent, "zip": zip}
    environment.globals.update(shared)
    return environment.get_template(name)
