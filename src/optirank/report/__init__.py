"""Pages of a training, an evaluation, a design, labels, or one sample: one
file each.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank import __version__
from optirank._util.files import check_outputs, write_text
from optirank._util.names import counted, ends_in_percent, percent
from optirank.io.data import need
from optirank.report.labels import labels_view, sample_view
from optirank.report.truth import design_view, evaluation_view, training_view
from optirank.verbs.cards import card_tables, model_card
from optirank.verbs.design import DesignResult
from optirank.verbs.evaluate import Evaluation
from optirank.verbs.labels import Labels
from optirank.verbs.training import TrainingResult

if TYPE_CHECKING:
    from jinja2 import Template

    from optirank.verbs.options import Result

# Of each result: the name of the template, and what it shows
_VIEWS: dict[type, tuple[str, Callable[[Any], dict[str, Any]]]] = {
    DesignResult: ("design", design_view),
    Evaluation: ("evaluation", evaluation_view),
    TrainingResult: ("training", training_view),
    Labels: ("labels", labels_view),
}


def check_report(path: str | os.PathLike[str] | None) -> None:
    """Raise, before any work, where a page is asked for and what it needs is not
    installed.
    """
    if path is not None:
        need("jinja2", "report", "the report")
        need("matplotlib", "report", "the report")


def write_report(
    result: Result,
    path: str | os.PathLike[str],
    *,
    dated: bool = False,
    spell: Callable[[str], str] = str,
) -> Path:
    """Write the page of a result, whole or not at all.

    Parameters
    ----------
    result : what is shown.
    path : the file.
    dated : whether to show the date; without it, the same result gives the same bytes.
    spell : turns the names of parameters in notes and warnings into what the reader
        types.
    """
    path = Path(path)
    check_report(path)
    check_outputs({"the report": path}, (), force=True)
    write_text(path, page(result, dated=dated, spell=spell))
    return path


def page(
    result: Result, *, dated: bool = False, spell: Callable[[str], str] = str
) -> str:
    """The page as text, see `write_report`."""
    if isinstance(result, Labels) and result.explanation is not None:
        template, view = "sample", sample_view(result)
    elif type(result) in _VIEWS:
        template, view_of = _VIEWS[type(result)]
        view = view_of(result)
    else:
        raise TypeError(f"a {type(result).__name__} has no page")
    model = result.model
    shared = {
        "version": __version__,
        "python": platform.python_version(),
        "date": date.today().isoformat() if dated else "",
        "calibrated": model.panel.calibration is not None,
        "card": model_card(model),
        "card_tables": card_tables(model),
    }
    return page_template(f"{template}.html.jinja", spell=spell).render(shared | view)


def page_template(
    name: str, package: str = "optirank.report", *, spell: Callable[[str], str] = str
) -> Template:
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
    environment.filters.update({"percent": percent, "spell": spell})
    shared = {"counted": counted, "ends_in_percent": ends_in_percent, "zip": zip}
    environment.globals.update(shared)
    return environment.get_template(name)
