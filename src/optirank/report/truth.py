"""What the pages of a training and of an evaluation show: labels against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.metrics import in_percent, percent
from optirank._util.names import some
from optirank.model import panel_table
from optirank.pl.sizes import draw_sizes
from optirank.pl.truth import (
    confusion_size,
    draw_confusion,
    draw_curves,
    draw_reliability,
)
from optirank.report.environment import figure_image
from optirank.report.labels import (
    agreement_tile,
    can_show,
    checked_by_genes,
    missing_genes,
    model_name,
    mostly_withheld,
    provenance,
)
from optirank.workflow.performance import MEASURES, TARGETS

if TYPE_CHECKING:
    from optirank.model import Model
    from optirank.workflow.evaluate import Evaluation
    from optirank.workflow.performance import Performance
    from optirank.workflow.train import TrainingResult

# Sensitivity below which a class is marked: more than one in five is missed
_WEAK = 0.8
_SHOWN_GENES = 30  # a page of them
_SHOWN_MISTAKES = 3


def training_view(result: TrainingResult) -> dict[str, Any]:
    """What the template of a training takes."""
    judged = result.performance
    model = result.model
    card = model.card
    view = _against_truth(judged, model) | _genes(model)
    has_curve = len(result.curve) > 1
    if has_curve:
        view["figures"]["sizes"] = figure_image(
            lambda ax: draw_sizes(ax, result.curve), 6.6, 4.0
        )
    right = f"{judged.n_right:,} of {judged.n_given:,}"
    classes = f"{len(judged.classes)} classes"
    return view | {
        "title": card.name or f"A classifier of {card.label}",
        "lead": f"Trained on {card.source}: {card.n_samples:,} samples of {classes}. "
        f"{card.description}",
        "whose": "held-out",
        "warnings": [*_weak(judged), *result.warnings],
        "tiles": [
            (right, "held-out samples labelled right"),
            (f"{model.n_genes}", f"genes to measure, of {card.n_genes_of_file:,}"),
            *_auc_tile(judged),
        ],
        "batch": card.batch,
        "curve": result.curve.sort_values("n_genes").to_dict("records")
        if has_curve
        else [],
        "finds_unknown": model.card.unknown_rate_works,
        "notes": result.notes,
        "provenance": [],
    }


def evaluation_view(result: Evaluation) -> dict[str, Any]:
    """What the template of an evaluation takes."""
    judged = result.performance
    trained = result.model.card.balanced_accuracy
    tiles = [
        (f"{judged.n_right:,} of {judged.n_given:,}", "labels given are right"),
        (f"{judged.n_withheld:,}", f"withheld, of {judged.n_samples:,} labels"),
    ]
    if judged.n_withheld:
        text = "balanced accuracy of all samples, where withheld is not found"
        tiles.append((percent(judged.of_all), text))
    if trained is not None:
        text = "held-out samples of the training, for comparison"
        tiles.append((percent(trained), text))
    n_changed = result.labels.record.get("n_changed")
    if n_changed is not None:
        text = f"of {len(result.labels.chosen):,} labels changed by adapt=True"
        tiles.append((f"{n_changed:,}", text))
    tiles += agreement_tile(result.labels)
    return _against_truth(judged, result.model) | {
        "title": f"Evaluation on {Path(result.source).name}",
        "lead": f"{judged.n_samples:,} samples, true classes from the column "
        f"{result.label}, labelled by the {model_name(result.model)}.",
        "whose": "these",
        "warnings": [
            *result.warnings,
            *mostly_withheld(result.labels),
            *_weak(judged),
        ],
        "tiles": [*tiles, *_auc_tile(judged)],
        "checked": checked_by_genes(result.labels),
        "levels": [] if result.levels is None else result.levels.to_dict("records"),
        "level_figures": {
            name: figure_image(
                lambda ax, counts=counts: draw_confusion(ax, counts),
                *confusion_size(list(counts.columns)),
            )
            for name, counts in result.confusions.items()
        },
        "missing": missing_genes(result.labels),
        "notes": result.notes,
        "provenance": provenance(result.labels),
    }


def _auc_tile(judged: Performance) -> list[tuple[str, str]]:
    """The mean area under the ROC curve; samples of one class have none."""
    if judged.auc != judged.auc:
        return []
    return [(f"{judged.auc:.3f}", "mean area under the ROC curve")]


def _against_truth(judged: Performance, model: Model) -> dict[str, Any]:
    """The tables and figures of labels against the truth."""
    seen = _seen(judged)
    unseen = [name for name in judged.classes if name not in seen]
    table = judged.per_class.loc[seen]
    lows = table[[f"{measure}_low" for measure in MEASURES]].to_numpy()
    known = lows[~np.isnan(lows)]
    low, high = judged.interval
    shares = judged.prevalence or {}
    return {
        "figures": _figures(judged),
        "guess": 1 / len(judged.classes),
        "measures": MEASURES,
        "unseen": some(unseen, 20) if unseen else "",
        "class_rows": table.rename_axis("name").reset_index().to_dict("records"),
        "weak": _WEAK,
        "axis": np.floor(10 * known.min()) / 10 if known.size else 0.0,
        "prevalence": f"{judged.prevalence_from}, "
        + some(f"{name} {percent(share)}" for name, share in shares.items())
        if shares
        else "as in these samples",
        "n_given": judged.n_given,
        "n_withheld": judged.n_withheld,
        "mistakes": _mistakes(judged),
        "bias": judged.bias,
        "withholding": judged.withholding.to_dict("records"),
        "withholds": _withholds(model),
        "accuracy": percent(judged.balanced_accuracy),
        "interval": f"95 %: {in_percent(low)} to {percent(high)}"
        if judged.n_given
        else "",
        "counted": judged.counted,
    }


def _seen(judged: Performance) -> list[str]:
    """The classes that a sample is of, or got the label of."""
    counts = judged.confusion
    return [
        name for name in judged.classes if counts.loc[name].sum() or counts[name].sum()
    ]


def _figures(judged: Performance) -> dict[str, str]:
    """The figures of labels against the truth, by name."""
    seen = _seen(judged)
    further = [name for name in judged.confusion if name not in judged.classes]
    counts = judged.confusion.loc[seen, [*seen, *further]]
    figures = {
        "confusion": figure_image(
            lambda ax: draw_confusion(ax, counts), *confusion_size(list(counts.columns))
        ),
    }
    if judged.n_given:
        figures["reliability"] = figure_image(
            lambda ax: draw_reliability(ax, judged.reliability), 4.8, 5.0
        )
    if judged.curves:
        figures["roc"] = figure_image(
            lambda ax: draw_curves(ax, judged.curves, "roc"), 4.8, 4.8
        )
        figures["pr"] = figure_image(
            lambda ax: draw_curves(ax, judged.curves, "pr"), 4.8, 4.8
        )
    return figures


def _withholds(model: Model) -> str:
    """Whether the model withholds labels, or which options can ask for it."""
    control = model.panel.error_control
    if control is not None and control.target_error is not None:
        by_level = model.tree is not None
        reason = control.at(control.target_error, by_level=by_level).reason
        return f"The model was trained to withhold labels: {reason}."
    possible = [target for target in TARGETS if can_show(model, target)]
    if possible:
        return (
            "The model withholds no label unless target_error= asks for it at "
            "prediction; its held-out samples can show an error of "
            f"{percent(min(possible))}."
        )
    return (
        "The model withholds no label unless threshold= asks for it at prediction; it "
        "has too few held-out samples to show an error."
    )


def _weak(judged: Performance) -> list[str]:
    table = judged.per_class
    names = table.index[table["sensitivity"] < _WEAK]
    if not len(names):
        return []
    whose = "its" if len(names) == 1 else "their"
    return [
        f"{some(names, 10)}: fewer than {_WEAK:.0%} of {whose} samples get the right "
        "label"
    ]


def _mistakes(judged: Performance) -> list[dict[str, Any]]:
    """The most frequent confusions, as shares of the true class."""
    counts = judged.confusion[list(judged.classes)]
    mistakes = [
        {"truth": truth, "given": given, "n": int(number), "of": int(row.sum())}
        for truth, row in counts.iterrows()
        for given, number in row.items()
        if truth != given and number
    ]
    mistakes.sort(key=lambda mistake: (-mistake["n"] / mistake["of"], -mistake["n"]))
    return mistakes[:_SHOWN_MISTAKES]


def _genes(model: Model) -> dict[str, Any]:
    """The heaviest genes and which class they speak for."""
    panel = panel_table(model)
    weights = panel.filter(regex="^weight_").to_numpy()
    names = [str(label) for label in model.score_classes]
    has_roles = "role" in panel
    rows = []
    for line, row in zip(
        panel.head(_SHOWN_GENES).to_dict("records"), weights, strict=False
    ):
        heaviest = int(np.abs(row).argmax())
        weight = row[heaviest]
        speaks = f"{'for' if weight > 0 else 'against'} {names[heaviest]}"
        if len(names) == 1 and weight < 0:
            speaks = f"for {model.classes[0]}"
        rows.append(
            {
                "gene": line["gene"],
                "role": line["role"] if has_roles else "",
                "speaks": speaks if weight else "",
                "weight": f"{weight:+.2f}",
            }
        )
    return {"genes": rows, "roles": has_roles, "n_genes": len(panel)}
