"""Compiled passes over the orders of samples.

A sample is given by the tie group of each of its genes: ``groups[i, j]`` counts the distinct values
below gene j's in sample i. With weights ``a`` on the genes, let ``h_k`` be the sum of ``a`` over
group k and ``c_k`` the sum over the groups below it. Every quantity of the method is then

    f_k = base + sign * (c_k + tie * h_k),

read off at each gene's group: ranks with ``base = -offset, sign = 1, tie = t`` and co-ranks with
``base = sum(a), sign = -1, tie = 1 - t``. All sums run in float64 whatever the output's type, so
float32 results carry one rounding each, however many genes there are.

The tests hold a twin of these loops in plain NumPy, ``tests/ranks/plain_orders.py``.
"""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit


@jit
def _sum_groups(row, n_groups, genes, a, h, lanes):
    """``h_k`` = sum over group k of the weights ``a`` of ``genes``; three zeros follow the last.

    Genes left out have weight zero; if none is, ``genes`` is not read. Where genes share groups, an
    addition waits for the one before it to be stored, so four sums take turns (``lanes``).
    """
    d = row.shape[0]
    m = a.shape[0]
    for k in range(n_groups, n_groups + 3):
        h[k] = 0.0
    if m == d and n_groups == d:  # no ties: a permutation, nothing to add up
        for j in range(d):
            h[row[j]] = a[j]
        return
    if 4 * n_groups > m:
        for k in range(n_groups):
            h[k] = 0.0
        if m == d:
            for j in range(d):
                h[row[j]] += a[j]
        else:
            for p in range(m):
                h[row[genes[p]]] += a[p]
        return
    for k in range(4 * n_groups):
        lanes[k] = 0.0
    whole = m - m % 4
    if m == d:
        for j in range(0, whole, 4):
            lanes[4 * row[j]] += a[j]
            lanes[4 * row[j + 1] + 1] += a[j + 1]
            lanes[4 * row[j + 2] + 2] += a[j + 2]
            lanes[4 * row[j + 3] + 3] += a[j + 3]
        for j in range(whole, d):
            lanes[4 * row[j]] += a[j]
    else:
        for p in range(0, whole, 4):
            lanes[4 * row[genes[p]]] += a[p]
            lanes[4 * row[genes[p + 1]] + 1] += a[p + 1]
            lanes[4 * row[genes[p + 2]] + 2] += a[p + 2]
            lanes[4 * row[genes[p + 3]] + 3] += a[p + 3]
        for p in range(whole, m):
            lanes[4 * row[genes[p]]] += a[p]
    for k in range(n_groups):
        h[k] = (lanes[4 * k] + lanes[4 * k + 1]) + (lanes[4 * k + 2] + lanes[4 * k + 3])


