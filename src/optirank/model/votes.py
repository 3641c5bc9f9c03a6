"""A vote of pairs of genes (k-TSP) as rows of a linear model on ranks, and as rules in words.

The vote of a pair (a, b) is a score on ranks relative to a reference set of one gene, b: ``C_ab``
is 1 where ``x_a > x_b``, t for a tie and 0 otherwise, so ``2 C_ab - 1`` is the vote. The mean vote
of a class is the mean of such rows. So a vote is bound to new data, scored and read from a file
as the other models are.

A pair that lacks a gene does not vote, and the other pairs of its class decide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.votes import pair_votes, tie_break
from optirank.model.linear import LinearParts, linear_model
from optirank.ranks.definition import check_ties

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


def vote_parts(model: Any) -> LinearParts:
    """The rows of a TopScoringPairsClassifier, one per pair.

    Every class has as many rows as the class of most pairs: rows of no weight fill up the others,
    and the weights of their pairs grow, so that the mean of the rows is the mean vote.
    """
    names = getattr(model, "feature_names_in_", None)
    panel = np.flatnonzero(model.genes_)
    most = int(model.k_.max())
    shape = len(model.k_) * most, len(panel)
    coef, gamma, weights = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])
    places = np.searchsorted(panel, model.pairs_)
    sizes = 1.0 + tie_break(most) * model.scores_
    for problem, (k, end) in enumerate(zip(model.k_, np.cumsum(model.k_), strict=True)):
        mine, first = slice(end - k, end), problem * most
        rows = np.arange(first, first + k)
        weights[rows] = model.signs_[mine] * sizes[mine] * most / k
        coef[rows, places[mine, 0]] = 2.0 * weights[rows]
        gamma[rows, places[mine, 1]] = 1.0
        gamma[first + k : first + most, places[end - 1, 1]] = 1.0  # a row needs a reference
    # 2 C - 1 - 2 offset, since ranks have the offset taken off
    _, offset = check_ties(model.ties)
    return LinearParts(
        classes=np.asarray(model.classes_),
        coef=coef,
        reference_weights=gamma,
        intercept=weights * (2.0 * offset - 1.0),
        mean_ranks=None,
        ties=model.ties,
        positions=panel,
        n_features=int(model.n_features_in_),
        names=None if names is None else np.asarray(names, dtype=object),
        votes=True,
    )


def lost_votes(parts: LinearParts, here: NDArray) -> NDArray:
    """The rows whose pair lacks a gene; ``here`` says which genes of the panel are there."""
    needed = (parts.coef != 0) | (parts.reference_weights > 0)
    return (needed & ~here).any(axis=1)


def abstaining(parts: LinearParts, here: NDArray) -> LinearParts:
    """The vote without the pairs that lack a gene; the weights of the others grow instead.

    The mean vote of a class is then that of its pairs that are left.
    """
    lost = lost_votes(parts, here)
    counted = np.abs(parts.coef).max(axis=1) > 0
    shape = parts.n_problems, parts.rows_per_problem
    before = counted.reshape(shape).sum(axis=1)
    after = (counted & ~lost).reshape(shape).sum(axis=1)
    scale = np.repeat(before / np.maximum(after, 1), shape[1]) * ~lost
    return replace(parts, coef=parts.coef * scale[:, None], intercept=parts.intercept * scale)


def pair_table(model: Any) -> pd.DataFrame:
    """The pairs of a vote, one line each: what speaks for a class.

    Returns
    -------
    A table with the columns ``class``, ``higher`` and ``lower`` (the class gets a vote where the
    first gene is above the second), ``score``, ``order`` (such as ``A > B``) and ``rule``. Two
    classes share their pairs: the opposite order speaks for the first class.
    """
    import pandas as pd

    model = linear_model(model)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = np.array([f"x{j}" for j in range(model.n_features_in_)], dtype=object)
    turned = model.signs_ < 0
    pairs = np.where(turned[:, None], model.pairs_[:, ::-1], model.pairs_)
    classes = model.classes_[1:] if len(model.k_) == 1 else model.classes_
    labels = np.repeat(classes, model.k_)
    # A tie counts as "not above": with ties="min" it speaks for the class of a turned pair.
    signs = np.where(turned & (model.ties == "min"), ">=", ">")
    higher, lower = names[pairs].T
    order = [f"{one} {sign} {two}" for one, sign, two in zip(higher, signs, lower, strict=True)]
    rules = [f"{one} speaks for {label}" for one, label in zip(order, labels, strict=True)]
    columns = {"class": labels, "higher": higher, "lower": lower, "score": model.scores_}
    return pd.DataFrame(columns | {"order": order, "rule": rules})


def gene_table(model: Any) -> pd.DataFrame:
    """The genes of a vote, one line per gene of each pair: role, other gene, class, score, rule."""
    import pandas as pd

    pairs = pair_table(model)
    sides = [
        pairs.rename(columns={one: "gene", other: "other"}).assign(role=one)
        for one, other in (("higher", "lower"), ("lower", "higher"))
    ]
    columns = ["gene", "role", "other", "class", "score", "rule"]
    return pd.concat(sides).sort_index(kind="stable")[columns].reset_index(drop=True)


def explain_votes(model: Any, here: NDArray, x: NDArray) -> pd.DataFrame:
    """How each pair votes in one sample: what it contributes to the mean vote of its class.

    ``x`` are the values of the panel's genes that are ``here``.
    """
    parts = vote_parts(linear_model(model))
    values = np.full(len(here), np.nan)
    values[here] = x
    table = pair_table(model)
    model = linear_model(model)
    first, second = values[np.searchsorted(parts.positions, model.pairs_)].T
    missing = np.isnan(first) | np.isnan(second)
    votes = np.where(missing, 0.0, pair_votes(first, second, model.signs_, model.ties))
    most, k = parts.rows_per_problem, np.repeat(model.k_, model.k_)
    within = np.arange(len(k)) - np.repeat(np.cumsum(model.k_) - model.k_, model.k_)
    rows = np.repeat(np.arange(len(model.k_)), model.k_) * most + within
    weights = np.abs(abstaining(parts, here).coef[rows]).max(axis=1) / (2.0 * most)
    turned = model.signs_ < 0
    table = table.assign(
        gene=table["order"],
        role="pair",
        missing=missing,
        value=np.where(turned, second, first),
        value_below=np.where(turned, first, second),
        vote=votes,
        weight=weights,
        contribution=votes * weights,
    )
    return table.drop(columns=["higher", "lower", "score", "order", "rule"])
