"""Speed, memory and accuracy of orders, ranks and the capped simplex, as ratios in
one run.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits
from timing import QUICK, columns, heading, interleaved, line, peak_memory

from optirank.ranks.orders import order_samples
from optirank.ranks.scoring import weighted_ranks
from optirank.solver.blocks import project_capped_simplex

sys.path.append(str(Path(__file__).parents[1] / "tests" / "ranks"))
from plain_orders import plain_orders


def passes() -> None:
    n, d = (200, 100) if QUICK else (2000, 1000)
    heading(f"One pass over {n} samples x {d} genes, one thread, against plain NumPy")
    columns()
    rng = np.random.default_rng(0)
    orders = order_samples(rng.normal(size=(n, d)))
    plain = plain_orders(orders)
    gamma, w = rng.uniform(size=d), rng.normal(size=d)

    ranks_64, ranks_32 = orders.ranks(gamma, dtype=np.float64), orders.ranks(gamma)

    def write_ranks(o):
        return o.ranks(gamma, dtype=np.float64, reuse=ranks_64)

    def scores(o):
        return o.scores(w, gamma)

    def pair(work) -> dict:
        return {"ours": lambda: work(orders), "plain": lambda: work(plain)}

    for what, works, target in (
        ("R(gamma), float64", pair(write_ranks), 5),
        ("R(gamma), float32", pair(lambda o: o.ranks(gamma, reuse=ranks_32)), 5),
        ("R(gamma), float32, in new memory", pair(lambda o: o.ranks(gamma)), None),
        ("V(w), float32", pair(lambda o: o.coranks(w, reuse=ranks_32)), None),
        (
            "scores alone (NumPy: R(gamma), then R w)",
            {
                "ours": lambda: scores(orders),
                "plain": lambda: write_ranks(plain).dot(w),
            },
            None,
        ),
    ):
        taken = interleaved(works)
        ours, theirs = (taken[who] / (n * d) * 1e9 for who in ("ours", "plain"))
        ratio_line(what, ours, theirs, "ns per entry", target)


def sorting() -> None:
    n, d = (200, 100) if QUICK else (2000, 1000)
    heading(f"Ordering {n} samples x {d} genes, against numpy.argsort alone")
    columns()
    rng = np.random.default_rng(0)
    counts = rng.negative_binomial(1, 0.02, size=(n, d))
    for name, X in {
        "float64": rng.normal(size=(n, d)),
        "float32": rng.normal(size=(n, d)).astype(np.float32),
        "counts as float32": counts.astype(np.float32),
        "counts as int64": counts,
        "counts as int16 (argsort: radix sort)": counts.astype(np.int16),
    }.items():
        kind = "stable" if X.dtype == np.int16 else None
        taken = interleaved(
            {
                "ours": lambda X=X: order_samples(X),
                "argsort": lambda X=X, kind=kind: np.argsort(X, axis=1, kind=kind),
            },
            repeats=5,
        )
        ours, theirs = (taken[who] / (n * d) * 1e9 for who in ("ours", "argsort"))
        ratio_line(name, ours, theirs, "ns per entry", 0.5)
    X = rng.normal(size=(n, d))
    taken = interleaved(
        {"one": lambda: order_samples(X), "two": lambda: order_samples(X, n_jobs=2)},
        clock=time.perf_counter,
    )
    ratio_line("two threads, against one", taken["two"] * 1e3, taken["one"] * 1e3, "ms")


_MEMORY_SETUP = """
import numpy as np
from scipy import sparse
from optirank.ranks.orders import order_samples
X = sparse.random_array((500, 20_000), density=0.05, format="csr", rng=np.random.default_rng(0))
gamma = np.ones(20_000)
if {dense}:
    X = X.toarray()
