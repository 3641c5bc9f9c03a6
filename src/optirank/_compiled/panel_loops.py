"""Compiled ranks of a set of genes of sorted samples among themselves."""

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
