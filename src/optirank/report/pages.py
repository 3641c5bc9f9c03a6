"""The pages of a training, of an evaluation and of labels: one template, one file each."""

from __future__ import annotations

import base64
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank import __version__
from optirank._util.files import check_outputs, write_text
from optirank._util.names import some
from optirank.io.data import need
from optirank.model import Model, panel_table
from optirank.report.common import as_svg
from optirank.report.performance import (
    confusion_size,
    draw_confusion,
    draw_curves,
    draw_labels,
    draw_reliability,
    draw_sizes,
    labels_size,
)
from optirank.workflow.cards import card_tables, model_card
from optirank.workflow.evaluate import Evaluation
from optirank.workflow.labels import Labels, label_table
from optirank.workflow.performance import MEASURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from optirank.workflow.performance import Performance
    from optirank.workflow.train import TrainingResult

_WEAK = 0.8  # sensitivity below which a class is marked: one in five is missed


def check_report() -> None:
    """Raise, before any work, where what a page needs is not installed."""
    need("jinja2", "report", "the report")
    need("matplotlib", "report", "the report")


def write_report(
    result: TrainingResult | Evaluation | Labels, path: str | Path
) -> Path:
    """Write the page of a training, of an evaluation or of labels, whole or not at all."""
    path = Path(path)
    check_report()
    check_outputs({"the report": path}, (), force=True)
    write_text(path, page(result))
    return path