@jit
def _values_of_groups(h, n_groups, base, sign, tie, f):
    """``f_k = base + sign * (c_k + tie * h_k)``, four at a time to shorten the chain of sums."""
    c = 0.0
    for q in range((n_groups + 3) // 4):
        k = 4 * q
        h0 = h[k]
        h1 = h[k + 1]
        h2 = h[k + 2]
        h3 = h[k + 3]
        h01 = h0 + h1
        h012 = h01 + h2
        f[k] = base + sign * (c + tie * h0)
        f[k + 1] = base + sign * (c + (h0 + tie * h1))
        f[k + 2] = base + sign * (c + (h01 + tie * h2))
        f[k + 3] = base + sign * (c + (h012 + tie * h3))
        c += h012 + h3


@jit
def dense_values(groups, n_groups, genes, a, base, sign, tie, columns, out):
    """Write ``f`` at each gene's group into ``out``, for weights ``a`` of ``genes``.

    ``out`` is n x d, or has the columns of some genes if ``columns`` is not empty.
    """
    n, d = groups.shape
    h = np.zeros(d + 4)
    lanes = np.empty(4 * d + 4)
    f = np.empty(d + 4, out.dtype)
    some = columns.shape[0]
    for i in range(n):
        row = groups[i]
        _sum_groups(row, n_groups[i], genes, a, h, lanes)
        _values_of_groups(h, n_groups[i], base, sign, tie, f)
        out_row = out[i]
        if some:
            for q in range(some):
                out_row[q] = f[row[columns[q]]]
        else:
            for j in range(d):
                out_row[j] = f[row[j]]


@jit
def dense_weighted_sum(groups, n_groups, genes, a, base, sign, tie, sample_weights, out):
    """Add ``sum_i sample_weights_i * f`` at each gene's group into ``out`` (d)."""
    n, d = groups.shape
    h = np.zeros(d + 4)
    lanes = np.empty(4 * d + 4)
    f = np.empty(d + 4)
    for i in range(n):
        row = groups[i]
        _sum_groups(row, n_groups[i], genes, a, h, lanes)
        _values_of_groups(h, n_groups[i], base, sign, tie, f)
        weight = sample_weights[i]
        for j in range(d):
            out[j] += weight * f[row[j]]


@jit
def dense_scores(groups, n_groups, gamma, w, tie, out):
    """``out_i = sum_k W_k (c_k + tie * h_k)`` with ``h`` of gamma and ``W`` of w: w . C gamma."""
    n, d = groups.shape
    pairs = np.empty((d, 2))
    for j in range(d):
        pairs[j, 0] = gamma[j]
        pairs[j, 1] = w[j]
    h = np.zeros((d + 4, 2))
    for i in range(n):
        row = groups[i]
        n_here = n_groups[i]
        if n_here == d:
            for j in range(d):
                group = row[j]
                h[group, 0] = pairs[j, 0]
                h[group, 1] = pairs[j, 1]
        else:
            for q in range(n_here + 3):
                h[q, 0] = 0.0
                h[q, 1] = 0.0
            for j in range(d):
                group = row[j]
                h[group, 0] += pairs[j, 0]
                h[group, 1] += pairs[j, 1]
        c = 0.0
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for q in range((n_here + 3) // 4):
            k = 4 * q
            h0 = h[k, 0]
            h1 = h[k + 1, 0]
            h2 = h[k + 2, 0]
            h3 = h[k + 3, 0]
            h01 = h0 + h1
            h012 = h01 + h2
            s0 += h[k, 1] * (c + tie * h0)
            s1 += h[k + 1, 1] * (c + (h0 + tie * h1))
            s2 += h[k + 2, 1] * (c + (h01 + tie * h2))
            s3 += h[k + 3, 1] * (c + (h012 + tie * h3))
            c += h012 + h3
        out[i] = (s0 + s1) + (s2 + s3)


@jit
def _sum_sparse_groups(genes, groups, n_groups, zero_group, total, a, h):
    """As ``_sum_groups`` over a sample's non-zeros; the zero genes hold what is left of the sum."""
    h[: n_groups + 3] = 0.0
    seen = 0.0
    for p in range(genes.shape[0]):
        value = a[genes[p]]
        h[groups[p]] += value
        seen += value
    if genes.shape[0] < a.shape[0]:
        h[zero_group] = total - seen


@jit
def sparse_values(
    indptr, genes, groups, n_groups, zero_group, a, total, base, sign, tie, constants, out
):
    """Write the zero genes' value into ``constants`` (n), the non-zeros' excess into ``out``."""
    size = a.shape[0] + 5
    h = np.empty(size)
    f = np.empty(size)
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        _sum_sparse_groups(
            genes[begin:end], groups[begin:end], n_groups[i], zero_group[i], total, a, h
        )
        _values_of_groups(h, n_groups[i], base, sign, tie, f)
        constant = f[zero_group[i]]
        constants[i] = constant
        for p in range(begin, end):
            out[p] = f[groups[p]] - constant


@jit
def sparse_weighted_sum(
    indptr, genes, groups, n_groups, zero_group, a, total, base, sign, tie, sample_weights, out
):
    """Add the weighted excesses of the non-zeros into ``out`` (d); return the constants' sum."""
    size = a.shape[0] + 5
    h = np.empty(size)
    f = np.empty(size)
    constant_sum = 0.0
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        _sum_sparse_groups(
            genes[begin:end], groups[begin:end], n_groups[i], zero_group[i], total, a, h
        )
        _values_of_groups(h, n_groups[i], base, sign, tie, f)
        constant = f[zero_group[i]]
        weight = sample_weights[i]
        constant_sum += weight * constant
        for p in range(begin, end):
            out[genes[p]] += weight * (f[groups[p]] - constant)
    return constant_sum


@jit
def sparse_scores(
    indptr, genes, groups, n_groups, zero_group, gamma, gamma_sum, w, w_sum, tie, out
):
    """``w . C gamma`` from the non-zeros: the zero genes enter as one group."""
    size = w.shape[0] + 5
    h = np.empty(size)
    f = np.empty(size)
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        _sum_sparse_groups(
            genes[begin:end], groups[begin:end], n_groups[i], zero_group[i], gamma_sum, gamma, h
        )
        _values_of_groups(h, n_groups[i], 0.0, 1.0, tie, f)
        constant = f[zero_group[i]]
        score = constant * w_sum
        for p in range(begin, end):
            score += w[genes[p]] * (f[groups[p]] - constant)
        out[i] = score


@jit
def sparse_dot(indptr, genes, excess, constants, a, total, out):
    """``out = (constants 1^T + E) a``, with ``total`` the sum of ``a``."""
    for i in range(indptr.shape[0] - 1):
        even = 0.0
        odd = 0.0
        begin, end = indptr[i], indptr[i + 1]
        for p in range(begin, end - 1, 2):
            even += excess[p] * a[genes[p]]
            odd += excess[p + 1] * a[genes[p + 1]]
        if (end - begin) % 2:
            even += excess[end - 1] * a[genes[end - 1]]
        out[i] = even + odd + constants[i] * total


@jit
def sparse_transpose_dot(indptr, genes, excess, a, out):
    """Add ``E^T a`` into ``out`` (d)."""
    for i in range(indptr.shape[0] - 1):
        weight = a[i]
        for p in range(indptr[i], indptr[i + 1]):
            out[genes[p]] += weight * excess[p]
