"""Compiled passes over the orders of samples, and over comparisons of genes.

A sample is given by the tie group of each of its genes: ``groups[i, j]`` counts the
distinct values below gene j's in sample i. With weights ``a`` on the genes, let ``h_k``
be the sum of ``a`` over group k and ``c_k`` the sum over the groups below it. Every
quantity of the method is then

    f_k = base + sign * (c_k + tie * h_k),

read off at each gene's group: ranks with ``base = -offset, sign = 1, tie = t`` and
co-ranks with ``base = sum(a), sign = -1, tie = 1 - t``. All sums run in float64
whatever the output's type, so float32 results have one rounding each, however many
genes there are.

For exchanges in the reference set, ``C_i[j, k]`` compares genes j and k in sample i: 1
where j is above k, ``tie`` where they are equal, else 0.

The tests hold a twin of these loops in plain NumPy, ``tests/ranks/plain_orders.py``.
"""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit


@jit
def number_values(values, order, indptr, groups, n_groups):
    """Number the distinct values of each sample, from the order that sorts them.

    Samples follow each other in one array; sample i is at ``indptr[i]:indptr[i + 1]``,
    where ``order`` has the places within the sample.
    """
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        k = -1
        for p in range(begin, end):
            place = begin + order[p]
            k += p == begin or values[place] != values[begin + order[p - 1]]
            groups[place] = k
        n_groups[i] = k + 1


@jit
def doubled_ranks_in_order(values, order, out):
    """Twice the ranks of each sample's values, from the order that sorts them.

    A group of equal values at the places a to b - 1 of the order has the rank
    ``(a + b - 1) / 2``.
    """
    n, d = values.shape
    for i in range(n):
        row = values[i]
        place = order[i]
        start = 0
        for p in range(1, d + 1):
            if p == d or row[place[p]] != row[place[start]]:
                for q in range(start, p):
                    out[i, place[q]] = start + p - 1
                start = p


@jit
def places_in_order(values, order, indptr, n_genes, steps, out):
    """The place of each value among those above the lowest of its sample, from 0 to 1,
    in multiples of 1 / steps.

    Arguments are as in `number_values`. Where a sample has fewer than ``n_genes``
    values, the others are equal and below them.
    """
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        n_lowest = 0 if end - begin < n_genes else -1  # among the values; not yet known
        start = begin
        for p in range(begin + 1, end + 1):
            if p < end and values[begin + order[p]] == values[begin + order[start]]:
                continue
            place = 0.0
            if n_lowest < 0:
                n_lowest = p - begin
            else:
                above = 0.5 * (start + p - 1) - begin - n_lowest + 1.0
                place = np.rint(above / (end - begin - n_lowest) * steps) / steps
            for q in range(start, p):
                out[begin + order[q]] = place
            start = p


@jit
def add_places(indptr, genes, values, cells, parts, steps, sums, leading, trailing):
    """Add the values of samples to ``sums`` of their cells, and their squares to
    those of their parts.

    A square is added in two parts: its multiple of 1 / steps, and what is left.
    """
    for i in range(indptr.shape[0] - 1):
        sums_of_cell = sums[cells[i]]
        first_digits = leading[parts[i]]
        last_digits = trailing[parts[i]]
        for p in range(indptr[i], indptr[i + 1]):
            gene = genes[p]
            value = np.float64(values[p])
            square = value * value
            first = np.floor(square * steps) / steps
            sums_of_cell[gene] += value
            first_digits[gene] += first
            last_digits[gene] += square - first


@jit
def leave_room_for_zero(values, indptr, groups, n_groups, zero_group):
    """Give the zeros, which are not among the values, a group between negative and
    positive.
    """
    for i in range(indptr.shape[0] - 1):
        zero = 0
        for p in range(indptr[i], indptr[i + 1]):
            if values[p] < 0:
                zero = max(zero, np.int64(groups[p]) + 1)
            else:
                groups[p] += 1
        zero_group[i] = zero
        n_groups[i] += 1


@jit
def _values_in_order(ordered, a, base, sign, tie, out):
    """Write ``f`` of a sample without ties at its genes, in the order of their values.

    Four at a time, to shorten the chain of sums.
    """
    d = ordered.shape[0]
    c = base
    whole = d - d % 4
    for k in range(0, whole, 4):
        j0 = ordered[k]
        j1 = ordered[k + 1]
        j2 = ordered[k + 2]
        j3 = ordered[k + 3]
        h0 = sign * a[j0]
        h1 = sign * a[j1]
        h01 = h0 + h1
        h2 = sign * a[j2]
        h3 = sign * a[j3]
        h012 = h01 + h2
        out[j0] = c + tie * h0
        out[j1] = c + (h0 + tie * h1)
        out[j2] = c + (h01 + tie * h2)
        out[j3] = c + (h012 + tie * h3)
        c += h012 + h3
    for k in range(whole, d):
        j = ordered[k]
        h = sign * a[j]
        out[j] = c + tie * h
        c += h


@jit
def _sum_up_to_groups(ordered, row, a, sums):
    """``sums[k + 1]`` = the sum of ``a`` over the groups up to k, ``sums[0]`` being 0.

    Each gene writes the sum so far to its group, so the last of a group stays: no
    branch, and no addition that waits for the one before it to be stored.
    """
    d = ordered.shape[0]
    c = 0.0
    whole = d - d % 4
    for k in range(0, whole, 4):
        j0 = ordered[k]
        j1 = ordered[k + 1]
        j2 = ordered[k + 2]
        j3 = ordered[k + 3]
        h01 = a[j0] + a[j1]
        h012 = h01 + a[j2]
        sums[row[j0] + 1] = c + a[j0]
        sums[row[j1] + 1] = c + h01
        sums[row[j2] + 1] = c + h012
        c += h012 + a[j3]
        sums[row[j3] + 1] = c
    for k in range(whole, d):
        j = ordered[k]
        c += a[j]
        sums[row[j] + 1] = c


