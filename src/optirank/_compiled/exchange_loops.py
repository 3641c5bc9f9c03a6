"""Compiled loops over comparisons of genes, for exchanges in the reference set.

``C_i[j, k]`` compares genes j and k in sample i: 1 where j is above k, ``tie`` where
they are equal, else 0. Sample i is given by the tie group of each of its genes.
"""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit


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
