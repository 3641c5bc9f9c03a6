"""The kernels of ``steps.cu`` against NumPy on a GPU; NumPy against the definitions
everywhere.
"""

import numpy as np
import pytest

from numpy_device import KERNELS, NumpyBackend
from optirank_lab.device.backend import threads_for

SIZE, RIGHT = 3, 2  # problems, and right-hand sides of each
SIZES = [(1, 1), (37, 11), (300, 5000), (9000, 33)]


def arguments_of(kernel: str, n: int, d: int, seed: int = 0) -> list:
    """Random arguments of a kernel; those that it only writes start at zero."""
    rng = np.random.default_rng(seed)
    single, ints = np.float32, np.int32

    def rows(width, dtype=float):
        return rng.normal(size=(SIZE, width)).astype(dtype)

    def many(width, dtype=float):
        return rng.normal(size=(SIZE, RIGHT, width)).astype(dtype)

    def each(low=0.1, high=2.0):
        return rng.uniform(low, high, SIZE)

    v = rng.dirichlet(np.ones(n), SIZE)
    y = (rng.random((SIZE, n)) < 0.4).astype(float)
    support = rng.random((SIZE, d)) < 0.7
    curvatures = v * rng.uniform(0.01, 0.25, (SIZE, n))
    done = np.array([False, True, False])
    s = np.minimum([1.0, max(1, d // 3), max(1, d // 2)], (d + 1) // 2)
    written = (np.zeros((SIZE, d)), np.zeros((SIZE, d), single), np.zeros((4, SIZE)))
    step = (rows(d, single), rows(d), each(-1), rows(d), rows(d), each(0.3, 20))
    allowed = np.arange(d) % 2 == 0
    facts = np.abs(rng.normal(size=(4, SIZE))) * [[d], [1], [1], [1]]
    r, p = (np.where(support[:, None, :], many(d), 0.0) for _ in range(2))
    limit = np.zeros((SIZE, RIGHT))
    limit[0, 0] = 1e9  # this one has ended
    found = {
        "project_rows": (rows(d) * each(0.01, 100)[:, None], s, ints(d), np.zeros((SIZE, d))),
        "best_intercepts": (rows(n) * [[0.1], [1], [30]], y, v, ints(n), ints(40), each(-1)),
        "weigh_scores": (
            many(n, single), curvatures.astype(single), ints(n), ints(RIGHT),
            np.zeros((SIZE, RIGHT, n), single),
        ),
        "gradient_step": (
            many(d, single), np.abs(rows(d)) + 1, support, each(), limit, ints(d), ints(RIGHT),
            many(d), r, p, p.astype(single), np.abs(many(1))[:, :, 0],
            np.array([[True, True], [False, True], [True, True]]),
        ),
        "slopes_of_scores": (
            rows(n), each(-1), y, v, ints(n), np.zeros((SIZE, n), single), np.zeros((SIZE, n)),
            np.zeros(SIZE), np.zeros(SIZE),
        ),
        "elastic_net_step": (*step, each(), each(), ints(d), ints(SIZE), *written),
        "capped_simplex_step": (*step, s, rows(d), allowed, ints(d), ints(SIZE), *written),
        "judge_step": (
            rows(n, single) * single(0.1), facts, each(-1), each(), curvatures, v, rows(d),
            np.full(SIZE, 1e-3), 0.93, 1.6, ints(n), ints(d), ints(SIZE), rows(d), rows(d), rows(n),
            rows(n), each(-1), each(-1), each(1, 4), each(0.3, 20), each(), done,
            np.arange(SIZE),
        ),
    }  # fmt: skip
    return list(found[kernel])


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("n", "d"), SIZES)
def test_kernels_write_what_numpy_writes(backend, kernel, n, d):
    if isinstance(backend, NumpyBackend):
        pytest.skip("the twin itself")
    for seed in range(4):
        here, given = (arguments_of(kernel, n, d, seed) for _ in range(2))
        there = [backend.array(one) if np.ndim(one) else one for one in given]
        KERNELS[kernel](*here)
        blocks = SIZE * RIGHT if kernel in ("weigh_scores", "gradient_step") else SIZE
        backend.launch(kernel, (blocks,), threads_for(max(n, d)), tuple(there))
        for one, other in zip(here, there, strict=True):
            if np.ndim(one):
                np.testing.assert_allclose(
                    backend.host(other), one, rtol=2e-5, atol=1e-6
                )


def test_projected_rows_are_the_nearest_points_of_their_set(backend):
    x, s, d, out = arguments_of("project_rows", 1, 50)
    there = [backend.array(one) if np.ndim(one) else one for one in (x, s, d, out)]
    backend.launch("project_rows", (SIZE,), 128, tuple(there))
    u = backend.host(there[3])
    np.testing.assert_allclose(u.sum(axis=1), s)
    for moved, point in zip(x - u, u, strict=True):  # a step towards x leaves the set
        inner = moved[(point > 0) & (point < 1)]
        shift = (
            inner.mean()
            if len(inner)
            else 0.5 * (moved[point == 0].max() + moved[point == 1].min())
        )
        np.testing.assert_allclose(inner, shift, atol=1e-8)
        assert (moved[point == 0] <= shift + 1e-8).all()
        assert (moved[point == 1] >= shift - 1e-8).all()


def test_intercepts_have_no_slope(backend):
    z, y, v, n, steps, b = arguments_of("best_intercepts", 80, 1)
    there = [
        backend.array(one) if np.ndim(one) else one for one in (z, y, v, n, steps, b)
    ]
    backend.launch("best_intercepts", (SIZE,), 128, tuple(there))
    score = z + backend.host(there[5])[:, None]
    assert np.abs((v * (1 / (1 + np.exp(-score)) - y)).sum(axis=1)).max() < 1e-8


def test_slopes_are_derivatives_of_the_loss(backend):
    given = arguments_of("slopes_of_scores", 37, 1)
    there = [backend.array(one) if np.ndim(one) else one for one in given]
    backend.launch("slopes_of_scores", (SIZE,), 128, tuple(there))
    slopes, curvatures, total, L_b = map(backend.host, there[5:])
    z, b, y, v = given[:4]

    def loss(shift):
        score = z + b[:, None] + shift
        return v * (np.logaddexp(0, score) - y * score)

    h = 1e-4
    np.testing.assert_allclose(slopes, (loss(h) - loss(-h)) / (2 * h), atol=1e-6)
    second = (loss(h) - 2 * loss(0.0) + loss(-h)) / h**2
    np.testing.assert_allclose(curvatures, second, atol=1e-6)
    np.testing.assert_allclose(total, slopes.sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(L_b, curvatures.sum(axis=1).clip(1e-3))
