"""How much order the genes of a panel have in a sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from optirank.verbs.query import genes_apart


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_genes_outside_the_largest_tie_are_counted(form):
    X = np.array(
        [
            [0, 0, 0, 0, 0],
            [7, 7, 7, 7, 7],
            [0, 0, 0, 2, 3],
            [1, 1, 0, 0, 0],
            [5, 4, 3, 2, 1],
            [-1, 0, 0, 0, -1],
        ]
    )
    assert genes_apart(form(X)).tolist() == [0, 0, 2, 2, 4, 2]
    counts = np.random.default_rng(0).poisson(0.5, (50, 30))
    expected = [30 - np.unique(row, return_counts=True)[1].max() for row in counts]
    assert genes_apart(form(counts)).tolist() == expected
    assert genes_apart(form(np.zeros((0, 4)))).tolist() == []