@jit
def _add_up_groups(row, n_groups, genes, a, sums):
    """The same where few ``genes`` have a weight ``a``: only they are read."""
    sums[: n_groups + 1] = 0.0
    for p in range(genes.shape[0]):
        sums[row[genes[p]] + 1] += a[genes[p]]
    for k in range(n_groups):
        sums[k + 1] += sums[k]


@jit
def dense_values(groups, ordered, n_groups, genes, a, base, sign, tie, columns, out):
    """Write ``f`` at each gene's group into ``out``, for weights ``a``.

    ``ordered`` has the genes of each sample in the order of their values. ``genes``
    are those with a weight if they are few, else empty. ``out`` is n x d, or has the
    columns of some genes if ``columns`` is not empty.
    """
    n, d = groups.shape
    sums = np.zeros(d + 1)
    f = np.empty(d, out.dtype)
    some = columns.shape[0]
    for i in range(n):
        row = groups[i]
        out_row = out[i]
        if n_groups[i] == d and not some:
            _values_in_order(ordered[i], a, base, sign, tie, out_row)
            continue
        if genes.shape[0]:
            _add_up_groups(row, n_groups[i], genes, a, sums)
        else:
            _sum_up_to_groups(ordered[i], row, a, sums)
        for k in range(n_groups[i]):
            f[k] = base + sign * (sums[k] + tie * (sums[k + 1] - sums[k]))
        if some:
            for q in range(some):
                out_row[q] = f[row[columns[q]]]
        else:
            for j in range(d):
                out_row[j] = f[row[j]]


@jit
def _values_of_groups(h, n_groups, base, sign, tie, f):
    """``f_k = base + sign * (c_k + tie * h_k)``, four at a time to shorten the chain
    of sums.
    """
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
def sparse_values(
    indptr,
    genes,
    groups,
    n_groups,
    zero_group,
    a,
    total,
    base,
    sign,
    tie,
    constants,
    out,
):
    """Write the zero genes' value into ``constants`` (n), the non-zeros' excess into
    ``out``.

    The zero genes of a sample are one group; they hold what the non-zeros leave of
    ``total``.
    """
    size = a.shape[0] + 5
    h = np.empty(size)
    f = np.empty(size)
    for i in range(indptr.shape[0] - 1):
        begin, end = indptr[i], indptr[i + 1]
        h[: n_groups[i] + 3] = 0.0
        seen = 0.0
        for p in range(begin, end):
            value = a[genes[p]]
            h[groups[p]] += value
            seen += value
        if end - begin < a.shape[0]:
            h[zero_group[i]] = total - seen
        _values_of_groups(h, n_groups[i], base, sign, tie, f)
        constant = f[zero_group[i]]
        constants[i] = constant
        for p in range(begin, end):
            out[p] = f[groups[p]] - constant


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


@jit
def doubled_ranks(groups, rows, columns, out):
    """Twice the ranks of some genes among themselves, whole numbers from 0 up, ties
    averaged.

    ``groups[i, j]`` numbers the distinct values of sample i in rising order, over any
    genes that include ``columns``. With b of these genes below gene j and m equal to it
    (j included), its rank is ``b + (m - 1) / 2``.
    """
    counts = np.zeros(groups.shape[1] + 1, np.int32)
    for i in range(len(rows)):
        row = groups[rows[i]]
        last = 0
        for k in range(len(columns)):
            group = row[columns[k]]
            counts[group] += 1
            last = max(last, group)
        below = 0
        for group in range(last + 1):
            count = counts[group]
            counts[group] = 2 * below + count - 1
            below += count
        for k in range(len(columns)):
            out[i, k] = counts[row[columns[k]]]
        for group in range(last + 1):
            counts[group] = 0


@jit
def exchange_in_ranks(groups, group_in, group_out, tie, scale, ranks, out):
    """``out`` = ``ranks`` after one reference gene came in and another went out.

    ``group_in`` and ``group_out`` are the two genes' groups in each sample; ``scale``
    is 1/s.
    """
    n, d = groups.shape
    above = np.float32(scale)
    equal = np.float32(scale * tie)
    zero = np.float32(0.0)
    for i in range(n):
        come = group_in[i]
        gone = group_out[i]
        for j in range(d):
            g = groups[i, j]
            gain = (above if g > come else zero) + (equal if g == come else zero)
            loss = (above if g > gone else zero) + (equal if g == gone else zero)
            out[i, j] = ranks[i, j] + gain - loss


@jit
def slopes_of_comparisons(groups, slopes, candidates, tie, out):
    """``out[q, j] = sum_i slopes_i C_i[j, k_q]``: how the gradient of w_j turns when
    k_q comes in.

    ``candidates[i, q]`` is the group of gene k_q in sample i.
    """
    n, d = groups.shape
    zero = np.float32(0.0)
    for i in range(n):
        full = np.float32(slopes[i])
        part = np.float32(slopes[i] * tie)
        for q in range(candidates.shape[1]):
            group = candidates[i, q]
            for j in range(d):
                g = groups[i, j]
                out[q, j] += (full if g > group else zero) + (
                    part if g == group else zero
                )
