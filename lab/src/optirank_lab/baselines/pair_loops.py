"""The compiled loop of k-TSP: how often each gene is above each other one."""

from __future__ import annotations

import numpy as np

from optirank._compiled.jit import jit

_ROWS = 16  # genes whose counts stay in a core's cache while all samples pass


@jit
def count_above(groups, counts):
    """Add to ``counts[a, b]`` the number of samples with
    ``groups[i, a] > groups[i, b]``.

    ``groups`` is an (n, g) array of unsigned integers of 16 bits or more that order the
    genes within a sample. Counts are kept in the same type, over no more samples than
    16 bits can count, so that one instruction compares, and one counts, many genes.
    """
    n, g = groups.shape
    near = np.zeros((_ROWS, g), groups.dtype)
    for start in range(0, g, _ROWS):
        stop = min(start + _ROWS, g)
        for first in range(0, n, 65535):
            near[:] = 0
            for i in range(first, min(first + 65535, n)):
                sample = groups[i]
                for a in range(start, stop):
                    own, line = sample[a], near[a - start]
                    for b in range(g):
                        line[b] += own > sample[b]
            for a in range(start, stop):
                for b in range(g):
                    counts[a, b] += near[a - start, b]
