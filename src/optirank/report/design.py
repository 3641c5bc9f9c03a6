"""What the page of a panel for an assay shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank._util.names import in_percent, percent, some
from optirank.pl.axes import figure_image
from optirank.pl.design import MOST_GENES, draw_classes, draw_conditions, draw_dots
from optirank.pl.genes import draw_sizes
from optirank.pl.truth import draw_confusion

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.design import DesignResult

_SHOWN_PAIRS = 10  # of classes that are confused
# By kind: the title, and how the lead begins
_KINDS = {
    "chosen": ("A panel of {n} genes", "Chosen{required},"),
    "extended": ("A list extended to {n} genes", "Extended{required},"),
    "scored": ("A list of {n} genes", "Scored as it is"),
}
# Conditions that matter first: failing genes, platforms, test data
_FIRST = {("failing", 0.3), ("platform", 2.0)}


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
    return {
        "title": card.name or title.format(n=n_genes),
        "lead": f"{how.format(required=required)} on {card.source}: "
        f"{card.n_samples:,} samples of {len(classes)} classes of {card.label}. "
        f"{card.description}",
        "warnings": result.warnings,
        "accuracy": percent(training.performance.balanced_accuracy),
        "interval": f"95 %: {in_percent(low)} to {percent(high)}",
        "tiles": [*tiles, (lowest, f"the weakest class, {weakest}")],
        "kind": result.kind,
        "guess": 1 / len(classes),
        "conditions": conditions,
        "class_rows": classes.to_dict("records"),
        "pairs": result.confusions.head(_SHOWN_PAIRS).to_dict("records"),
        "curve": curve.to_dict("records") if len(curve) > 1 else [],
        "genes": result.genes.to_dict("records"),
        "n_shown": min(n_genes, MOST_GENES),
        "additions": _together(result.additions),
        "idle": _together(result.idle),
        "test": "" if result.test is None else Path(result.test.source).name,
        "left_out": result.left_out,
        "figures": _figures(result),
        "notes": result.notes,
        "provenance": [],
    }


def _together(table: pd.DataFrame | None) -> dict[str, Any]:
    """Genes with the accuracy that they give together."""
    if table is None or not len(table):
        return {}
    return {
        "n": len(table),
        "names": some(table["gene"], 60),
        "accuracy": float(table["balanced_accuracy"].iloc[0]),
    }


def _figures(result: DesignResult) -> dict[str, str]:
    training = result.training
    classes = [str(name) for name in result.model.classes]
    about = ["n", "low", "high", "n_genes", "depends_on"]
    shares = result.classes.drop(columns=about)
    shares = shares.rename(columns={"sensitivity": "held-out samples"})
    figures = {
        "conditions": figure_image(draw_conditions, result.conditions),
        "classes": figure_image(draw_classes, shares),
        "confusion": figure_image(draw_confusion, training.performance.confusion),
        "dots": figure_image(draw_dots, result.genes, classes),
    }
    if len(training.curve) > 1:
        figures["sizes"] = figure_image(draw_sizes, training.curve)
    if result.test is not None:
        of_test = result.test.performance.confusion
        figures["test"] = figure_image(draw_confusion, of_test)
    return figures
