"""Why a sample got its label: what each gene contributes to each class's score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.value_rows import as_seen
from optirank.model.missing import MAX_MISSING, BoundModel, bind
from optirank.model.panel import gene_roles, side_names
from optirank.model.votes import explain_votes
from optirank.ranks.relative import weighted_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from optirank.model.linear import LinearParts

INTERCEPT = "(intercept)"


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
    A table with the columns ``class``, ``gene``, ``role``, ``missing``, ``value`` (NaN where
    missing), ``relative_rank`` r / s, ``weight`` and ``contribution``, the largest of a class
    first. For a classifier on values, ``value`` is what the weight is multiplied with and
    ``relative_rank`` is NaN. The contributions of a class, the intercept's line among them, sum to
    its score; for two classes there is one score, of the second class. A model of two sides has a
    column ``side`` too, and up to two lines per gene, of half the weight each, since its score is
    the mean of the two; they stand together, in the order of their sum.

    A vote of pairs (k-TSP) has one line per pair, the best first: ``gene`` is such as ``A > B``,
    ``value`` and ``value_below`` are the values of the two genes, and ``vote`` is 1 for the class,
    -1 against it, and 0 for a tie or a missing gene.
    """
    import pandas as pd

    if genes is None and hasattr(sample, "to_numpy"):
        genes = sample.index if sample.ndim == 1 else sample.columns
    bound = bind(model, genes, max_missing)
    x = _row(sample, bound)
    if bound.parts.votes:
        return explain_votes(model, bound.match.present, x)
    tables = [_row_table(bound, row, x) for row in range(bound.parts.n_rows)]
    table = pd.concat([_intercepts(bound.parts), *tables], ignore_index=True)
    order = {label: k for k, label in enumerate(bound.parts.problem_classes.tolist())}
    table["_class"] = table["class"].map(order)
    sums = table.groupby(["_class", "gene"])["contribution"].transform("sum")
    table["_size"] = -sums.abs().where(table["gene"] != INTERCEPT, np.inf)
    keys = ["_class", "_size", "gene"] if "side" in table else ["_class", "_size"]
    table = table.sort_values(keys, kind="stable")
    return table.drop(columns=["_class", "_size"]).reset_index(drop=True)


def _intercepts(parts: LinearParts) -> pd.DataFrame:
    """One line per class: the mean of its rows' intercepts."""
    import pandas as pd

    columns = {"class": parts.problem_classes, "gene": INTERCEPT, "role": "intercept"}
    if parts.rows_per_problem > 1:
        columns["side"] = ""
    unknown = dict.fromkeys(("value", "relative_rank", "weight"), np.nan)
    columns |= {"missing": False, **unknown, "contribution": parts.average(parts.intercept)}
    return pd.DataFrame(columns)


def _row_table(bound: BoundModel, row: int, x: np.ndarray) -> pd.DataFrame:
    import pandas as pd

    parts, here = bound.parts, bound.match.present
    used = np.flatnonzero(parts.coef[row])
    place = np.cumsum(here) - 1  # of a gene that is there, among those that are
    found = used[here[used]]
    ranks = bound.imputed[row].copy()
    values = np.full(len(here), np.nan)
    values[found] = x[place[found]]
    if parts.ties is None:
        seen = as_seen(x[None, :].astype(float), parts.target_sum)[0]
        ranks[found] = values[found] = seen[place[found]]
    else:
        gamma = bound.rows.gamma[row]
        ranks[found] = weighted_ranks(x[None, :], gamma, ties=parts.ties, genes=place[found])[0]
    share = 1.0 / parts.rows_per_problem
    weights = parts.coef[row, used]
    roles = gene_roles(parts.reference_weights[row] > 0, parts.coef[row] != 0)
    columns = {
        "class": parts.problem_classes[row // parts.rows_per_problem],
        "gene": parts.genes[used],
        "role": roles[used],
    }
    if parts.rows_per_problem > 1:
        columns["side"] = side_names(parts)[row % parts.rows_per_problem]
    columns |= {
        "missing": ~here[used],
        "value": values[used],
        "relative_rank": ranks[used] if parts.ties is not None else np.nan,
        "weight": weights * share,
        "contribution": weights * ranks[used] * share,
    }
    return pd.DataFrame(columns, index=range(len(used)))


def _row(sample: Any, bound: BoundModel) -> np.ndarray:
    """The values of the bound columns of one sample."""
    if hasattr(sample, "toarray"):
        sample = sample.toarray()
    x = np.asarray(sample)
    if x.ndim == 2 and len(x) == 1:
        x = x[0]
    if x.shape != (bound.n_columns,):
        raise ValueError(
            f"the sample has shape {x.shape}: one sample of {bound.n_columns} values is needed"
        )
    x = x[bound.columns]
    if not np.isfinite(x.astype(float)).all():
        raise ValueError("the sample has NaN or infinite values, which have no rank")
    return x
