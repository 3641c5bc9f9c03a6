"""What the page of labels shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.metrics import percent
from optirank._util.names import some
from optirank.model.tree import NO_LABEL
from optirank.pl.agreement import agreement_size, draw_agreement
from optirank.pl.labels import draw_labels, labels_size
from optirank.pl.tree import draw_tree, tree_size
from optirank.report.environment import figure_image
from optirank.workflow.labels import Labels, label_table
from optirank.workflow.levels import tree_table

if TYPE_CHECKING:
    from optirank.model import Model

_ADVISED_ERROR = 0.05  # the error that most people ask for


def labels_view(labels: Labels) -> dict[str, Any]:
    """What the template of labels takes."""
    n_samples = len(labels.chosen)
    n_withheld = int(labels.withheld.sum())
    table = label_table(labels.labels, labels.confidence, labels.words[-1])
    unused = [name for name in labels.words[:-1] if name not in table.index]
    samples = f"{n_samples:,} sample{'s' * (n_samples != 1)}"
    withheld = "no label is"
    if n_withheld:
        withheld = f"{n_withheld:,} label{'s are' if n_withheld > 1 else ' is'}"
    figure = figure_image(lambda ax: draw_labels(ax, table), *labels_size(table))
    clusters = []
    if labels.clusters is not None:
        clusters = labels.clusters.table.to_dict("records")
    return {
        "title": f"Labels of {Path(labels.source).name}",
        "lead": f"{samples}, labelled by the {model_name(labels.model)}; {withheld} "
        "withheld.",
        "warnings": [*labels.warnings, *mostly_withheld(labels)],
        "tiles": _tiles(labels, n_withheld, len(unused)),
        "figures": {"labels": figure} | _tree_figure(labels),
        "label_rows": table.rename_axis("label").reset_index().to_dict("records"),
        "unused": some(unused, 20) if unused else "",
        "advice": advice(labels),
        "withheld_rows": _reasons(labels),
        "clusters": clusters,
        "checked": checked_by_genes(labels),
        "missing": missing_genes(labels),
        "notes": labels.notes,
        "provenance": provenance(labels),
    }


def _tree_figure(labels: Labels) -> dict[str, str]:
    """The tree of the labels, of a model with one."""
    tree = labels.model.tree
    if tree is None or labels.levels is None:
        return {}
    given = np.where(labels.withheld, NO_LABEL, labels.levels.given)
    table = tree_table(tree, given, labels.confidence)
    n_samples = len(given)
    return {
        "tree": figure_image(
            lambda ax: draw_tree(ax, table, n_samples), *tree_size(table)
        )
    }


def _tiles(labels: Labels, n_withheld: int, n_unused: int) -> list[tuple[str, str]]:
    n_samples = len(labels.chosen)
    n_classes = len(labels.words) - 1
    what = "classes" if labels.model.tree is None else "labels of the tree"
    of_all = f", of {n_samples:,}" if n_withheld else ""
    tiles = [
        (f"{n_samples - n_withheld:,}", f"samples labelled{of_all}"),
        (f"{labels.confidence.mean():.3f}", "mean confidence"),
        genes_tile(labels),
    ]
    tiles += agreement_tile(labels)
    n_changed = labels.record.get("n_changed")
    if n_changed is not None:
        tiles.append(
            (
                f"{n_changed:,} of {n_samples:,}",
                "labels changed by learning from the query (adapt=True)",
            )
        )
    tiles.append((f"{n_classes - n_unused} of {n_classes}", f"{what} among the labels"))
    return tiles


def agreement_tile(labels: Labels) -> list[tuple[str, str]]:
    """The agreement of other genes, where it can be told."""
    trust = labels.trust
    if trust is None or trust.agreement is None:
        return []
    return [(f"{trust.agreement:.2f}", "agreement of genes outside the panel")]


def genes_tile(labels: Labels) -> tuple[str, str]:
    """How many genes of the panel the query has."""
    n_genes = labels.record["n_genes"]
    return f"{n_genes - len(labels.missing)} of {n_genes}", "genes of the panel found"


def checked_by_genes(labels: Labels) -> dict[str, Any] | None:
    """What genes outside the panel say of the labels; None for several files, of which
    the notes say it.
    """
    trust = labels.trust
    if trust is None:
        return None
    compared = trust.compared
    if compared is None or trust.agreement is None:
        text = f"The labels cannot be checked by other genes: {trust.unchecked}."
        return {"text": text, "figure": None}
    figure = figure_image(
        lambda ax: draw_agreement(ax, compared, trust.classes),
        *agreement_size(compared),
    )
    return {
        "text": f"Over {compared.n_genes:,} genes that had no part in the labels, the "
        "samples of a label differ from the others as they do in the training data "
        f"with an agreement of {trust.agreement:.2f} (1: just so; 0: not at all). "
        f"An agreement is {trust.meaning}.",
        "figure": figure,
        "caption": "One point per gene: how far its mean rank in the samples of the "
        "label is from that of all labels, in the training data (across) and here "
        "(upwards). Right labels lie along the line.",
    }


def mostly_withheld(labels: Labels) -> list[str]:
    """Say where more labels are withheld than are given."""
    share = float(labels.withheld.mean())
    if share <= 0.5:
        return []
    reason = _reasons(labels)[0]["reason"]
    return [f"{percent(share)} of the labels are withheld, mostly because: {reason}"]


def _reasons(labels: Labels) -> list[dict[str, Any]]:
    """Why labels are withheld and how many, the most frequent reason first."""
    reasons, numbers = np.unique(
        labels.reasons[labels.withheld].astype(str), return_counts=True
    )
    rows = [
        {
            "reason": str(reason),
            "n_samples": int(number),
            "share": number / len(labels.reasons),
        }
        for reason, number in zip(reasons, numbers, strict=True)
    ]
    return sorted(rows, key=lambda row: (-row["n_samples"], row["reason"]))


def advice(labels: Labels) -> list[tuple[str, str]]:
    """Options of predict that the model can serve and that were not used."""
    options = labels.record.get("options", {})
    model = labels.model
    lines = []
    withholds = "threshold" in labels.record or "target_error" in options
    if not withholds and can_show(model, _ADVISED_ERROR):
        lines.append((f"target_error={_ADVISED_ERROR}", "withholds doubtful labels"))
    if model.card.unknown_rate_works and "unknown_rate" not in options:
        lines.append(
            ("unknown_rate=0.01", "withholds those of some samples of unknown types")
        )
    return lines


def can_show(model: Model, target_error: float) -> bool:
    """Whether the held-out samples of a model can show such an error."""
    control = model.panel.error_control
    if control is None:
        return False
    try:
        control.at(target_error)
    except ValueError:
        return False
    return True


def missing_genes(labels: Labels) -> dict[str, Any] | None:
    """The genes of the panel that the query lacks, and what that means."""
    if not labels.missing:
        return None
    meaning = "Their mean ranks in training stand in for them."
    if labels.model.votes:
        meaning = (
            "Their votes are missing; the genes that are there are ranked among "
            "themselves."
        )
    return {
        "n": len(labels.missing),
        "of": labels.record["n_genes"],
        "names": some(labels.missing, 20),
        "meaning": meaning,
    }


def provenance(labels: Labels) -> list[tuple[str, str]]:
    """How labels were made, as names and texts."""
    record = labels.record
    options = json.dumps(record["options"], ensure_ascii=False, default=str)
    lines = [
        ("model", record["model"] or "without a name"),
        ("model file", f"SHA-256 {record['model_sha256']}"),
        ("optirank", record["optirank_version"]),
        ("options", "none" if not record["options"] else options),
        ("query", record["query"]),
        ("checksum of the query", record["query_checksum"]),
    ]
    if "threshold" in record:
        threshold = f"{record['threshold']:.3f}: {record['threshold_reason']}"
        lines.append(("confidence from", threshold))
    return lines


def model_name(model: Model) -> str:
    """A model in a sentence."""
    card = model.card
    if card.name:
        return f"model “{card.name}”"
    return f"classifier of {card.label}" if card.label else "model"
