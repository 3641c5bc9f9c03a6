"""Compiled loops of the joint model: the softmax over samples, one co-rank pass for all classes.

Scores are n x K. ``groups`` are tie groups as in ``rank_loops``. The tests compare each loop with
its definition in plain NumPy.
"""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit


@jit(fastmath=True)
def softmax_slopes(z, b, codes, v, probabilities, slopes):
    """Softmax of ``z_i + b`` and ``slopes_ik = v_i (p_ik - 1[k = codes_i])``."""
    n, n_classes = z.shape
    row = np.empty(n_classes)
    for i in range(n):
        top = -np.inf
        for k in range(n_classes):
            row[k] = z[i, k] + b[k]
            top = max(top, row[k])
        total = 0.0
        for k in range(n_classes):
            row[k] = np.exp(row[k] - top)
            total += row[k]
        scale = 1.0 / total
        for k in range(n_classes):
            p = row[k] * scale
            probabilities[i, k] = p
            slopes[i, k] = v[i] * p
        # subtracted from the others' sum, not from 1: a small remainder keeps its digits
        rest = 0.0
        for k in range(n_classes):
            if k != codes[i]:
                rest += row[k]
        slopes[i, codes[i]] = -v[i] * rest * scale


@jit
def softmax_loss(z, b, codes, v):
    """``sum_i v_i (log sum_k exp(z_ik + b_k) - z_ic - b_c)``, c the class of sample i."""
    n, n_classes = z.shape
    loss = 0.0
    for i in range(n):
        own = z[i, codes[i]] + b[codes[i]]
        top = 0.0
        for k in range(n_classes):
            top = max(top, z[i, k] + b[k] - own)
        total = 0.0
        for k in range(n_classes):
            total += np.exp(z[i, k] + b[k] - own - top)
        loss += v[i] * (top + np.log(total))
    return loss


@jit(fastmath=True)
def softmax_rise(z_new, b_new, z, b, probabilities, v):
    """The rise of the loss above its tangent, from scores z + b to z_new + b_new.

    With ``u`` the change of a sample's scores minus its mean under the probabilities at the start,
    it is ``log(1 + sum_k p_k (exp(u_k) - 1 - u_k))``: terms that are never negative, so, unlike a
    difference of two losses, it does not cancel.
    """
    n, n_classes = z.shape
    change = np.empty(n_classes)
    rise = 0.0
    for i in range(n):
        mean = 0.0
        for k in range(n_classes):
            change[k] = z_new[i, k] + b_new[k] - z[i, k] - b[k]
            mean += probabilities[i, k] * change[k]
        total = 0.0
        for k in range(n_classes):
            u = change[k] - mean
            if abs(u) < 0.5:
                series = 1.0 / 720.0 + u * (1.0 / 5040.0 + u * (1.0 / 40320.0 + u / 362880.0))
                series = 1.0 / 6.0 + u * (1.0 / 24.0 + u * (1.0 / 120.0 + u * series))
                total += probabilities[i, k] * u * u * (0.5 + u * series)
            else:
                total += probabilities[i, k] * (np.exp(min(u, 300.0)) - 1.0 - u)
        rise += v[i] * np.log1p(total)
    return rise


@jit
def group_step(x, gradient, L, l1, l2, out):
    """``out`` = the minimiser of ``<gradient, u> + L/2 |u - x|^2 + l1 sum_j |u_j| + l2 |u|^2``.

    The norms are those of the rows. Returns ``|out - x|^2``.
    """
    d, n_classes = x.shape
    squared = 0.0
    shrink = 1.0 / (L + 2.0 * l2)
    for j in range(d):
        norm = 0.0
        for k in range(n_classes):
            u = L * x[j, k] - gradient[j, k]
            norm += u * u
        norm = np.sqrt(norm)
        factor = shrink * (1.0 - l1 / norm) if norm > l1 else 0.0
        for k in range(n_classes):
            value = factor * (L * x[j, k] - gradient[j, k])
            squared += (value - x[j, k]) ** 2
            out[j, k] = value
    return squared


@jit
def dense_gradient_gamma(groups, n_groups, columns, weights, tie, out):
    """Add ``sum_i C_i^T a_i`` into ``out`` (d), with ``a_i`` = ``weights[i]`` on ``columns``.

    A gene's value is the sum over the groups above its own plus t times that of its own group;
    ``tie`` is 1 - t.
    """
    n, d = groups.shape
    h = np.zeros(d + 4)
    for i in range(n):
        n_here = n_groups[i]
        h[:n_here] = 0.0
        total = 0.0
        for a in range(columns.shape[0]):
            value = weights[i, a]
            h[groups[i, columns[a]]] += value
            total += value
        below = 0.0
        for k in range(n_here):
            own = h[k]
            h[k] = total - below - tie * own
            below += own
        for j in range(d):
            out[j] += h[groups[i, j]]


@jit(fastmath=True)
def sparse_gradient_gamma(
    indptr, genes, groups, n_groups, zero_group, used, weights, total_weights, slopes, tie, out
):
    """As ``dense_gradient_gamma`` over the non-zeros, with ``a_ij = weights[j] . slopes[i]``.

    ``used`` marks the genes whose weights are not all zero. Adds the excess over the value of a
    sample's zero genes into ``out`` (d) and returns the sum of those values over the samples.
    """
    d, n_classes = weights.shape
    h = np.zeros(d + 5)
    constant_sum = 0.0
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        n_here = n_groups[i]
        h[:n_here] = 0.0
        total = 0.0
        for k in range(n_classes):
            total += total_weights[k] * slopes[i, k]
        seen = 0.0
        for p in range(begin, end):
            gene = genes[p]
            if used[gene]:
                value = np.float32(0.0)
                for k in range(n_classes):
                    value += weights[gene, k] * slopes[i, k]
                h[groups[p]] += value
                seen += value
        if end - begin < d:
            h[zero_group[i]] = total - seen
        else:
            total = seen
        below = 0.0
        for k in range(n_here):
            own = h[k]
            h[k] = total - below - tie * own
            below += own
        constant = h[zero_group[i]]
        constant_sum += constant
        for p in range(begin, end):
            out[genes[p]] += h[groups[p]] - constant
    return constant_sum


@jit
def sparse_rows_dot(pointers, genes, excess, constants, W, sums, out):
    """``out_i = constants_i sums + sum_e excess_e W[gene_e]`` over the entries e of sample i.

    ``sums`` are those of the columns of W.
    """
    n, n_classes = out.shape
    for i in range(n):
        row = out[i]
        for k in range(n_classes):
            row[k] = constants[i] * sums[k]
        for e in range(pointers[i], pointers[i + 1]):
            value = excess[e]
            weights = W[genes[e]]
            for k in range(n_classes):
                row[k] += value * weights[k]


@jit
def sparse_rows_transpose_dot(pointers, genes, excess, G, out):
    """Add ``excess_e G_i`` to the row of gene_e of ``out``, for the entries e of each sample i."""
    n, n_classes = G.shape
    for i in range(n):
        slopes = G[i]
        for e in range(pointers[i], pointers[i + 1]):
            value = excess[e]
            row = out[genes[e]]
            for k in range(n_classes):
                row[k] += value * slopes[k]
