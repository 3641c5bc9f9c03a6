"""The tables of a design: conditions, classes, pairs that are confused, genes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from optirank._util.metrics import balanced

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.model import Model
    from optirank.panel.drills import Drill

PLATFORM_WORDS = {1.0: "sequencing", 2.0: "imaging"}  # by their strength


def condition_words(kind: str, amount: float) -> str:
    """A condition in words."""
    if kind == "as it is":
        return "held-out samples"
    if kind == "failing":
        return f"{100 * amount:.0f} % of the genes fail"
    return f"simulated {PLATFORM_WORDS.get(amount, amount)} platforms"


def condition_table(drills: Sequence[Drill], classes: NDArray) -> pd.DataFrame:
    """Balanced accuracy with its 95 % interval under every condition.

    ``lowest`` is the sensitivity of the class that does worst, over all draws.
    """
    lines = []
    for drill in drills:
        counts = drill.counts
        accuracy, (low, high) = balanced(counts.diagonal(), counts.sum(axis=1))
        lowest = drill.sensitivity.min(axis=0)
        weakest = np.nanargmin(lowest)
        lines.append(
            {
                "kind": drill.kind,
                "amount": drill.amount,
                "condition": condition_words(drill.kind, drill.amount),
                "balanced_accuracy": accuracy,
                "low": low,
                "high": high,
                "lowest": lowest[weakest],
                "lowest_class": str(classes[weakest]),
            }
        )
    return pd.DataFrame(lines)


def class_table(
    per_class: pd.DataFrame, drills: Sequence[Drill], genes: pd.DataFrame
) -> pd.DataFrame:
    """The sensitivity of each class, as it is and in a column per condition, and how
    many genes speak for it.
    """
    table = pd.DataFrame(
        {
            "n": per_class["n"],
            "sensitivity": per_class["sensitivity"],
            "low": per_class["sensitivity_low"],
            "high": per_class["sensitivity_high"],
            "n_genes": genes["speaks_for"]
            .value_counts()
            .reindex(per_class.index, fill_value=0),
        }
    )
    for drill in drills[1:]:
        words = condition_words(drill.kind, drill.amount)
        table[words] = drill.sensitivity.mean(axis=0)
    return table


def confusion_table(drills: Sequence[Drill], classes: NDArray) -> pd.DataFrame:
    """Classes that are confused, the most frequent confusion first: ``class`` and
    ``labelled``, the ``share`` of the first that is labelled as the second, and the
    same on the strongest ``platform``.
    """
    plain, strongest = (
        drill.counts / np.maximum(drill.counts.sum(axis=1, keepdims=True), 1.0)
        for drill in (drills[0], drills[-1])
    )
    truth, label = np.nonzero(plain * (1.0 - np.eye(len(classes))))
    table = pd.DataFrame(
        {
            "class": classes[truth].astype(str),
            "labelled": classes[label].astype(str),
            "share": plain[truth, label],
            "platform": strongest[truth, label],
        }
    )
    return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def gene_table(
    model: Model,
    required: NDArray,
    listed: NDArray,
    means: NDArray,
    shares: NDArray,
) -> pd.DataFrame:
    """One line per gene of the panel, in the order of the path.

    ``required`` are positions of genes that had to be in the panel, ``listed`` of those
    that came from a list; ``means`` and ``shares`` say how genes are expressed in each
    class.
    """
    panel = model.panel
    coef = panel.coef
    if len(coef) == 1:
        coef = np.concatenate([-coef, coef])
    speaks = coef.argmax(axis=0)
    sizes = [
        np.where(np.isin(panel.columns, smaller.columns), size, model.n_genes)
        for size, smaller in model.panels.items()
    ]
    origin = np.where(np.isin(panel.columns, required), "required", "chosen")
    table = pd.DataFrame(
        {
            "gene": panel.genes,
            "speaks_for": [str(model.classes[code]) for code in speaks],
            "weight": coef[speaks, np.arange(len(speaks))],
            "rank": 0,
            "path": np.min(sizes, axis=0),
            "origin": np.where(np.isin(panel.columns, listed), "listed", origin),
            "highest_mean": means[:, panel.columns].max(axis=0),
        }
    )
    if model.tree is not None:
        labels, contrasts = model.tree.contrasts(model.classes)
        told = (contrasts @ coef).argmax(axis=0)
        table["tells"] = [labels[place] for place in told]
        table["below"] = [model.tree.parents[name] for name in table["tells"]]
    for word, values in (("mean", means), ("share", shares)):
        for code, name in enumerate(model.classes):
            table[f"{word}_{name}"] = values[code, panel.columns]
    table = table.sort_values(
        ["path", "weight"], ascending=[True, False], kind="stable", ignore_index=True
    )
    table["rank"] = np.arange(1, len(table) + 1)
    return table