order_samples(X[:2]).ranks(gamma)
"""
_MEMORY_WORK = "orders = order_samples(X); R = orders.ranks(gamma)"


def sparse_against_dense() -> None:
    n, d = (50, 2000) if QUICK else (500, 20_000)
    heading(f"Sparse against dense, {n} samples x {d} genes, 5 % filled, one thread")
    columns()
    rng = np.random.default_rng(0)
    X = sparse.random_array((n, d), density=0.05, format="csr", rng=rng)
    gamma, w = rng.uniform(size=d), rng.normal(size=d)
    orders = {"sparse": order_samples(X), "dense": order_samples(X.toarray())}
    ranks = {way: o.ranks(gamma) for way, o in orders.items()}
    slopes = rng.normal(size=n)
    data = {"sparse": X, "dense": X.toarray()}
    steps = {
        "order": lambda way: order_samples(data[way]),
        "R(gamma)": lambda way: orders[way].ranks(gamma),
        "scores": lambda way: orders[way].scores(w, gamma),
        "R w, R made before": lambda way: ranks[way].dot(w),
        "R^T slopes, R made before": lambda way: ranks[way].transpose_dot(slopes),
    }
    taken = interleaved(
        {
            (what, way): lambda step=step, way=way: step(way)
            for what, step in steps.items()
            for way in data
        },
        repeats=5,
    )
    for what in steps:
        target = 8 if what in ("order", "R(gamma)", "scores") else None
        times = (taken[what, way] * 1e3 for way in ("sparse", "dense"))
        ratio_line(what, *times, "ms", target)
    sums = (
        sum(taken[what, way] for what in ("order", "R(gamma)", "scores")) * 1e3
        for way in ("sparse", "dense")
    )
    ratio_line("order + R(gamma) + scores", *sums, "ms", 8)

    peaks = [
        peak_memory(_MEMORY_SETUP.format(dense=dense), _MEMORY_WORK)
        for dense in (False, True)
    ]
    if None not in peaks:
        memory_line("peak beyond the data, in a process of its own", *peaks)


def accuracy() -> None:
    d = 60_000
    heading(f"Accuracy of float32 ranks of {d} genes")
    columns()
    rng = np.random.default_rng(0)
    order = rng.permutation(d)
    x = np.empty((1, d))
    x[0, order] = np.arange(d)
    scaled = rng.integers(0, 2**20, size=d)
    gamma = scaled / 2**20
    exact = np.empty(d)
    exact[order] = (2 * np.cumsum(scaled[order]) - scaled[order] - 2**20) / 2.0**21
    ours = order_samples(x).ranks(gamma).values[0]
    error = np.abs(ours / exact - 1).max()
    taken = gamma.astype(np.float32)[order]
    naive = np.cumsum(taken, dtype=np.float32) - taken / 2 - np.float32(0.5)
    line("largest relative error", f"{error:.1e}", "<= 6e-08", error <= 6e-8)
    line(
        "the same with sums in float32", f"{np.abs(naive / exact[order] - 1).max():.1e}"
    )


def other_parts() -> None:
    heading("Projection onto the capped simplex; ranks of new samples with NumPy alone")
    rng = np.random.default_rng(0)
    for d in (1000, 20_000):
        z = rng.normal(size=d)
        taken = interleaved(
            {
                "projection": lambda z=z, d=d: project_capped_simplex(z, 0.2 * d),
                "sort": lambda z=z: np.sort(z),
            }
        )
        times = f"{taken['projection'] * 1e6:.0f} us, {taken['sort'] * 1e6:.0f} us"
        line(f"projection of {d} genes, and numpy.sort of them", times)
    n, d = 1000, 20_000
    X = sparse.random_array(
        (n, d), density=0.05, format="csr", rng=rng, dtype=np.float32
    )
    dense = X.toarray()
    reference = np.arange(20_000) < 1000
    genes = np.arange(1000, 1300)
    taken = interleaved(
        {
            "1300 of 20000 genes, dense": lambda: weighted_ranks(
                dense, reference, genes=genes
            ),
            "1300 of 20000 genes, sparse": lambda: weighted_ranks(
                X, reference, genes=genes
            ),
            "all genes, dense": lambda: weighted_ranks(dense[:100], reference),
        },
        repeats=3,
    )
    for what, seconds in taken.items():
        samples = 100 if what.startswith("all") else n
        line(f"relative ranks, {what}", f"{seconds / samples * 1e6:.0f} us per sample")


def ratio_line(
    what: str, ours: float, theirs: float, unit: str, target: float | None = None
) -> None:
    ratio = theirs / ours
    figure = f"{ours:.2f} | {theirs:.2f} {unit} {ratio:6.1f}x"
    if target is None:
        line(what, figure)
    else:
        line(what, figure, f">= {target:g}x", ratio >= target)


def memory_line(what: str, ours: float, theirs: float) -> None:
    figure = f"{ours / 1e6:.1f} | {theirs / 1e6:.1f} MB {theirs / ours:6.1f}x"
    line(what, figure, ">= 5x", theirs >= 5 * ours)


def main() -> None:
    print(
        "Two times on a line: ours | the other way, then how many times faster or "
        "smaller ours is."
    )
    with threadpool_limits(1):  # NumPy's own products too
        passes()
        sorting()
        sparse_against_dense()
        accuracy()
        other_parts()


if __name__ == "__main__":
    main()
