"""What the page of one sample shows: its label, its probabilities, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank._util.metrics import percent
from optirank.report.labels import (
    checked_by_genes,
    genes_tile,
    missing_genes,
    model_name,
    provenance,
)

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.explain import Explanation
    from optirank.workflow.labels import Labels

_SHOWN = 12  # classes and genes that a reader looks at
_WHOLE = 1000  # values from here on are shown without decimals


def sample_view(labels: Labels, explanation: Explanation) -> dict[str, Any]:
    """What the template of one sample takes."""
    reason = str(labels.reasons[0])
    likely = str(explanation.label)
    name, contributions = explanation.of_class()
    pairs = explanation.pairs.get(name)
    shown = contributions.head(_SHOWN)
    scores = explanation.scores
    return {
        "title": f"Sample {labels.names[0]}",
        "lead": f"Labelled by the {model_name(labels.model)}, from "
        f"{Path(labels.source).name}.",
        "warnings": [*labels.warnings, *_withheld(reason, likely)],
        "tiles": _tiles(labels, explanation, withheld=bool(reason)),
        "probabilities": [
            {"name": row["class"], "probability": row["probability"]}
            for row in scores.head(_SHOWN).to_dict("records")
        ],
        "n_more_classes": max(0, len(scores) - _SHOWN),
        "explained": name,
        "pairs": [] if pairs is None else _pair_rows(pairs),
        "score": float(contributions["contribution"].sum()),
        "contributions": [
            _gene_row(row) for row in _with_widths(shown, "contribution")
        ],
        "n_more_genes": max(0, len(contributions) - _SHOWN),
        "rest": float(contributions["contribution"].iloc[_SHOWN:].sum()),
        "checked": checked_by_genes(labels),
        "missing": missing_genes(labels),
        "notes": labels.notes,
        "provenance": provenance(labels),
    }


def _withheld(reason: str, likely: str) -> list[str]:
    if not reason:
        return []
    return [f"the label is withheld: {reason}. The most probable class is {likely}"]


def _tiles(
    labels: Labels, explanation: Explanation, *, withheld: bool
) -> list[tuple[str, str]]:
    scores = explanation.scores
    label = "no label" if withheld else str(explanation.label)
    tiles = [
        (label, "withheld" if withheld else "label"),
        (percent(explanation.confidence), "probability of the most probable class"),
    ]
    if len(scores) > 1:
        second = scores.iloc[1]
        text = f"probability of the next class, {second['class']}"
        tiles.append((percent(second["probability"]), text))
    return [*tiles, genes_tile(labels)]


def _with_widths(table: pd.DataFrame, column: str) -> list[dict[str, Any]]:
    """The rows of a table, with the length of a bar in percent of the longest."""
    longest = float(table[column].abs().max()) or 1.0
    widths = 100.0 * table[column].abs() / longest
    return table.assign(width=widths).to_dict("records")


def _pair_rows(pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines of pairs of genes, with their values as text."""
    columns = ["value_higher", "value_lower"]
    texts = {column: pairs[column].map(_number) for column in columns}
    return _with_widths(pairs.assign(**texts), "vote")


def _gene_row(row: dict[str, Any]) -> dict[str, Any]:
    """The line of a gene, with its value and rank as text."""
    rank = row["rank"]
    return row | {
        "value": "missing" if row["missing"] else _number(row["value"]),
        "rank": "" if rank != rank else f"{rank:+.2f}",
    }


def _number(value: float) -> str:
    """A value of a gene as text; nothing for an intercept, which has none."""
    if value != value:
        return ""
    return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:.4g}"
