"""Scores of all rows of a model, against the definition: compiled, NumPy, shared
reference sets.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from optirank.ranks import orders, scoring
from optirank.ranks.orders import order_samples
from optirank.ranks.scoring import TIES, score_rows
from rank_definition import ranks_by_definition

CONTAINERS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}


def make_rows(seed: int, n_rows: int, q: int, shared: int, fractional: bool, ties: str):
    """Weights and reference weights of rows; ``shared`` distinct reference
    sets in all.
    """
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=(n_rows, q)) * (rng.uniform(size=(n_rows, q)) < 0.6)
    sets = (rng.uniform(size=(shared, q)) < 0.5).astype(float)
    sets[np.arange(shared), rng.integers(0, q, shared)] = 1.0
    if fractional:
        sets *= rng.uniform(0.1, 1.0, size=sets.shape)
    gamma = sets[rng.integers(0, shared, n_rows)]
    return coef, gamma, rng.normal(size=n_rows), ties


def make_samples(seed: int, n: int, d: int, density: float) -> np.ndarray:
    """Samples with ties, zeros and negative values."""
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 6, size=(n, d)) * (rng.uniform(size=(n, d)) < density) * 1.0


rows_of_models = st.builds(
    make_rows,
    st.integers(0, 10_000),
    st.integers(1, 6),
    st.integers(1, 15),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(sorted(TIES)),
)


def by_definition(X: np.ndarray, coef, gamma, intercept, ties) -> np.ndarray:
    """The score of each row, one by one."""
    return np.column_stack(
        [
            ranks_by_definition(X, g, ties) @ w / g.sum() + b
            for w, g, b in zip(coef, gamma, intercept, strict=True)
        ]
    )


@pytest.mark.parametrize("compiled", [False, True])
@given(
    rows_of_models,
    st.integers(0, 1000),
    st.sampled_from(sorted(CONTAINERS)),
    st.floats(0, 1),
)
def test_scores_are_what_the_definition_says(compiled, model, seed, container, density):
    X = make_samples(seed, 4, model[0].shape[1], density)
    found = score_rows(CONTAINERS[container](X), *model, compiled=compiled)
    np.testing.assert_allclose(found, by_definition(X, *model), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("compiled", [False, True])
@given(rows_of_models, st.integers(0, 1000), st.sampled_from(sorted(CONTAINERS)))
def test_the_genes_are_found_at_their_columns(compiled, model, seed, container):
    q = model[0].shape[1]
    columns = np.random.default_rng(seed).permutation(q + 3)[:q]
    X = make_samples(seed, 4, q + 3, 0.5)
    found = score_rows(CONTAINERS[container](X), *model, columns, compiled)
    np.testing.assert_allclose(
        found, by_definition(X[:, columns], *model), rtol=1e-10, atol=1e-10
    )


@given(rows_of_models, st.integers(0, 1000), st.booleans())
def test_a_score_does_not_depend_on_the_samples_beside(model, seed, as_sparse):
    X = make_samples(seed, 9, model[0].shape[1], 0.5)
    X[4:] += 0.5  # no zeros
    X = sparse.csr_array(X) if as_sparse else X
    whole = score_rows(X, *model, compiled=False)
    alone = np.vstack([score_rows(X[[i]], *model, compiled=False) for i in range(9)])
    np.testing.assert_array_equal(alone, whole)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_row_without_weights_or_reference_genes_scores_its_intercept(compiled):
    coef, gamma = np.array([[0.0, 0, 0], [1, 0, 0]]), np.array([[0.0, 0, 0], [0, 1, 1]])
    X = np.array([[1.0, 2, 3], [3, 2, 1]])
    intercept = np.array([-np.inf, 0.5])
    found = score_rows(X, coef, gamma, intercept, "min", compiled=compiled)
    np.testing.assert_array_equal(found, [[-np.inf, 0.5], [-np.inf, 1.5]])


def test_scoring_compiles_where_there_is_enough_to_do(monkeypatch):
    monkeypatch.setattr(scoring, "_COMPILE_FROM", 2 * 5)
    used = []
    monkeypatch.setattr(
        orders, "order_samples", lambda X: used.append(len(X)) or order_samples(X)
    )
    model = make_rows(0, 2, 6, 2, False, "average")
    score_rows(np.ones((4, 6)), *model)
    score_rows(np.ones((5, 6)), *model)
    assert used == [5]


def test_scoring_a_few_samples_loads_neither_numba_nor_scipy():
    code = (
        "import sys, numpy as np; from optirank.ranks.scoring import score_rows; "
        "score_rows(np.eye(3), np.eye(3), np.ones((3, 3)), np.zeros(3), 'average'); "
        "print([m for m in ('numba', 'scipy') if m in "
        "sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
