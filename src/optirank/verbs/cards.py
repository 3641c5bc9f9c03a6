"""What a model is: its card in lines and tables of text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from optirank._util.numbers import balanced, wilson
from optirank._util.words import in_percent, percent, with_interval
from optirank.model import Model
from optirank.model.card import Card, ClassCounts, JudgedSet

CardTable = dict[str, list[str]]  # columns by name; pandas takes long to load


def model_card(
    model: Model, path: str | os.PathLike[str] | None = None
) -> list[tuple[str, str]]:
    """What there is to know of a model, as names and texts.

    The numbers of single classes and data sets are in `card_tables`.
    """
    card = model.card
    rivals = [f"{name} {percent(share)}" for name, share in card.baselines.items()]
    kind = "votes of pairs of genes" if model.votes else card.method or "ranks"
    of_file = f" of {card.n_genes_of_file:,}" if card.n_genes_of_file else ""
    values = ""
    if card.values:
        values = f"{card.values['scale']}, {card.values['zeros']:.0%} zeros"
    held_out = ""
    if card.balanced_accuracy is not None:
        held_out = f"balanced accuracy {percent(card.balanced_accuracy)}"
        error = card.standard_error
        if error is not None and error == error:
            held_out += f" ± {100 * error:.1f} (standard error over the folds)"
        if any(judged.left_out for judged in card.judged):
            held_out += ", samples of all folds together"
        held_out += _over(card.held_out, card)
    mean, lowest, n_sets = judged_accuracy(card)
    together = {name: _total(card.judged, name) for name in card.class_counts}
    judged_line = (
        f"balanced accuracy {percent(mean)}, mean of {n_sets} sets"
        f"{_over(together, card)}; lowest {percent(lowest)}"
    )
    calibrated = "" if model.panel.calibration is not None else "not "
    groups: Iterable[tuple[str, tuple[str, ...]]] = ()
    if model.tree is not None:
        groups = model.tree.children.items()
    tree = [f"{name}: {', '.join(below)}" for name, below in groups if name and below]
    lines: list[tuple[str, object]] = [
        ("name", card.name),
        ("description", card.description),
        ("tissue", card.tissue),
        ("species", card.species),
        ("file", path and f"{path}, {Path(path).stat().st_size / 1e3:.0f} kB"),
        ("model", f"{kind}, {model.n_genes} genes{of_file}"),
        ("held out", held_out),
        (_judges(card), judged_line if n_sets else ""),
        ("simple rivals", "; ".join(rivals)),
        ("unknown types", "get one of the labels"),
        ("confidence", f"{calibrated}calibrated on held-out samples"),
        ("tree of labels", "; ".join(tree)),
        ("ids", f"of {len(model.terms)} labels" if model.terms else ""),
        ("label", card.label),
        ("batch", card.batch),
        ("trained on", card.source),
        ("terms of use", card.terms),
        ("samples", card.n_samples or ""),
        ("folds", card.n_folds or ""),
        ("values", values),
        ("input files", "; ".join(f"{k} {v}" for k, v in card.sources.items())),
        ("labels", card.labels_sha256),
        ("command", card.command),
        ("versions", ", ".join(f"{k} {v}" for k, v in card.versions.items())),
        *(("note", text) for text in card.notes),
    ]
    return [(name, str(text)) for name, text in lines if text]


def _judges(card: Card) -> str:
    """What judged a model: other data sets, or sources of its own training."""
    several = any(judged.platform for judged in card.judged)
    return "other data sets" if several else "sources left out"


def _over(classes: Mapping[str, ClassCounts], card: Card) -> str:
    """Over how many classes a figure is, where it is not over all of them."""
    n_counted = sum(counts.n > 0 for counts in classes.values())
    n_classes = len(card.class_counts)
    if not n_counted or n_counted >= n_classes:
        return ""
    return f", over {n_counted} of {n_classes} classes"


def judged_accuracy(card: Card) -> tuple[float, float, int]:
    """Mean and lowest balanced accuracy on other data sets, and their number."""
    accuracies = [
        float(np.mean([counts.sensitivity for counts in judged.classes.values()]))
        for judged in card.judged
        if judged.classes
    ]
    if not accuracies:
        return float("nan"), float("nan"), 0
    return float(np.mean(accuracies)), min(accuracies), len(accuracies)


def card_tables(model: Model) -> dict[str, CardTable]:
    """The tables of a model card, as text: classes, other data sets, missing genes."""
    card = model.card
    of_classes = []
    is_judged = any(judged.classes for judged in card.judged)
    for name in map(str, model.classes):
        row = {"class": name, "in training": str(card.class_counts.get(name, ""))}
        if is_judged:
            row |= _shares(_total(card.judged, name))
        elif card.held_out:
            row |= _shares(card.held_out.get(name, ClassCounts(0, 0)))
        of_classes.append(row)
    by_set = [
        {"class": name, "data": judged.name} | _shares(counts)
        for judged in card.judged
        for name, counts in judged.classes.items()
    ]
    missing = [
        {
            "genes missing at random": f"{in_percent(share, 0)} %",
            "held-out accuracy": percent(accuracy),
        }
        for share, accuracy in model.panel.missing
    ]
    heading = _judges(card)
    tables = {
        "Classes": _columns(of_classes),
        f"{heading.capitalize()}, by a model that had not seen them": set_table(card),
        f"Classes by {heading}": _columns(sorted(by_set, key=lambda row: row["class"])),
        "When genes are missing": _columns(missing),
    }
    return {title: table for title, table in tables.items() if table}


def set_table(card: Card) -> CardTable:
    """How a model does on other data sets, as text."""
    rows = []
    for judged in card.judged:
        counts = judged.classes.values()
        n_samples = np.array([one.n for one in counts], dtype=int)
        right = np.array([one.right for one in counts], dtype=int)
        mean, (low, high) = balanced(right, n_samples)
        shares = {name: one.sensitivity for name, one in judged.classes.items()}
        worst = min(shares, key=lambda label: shares[label], default="")
        rows.append(
            {
                "data": judged.name,
                "platform": judged.platform,
                "how": ("left out" if judged.left_out else "not in training")
                + _over(judged.classes, card),
                "samples": str(n_samples.sum() or ""),
                "accuracy": with_interval(mean, low, high) if shares else "",
                "worst class": f"{worst} {in_percent(shares[worst], 0)}"
                if shares
                else "",
            }
        )
    return _columns(rows)


def _shares(counts: ClassCounts) -> dict[str, str]:
    """Sensitivity and specificity in percent, with their 95 % intervals."""
    cells = {"samples": str(counts.n or "")}
    for name, share, n_samples in (
        ("sensitivity", counts.sensitivity, counts.n),
        ("specificity", counts.specificity, counts.n_others),
    ):
        low, high = wilson(share, n_samples)
        interval = with_interval(share, float(low), float(high))
        cells[name] = interval if n_samples else ""
    return cells


def _total(judged: tuple[JudgedSet, ...], name: str) -> ClassCounts:
    """The counts of a class over all sets that have it."""
    counts = [part.classes[name] for part in judged if name in part.classes]
    return ClassCounts(
        right=sum(part.right for part in counts),
        n=sum(part.n for part in counts),
        false=sum(part.false for part in counts),
        n_others=sum(part.n_others for part in counts),
    )


def _columns(rows: Iterable[Mapping[str, str]]) -> CardTable:
    """A table of rows that have the same columns, without columns that are empty."""
    table: CardTable = {}
    for row in rows:
        for name, text in row.items():
            table.setdefault(name, []).append(text)
    return {name: texts for name, texts in table.items() if any(texts)}
