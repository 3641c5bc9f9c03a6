"""The report of a training: one page that needs nothing else, for readers of any profession."""

from __future__ import annotations

import base64
import platform
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optirank import __version__
from optirank._plots.performance import confusion_size
from optirank._util.files import check_outputs, write_text
from optirank._util.names import folds_in_words
from optirank.datasets.errors import need
from optirank.estimators.votes import is_vote
from optirank.model import panel_table
from optirank.model.votes import pair_table
from optirank.workflow import figures
from optirank.workflow.planning import duration

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.result import TrainingResult

_TOP = 30  # genes shown
_WEAK = 10  # classes named that need care
_SMALL = 10  # classes of a confusion matrix that fits a narrow page
_ROLES = {
    "reference": "reference set",
    "weight": "compared with it",
    "both": "both",
    "neither": "",
}


def check_report() -> None:
    """Raise, before any work, where what a report needs is not installed."""
    need("jinja2", "report", "the report")
    need("matplotlib", "report", "the report")


def write_report(result: TrainingResult, path: str | Path) -> Path:
    """Write the page, whole or not at all."""
    path = Path(path)
    check_report()
    check_outputs({"the report": path}, (), force=True)
    write_text(path, page(result))
    return path


def page(result: TrainingResult) -> str:
    """The page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("optirank.workflow", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": _percent, "share": _share, "duration": duration}
    environment.filters["folds"] = folds_in_words
    panel = panel_table(result.model)
    model = result.model
    return environment.get_template("report.html.jinja").render(
        result=result,
        model=model,
        classes=list(model.classes_),
        class_rows=_class_rows(result.per_class),
        weak=_weak(result.per_class),
        weak_shown=_WEAK,
        mistakes=_mistakes(result),
        n_right=int((result.held_out["label"] == result.held_out["predicted"]).sum()),
        images={
            "confusion": _image(result, figures.confusion),
            "confusion_width": f"width: {96 * confusion_size(model.classes_)[0]:.0f}px",
            "confusion_large": len(model.classes_) > _SMALL,
            "reliability": _image(result, figures.reliability),
            "path": _image(result, figures.selection_path) if len(result.path) > 1 else None,
        },
        bias=_bias(result),
        elsewhere=result.accuracy_elsewhere(),
        genes=[] if is_vote(model) else _top_genes(panel, len(model.classes_) == 2),
        n_shown=min(_TOP, len(panel)),
        roles=panel["role"].value_counts().to_dict(),
        votes=is_vote(model),
        rules=pair_table(model).to_dict("records") if is_vote(model) else [],
        n_reference=0 if is_vote(model) else int(model.reference_.sum(axis=1).max()),
        fixed=not hasattr(model, "side"),
        on_values=not hasattr(model, "ties"),
        calibrated=hasattr(model, "calibration_"),
        rejection=getattr(model, "rejection_", None),
        version=__version__,
        python=platform.python_version(),
        today=model.training_summary_.get("date", date.today().isoformat()),
    )


def _class_rows(table: pd.DataFrame) -> list[dict]:
    return [{"name": name, **row} for name, row in table.to_dict("index").items()]


def _weak(table: pd.DataFrame) -> list[str]:
    """Classes of which fewer than 80 % are found."""
    return [str(name) for name in table.index[table["recall"] < 0.8]]


def _mistakes(result: TrainingResult) -> list[dict]:
    """The most frequent confusions, as shares of the true class."""
    counts = result.confusion()
    found = [
        {"truth": truth, "given": given, "n": int(n), "share": n / counts.loc[truth].sum()}
        for truth, row in counts.iterrows()
        for given, n in row.items()
        if truth != given and n
    ]
    return sorted(found, key=lambda one: -one["share"])[:3]


def _bias(result: TrainingResult) -> float:
    """By how much the mean confidence exceeds the share of right labels."""
    right = (result.held_out["label"] == result.held_out["predicted"]).mean()
    return float(result.held_out["confidence"].mean() - right)


def _top_genes(panel: pd.DataFrame, binary: bool) -> list[dict]:
    """The heaviest genes: what they are for and which class they speak for."""
    weights = panel.filter(regex="^weight_")
    names = [name.removeprefix("weight_") for name in weights.columns]
    names = [name.removesuffix("_rising").removesuffix("_falling") for name in names]
    values = weights.to_numpy()[:_TOP]
    rows = []
    for (_, line), row in zip(panel.iterrows(), values, strict=False):
        k = int(np.abs(row).argmax())
        speaks = f"{'for' if row[k] > 0 else 'against'} {names[k]}" if row[k] else ""
        rows.append(
            {
                "gene": line["gene"],
                "role": _ROLES[line["role"]],
                "speaks": speaks,
                "weight": f"{row[k]:+.2f}" if row[k] else "",
                "n_reference": "" if binary else int(line["n_reference"]),
            }
        )
    return rows


def _image(result: TrainingResult, figure) -> str:
    svg = figures.draw(figure, result)
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8")).decode("ascii")


def _percent(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f} %"


def _share(value: float) -> str:
    """Out of a hundred, for sentences."""
    if 0 < value < 0.005:
        return "fewer than 1"
    return "–" if value != value else f"{100 * value:.0f}"
