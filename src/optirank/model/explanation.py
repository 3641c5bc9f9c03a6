"""Why a sample got its label, and which genes a model needs: tables of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optirank._util.numbers import as_dense
from optirank.ranks.scoring import needed_values, weighted_ranks

if TYPE_CHECKING:
    import pandas as pd

    from optirank.model.model import Model
    from optirank.model.panels import SizedPanel

INTERCEPT = "(intercept)"
_ROLES = np.array(["neither", "reference", "weight", "both"], dtype=object)


def panel_table(model: Model) -> pd.DataFrame:
    """The genes of a model's panel, the heaviest first.

    Returns
    -------
    A table with the columns ``gene`` and ``weight_<class>`` for each class; two classes
    have one such column, for the second one. Where the genes differ in what they are
    for, as in the paper's classifier, there are also ``role`` ("reference": others are
    compared with it; "weight": its rank counts; "both") and ``n_reference``, the number
    of classes whose reference set it is in.
    """
    import pandas as pd

    panel = model.panel
    columns: dict[str, Any] = {"gene": panel.genes}
    if panel.references is not None:
        in_reference = panel.references.weights > 0
        has_weight = (panel.coef != 0).any(axis=0)
        columns["role"] = _ROLES[in_reference.any(axis=0) + 2 * has_weight]
        columns["n_reference"] = in_reference.sum(axis=0)
    for label, weights in zip(model.score_classes, panel.coef, strict=True):
        columns[f"weight_{label}"] = weights
    heaviest = np.argsort(-np.abs(panel.coef).max(axis=0), kind="stable")
    return pd.DataFrame(columns).iloc[heaviest].reset_index(drop=True)


def export_table(model: Model) -> pd.DataFrame:
    """A panel model as one table, from which a few lines of any language label a
    matrix.

    Returns
    -------
    A table with the columns ``gene`` and one per class with its weights. The label of a
    sample is the class of the highest score: the centred ranks of the k genes among
    themselves, ``(average rank - (k + 1) / 2) / k``, times the weights. The first of
    two classes has weights 0. Where genes are missing, the lines of those that are
    there are used, and k is their number.

    In R, with genes in the rows of ``X``::

        t <- read.csv("panel.csv", check.names = FALSE)
        t <- t[t$gene %in% rownames(X), ]
        k <- nrow(t)
        r <- (apply(X[t$gene, , drop = FALSE], 2, rank) - (k + 1) / 2) / k
        z <- t(r) %*% as.matrix(t[, -1])
        labels <- colnames(z)[max.col(z, ties.method = "first")]
    """
    import pandas as pd

    if not model.votes:
        raise TypeError(
            "a model whose classes have reference sets of their own is no single "
            "table: train a panel model to export one"
        )
    coef = model.panel.coef
    if len(coef) == 1:
        coef = np.vstack([np.zeros_like(coef), coef])
    columns: dict[str, Any] = {"gene": model.genes}
    for label, weights in zip(model.classes, coef, strict=True):
        columns[str(label)] = weights
    return pd.DataFrame(columns)


def explain(
    model: Model, sample: Any, genes: Iterable[str] | None = None
) -> pd.DataFrame:
    """What each gene with a weight contributes to each class's score of one sample.

    Parameters
    ----------
    model : the model.
    sample : one sample: a data frame of one line or a series (its genes are found by
        name), or a row of values.
    genes : the names of the values, where they are not in ``sample``; None when they
        are the columns of the training data.

    Returns
    -------
    A table with the columns ``class``, ``gene``, ``missing``, ``value`` (NaN where
    missing), ``rank`` (from -1/2 to 1/2, 0 for the middle of the panel), ``weight``,
    ``contribution`` and ``speaks_for`` in words ("for ER positive"), the largest
    contributions of a class first. They sum to the score of the class. Each gene is
    listed once per score: two classes have one score, whose positive contributions
    speak for the second class and negative ones for the first.

    The contribution of a gene is ``weight * rank``: the sum of its votes against all
    other genes of the panel. A missing gene has none. For the paper's classifiers,
    ranks are those relative to the reference set minus their mean in training, and a
    line ``(intercept)`` has the score of a sample of mean ranks.
    """
    import pandas as pd

    if hasattr(sample, "to_frame"):
        sample = sample.to_frame().T
    X, match = model.align(
        sample if np.ndim(sample) == 2 else np.atleast_2d(sample), genes
    )
    if X.shape[0] != 1:
        raise ValueError(f"{X.shape[0]} samples were given: one is explained at a time")
    panel, present = model.panel, match.present
    columns = match.columns[present]
    values = as_dense(needed_values(X, slice(None), columns))[0].astype(float)
    ranks, base = _contributing_ranks(panel, present, values)
    shown = np.full(len(panel.genes), np.nan)
    shown[present] = values
    first_of_two = model.classes[0] if len(panel.coef) == 1 else None
    tables = []
    for row, label in enumerate(model.score_classes.tolist()):
        coef = panel.coef[row]
        contribution = np.where(present, coef * ranks[row], 0.0)
        used = np.flatnonzero(coef)
        order = used[np.argsort(-np.abs(contribution[used]), kind="stable")]
        if panel.references is not None:
            intercept = {"class": label, "gene": INTERCEPT, "missing": False}
            tables.append(pd.DataFrame([intercept | {"contribution": base[row]}]))
        tables.append(
            pd.DataFrame(
                {
                    "class": label,
                    "gene": panel.genes[order],
                    "missing": ~present[order],
                    "value": shown[order],
                    "rank": np.where(present[order], ranks[row, order], np.nan),
                    "weight": coef[order],
                    "contribution": contribution[order],
                }
            )
        )
    table = pd.concat(tables, ignore_index=True)
    table["speaks_for"] = [
        speaks_for(amount, label, first_of_two)
        for label, amount in zip(table["class"], table["contribution"], strict=True)
    ]
    return table


def _contributing_ranks(
    panel: SizedPanel, present: NDArray[np.bool_], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ranks (rows, genes) whose products with the weights make the scores, and
    the rest.
    """
    ranks = np.zeros(panel.coef.shape)
    if panel.references is None:
        n_genes = len(values)
        scaled = weighted_ranks(values[None, :], np.ones(n_genes))[0]
        ranks[:, present] = scaled - (n_genes - 1) / (2.0 * n_genes)
        return ranks, np.zeros(len(panel.coef))
    references = panel.references
    means = references.stand_ins(present)
    for row, gamma in enumerate(references.weights[:, present]):
        relative = weighted_ranks(values[None, :], gamma, ties=references.ties)[0]
        ranks[row, present] = relative - means[row, present]
    base = references.intercept + (panel.coef * means).sum(axis=1)
    return ranks, base


def speaks_for(amount: float, label: Any, first_of_two: Any) -> str:
    """For or against which class an amount speaks."""
    if amount == 0:
        return ""
    if amount > 0:
        return f"for {label}"
    return f"against {label}" if first_of_two is None else f"for {first_of_two}"
