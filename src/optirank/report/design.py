"""What the page of a panel for an assay shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank._util.metrics import in_percent, percent
from optirank._util.names import some
from optirank.pl.design import (
    MOST_GENES,
    classes_size,
    conditions_size,
    dots_size,
    draw_classes,
    draw_conditions,
    draw_dots,
)
from optirank.pl.sizes import draw_sizes
from optirank.pl.truth import confusion_size, draw_confusion
from optirank.report.environment import figure_image

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.design import DesignResult

_SHOWN_PAIRS = 10  # of classes that are confused
_KINDS = {
    "chosen": "A panel of {n} genes",
    "extended": "A list extended to {n} genes",
    "scored": "A list of {n} genes",
}


def design_view(result: DesignResult) -> dict[str, Any]:
    """What the template of a design takes."""
    training = result.training
    card = result.model.card
    n_genes = len(result.genes)
    low, high = training.performance.interval
    title = card.name or _KINDS[result.kind].format(n=n_genes)
    return {
        "title": title,
        "lead": f"{_how(result)} on {card.source}: {card.n_samples:,} samples of "
        f"{len(result.classes)} classes of {card.label}. {card.description}",
        "warnings": result.warnings,
        "accuracy": percent(training.performance.balanced_accuracy),
        "interval": f"95 %: {in_percent(low)} to {percent(high)}",
        "tiles": _tiles(result),
        "kind": result.kind,
        "guess": 1 / len(result.classes),
        "conditions": result.conditions.to_dict("records"),
        "class_rows": _class_rows(result.classes),
        "pairs": result.confusions.head(_SHOWN_PAIRS).to_dict("records"),
        "curve": _curve(training.curve),
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


def _how(result: DesignResult) -> str:
    required = f", {result.n_required} of them required" if result.n_required else ""
    words = {
        "chosen": f"Chosen{required},",
        "extended": f"Extended{required},",
        "scored": "Scored as it is",
    }
    return words[result.kind]


def _tiles(result: DesignResult) -> list[tuple[str, str]]:
    """The figures that matter first: failing genes, platforms, test data, the weakest
    class.
    """
    table = result.conditions
    wanted = [("failing", 0.3), ("platform", 2.0), ("test", None)]
    tiles = []
    for line in table.to_dict("records"):
        for kind, amount in wanted:
            if line["kind"] == kind and amount in (None, line["amount"]):
                tiles.append((percent(line["balanced_accuracy"]), line["condition"]))
    weakest = result.classes["sensitivity"].idxmin()
    lowest = percent(float(result.classes["sensitivity"].min()))
    return [*tiles, (lowest, f"the weakest class, {weakest}")]


def _class_rows(classes: pd.DataFrame) -> list[dict[str, Any]]:
    kept = ["n", "sensitivity", "low", "high", "n_genes", "depends_on"]
    return classes[kept].rename_axis("name").reset_index().to_dict("records")


def _curve(curve: pd.DataFrame) -> list[dict[str, Any]]:
    if len(curve) < 2:
        return []
    return curve.sort_values("n_genes").to_dict("records")


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
    classes = [str(name) for name in result.model.classes]
    conditions = result.classes.drop(
        columns=["n", "low", "high", "n_genes", "depends_on"]
    )
    shares = conditions.rename(columns={"sensitivity": "held-out samples"})
    confusion = result.training.performance.confusion
    figures = {
        "conditions": figure_image(
            lambda ax: draw_conditions(ax, result.conditions),
            *conditions_size(result.conditions),
        ),
        "classes": figure_image(
            lambda ax: draw_classes(ax, shares), *classes_size(shares)
        ),
        "confusion": figure_image(
            lambda ax: draw_confusion(ax, confusion),
            *confusion_size(list(confusion.columns)),
        ),
        "dots": figure_image(
            lambda ax: draw_dots(ax, result.genes, classes),
            *dots_size(result.genes, classes),
        ),
    }
    if len(result.training.curve) > 1:
        figures["sizes"] = figure_image(
            lambda ax: draw_sizes(ax, result.training.curve), 6.6, 4.0
        )
    if result.test is not None:
        of_test = result.test.performance.confusion
        figures["test"] = figure_image(
            lambda ax: draw_confusion(ax, of_test),
            *confusion_size(list(of_test.columns)),
        )
    return figures
