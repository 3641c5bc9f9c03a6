"""The factored Hessian against dense algebra, and Newton steps with it."""

from __future__ import annotations

import numpy as np
import pytest

from optirank.solver.hessian import RidgeHessian, newton_steps, steps_with_hessian
from optirank.solver.losses import LogisticLoss

SHAPES = {"more rows": (40, 9), "more columns": (9, 40), "square": (12, 12), "blocks": (1100, 6)}


def dense_hessian(values, curvatures, l2):
    """``M^T D M + 2 l2 I`` with the intercept eliminated, by the Schur complement."""
    n, m = values.shape
    full = np.column_stack([values, np.ones(n)]).astype(np.float64)
    H = full.T @ (curvatures[:, None] * full)
    H = H[:m, :m] - np.outer(H[:m, m], H[m, :m]) / H[m, m]
    return H + 2 * l2 * np.eye(m)


def make(shape, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape).astype(dtype)
    return values, rng.uniform(1e-3, 1.0, size=shape[0]) / shape[0], rng


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 1e-9), (np.float32, 1e-3)])
def test_it_solves_as_the_dense_matrix_does(shape, dtype, accuracy):
    values, curvatures, rng = make(shape, dtype=dtype)
    hessian = RidgeHessian(values, curvatures, 1e-3)
    H = dense_hessian(values, curvatures, 1e-3)
    for right in (rng.normal(size=shape[1]), rng.normal(size=(shape[1], 3))):
        expected = np.linalg.solve(H, right)
        error = np.abs(hessian.solve(right) - expected).max()
        assert error <= accuracy * np.abs(expected).max()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_scaled_rows_are_its_square_root(shape):
    values, curvatures, rng = make(shape)
    hessian = RidgeHessian(values, curvatures, 1e-3)
    root = hessian.scaled(slice(None))
    np.testing.assert_allclose(root.T @ root, dense_hessian(values, curvatures, 0.0), atol=1e-12)
    right = rng.normal(size=(shape[0], 2))
    np.testing.assert_allclose(hessian.transpose_scaled_dot(right), root.T @ right, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_it_copes_with_columns_that_say_nothing_and_tiny_penalties(shape, dtype):
    values, curvatures, rng = make(shape, dtype=dtype)
    values[:, 0] = 0.0
    values[:, 2] = values[:, 1]
    right = rng.normal(size=shape[1])
    assert np.isfinite(RidgeHessian(values, curvatures, 1e-7).solve(right)).all()


def labelled(shape, seed=1):
    values, _, rng = make(shape, seed)
    y = (np.arange(shape[0]) % 2).astype(float)
    values[:, 0] += 0.7 * (2 * y - 1)
    return values, LogisticLoss(y, np.full(shape[0], 1 / shape[0]), np.float64), rng


def gradient_at(values, loss, w, b, l2):
    loss.evaluate(values @ w, b)
    return np.append(loss.slopes @ values + 2 * l2 * w, loss.slopes.sum())


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("l2", [1e-4, 1e-1])
def test_newton_steps_reach_the_minimum(shape, l2):
    values, loss, _ = labelled(shape)
    w, b, objective, _ = newton_steps(values, loss, np.zeros(shape[1]), 0.0, 0.0, l2, 50, tol=1e-16)
    assert np.abs(gradient_at(values, loss, w, b, l2)).max() < 1e-8
    assert objective == pytest.approx(loss.evaluate(values @ w, b) + l2 * w @ w, rel=1e-12)


@pytest.mark.parametrize("l1", [0.0, 1e-2])
def test_newton_steps_only_descend(l1):
    values, loss, rng = labelled((60, 8))
    start = rng.normal(size=8)
    objectives = [newton_steps(values, loss, start, 0.0, l1, 1e-3, k)[2] for k in range(8)]
    assert (np.diff(objectives) <= 0).all()


def test_with_an_l1_penalty_newton_steps_cross_no_zero():
    values, loss, rng = labelled((60, 8))
    start = rng.normal(size=8)
    w, *_ = newton_steps(values, loss, start, 0.0, 1e-2, 1e-3, 20)
    assert (w * np.sign(start) >= 0).all()
    assert (w == 0).any()


def test_newton_steps_end_early_when_the_target_is_out_of_reach():
    values, loss, rng = labelled((60, 8))
    start = 10 * rng.normal(size=8)
    hopeless = newton_steps(values, loss, start, 0.0, 0.0, 1e-3, 50, target=1e-3)[2]
    patient = newton_steps(values, loss, start, 0.0, 0.0, 1e-3, 50)[2]
    assert patient < hopeless


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_steps_with_a_nearby_hessian_descend_to_the_minimum(shape):
    values, loss, rng = labelled(shape)
    start, l2 = 0.3 * rng.normal(size=shape[1]), 1e-1
    loss.evaluate(values @ start, 0.0)
    nearby = RidgeHessian(values + 0.03 * rng.normal(size=shape), loss.curvatures, l2)
    best = newton_steps(values, loss, start, 0.0, 0.0, l2, 50, tol=1e-16)[2]
    before = np.inf
    for n_steps in (1, 2, 4, 60):
        w, b, objective = steps_with_hessian(
            nearby, values, loss, start, 0.0, l2, n_steps, best * (1 + 1e-7)
        )
        assert objective <= before
        before = objective
        value = loss.evaluate(values @ w, b) + l2 * w @ w
        assert objective == pytest.approx(value, rel=1e-9)
    assert objective == pytest.approx(best, rel=1e-6)


def test_steps_with_a_hessian_end_at_the_target_or_out_of_its_reach():
    values, loss, rng = labelled((60, 8))
    start = rng.normal(size=8)
    first = loss.evaluate(values @ start, loss.best_intercept(values @ start, 0.0))
    first += 1e-2 * start @ start
    hessian = RidgeHessian(values, loss.curvatures, 1e-2)
    arguments = hessian, values, loss, start, 0.0, 1e-2, 50
    assert steps_with_hessian(*arguments, 2 * first)[2] == pytest.approx(first)
    assert steps_with_hessian(*arguments, -10.0)[2] == pytest.approx(first)
    assert steps_with_hessian(*arguments, 0.9 * first)[2] < 0.9 * first


def test_a_factor_can_be_taken_from_a_nearby_hessian():
    values, curvatures, rng = make((40, 9))
    first = RidgeHessian(values, curvatures, 1e-3)
    second = RidgeHessian(2 * values, curvatures, 1e-3, first)
    right = rng.normal(size=9)
    np.testing.assert_array_equal(second.solve(right), first.solve(right))
    np.testing.assert_allclose(second.scaled(slice(None)), 2 * first.scaled(slice(None)))
