"""Why a sample got its label, and which genes a model needs: tables for people and programs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optirank.model.genes import MAX_MISSING, BoundModel, bind
from optirank.model.linear import linear_parts
from optirank.ranks.relative import weighted_ranks

if TYPE_CHECKING:
    import pandas as pd

INTERCEPT = "(intercept)"
_ROLES = np.array(["neither", "reference", "weight", "both"], dtype=object)


def panel_table(model: Any) -> pd.DataFrame:
    """The genes of a model's panel, the heaviest first.

    Returns
    -------
    A table with the columns ``gene`` and ``weight_<class>`` for each class; two classes have one
    such column, for the second one. Where the genes differ in what they are for, as in the paper's
    classifier, there are also ``role`` ("reference": others are compared with it; "weight": its
    rank counts; "both") and ``n_reference``, the number of classes whose reference set it is in.
    """
    import pandas as pd

    parts = linear_parts(model)
    gamma = parts.reference_weights > 0
    columns = {"gene": parts.genes}
    if not parts.is_panel:
        columns["role"] = _ROLES[gamma.any(axis=0) + 2 * (parts.coef != 0).any(axis=0)]
        columns["n_reference"] = gamma.sum(axis=0)
    for label, weights in zip(parts.score_classes, parts.coef, strict=True):
        columns[f"weight_{label}"] = weights
    heaviest = np.argsort(-np.abs(parts.coef).max(axis=0), kind="stable")
    return pd.DataFrame(columns).iloc[heaviest].reset_index(drop=True)


def export_table(model: Any) -> pd.DataFrame:
    """A panel model as one table, from which a few lines of any language label a matrix.

    Returns
    -------
    A table with the columns ``gene``, ``mean_rank`` (what stands in for a gene that is missing) and
    one per class with its weights, and the intercepts in a last line, ``"(intercept)"``. The label
    of a sample is the class of the highest score, ``(average ranks - 1) / k`` of the k genes
    among themselves times the weights, plus the intercepts. The first of two classes has weights 0.

    In R, with genes in the rows of ``X``::

        t <- read.csv("panel.csv", check.names = FALSE)
        k <- nrow(t) - 1
        W <- as.matrix(t[, -(1:2)])
        r <- (apply(X[t$gene[1:k], , drop = FALSE], 2, rank) - 1) / k
        z <- t(r) %*% W[1:k, ] + rep(W[k + 1, ], each = ncol(X))
        labels <- colnames(W)[max.col(z, ties.method = "first")]
    """
    import pandas as pd

    parts = linear_parts(model)
    if not parts.is_panel:
        raise TypeError(
            "a model whose classes have reference sets of their own is no single table: train a "
            "PanelClassifier to export one"
        )
    coef, intercept = parts.coef, parts.intercept
    if len(coef) == 1:
        coef, intercept = np.vstack([0.0 * coef, coef]), np.append(0.0, intercept)
    columns = {
        "gene": [*parts.genes, INTERCEPT],
        "mean_rank": [*parts.mean_ranks[0], np.nan],
    }
    for label, weights, b in zip(parts.classes, coef, intercept, strict=True):
        columns[str(label)] = [*weights, b]
    return pd.DataFrame(columns)


def explain(
    model: Any,
    sample: Any,
    genes: Iterable[str] | None = None,
    *,
    max_missing: float = MAX_MISSING,
) -> pd.DataFrame:
    """What each gene with a weight contributes to each class's score of one sample.

    Parameters
    ----------
    model : a fitted linear classifier on ranks.
    sample : one sample: a series or a data frame of one row (its genes are found by name), or a
        row of values.
    genes : the names of the values, where they are not in ``sample``; None when they are the
        columns of the training data.
    max_missing : the share of a class's genes that may be missing.

    Returns
    -------
    A table with the columns ``class``, ``gene``, ``missing``, ``value`` (NaN where missing),
    ``relative_rank``, ``mean_rank`` (of training), ``weight``, ``contribution``
    ``weight * (relative_rank - mean_rank)``, and ``speaks_for`` in words ("for ER positive"), the
    largest contributions of a class first. Each gene is listed once per score: two classes have one
    score, whose positive contributions speak for the second class and negative ones for the first.
    The line ``(intercept)`` is the score of a sample whose genes have their mean ranks, so the
    contributions of a class sum to its score.
    """
    import pandas as pd

    if genes is None and hasattr(sample, "to_numpy"):
        genes = sample.index if sample.ndim == 1 else sample.columns
    bound = bind(model, genes, max_missing)
    x = _row(sample, bound)
    parts, here, means = bound.parts, bound.match.present, bound.imputed
    values = np.full(len(parts.positions), np.nan)
    values[here] = x
    ranks = means.copy()
    for row, gamma in enumerate(parts.reference_weights[:, here]):
        ranks[row, here] = weighted_ranks(x[None, :], gamma, ties=parts.ties)[0]
    other = parts.classes[0] if len(parts.coef) == 1 else None
    tables = []
    for k, label in enumerate(parts.score_classes.tolist()):
        coef = parts.coef[k]
        contribution = coef * (ranks[k] - means[k])
        used = np.flatnonzero(coef)
        order = used[np.argsort(-np.abs(contribution[used]), kind="stable")]
        table = pd.DataFrame(
            {
                "class": label,
                "gene": [INTERCEPT, *parts.genes[order]],
                "missing": [False, *~here[order]],
                "value": [np.nan, *values[order]],
                "relative_rank": [np.nan, *ranks[k, order]],
                "mean_rank": [np.nan, *means[k, order]],
                "weight": [np.nan, *coef[order]],
                "contribution": [
                    parts.intercept[k] + coef @ means[k],
                    *contribution[order],
                ],
            }
        )
        table["speaks_for"] = [_words(c, label, other) for c in table["contribution"]]
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _words(contribution: float, label: Any, other: Any) -> str:
    """For which class a contribution speaks; ``other`` is the first of two classes."""
    if contribution == 0:
        return ""
    if contribution > 0:
        return f"for {label}"
    return f"against {label}" if other is None else f"for {other}"


def _row(sample: Any, bound: BoundModel) -> NDArray:
    """The values of the bound columns of one sample."""
    x = np.asarray(sample.toarray() if hasattr(sample, "toarray") else sample)
    x = x[0] if x.ndim == 2 and len(x) == 1 else x
    if x.shape != (bound.n_columns,):
        raise ValueError(
            f"the sample has shape {x.shape}: one sample of {bound.n_columns} values is needed"
        )
    x = x[bound.columns]
    if not np.isfinite(x.astype(float)).all():
        raise ValueError("the sample has NaN or infinite values, which have no rank")
    return x
