"""What the pages of labels show: those of a query, and why one sample got its own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank import pl
from optirank._util.words import counted, percent, some
from optirank.pl.axes import figure_image
from optirank.pl.labels import draw_agreement, draw_tree
from optirank.verbs.labels import Labels, label_table, tree_table

if TYPE_CHECKING:
    from optirank.model import Model

Tiles = list[tuple[str, str]]  # what matters first: a figure, and what it is

_SHOWN = 12  # classes and genes of one sample that a reader looks at
_WHOLE = 1000  # values from here on are shown without decimals


def labels_view(labels: Labels) -> dict[str, Any]:
    """What the template of labels takes."""
    n_samples = len(labels.chosen)
    n_withheld = int(labels.withheld.sum())
    table = label_table(labels.labels, labels.confidence, labels.words[-1])
    names = labels.words[:-1]
    unused = [name for name in names if name not in table.index]
    samples = f"{n_samples:,} sample{'s' * (n_samples != 1)}"
    withheld = counted(n_withheld, "label is", "labels are")
    of_all = f", of {n_samples:,}" if n_withheld else ""
    changed = []
    if "n_changed" in labels.record:
        what = "labels changed by learning from the query (adapt=True)"
        changed.append((f"{labels.record['n_changed']:,} of {n_samples:,}", what))
    figures = {"labels": figure_image(pl.labels, labels)}
    what = "classes"
    if labels.model.tree is not None:
        what = "labels of the tree"
        tree = labels.model.tree
        codes = tree.positions(labels.labels)
        lines = tree_table(tree, codes, labels.confidence)
        figures["tree"] = figure_image(draw_tree, lines, n_samples)
    return _of_labels(labels) | {
        "title": f"Labels of {Path(labels.source).name}",
        "lead": f"{samples}, labelled by the {model_name(labels.model)}; {withheld} "
        "withheld.",
        "warnings": [*labels.warnings, *mostly_withheld(labels)],
        "tiles": [
            (f"{n_samples - n_withheld:,}", f"samples labelled{of_all}"),
            (f"{labels.confidence.mean():.3f}", "mean confidence"),
            _genes_tile(labels),
            *agreement_tile(labels),
            *changed,
            (f"{len(names) - len(unused)} of {len(names)}", f"{what} among the labels"),
        ],
        "figures": figures,
        "label_rows": table.rename_axis("label").reset_index().to_dict("records"),
        "unused": some(unused, 20) if unused else "",
        "n_samples": n_samples,
        "withheld_rows": _reasons(labels),
        "clusters": []
        if labels.clusters is None
        else labels.clusters.to_dict("records"),
    }


def _of_labels(labels: Labels) -> dict[str, Any]:
    """What all pages of labels show."""
    return {
        "checked": checked_by_genes(labels),
        "missing": missing_genes(labels),
        "notes": labels.notes,
        "provenance": provenance(labels),
    }


def agreement_tile(labels: Labels) -> Tiles:
    """The agreement of other genes, where it can be told."""
    checks = labels.checks
    if checks is None or checks.agreement is None:
        return []
    return [(f"{checks.agreement:.2f}", "agreement of genes outside the panel")]


def _n_genes(labels: Labels) -> int:
    """Genes of the panel that labelled; of several files, of the model's own."""
    return labels.record.get("n_genes", labels.model.n_genes)


def _genes_tile(labels: Labels) -> tuple[str, str]:
    """How many genes of the panel the query has."""
    n_genes = _n_genes(labels)
    return f"{n_genes - len(labels.missing)} of {n_genes}", "genes of the panel found"


