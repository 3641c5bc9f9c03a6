"""Compiled ranks of a set of genes among themselves: of sorted samples, and of new ones."""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit


@jit
def doubled_ranks(groups, rows, columns, out):
    """Twice the ranks of some genes among themselves, whole numbers from 0 up, ties averaged.

    ``groups[i, j]`` numbers the distinct values of sample i in rising order, over any genes that
    include ``columns``. With b of these genes below gene j and m equal to it (j included), its rank
    is ``b + (m - 1) / 2``.
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
def ranks_among_themselves(X, ranks):
    """Scaled ranks of each sample's k values among themselves, ``(average rank - 1) / k``.

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
        ranks[i, :] = (negative + 0.5 * (zeros - 1)) / k
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
                ranks[i, genes[p]] = (below + 0.5 * (equal - 1)) / k
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
                    ranks[i, genes[order[p]]] = (below + 0.5 * (last - first - 1)) / k
                first = last
