"""What the pages of a training, an evaluation and a design show: labels against the
truth.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank import pl
from optirank._util.words import in_percent, percent, some
from optirank.model.explanation import speaks_for
from optirank.pl.axes import figure_image
from optirank.pl.genes import MOST_GENES, draw_dots, draw_sizes
from optirank.pl.truth import draw_classes, draw_conditions
from optirank.report.labels import (
    Tiles,
    agreement_tile,
    checked_by_genes,
    missing_genes,
    model_name,
    mostly_withheld,
    provenance,
)
from optirank.verbs.performance import MEASURES

if TYPE_CHECKING:
    from optirank.verbs.design import DesignResult
    from optirank.verbs.evaluation import Evaluation
    from optirank.verbs.performance import Performance
    from optirank.verbs.training import TrainingResult

# Sensitivity below which a class is marked: more than one in five is missed
_WEAK = 0.8
_SHOWN_GENES = 30  # a page of them
_SHOWN_MISTAKES = 3
_SHOWN_PAIRS = 10  # of classes that are confused
# By kind: the title, and how the lead begins
_KINDS = {
    "chosen": ("A panel of {n} genes", "Chosen{required},"),
    "extended": ("A list extended to {n} genes", "Extended{required},"),
    "scored": ("A list of {n} genes", "Scored as it is"),
}
# Conditions that matter first: failing genes, platforms, test data
_FIRST = {("failing", 0.3), ("platform", 2.0)}


def training_view(result: TrainingResult) -> dict[str, Any]:
    """What the template of a training takes."""
    judged = result.performance
    model = result.model
    card = model.card
    view = _against_truth(result)
    panel = model.table()
    weights = panel.filter(regex="^weight_").to_numpy()
    names = [str(label) for label in model.score_classes]
    genes = panel.head(_SHOWN_GENES).to_dict("records")
    first_of_two = model.classes[0] if len(names) == 1 else None
    for line, row in zip(genes, weights, strict=False):
        heaviest = int(np.abs(row).argmax())
        line["speaks"] = speaks_for(row[heaviest], names[heaviest], first_of_two)
        line["weight"] = f"{row[heaviest]:+.2f}"
    curve = result.curve.sort_values("n_genes")
    if len(curve) > 1:
        view["figures"]["sizes"] = figure_image(draw_sizes, curve)
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
        "genes": genes,
        "roles": "role" in panel,
        "n_genes": len(panel),
        "batch": card.batch,
        "curve": curve.to_dict("records") if len(curve) > 1 else [],
        "notes": result.notes,
        "provenance": [],
    }


def evaluation_view(result: Evaluation) -> dict[str, Any]:
    """What the template of an evaluation takes."""
    judged = result.performance
    labels = result.labels
    trained = result.model.card.balanced_accuracy
    # With a tree a label that counts for no class can be coarser
    withheld = "withheld" if result.levels is None else "withheld or coarser"
    tiles = [
        (f"{judged.n_right:,} of {judged.n_given:,}", "labels given are right"),
        (f"{judged.n_withheld:,}", f"{withheld}, of {judged.n_samples:,} labels"),
    ]
    if judged.n_withheld:
        text = f"balanced accuracy of all samples, where {withheld} is not found"
        tiles.append((percent(judged.of_all), text))
    if trained is not None:
        text = "held-out samples of the training, for comparison"
        tiles.append((percent(trained), text))
    if "n_changed" in labels.record:
        text = f"of {len(labels.chosen):,} labels changed by adapt=True"
        tiles.append((f"{labels.record['n_changed']:,}", text))
    return _against_truth(result) | {
        "title": f"Evaluation on {Path(result.source).name}",
        "lead": f"{judged.n_samples:,} samples, true classes from the column "
        f"{result.label}, labelled by the {model_name(result.model)}.",
        "whose": "these",
        "warnings": [*result.warnings, *mostly_withheld(labels), *_weak(judged)],
        "tiles": [*tiles, *agreement_tile(labels), *_auc_tile(judged)],
        "checked": checked_by_genes(labels),
        "levels": [] if result.levels is None else result.levels.to_dict("records"),
        "missing": missing_genes(labels),
        "withheld_word": withheld,
        "notes": result.notes,
        "provenance": provenance(labels),
    }


def _auc_tile(judged: Performance) -> Tiles:
    """The mean area under the ROC curve; samples of one class have none."""
    if judged.auc != judged.auc:
        return []
    return [(f"{judged.auc:.3f}", "mean area under the ROC curve")]


def _against_truth(result: TrainingResult | Evaluation) -> dict[str, Any]:
    """The tables and figures of labels against the truth."""
    judged = result.performance
    counts = judged.confusion
    # Classes that a sample is of, or got the label of
    seen = [
        name for name in judged.classes if counts.loc[name].any() or any(counts[name])
    ]
    unseen = [name for name in judged.classes if name not in seen]
    table = judged.per_class.loc[seen]
    lows = table[[f"{measure}_low" for measure in MEASURES]].to_numpy()
    known = lows[~np.isnan(lows)]
    low, high = judged.interval
    interval = f"95 %: {in_percent(low)} to {percent(high)}" if judged.n_given else ""
    figures = {"confusion": figure_image(pl.confusion, result)}
    if judged.n_given:
        figures["reliability"] = figure_image(pl.reliability, result)
    for kind in ("roc", "pr") if judged.curves else ():
        figures[kind] = figure_image(pl.roc, result, kind=kind)
    mistakes = [
        {"truth": truth, "given": given, "n": int(number), "of": int(row.sum())}
        for truth, row in counts[list(judged.classes)].iterrows()
        for given, number in row.items()
        if truth != given and number
    ]
    mistakes.sort(key=lambda mistake: (-mistake["n"] / mistake["of"], -mistake["n"]))
    return {
        "figures": figures,
        "guess": 1 / len(judged.classes),
        "measures": MEASURES,
        "unseen": some(unseen, 20) if unseen else "",
        "class_rows": table.rename_axis("name").reset_index().to_dict("records"),
        "weak": _WEAK,
        "axis": np.floor(10 * known.min()) / 10 if known.size else 0.0,
        "n_given": judged.n_given,
        "n_withheld": judged.n_withheld,
        "mistakes": mistakes[:_SHOWN_MISTAKES],  # the most frequent
        "bias": judged.bias,
        "accuracy": percent(judged.balanced_accuracy),
        "interval": interval,
        "counted": judged.counted,
    }


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


def design_view(result: DesignResult) -> dict[str, Any]:
    """What the template of a design takes."""
    training = result.training
    card = result.model.card
    n_genes = len(result.genes)
    required = f", {result.n_required} of them required" if result.n_required else ""
    title, how = _KINDS[result.kind]
    low, high = training.performance.interval
    classes = result.classes.rename_axis("name").reset_index()
    weakest = result.classes["sensitivity"].idxmin()
    lowest = percent(float(result.classes["sensitivity"].min()))
    conditions = result.conditions.to_dict("records")
    tiles = [
        (percent(row["balanced_accuracy"]), row["condition"])
        for row in conditions
        if row["kind"] == "test" or (row["kind"], row["amount"]) in _FIRST
    ]
    curve = training.curve.sort_values("n_genes")
    names = [str(name) for name in result.model.classes]
    shares = result.classes.drop(columns=["n", "low", "high", "n_genes"])
    shares = shares.rename(columns={"sensitivity": "held-out samples"})
    figures = {
        "conditions": figure_image(draw_conditions, result.conditions),
        "classes": figure_image(draw_classes, shares),
        "confusion": figure_image(pl.confusion, training),
        "dots": figure_image(draw_dots, result.genes, names),
    }
    if len(curve) > 1:
        figures["sizes"] = figure_image(draw_sizes, curve)
    if result.test is not None:
        figures["test"] = figure_image(pl.confusion, result.test)
    return {
        "title": card.name or title.format(n=n_genes),
        "lead": f"{how.format(required=required)} on {card.source}: "
        f"{card.n_samples:,} samples of {len(classes)} classes of {card.label}. "
        f"{card.description}",
        "warnings": result.warnings,
        "accuracy": percent(training.performance.balanced_accuracy),
        "interval": f"95 %: {in_percent(low)} to {percent(high)}",
        "tiles": [*tiles, (lowest, f"the weakest class, {weakest}")],
        "guess": 1 / len(classes),
        "conditions": conditions,
        "class_rows": classes.to_dict("records"),
        "pairs": result.confusions.head(_SHOWN_PAIRS).to_dict("records"),
        "curve": curve.to_dict("records") if len(curve) > 1 else [],
        "genes": result.genes.to_dict("records"),
        "n_shown": min(n_genes, MOST_GENES),
        "test": "" if result.test is None else Path(result.test.source).name,
        "left_out": result.left_out,
        "figures": figures,
        "notes": result.notes,
        "provenance": [],
    }