def page(result: TrainingResult | Evaluation | Labels) -> str:
    """The page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("optirank.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = _percent
    environment.globals["zip"] = zip
    view = {
        "version": __version__,
        "python": platform.python_version(),
        "calibrated": result.model.panel.calibration is not None,
        "card": model_card(result.model),
        "card_tables": card_tables(result.model),
    }
    if isinstance(result, Labels):
        view |= _of_labels(result)
    else:
        view |= (
            _of_evaluation(result)
            if isinstance(result, Evaluation)
            else _of_training(result)
        )
    view["tiles"] = [
        tile for tile in view["tiles"] if tile[0] != "nan"
    ]  # one class has no AUC
    return environment.get_template("page.html.jinja").render(view)


def _of_labels(result: Labels) -> dict[str, Any]:
    n, hidden = len(result.codes), int(result.withheld.sum())
    table = label_table(result.labels, result.confidence, result.words[-1])
    unused = [name for name in result.classes if name not in table.index]
    n_classes, n_genes = len(result.classes), result.record["n_genes"]
    told = (
        f"{hidden:,} label{'s are' if hidden > 1 else ' is'}"
        if hidden
        else "no label is"
    )
    return {
        "kind": "labels",
        "title": f"Labels of {Path(result.source).name}",
        "lead": f"{n:,} sample{'s' * (n != 1)}, labelled by the {_model_name(result.model)}; "
        f"{told} withheld.",
        "tiles": [
            (f"{n - hidden:,}", "samples labelled" + f", of {n:,}" * (hidden > 0)),
            (f"{result.confidence.mean():.3f}", "mean confidence"),
            (
                f"{n_genes - len(result.missing)} of {n_genes}",
                "genes of the panel found",
            ),
            (f"{n_classes - len(unused)} of {n_classes}", "classes among the labels"),
        ],
        "images": {
            "labels": _image(lambda ax: draw_labels(ax, table), *labels_size(table))
        },
        "label_rows": table.rename_axis("label").reset_index().to_dict("records"),
        "unused": some(unused, 20) if unused else None,
        "clusters": []
        if result.clusters is None
        else result.clusters.table.to_dict("records"),
        "missing": _missing(result),
        "warnings": result.alarms,
        "notes": result.notes,
    }


def _against_truth(performance: Performance, model: Model) -> dict[str, Any]:
    """The tables and figures of labels against the truth."""
    table = performance.per_class
    low = np.nanmin(table[[f"{one}_low" for one in MEASURES]].to_numpy())
    axis = np.floor(10 * low) / 10 if low == low else 0.0
    figures: dict[str, tuple[Callable, float, float]] = {
        "confusion": (
            lambda ax: draw_confusion(ax, performance.confusion),
            *confusion_size(performance.confusion.columns),
        ),
        "reliability": (
            lambda ax: draw_reliability(ax, performance.reliability),
            4.8,
            5.0,
        ),
        "roc": (lambda ax: draw_curves(ax, performance.curves, "roc"), 4.8, 4.8),
        "pr": (lambda ax: draw_curves(ax, performance.curves, "pr"), 4.8, 4.8),
    }
    if not performance.curves:
        del figures["roc"], figures["pr"]
    control, shares = model.panel.error_control, performance.prevalence
    low, high = performance.interval
    interval = f"95 %: {100 * low:.1f} to {100 * high:.1f} %"
    withholding = ""
    if control is not None and control.target_error is not None:
        withholding = control.at(control.target_error).reason
    return {
        "images": {name: _image(*one) for name, one in figures.items()},
        "guess": 1 / len(performance.classes),
        "measures": MEASURES,
        "class_rows": table.rename_axis("name").reset_index().to_dict("records"),
        "weak": _WEAK,
        "axis": axis,
        "prevalence": shares
        and some(f"{name} {share:.1%}" for name, share in shares.items()),
        "n_withheld": performance.n_withheld,
        "mistakes": _mistakes(performance),
        "bias": performance.bias,
        "withholding": performance.withholding.to_dict("records"),
        "accuracy": (_percent(performance.balanced_accuracy), interval),
        "control": withholding,
    }


def _of_training(result: TrainingResult) -> dict[str, Any]:
    performance, model = result.performance, result.model
    card = model.card
    tiles = [
        (
            f"{performance.n_right} of {performance.n_given}",
            "held-out samples labelled right",
        ),
        (
            f"{model.n_genes}",
            f"genes to measure, of {card.n_genes_of_file:,}",
        ),
        (f"{performance.auc:.3f}", "mean area under the ROC curve"),
    ]
    view = _against_truth(performance, model) | _genes(model)
    if len(result.curve) > 1:
        view["curve"] = result.curve.sort_values("n_genes").to_dict("records")
        view["images"]["sizes"] = _image(
            lambda ax: draw_sizes(ax, result.curve), 6.6, 4.0
        )
    return view | {
        "kind": "training",
        "title": card.name or f"A classifier of {card.label}",
        "lead": f"Trained on {card.source}: {card.n_samples} samples of "
        f"{len(performance.classes)} classes. {card.description}",
        "warnings": [*_weak(performance), *result.warnings],
        "tiles": tiles,
        "batch": card.batch,
        "sources": bool(card.batch),
        "notes": [note for note in result.notes if note not in result.warnings],
    }


def _of_evaluation(result: Evaluation) -> dict[str, Any]:
    performance = result.performance
    trained = result.model.card.balanced_accuracy
    tiles = [
        (f"{performance.n_right} of {performance.n_given}", "labels given are right"),
        (f"{performance.n_withheld}", f"labels withheld, of {performance.n_samples}"),
    ]
    if trained is not None:
        tiles.append(
            (_percent(trained), "held-out samples of the training, for comparison")
        )
    tiles.append((f"{performance.auc:.3f}", "mean area under the ROC curve"))
    return _against_truth(performance, result.model) | {
        "kind": "evaluation",
        "title": f"Evaluation on {Path(result.source).name}",
        "lead": f"{performance.n_samples} samples, true classes from the column "
        f"{result.label}, labelled by the {_model_name(result.model)}.",
        "warnings": [*result.alarms, *_weak(performance)],
        "tiles": tiles,
        "missing": _missing(result.labels),
        "notes": result.notes,
    }


def _model_name(model: Model) -> str:
    card = model.card
    if card.name:
        return f"model “{card.name}”"
    return f"classifier of {card.label}" if card.label else "model"


def _missing(labels: Labels) -> dict[str, Any] | None:
    """Genes of the panel that the query lacks."""
    if not labels.missing:
        return None
    names, n_genes = some(labels.missing, 20), labels.record["n_genes"]
    return {"n": len(labels.missing), "of": n_genes, "names": names}


def _weak(performance: Performance) -> list[str]:
    table = performance.per_class
    names = table.index[table["sensitivity"] < _WEAK]
    if not len(names):
        return []
    whose = "its" if len(names) == 1 else "their"
    return [
        f"{some(names, 10)}: fewer than 80 % of {whose} samples get the right label"
    ]


def _mistakes(performance: Performance) -> list[dict[str, Any]]:
    """The three most frequent confusions, as shares of the true class."""
    counts = performance.confusion[list(performance.classes)]
    found = [
        {"truth": truth, "given": given, "n": int(n), "of": int(row.sum())}
        for truth, row in counts.iterrows()
        for given, n in row.items()
        if truth != given and n
    ]
    return sorted(found, key=lambda one: (-one["n"] / one["of"], -one["n"]))[:3]


def _genes(model: Model) -> dict[str, Any]:
    """The heaviest genes and which class they speak for."""
    panel = panel_table(model)
    weights = panel.filter(regex="^weight_")
    names = [name.removeprefix("weight_") for name in weights.columns]
    rows = []
    # 30 genes are a page of them
    for (_, line), row in zip(
        panel.head(30).iterrows(), weights.to_numpy(), strict=False
    ):
        k = int(np.abs(row).argmax())
        speaks = f"{'for' if row[k] > 0 else 'against'} {names[k]}"
        if len(names) == 1 and row[k] < 0:
            speaks = f"for {model.classes[0]}"
        weight = f"{row[k]:+.2f}"
        rows.append(
            {"gene": line["gene"], "speaks": speaks if row[k] else "", "weight": weight}
        )
        rows[-1]["role"] = line.get("role", "")
    return {"genes": rows, "roles": not model.votes, "n_genes": len(panel)}


def _image(draw: Callable[..., Any], width: float, height: float) -> str:
    svg = as_svg(draw, width, height)
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8")).decode(
        "ascii"
    )


def _percent(value: float) -> str:
    return "–" if value is None or value != value else f"{100 * value:.1f} %"
