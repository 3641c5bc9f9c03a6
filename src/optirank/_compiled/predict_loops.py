"""Compiled scores of new samples: all rows of a model in one pass up each sample's values.

A sample is given by the tie group of each of its genes, as in ``rank_loops``; a model by the
non-zero reference weights and weights of each gene, with the rows of the model they belong to.
Going up through the groups, ``below`` keeps for each row the sum of reference weights below, to
which a group first adds ``tie`` of its own; then its weights are added up, then the rest of its
reference weights. A gene costs as much as there are rows that need it, whatever the number of rows.

The twin of these loops in plain NumPy is ``optirank.model.sweep``.
"""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit


@jit
def _sort_by_group(groups, n_groups, starts, order):
    """Places of a sample's genes by group; those of group k are at ``starts[k]:starts[k + 1]``."""
    starts[: n_groups + 1] = 0
    for p in range(groups.shape[0]):
        starts[groups[p]] += 1
    total = 0
    for k in range(n_groups):
        total += starts[k]
        starts[k] = total
    starts[n_groups] = total
    for p in range(groups.shape[0]):
        starts[groups[p]] -= 1
        order[starts[groups[p]]] = p


@jit
def _add(indptr, rows, values, gene, factor, to):
    """``to`` += ``factor`` times the gene's entries."""
    for e in range(indptr[gene], indptr[gene + 1]):
        to[rows[e]] += factor * values[e]


@jit
def _sweep_group(
    order, genes, g_indptr, g_rows, g_values, w_indptr, w_rows, w_values, tie, below, score
):
    """Go up through the genes of one group."""
    for q in range(order.shape[0]):
        _add(g_indptr, g_rows, g_values, genes[order[q]], tie, below)
    for q in range(order.shape[0]):
        gene = genes[order[q]]
        for e in range(w_indptr[gene], w_indptr[gene + 1]):
            row = w_rows[e]
            score[row] += w_values[e] * below[row]
    for q in range(order.shape[0]):
        _add(g_indptr, g_rows, g_values, genes[order[q]], 1.0 - tie, below)


@jit
def dense_scores(
    groups, n_groups, g_indptr, g_rows, g_values, w_indptr, w_rows, w_values, tie, scores
):
    """Add ``w . C gamma`` of each sample and row of the model into ``scores`` (n x rows)."""
    n, d = groups.shape
    genes = np.arange(d)
    starts = np.empty(d + 1, np.int64)
    order = np.empty(d, np.int64)
    below = np.empty(scores.shape[1])
    for i in range(n):
        _sort_by_group(groups[i], n_groups[i], starts, order)
        below[:] = 0.0
        for k in range(n_groups[i]):
            _sweep_group(
                order[starts[k] : starts[k + 1]], genes, g_indptr, g_rows, g_values,
                w_indptr, w_rows, w_values, tie, below, scores[i],
            )  # fmt: skip


@jit
def sparse_scores(
    indptr, genes, groups, n_groups, zero_group, g_indptr, g_rows, g_values,
    w_indptr, w_rows, w_values, tie, gamma_sums, coef_sums, scores,
):  # fmt: skip
    """As ``dense_scores`` from the non-zeros; the zeros are a group of what is left of the sums."""
    n_genes = g_indptr.shape[0] - 1
    n_rows = scores.shape[1]
    starts = np.empty(n_genes + 2, np.int64)
    order = np.empty(n_genes, np.int64)
    below = np.empty(n_rows)
    gamma_zero = np.empty(n_rows)
    coef_zero = np.empty(n_rows)
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        here = genes[begin:end]
        _sort_by_group(groups[begin:end], n_groups[i], starts, order)
        has_zeros = end - begin < n_genes
        gamma_zero[:] = gamma_sums
        coef_zero[:] = coef_sums
        for p in range(here.shape[0]):
            _add(g_indptr, g_rows, g_values, here[p], -1.0, gamma_zero)
            _add(w_indptr, w_rows, w_values, here[p], -1.0, coef_zero)
        below[:] = 0.0
        score = scores[i]
        for k in range(n_groups[i]):
            if k == zero_group[i] and has_zeros:
                for row in range(n_rows):
                    score[row] += coef_zero[row] * (below[row] + tie * gamma_zero[row])
                    below[row] += gamma_zero[row]
            _sweep_group(
                order[starts[k] : starts[k + 1]], here, g_indptr, g_rows, g_values,
                w_indptr, w_rows, w_values, tie, below, score,
            )  # fmt: skip
