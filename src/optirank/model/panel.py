"""The genes to measure: which they are, what they are for, and their weight for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.model.linear import LinearParts, linear_parts
from optirank.model.votes import gene_table

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

ROLES = np.array(["neither", "reference", "weight", "both"], dtype=object)


def panel_table(model: Any) -> pd.DataFrame:
    """The genes of a model's panel, the heaviest first.

    Returns
    -------
    A table with the columns ``gene``, ``role`` ("reference": others are compared with it;
    "weight": its rank counts; "both"), ``n_reference`` (the number of classes whose reference set
    it is in), and ``weight_<class>`` for each class. Two classes have one such column, for the
    second one; a model of two sides has ``weight_<class>_rising`` and ``weight_<class>_falling``.
    For a classifier on values, "reference" means that a gene is in the total that counts are
    relative to. A vote of pairs (k-TSP) has one line per gene of each pair, see
    ``optirank.model.votes.gene_table``.
    """
    import pandas as pd

    parts = linear_parts(model)
    if parts.votes:
        return gene_table(model)
    gamma = parts.reference_weights > 0
    by_class = gamma.reshape(parts.n_problems, -1, gamma.shape[1]).any(axis=1)
    columns = {
        "gene": parts.genes,
        "role": gene_roles(gamma.any(axis=0), (parts.coef != 0).any(axis=0)),
        "n_reference": by_class.sum(axis=0),
    }
    for name, weights in zip(row_names(parts), parts.coef, strict=True):
        columns[f"weight_{name}"] = weights
    heaviest = np.argsort(-np.abs(parts.coef).max(axis=0), kind="stable")
    return pd.DataFrame(columns).iloc[heaviest].reset_index(drop=True)


def gene_roles(in_reference: NDArray, has_weight: NDArray) -> NDArray:
    """The role of each gene."""
    return ROLES[in_reference.astype(int) + 2 * has_weight.astype(int)]


def row_names(parts: LinearParts) -> list[str]:
    """A name for each row of a model: its class, and where there are several, its side."""
    ends = [f"_{side}" for side in side_names(parts)] or [""]
    return [f"{label}{end}" for label in parts.problem_classes for end in ends]


def side_names(parts: LinearParts) -> list[str]:
    """Names of the solutions whose scores are averaged; none where there is one."""
    count = parts.rows_per_problem
    return {1: [], 2: ["rising", "falling"]}.get(count, [str(k + 1) for k in range(count)])
