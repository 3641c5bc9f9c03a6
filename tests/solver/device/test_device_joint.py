"""The joint model on a device, against the same on the CPU."""

import numpy as np
import pytest
from optirank.solver.joint import solve_joint
from optirank.solver.joint_matrices import JointMatrices
from optirank.solver.joint_problem import JointProblem, joint_weights
from optirank.solver.softmax import SoftmaxLoss

from optirank.ranks.orders import order_samples
from optirank.solver.device.joint import DeviceJointMatrices, DeviceSoftmaxLoss
from optirank.solver.device.orders import order_on_device


def problem(orders, codes, **changes):
    options = {"n_reference": 4, "l1": 3e-3, "l2": 1e-3} | changes
    n_classes = int(codes.max()) + 1
    return JointProblem(orders, codes, n_classes, joint_weights(codes, n_classes), **options)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (90, 18)).astype(float)
    codes = rng.integers(0, 4, 90)
    for k in range(4):
        X[codes == k, 3 * k : 3 * k + 3] += 2
    return X, codes


def test_products_gradients_and_losses_are_those_of_the_cpu(backend, data):
    X, codes = data
    here, there = problem(order_samples(X), codes), problem(order_on_device(backend, X), codes)
    rng = np.random.default_rng(1)
    W, gamma, b = rng.normal(size=(18, 4)), rng.random(18), rng.normal(size=4)
    on_cpu = JointMatrices(here.orders, here.v, here.n_reference, here.ties)
    on_device = DeviceJointMatrices(there)
    z, z_there = on_cpu.ranks(gamma).dot(W), on_device.ranks(gamma).dot(W)
    np.testing.assert_allclose(backend.host(z_there), z, atol=1e-4)
    losses = SoftmaxLoss(codes, 4, here.v), DeviceSoftmaxLoss(there)
    for loss, scores in zip(losses, (z, z_there), strict=True):
        loss.differentiate(scores, b)
    one, other = losses
    np.testing.assert_allclose(backend.host(other.slopes), one.slopes, atol=1e-6)
    assert other.value(z_there, b) == pytest.approx(one.value(z, b), abs=1e-5)
    moved = z + rng.normal(size=z.shape).astype(np.float32)
    assert other.rise(backend.array(moved), b, z_there, b) == pytest.approx(
        one.rise(moved, b, z, b), rel=1e-3
    )
    np.testing.assert_allclose(
        other.intercept_hessian(1e-3), one.intercept_hessian(1e-3), atol=1e-5
    )
    np.testing.assert_allclose(
        other.best_intercept(z_there, b), one.best_intercept(z, b), atol=1e-3
    )
    np.testing.assert_allclose(
        on_device.gradient_gamma(W, other.slopes),
        on_cpu.gradient_gamma(W, one.slopes),
        atol=1e-4,
    )
    np.testing.assert_allclose(
        on_device.ranks(gamma).transpose_dot(other.slopes),
        on_cpu.ranks(gamma).transpose_dot(one.slopes),
        atol=1e-5,
    )
    changes = [rng.normal(size=z.shape).astype(np.float32) for _ in range(3)]
    np.testing.assert_allclose(
        other.quadratic_form(map(backend.array, changes)), one.quadratic_form(changes), atol=1e-4
    )


@pytest.mark.parametrize("changes", [{}, {"l1": 0.0}, {"n_reference": 18}, {"ties": "min"}])
def test_objectives_are_those_of_the_cpu(backend, data, changes):
    X, codes = data
    here = solve_joint(problem(order_samples(X), codes, **changes))
    there = solve_joint(problem(order_on_device(backend, X), codes, **changes))
    assert there.objective <= here.objective + 1e-4
    assert there.gamma.sum() == here.gamma.sum()
    exact = problem(order_samples(X), codes, **changes).objective(there.W, there.b, there.gamma)
    assert there.objective == pytest.approx(exact, abs=1e-4)


def test_part_of_the_samples(backend, data):
    X, codes = data
    rows = np.arange(90) % 3 > 0
    whole = order_on_device(backend, X)
    part = solve_joint(problem(whole.take(rows), codes[rows]))
    alone = solve_joint(problem(order_on_device(backend, X[rows]), codes[rows]))
    assert part.objective == pytest.approx(alone.objective, abs=1e-7)


def test_candidates(backend, data):
    X, codes = data
    allowed = np.arange(18) % 2 == 0
    found = solve_joint(problem(order_on_device(backend, X), codes, candidates=allowed))
    assert not found.gamma[~allowed].any()
