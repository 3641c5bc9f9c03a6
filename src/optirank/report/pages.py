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
from optirank.report.design import design_view
from optirank.report.environment import check_report, page_template
from optirank.report.labels import labels_view
from optirank.report.sample import sample_view
from optirank.report.truth import evaluation_view, training_view
from optirank.workflow.cards import card_tables, model_card
from optirank.workflow.design import DesignResult
from optirank.workflow.evaluate import Evaluation
from optirank.workflow.labels import Labels
from optirank.workflow.train import TrainingResult

if TYPE_CHECKING:
    from optirank.workflow import Result

__all__ = ["check_report", "page", "write_report"]

# Parts of a view that name parameters, such as adapt=True
_NAME_OPTIONS = {"notes", "warnings", "tiles", "advice", "withholds"}


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
    check_report()
    check_outputs({"the report": path}, (), force=True)
    write_text(path, page(result, dated=dated, spell=spell))
    return path


def page(
    result: Result, *, dated: bool = False, spell: Callable[[str], str] = str
) -> str:
    """The page as text, see `write_report`."""
    template, view = _view(result)
    for name in _NAME_OPTIONS & set(view):
        view[name] = _spelled(view[name], spell)
    model = result.model
    shared = {
        "version": __version__,
        "python": platform.python_version(),
        "spell": spell,
        "date": date.today().isoformat() if dated else "",
        "calibrated": model.panel.calibration is not None,
        "card": model_card(model),
        "card_tables": card_tables(model),
    }
    return page_template(f"{template}.html.jinja").render(shared | view)


def _spelled(part: Any, spell: Callable[[str], str]) -> Any:
    """The texts of a part of a view, with options as the reader types them."""
    if isinstance(part, list | tuple):
        return type(part)(_spelled(item, spell) for item in part)
    return spell(part) if isinstance(part, str) else part


def _view(result: Result) -> tuple[str, dict[str, Any]]:
    """The name of the template, and what it shows."""
    if isinstance(result, DesignResult):
        return "design", design_view(result)
    if isinstance(result, Evaluation):
        return "evaluation", evaluation_view(result)
    if isinstance(result, TrainingResult):
        return "training", training_view(result)
    if not isinstance(result, Labels):
        raise TypeError(f"a {type(result).__name__} has no page")
    if result.explanation is not None:
        return "sample", sample_view(result, result.explanation)
    return "labels", labels_view(result)
