"""Compiled scores of new samples: all rows of a model in one pass up each sample's values.

A sample is given by the tie group of each of its genes, as in ``rank_loops``; a model by the
non-zero reference weights of each gene, with the reference sets they belong to, and its non-zero
weights, with the rows of the model they belong to; several rows may share a reference set. Going
up through the groups, ``below`` keeps for each reference set the sum of weights below, to which a
group first adds ``tie`` of its own; then its weights are added up, then the rest of its reference
weights. A gene costs as much as there are rows and sets that need it.

The twin of this loop in plain NumPy is in ``optirank.ranks.scoring``.
"""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit


@jit
def scores_of_rows(
    indptr, genes, same_genes, groups, n_groups, zero_group,
    g_indptr, g_sets, g_values, w_indptr, w_rows, w_values, set_of, tie, gamma_sums, coef_sums,
    scores,
):  # fmt: skip
    """Add ``w . C gamma`` of each sample and row of the model into ``scores`` (n x rows).

    Sample i has the entries ``indptr[i]:indptr[i + 1]``. With ``same_genes`` all samples have the
    genes listed; else there is one gene per entry, and the others, zero, are a group of their own,
    with what is left of the sums. One function for all: calls with arrays would cost more than
    what they do.
    """
    n_genes = g_indptr.shape[0] - 1
    n_rows = scores.shape[1]
    starts = np.empty(n_genes + 2, np.int64)
    order = np.empty(n_genes, np.int64)
    below = np.empty(gamma_sums.shape[0])
    gamma_zero = np.empty(gamma_sums.shape[0])
    coef_zero = np.empty(n_rows)
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        gene_of = begin if same_genes else 0
        n_here = n_groups[i]
        zero = zero_group[i] if end - begin < n_genes else -1

        # Genes by group: those of group k are at starts[k]:starts[k + 1] of the order.
        starts[: n_here + 1] = 0
        for p in range(begin, end):
            starts[groups[p]] += 1
        total = 0
        for k in range(n_here):
            total += starts[k]
            starts[k] = total
        starts[n_here] = total
        for p in range(begin, end):
            starts[groups[p]] -= 1
            order[starts[groups[p]]] = genes[p - gene_of]

        if zero >= 0:
            gamma_zero[:] = gamma_sums
            coef_zero[:] = coef_sums
            for q in range(total):
                gene = order[q]
                for e in range(g_indptr[gene], g_indptr[gene + 1]):
                    gamma_zero[g_sets[e]] -= g_values[e]
                for e in range(w_indptr[gene], w_indptr[gene + 1]):
                    coef_zero[w_rows[e]] -= w_values[e]

        below[:] = 0.0
        for k in range(n_here):
            first, last = starts[k], starts[k + 1]
            if k == zero:
                for row in range(n_rows):
                    at = set_of[row]
                    scores[i, row] += coef_zero[row] * (below[at] + tie * gamma_zero[at])
                below += gamma_zero
            for q in range(first, last):
                for e in range(g_indptr[order[q]], g_indptr[order[q] + 1]):
                    below[g_sets[e]] += tie * g_values[e]
            for q in range(first, last):
                for e in range(w_indptr[order[q]], w_indptr[order[q] + 1]):
                    scores[i, w_rows[e]] += w_values[e] * below[set_of[w_rows[e]]]
            for q in range(first, last):
                for e in range(g_indptr[order[q]], g_indptr[order[q] + 1]):
                    below[g_sets[e]] += (1.0 - tie) * g_values[e]


@jit
def ranks_among_themselves(X, ranks):
    """Scaled ranks of each sample's k values among themselves, ``(average rank - 1/2) / k``.

    ``X`` and ``ranks`` are (n x k). A sample's zeros are one value. The others are compared with
    each other where they are few, which the processor does eight at a time, and sorted otherwise.
    """
    n, k = X.shape
    values = np.empty(k, X.dtype)
    genes = np.empty(k, np.int64)
    for i in range(n):
        m = 0
        negative = 0
        for j in range(k):
            if X[i, j] != 0:
                values[m] = X[i, j]
                genes[m] = j
                m += 1
                if X[i, j] < 0:
                    negative += 1
        zeros = k - m
        ranks[i, :] = (negative + 0.5 * zeros) / k
        here = values[:m]
        if m <= 256:  # about where comparing all pairs costs as much as sorting
            for p in range(m):
                value = here[p]
                below = 0
                equal = 0
                for q in range(m):
                    below += here[q] < value
                    equal += here[q] == value
                if value > 0:
                    below += zeros
                ranks[i, genes[p]] = (below + 0.5 * equal) / k
        else:
            order = np.argsort(here)
            first = 0
            while first < m:
                last = first
                value = here[order[first]]
                while last < m and here[order[last]] == value:
                    last += 1
                below = first + zeros if value > 0 else first
                for p in range(first, last):
                    ranks[i, genes[order[p]]] = (below + 0.5 * (last - first)) / k
                first = last