def checked_by_genes(labels: Labels) -> dict[str, Any] | None:
    """What genes outside the panel say of the labels; None for several files, of which
    the notes say it.
    """
    checks = labels.checks
    if checks is None:
        return None
    compared = checks.compared
    if compared is None or checks.agreement is None:
        text = f"The labels cannot be checked by other genes: {checks.unchecked}."
        return {"text": text, "figure": None}
    return {
        "text": f"Over {compared.n_genes:,} genes that had no part in the labels, the "
        "samples of a label differ from the others as they do in the training data "
        f"with an agreement of {checks.agreement:.2f} (1: just so; 0: not at all).",
        "figure": figure_image(draw_agreement, compared, checks.classes),
    }


def mostly_withheld(labels: Labels) -> list[str]:
    """Say where more labels are withheld than are given."""
    share = float(labels.withheld.mean())
    if share <= 0.5:
        return []
    reason, _ = _reasons(labels)[0]
    return [f"{percent(share)} of the labels are withheld, mostly because: {reason}"]


def _reasons(labels: Labels) -> list[tuple[str, int]]:
    """Why labels are withheld and how many, the most frequent reason first."""
    return Counter(labels.samples["withheld_because"][labels.withheld]).most_common()


def missing_genes(labels: Labels) -> dict[str, Any] | None:
    """The genes of the panel that the query lacks."""
    if not labels.missing:
        return None
    return {
        "n": len(labels.missing),
        "of": _n_genes(labels),
        "names": some(labels.missing, 20),
        "votes": labels.model.votes,
    }


def provenance(labels: Labels) -> list[tuple[str, str]]:
    """How labels were made, as names and texts."""
    record = labels.record
    options = json.dumps(record["options"], ensure_ascii=False, default=str)
    lines = [
        ("model", record["model"] or "without a name"),
        ("model file", f"SHA-256 {record['model_sha256']}"),
        ("optirank", record["optirank_version"]),
        ("options", options if record["options"] else "none"),
        ("query", record["query"]),
        *record.get("inputs", {}).items(),
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


def sample_view(labels: Labels) -> dict[str, Any]:
    """What the template of one sample takes."""
    genes = labels.explanation
    assert genes is not None
    reason = str(labels.samples["withheld_because"][0])
    likely = str(labels.classes[labels.chosen[0]])
    order = np.argsort(-labels.probabilities[0], kind="stable")
    probabilities = [
        {"class": labels.classes[code], "probability": labels.probabilities[0, code]}
        for code in order
    ]
    tiles = [("no label", "withheld") if reason else (labels.labels[0], "label")]
    for row, text in zip(
        probabilities, ("the most probable class", "the next class"), strict=False
    ):
        share = percent(row["probability"])
        tiles.append((share, f"probability of {text}, {row['class']}"))
    withheld = f"the label is withheld: {reason}. The most probable class is {likely}"
    values = genes["value"].map(_number).mask(genes["missing"], "missing")
    ranks = genes["rank"].map(lambda rank: "" if rank != rank else f"{rank:+.2f}")
    shown = genes.assign(value=values, rank=ranks).head(_SHOWN)
    sizes = shown["contribution"].abs()
    widths = 100.0 * sizes / (float(sizes.max()) or 1.0)  # of bars, in percent
    return _of_labels(labels) | {
        "title": f"Sample {labels.samples['sample'][0]}",
        "lead": f"Labelled by the {model_name(labels.model)}, from "
        f"{Path(labels.source).name}.",
        "warnings": [*labels.warnings, *([withheld] if reason else [])],
        "tiles": [*tiles, _genes_tile(labels)],
        "probabilities": probabilities[:_SHOWN],
        "n_more_classes": max(0, len(probabilities) - _SHOWN),
        "explained": likely,
        "votes": labels.model.votes,
        "score": float(genes["contribution"].sum()),
        "contributions": shown.assign(width=widths).to_dict("records"),
        "n_more_genes": max(0, len(genes) - _SHOWN),
        "rest": float(genes["contribution"].iloc[_SHOWN:].sum()),
    }


def _number(value: float) -> str:
    """A value of a gene as text; nothing for an intercept, which has none."""
    if value != value:
        return ""
    return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:.4g}"
