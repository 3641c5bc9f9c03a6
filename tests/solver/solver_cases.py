"""Small problems of the solver's tests, and the optimality conditions they end with."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from optirank.ranks.orders import order_samples
from optirank.solver.problem import Problem, sample_weights

CONTAINERS = {"dense": np.asarray, "sparse": sp.csr_array}


def make_data(seed, n=80, d=12):
    """Counts with zeros and ties; the label raises some genes and lowers others."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 2).astype(float)
    effect = np.outer(y, rng.choice([-1.0, 0.0, 1.0], size=d))
    X = rng.poisson(np.exp(rng.normal(1, 0.7, size=d) + effect)).astype(float)
    return X, y


def make_problem(X, y, n_reference=3, l1=1e-3, l2=1e-3, **settings):
    """A balanced problem."""
    return Problem(
        order_samples(X), y, sample_weights(y), n_reference, l1, l2, **settings
    )


def gradients(problem, w, b, gamma):
    """Gradients of the loss in w, in b and in gamma."""
    slopes = problem.slopes(problem.scores(w, b, gamma))
    R = problem.orders.ranks(gamma, problem.ties, np.float64)
    V = problem.orders.coranks(w, problem.ties, np.float64)
    s = problem.n_reference
    return R.transpose_dot(slopes) / s, slopes.sum(), V.transpose_dot(slopes) / s


def assert_a_set(gamma, size):
    """Zeros and ones, ``size`` of them ones."""
    assert set(np.unique(gamma)) <= {0.0, 1.0}
    assert gamma.sum() == size


def assert_weights_optimal(problem, solution, atol):
    """The subgradient conditions of (w, b)."""
    w, l1 = solution.w, problem.l1
    gradient, slope, _ = gradients(problem, w, solution.b, solution.gamma)
    gradient += 2 * problem.l2 * w
    on = w != 0
    assert abs(slope) < 1e-9
    np.testing.assert_allclose(gradient[on], -l1 * np.sign(w[on]), atol=atol)
    assert (np.abs(gradient[~on]) <= l1 + atol).all()


def assert_relaxed_optimal(problem, solution, atol):
    """No proximal step moves w, no projected step gamma."""
    w, gamma = solution.w, solution.gamma
    in_w, slope, in_gamma = gradients(problem, w, solution.b, gamma)
    assert abs(slope) < atol
    np.testing.assert_allclose(w, problem.penalty.prox(w - in_w, 1.0), atol=atol)
    np.testing.assert_allclose(
        problem.feasible.prox(gamma - in_gamma), gamma, atol=atol
    )
