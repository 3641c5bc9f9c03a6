"""What a model is: its card in lines and tables of text, and cells drawn from its
classes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.metrics import balanced, wilson
from optirank._util.names import in_percent, percent, with_interval
from optirank.model import Model
from optirank.model.card import Card, ClassCounts, JudgedSet
from optirank.model.file import as_model

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

CardTable = dict[str, list[str]]  # columns by name; pandas takes long to load


def model_card(
    model: Model, path: str | os.PathLike[str] | None = None
) -> list[tuple[str, str]]:
    """What there is to know of a model, as names and texts.

    The numbers of single classes and data sets are in `card_tables`, of sizes in
    `size_table`.
    """
    card = model.card
    calibrated = model.panel.calibration is not None
    rivals = [f"{name} {percent(share)}" for name, share in card.baselines.items()]
    unknown = f"; {card.unknown_types}" if card.unknown_types else ""
    lines: list[tuple[str, object]] = [
        ("name", card.name),
        ("description", card.description),
        ("tissue", card.tissue),
        ("species", card.species),
        ("file", path and f"{path}, {Path(path).stat().st_size / 1e3:.0f} kB"),
        ("model", _kind(model)),
        ("held out", _accuracy(card)),
        (judges(card), _judged_line(card)),
        ("simple rivals", "; ".join(rivals)),
        ("unknown types", f"get one of the labels{unknown}"),
        (
            "confidence",
            "calibrated on held-out samples" if calibrated else "not calibrated",
        ),
        ("tree of labels", _tree(model)),
        ("ids of labels", _ids(model)),
        ("label", card.label),
        ("batch", card.batch),
        ("trained on", card.source),
        ("terms of use", card.terms),
        ("samples", card.n_samples or ""),
        ("folds", card.n_folds or ""),
        ("values", str(card.values) if card.values.scale else ""),
        ("command", card.command),
        ("versions", ", ".join(f"{k} {v}" for k, v in card.versions.items())),
        *(("note", note) for note in card.notes),
    ]
    return [(name, str(text)) for name, text in lines if text]


def _kind(model: Model) -> str:
    card = model.card
    genes = f"{model.n_genes} genes"
    if card.n_genes_of_file:
        genes += f" of {card.n_genes_of_file:,}"
    kind = "votes of pairs of genes" if model.votes else card.method or "ranks"
    return f"{kind}, {genes}"


def _accuracy(card: Card) -> str:
    if card.balanced_accuracy is None:
        return ""
    error = card.standard_error
    text = f"balanced accuracy {percent(card.balanced_accuracy)}"
    if error is not None and error == error:
        text += f" ± {100 * error:.1f} (standard error over the folds)"
    if any(judged.left_out for judged in card.judged):
        text += ", samples of all folds together"
    return text + _over(card.held_out, card)


def _over(classes: Mapping[str, ClassCounts], card: Card) -> str:
    """Over how many classes a figure is, where it is not over all of them."""
    n_counted = sum(counts.n > 0 for counts in classes.values())
    n_classes = len(card.class_counts)
    if not classes or not n_classes or n_counted >= n_classes:
        return ""
    return f", over {n_counted} of {n_classes} classes"


def _judged_line(card: Card) -> str:
    mean, lowest, n_sets = judged_accuracy(card)
    if not n_sets:
        return ""
    if n_sets == 1:
        only = next(judged for judged in card.judged if judged.classes)
        return f"balanced accuracy {percent(mean)}, one set{_over(only.classes, card)}"
    together = {name: _total(card.judged, name) for name in card.class_counts}
    return (
        f"balanced accuracy {percent(mean)}, mean of {n_sets} sets"
        f"{_over(together, card)}; lowest {percent(lowest)}"
    )


def _tree(model: Model) -> str:
    """Each label of the tree that has labels below it, with them."""
    if model.tree is None:
        return ""
    groups = [
        f"{name}: {', '.join(below)}" if name else ", ".join(below)
        for name, below in model.tree.children.items()
        if below
    ]
    return "; ".join(groups)


def _ids(model: Model) -> str:
    """How many labels have an id."""
    if model.terms is None:
        return ""
    return f"{len(model.terms.ids)} of {len(model.labels)} labels"


def card_tables(model: Model) -> dict[str, CardTable]:
    """The tables of a model card, as text: classes, other data sets, missing genes."""
    missing = [
        {
            "genes missing at random": f"{in_percent(share, 0)} %",
            "held-out accuracy": percent(accuracy),
        }
        for share, accuracy in model.panel.missing
    ]
    heading = judges(model.card).capitalize()
    tables = {
        "Classes": class_counts_table(model),
        f"{heading}, by a model that had not seen them": set_table(model.card),
        f"Classes by {judges(model.card)}": class_set_table(model.card),
        "When genes are missing": _columns(missing),
    }
    return {title: table for title, table in tables.items() if table}


def _columns(rows: Iterable[Mapping[str, str]]) -> CardTable:
    """A table of rows that have the same columns; nothing without rows."""
    table: CardTable = {}
    for row in rows:
        for name, text in row.items():
            table.setdefault(name, []).append(text)
    return table


def class_counts_table(model: Model) -> CardTable:
    """The classes of a model as text: samples, and how held-out ones were labelled."""
    card = model.card
    names = [str(label) for label in model.classes]
    table = {
        "class": names,
        "samples": [str(card.class_counts.get(name, "")) for name in names],
    }
    elsewhere = {name: _total(card.judged, name) for name in names}
    is_judged = any(counts.n for counts in elsewhere.values())
    if card.held_out and not (is_judged and card.batch):
        held_out = [card.held_out.get(name) for name in names]
        table["held out"] = [
            str(of_class.n or "") if of_class else "" for of_class in held_out
        ]
        table["sensitivity"] = [
            _with_interval(of_class.sensitivity, of_class.n) if of_class else ""
            for of_class in held_out
        ]
    if is_judged:
        where = judges(card)
        column = "sensitivity there" if "held out" in table else "sensitivity"
        table[where] = [str(elsewhere[name].n or "") for name in names]
        table[column] = [
            _with_interval(elsewhere[name].sensitivity, elsewhere[name].n)
            for name in names
        ]
        table["specificity there"] = [
            _with_interval(elsewhere[name].specificity, elsewhere[name].n_others)
            for name in names
        ]
    return table


def _total(judged: tuple[JudgedSet, ...], name: str) -> ClassCounts:
    """The counts of a class over all sets that have it."""
    counts = [part.classes[name] for part in judged if name in part.classes]
    return ClassCounts(
        right=sum(part.right for part in counts),
        n=sum(part.n for part in counts),
        false=sum(part.false for part in counts),
        n_others=sum(part.n_others for part in counts),
    )


def set_table(card: Card) -> CardTable:
    """How a model does on other data sets, per class, as text."""
    rows = []
    for judged in card.judged:
        right = np.array(
            [counts.right for counts in judged.classes.values()], dtype=int
        )
        n_samples = np.array(
            [counts.n for counts in judged.classes.values()], dtype=int
        )
        mean, (low, high) = balanced(right, n_samples)
        accuracy = ""
        if len(n_samples):
            accuracy = with_interval(mean, low, high)
        rows.append(
            {
                "data": judged.name,
                "platform": judged.platform,
                "how": ("left out" if judged.left_out else "not in training")
                + _over(judged.classes, card),
                "samples": str(n_samples.sum() or ""),
                "accuracy": accuracy,
                "worst class": _worst(judged),
            }
        )
    table = _columns(rows)
    if rows and not any(table["platform"]):
        del table["platform"]
    return table


def class_set_table(card: Card) -> CardTable:
    """Sensitivity and specificity of each class on each other data set, as text."""
    rows = [
        {
            "class": name,
            "data": judged.name,
            "samples": str(counts.n),
            "sensitivity": _with_interval(counts.sensitivity, counts.n),
            "specificity": _with_interval(counts.specificity, counts.n_others),
        }
        for judged in card.judged
        for name, counts in judged.classes.items()
    ]
    return _columns(sorted(rows, key=lambda row: row["class"]))


def _worst(judged: JudgedSet) -> str:
    """The class of lowest sensitivity of a set."""
    shares = {
        name: counts.sensitivity for name, counts in judged.classes.items() if counts.n
    }
    if not shares:
        return ""
    name = min(shares, key=lambda label: shares[label])
    return f"{name} {100 * shares[name]:.0f}"


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


def size_table(model: Any) -> pd.DataFrame:
    """The panels in a model, one line per size: ``n_genes``, accuracy, ``chosen``.

    ``balanced_accuracy`` and ``standard_error`` are NaN for sizes that were not
    measured; ``chosen`` is the size of the model itself.
    """
    import pandas as pd

    fitted = as_model(model)
    curve = {point.n_genes: point for point in fitted.card.curve}
    sizes = sorted({*fitted.panels, *curve})
    nan = float("nan")
    return pd.DataFrame(
        {
            "n_genes": sizes,
            "balanced_accuracy": [
                curve[size].balanced_accuracy if size in curve else nan
                for size in sizes
            ],
            "standard_error": [
                curve[size].standard_error if size in curve else nan for size in sizes
            ],
            "chosen": [size == fitted.n_genes for size in sizes],
        }
    )


def judges(card: Card) -> str:
    """What judged a model: other data sets, or sources of its own training."""
    several = any(judged.platform for judged in card.judged)
    return "other data sets" if several else "sources left out"


def _with_interval(share: float, n_samples: int) -> str:
    """A share in percent with its 95 % interval; nothing without samples."""
    if not n_samples or share != share:
        return ""
    low, high = wilson(share, n_samples)
    return with_interval(share, float(low), float(high))


# Of the log means of drawn cells over the ranks from 0 to 1: counts from 0 to thousands
_SPREAD = 8.0


def make_cells(model: Model, n_cells: int = 300) -> AnnData:
    """Cells of a model's classes, in the shares of its training; ``obs`` has their
    cell_type. They are to try the commands, not to judge the model.

    Counts are Poisson; the logarithm of a mean is proportional to the gene's mean rank
    in the class, with an effect of the platform on the gene and noise of the cell.
    """
    import pandas as pd
    from scipy import sparse

    from optirank.io.data import make_profiles

    rng = np.random.default_rng(0)
    likeness = model.panel.likeness
    if likeness is None:
        raise ValueError(
            "the model has no mean ranks of its classes to draw cells from"
        )
    counts = model.card.class_counts
    shares = np.array([counts[str(name)] for name in model.classes], dtype=float)
    kinds = np.sort(rng.choice(len(shares), n_cells, p=shares / shares.sum()))
    means = _SPREAD * (likeness.profiles[kinds].astype(float) - 0.5)
    means += rng.normal(0.0, 0.5, means.shape[1])
    means += rng.normal(0.0, 0.5, means.shape)
    names = np.array([f"cell_{k:03d}" for k in range(n_cells)], dtype=object)
    obs = pd.DataFrame({"cell_type": model.classes[kinds].astype(object)}, index=names)
    X = sparse.csr_matrix(rng.poisson(np.exp(means)), dtype=np.float32)
    var = pd.DataFrame(index=pd.Index(model.genes, dtype=object))
    return make_profiles(X, obs, var, "generated cells")
