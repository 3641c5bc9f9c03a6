"""The parts of a step on a device against their definitions; on NumPy, and with CuPy on a GPU."""

import numpy as np
import pytest
from optirank.solver.proximal import prox_elastic_net

from optirank.solver.device.kernels import ConjugateGradients, weigh_scores
from optirank.solver.device.moves import (
    CappedSimplexStep,
    ElasticNetStep,
    Move,
    Path,
    judge,
    slopes_ahead,
)
from optirank.solver.feasible import project_capped_simplex


class Steps:
    """Three problems on their way, on the host and on the device."""

    def __init__(self, backend, n=37, d=11, seed=0):
        rng = np.random.default_rng(seed)
        self.backend, self.xp = backend, backend.xp
        self.M = rng.normal(size=(3, n, d)).astype(np.float32)
        self.y = (rng.uniform(size=(3, n)) < 0.4).astype(float)
        self.v = rng.dirichlet(np.ones(n), 3)
        self.x, self.ahead = rng.normal(size=(2, 3, d))
        self.z, self.z_ahead = rng.normal(size=(2, 3, n))
        self.b, self.b_ahead = rng.normal(size=(2, 3))
        self.L = np.array([0.3, 1.0, 20.0])
        self.mean = np.einsum("bn,bnd->bd", self.v, self.M)
        put = backend.array
        self.path = Path.start(
            self.xp, put(self.x), put(self.z), put(self.b), put(self.L), put(np.full(3, 1e-3))
        )
        self.path.ahead, self.path.z_ahead = put(self.ahead), put(self.z_ahead)
        self.path.b_ahead = put(self.b_ahead)
        self.path.t = put(np.array([1.0, 2.0, 3.0]))

    def slopes(self):
        return slopes_ahead(self.xp, self.path, *map(self.backend.array, (self.y, self.v)))

    def gradient(self, slopes):
        """Centred M^T slopes, and the product that a step is given."""
        a = self.backend.host(slopes.single).astype(float)
        product = np.einsum("bnd,bn->bd", self.M, a)
        centred = product - self.mean * self.backend.host(slopes.total)[:, None]
        return centred, self.backend.array(product.astype(np.float32))

    def check_facts(self, move):
        to, facts = map(self.backend.host, (move.to, move.facts))
        change = to - self.ahead
        np.testing.assert_allclose(facts[0], (change**2).sum(axis=1), rtol=1e-9, atol=1e-12)
        expected = -(change * (to - self.x)).sum(axis=1)
        np.testing.assert_allclose(facts[1], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(facts[2], np.abs(change).max(axis=1), rtol=1e-9)
        np.testing.assert_allclose(facts[3], (self.mean * to).sum(axis=1), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(self.backend.host(move.single), to, rtol=1e-6, atol=1e-30)


@pytest.mark.parametrize("n", [1, 37, 5000])
def test_slopes_are_derivatives_of_the_loss(backend, n):
    case = Steps(backend, n=n)
    slopes = case.slopes()

    def loss(shift):
        score = case.z_ahead + case.b_ahead[:, None] + shift
        return case.v * (np.logaddexp(0, score) - case.y * score)

    h = 1e-4
    first = (loss(h) - loss(-h)) / (2 * h)
    second = (loss(h) - 2 * loss(0.0) + loss(-h)) / h**2
    np.testing.assert_allclose(backend.host(slopes.single), first, atol=1e-6)
    np.testing.assert_allclose(backend.host(slopes.curvatures), second, atol=1e-6)
    np.testing.assert_allclose(backend.host(slopes.total), first.sum(axis=1), atol=1e-6)
    bound = np.maximum(second.sum(axis=1), 1e-3)
    np.testing.assert_allclose(backend.host(slopes.L_b), bound, atol=1e-4)


@pytest.mark.parametrize("d", [1, 11, 3000])
def test_a_step_of_the_weights_is_the_proximal_map(backend, d):
    case = Steps(backend, d=d)
    l1, l2 = np.array([0.0, 0.05, 3.0]), np.array([0.0, 0.2, 1e-3])
    slopes = case.slopes()
    gradient, product = case.gradient(slopes)
    step = ElasticNetStep(backend.array(l1), backend.array(l2))
    move = step(case.xp, case.path, product, backend.array(case.mean), slopes)
    for k, to in enumerate(backend.host(move.to)):
        moved = case.ahead[k] - gradient[k] / case.L[k]
        expected = prox_elastic_net(moved, 1 / case.L[k], l1[k], l2[k])
        np.testing.assert_allclose(to, expected, atol=1e-5)
        np.testing.assert_array_equal(to == 0, expected == 0)
    case.check_facts(move)


@pytest.mark.parametrize("with_linear", [False, True])
@pytest.mark.parametrize("with_forbidden", [False, True])
def test_a_step_of_the_reference_weights_is_a_projection(backend, with_linear, with_forbidden):
    case = Steps(backend)
    s = np.array([1.0, 3.0, 5.0])
    linear = np.random.default_rng(1).normal(size=(3, 11)) if with_linear else None
    allowed = np.arange(11) % 2 == 0 if with_forbidden else None
    slopes = case.slopes()
    gradient, product = case.gradient(slopes)
    step = CappedSimplexStep(
        backend.array(s),
        None if allowed is None else backend.array(allowed),
        None if linear is None else backend.array(linear),
    )
    move = step(case.xp, case.path, product, backend.array(case.mean), slopes)
    for k, to in enumerate(backend.host(move.to)):
        moved = case.ahead[k] - (gradient[k] + (0.0 if linear is None else linear[k])) / case.L[k]
        there = np.ones(11, bool) if allowed is None else allowed
        expected = np.zeros(11)
        expected[there] = project_capped_simplex(moved[there], s[k])
        np.testing.assert_allclose(to, expected, atol=1e-5)
        assert to.sum() == pytest.approx(s[k])
    case.check_facts(move)


@pytest.mark.parametrize("size", [1e-3, 0.3, 30.0])
def test_a_step_is_judged_by_the_bound_of_the_rise(backend, size):
    case = Steps(backend)
    xp, host = case.xp, backend.host
    case.path.done[1] = True
    slopes = case.slopes()
    rng = np.random.default_rng(2)
    to = case.ahead + size * rng.normal(size=case.x.shape)
    shift = (case.mean * to).sum(axis=1)
    change = to - case.ahead
    facts = np.stack(
        [(change**2).sum(1), -(change * (to - case.x)).sum(1), np.abs(change).max(1), shift]
    )
    z_new = case.z_ahead + size * rng.normal(size=case.z.shape)
    product = (z_new + shift[:, None]).astype(np.float32)
    z_new = product - shift[:, None]
    move = Move(backend.array(to), backend.array(to.astype(np.float32)), backend.array(facts))
    judge(xp, case.path, move, backend.array(product), slopes, backend.array(case.v))
    L_b, total, curvatures = map(host, (slopes.L_b, slopes.total, slopes.curvatures))
    for k in range(3):
        b_new = case.b_ahead[k] - total[k] / L_b[k]
        t = np.abs(z_new[k] + b_new - case.z_ahead[k] - case.b_ahead[k])
        bound = np.minimum(1.0001 * curvatures[k] * (np.expm1(t) - t), case.v[k] * t**2 / 8)
        bound = np.where(t < 3, bound, case.v[k] * t**2 / 8)
        most = 0.5 * (case.L[k] * facts[0, k] + L_b[k] * (b_new - case.b_ahead[k]) ** 2)
        accepted = bound.sum() <= most * (1 + 1e-6) + 1e-13 and k != 1
        factor = 1.0 if k == 1 else 0.93 if accepted else 1.6
        assert host(case.path.L)[k] == pytest.approx(factor * case.L[k])
        assert host(case.path.taken)[k] == accepted
        b_then = b_new if accepted else case.b[k]
        assert host(case.path.b)[k] == pytest.approx(b_then)
        np.testing.assert_allclose(host(case.path.x)[k], to[k] if accepted else case.x[k])
        np.testing.assert_allclose(host(case.path.z)[k], z_new[k] if accepted else case.z[k])
        if not accepted:
            np.testing.assert_allclose(host(case.path.ahead)[k], case.ahead[k])
            continue
        assert host(case.path.residual)[k] == pytest.approx(case.L[k] * facts[2, k])
        old = [1.0, 2.0, 3.0][k]
        turned = facts[1, k] - (b_new - case.b_ahead[k]) * (b_new - case.b[k]) > 0
        following = 1.0 if turned else 0.5 * (1 + np.sqrt(1 + 4 * old**2))
        momentum = 0.0 if turned else (old - 1) / following
        assert host(case.path.t)[k] == pytest.approx(following)
        np.testing.assert_allclose(
            host(case.path.ahead)[k], to[k] + momentum * (to[k] - case.x[k]), atol=1e-12
        )
        np.testing.assert_allclose(
            host(case.path.z_ahead)[k], z_new[k] + momentum * (z_new[k] - case.z[k]), atol=1e-12
        )


@pytest.mark.parametrize("n", [1, 50, 9000])
def test_scores_are_weighed_and_centred(backend, n):
    rng = np.random.default_rng(n)
    u, c = rng.normal(size=(2, 3, n)).astype(np.float32), rng.uniform(size=(2, n))
    found = backend.host(weigh_scores(backend.xp, backend.array(u), backend.array(c)))
    for k in range(2):
        mean = (u[k] * c[k]).sum(axis=1, keepdims=True) / c[k].sum()
        np.testing.assert_allclose(found[k], c[k] * (u[k] - mean), atol=1e-5)


def test_conjugate_gradients_solve_on_the_support(backend):
    rng = np.random.default_rng(0)
    d, m = 9, 2
    roots = rng.normal(size=(2, 20, d))
    H = np.einsum("bnd,bne->bde", roots, roots)
    right = rng.normal(size=(2, m, d))
    support = rng.uniform(size=(2, d)) < 0.7
    ridge = np.array([0.1, 2.0])
    diagonal = np.einsum("bdd->bd", H) + ridge[:, None]
    put, host = backend.array, backend.host
    found = ConjugateGradients(
        backend.xp, put(right), put(support), put(diagonal), put(ridge), tol=1e-5
    )
    for _ in range(40):
        direction = host(found.direction).astype(float)
        found.step(put(np.einsum("bde,bme->bmd", H, direction).astype(np.float32)))
    assert not host(found.active).any()
    for k in range(2):
        some = np.flatnonzero(support[k])
        system = H[k][np.ix_(some, some)] + ridge[k] * np.eye(len(some))
        for column in range(m):
            x = host(found.x)[k, column]
            expected = np.linalg.solve(system, right[k, column][some])
            np.testing.assert_allclose(x[some], expected, rtol=1e-3, atol=1e-4)
            assert not x[~support[k]].any()
