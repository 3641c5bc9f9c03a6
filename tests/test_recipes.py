"""The recipes of CONTRIBUTING.md work as written."""

from __future__ import annotations

import numpy as np
import pytest

from optirank import OptirankClassifier
from optirank.solver import solve as entry
from optirank.solver.feasible import CappedSimplex
from optirank.solver.fixed import solve_at


def solve_most_correlated(problem, *, tol, max_iter, **_):
    """A toy solver: the reference is the genes that covary most with the label."""
    feasible = CappedSimplex(problem.n_reference, problem.candidates)
    ranks = problem.orders.ranks(feasible.centre(problem.n_genes))
    covariance = ranks.transpose_dot(problem.v * (problem.y - 0.5))
    return solve_at(problem, feasible.vertex(covariance), tol=tol, max_iter=max_iter)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 8))
    X[:, 2] += 3 * y
    return X, y


@pytest.fixture
def toy_solver(monkeypatch):
    monkeypatch.setitem(entry.ALGORITHMS, "toy", entry.Algorithm(solve_most_correlated))


def test_a_solver_is_one_entry_of_the_registry(toy_solver, data):
    model = OptirankClassifier(1, algorithm="toy").fit(*data)
    np.testing.assert_array_equal(np.flatnonzero(model.reference_[0]), [2])
    assert model.score(*data) > 0.8


def test_a_solver_without_sides_refuses_one(toy_solver, data):
    with pytest.raises(ValueError, match="side='rising' with algorithm='toy'"):
        OptirankClassifier(1, algorithm="toy", side="rising").fit(*data)


def test_an_unknown_solver_is_refused_with_the_names_there_are(toy_solver, data):
    with pytest.raises(ValueError, match="use one of 'alternating', 'bpcd', 'toy'"):
        OptirankClassifier(1, algorithm="none").fit(*data)
