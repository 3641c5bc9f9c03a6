"""Fits on a GPU beside the same fits on the CPU, in one run: time, objectives,
predictions.

``python benchmarks/bench_gpu.py anchors grid binary classes`` runs the parts
named, all by default, on a machine with an NVIDIA GPU and CuPy; ``--gpu-only`` leaves
out the CPU, which takes minutes. Everything is run once before it is timed, so that
compilation is not counted; the transfer of the data to the GPU is.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from timing import ANCHORS, QUICK, columns, heading, line

from optirank import OptirankClassifier
from optirank.estimators.search import (
    HELD_OUT,
    Family,
    Unit,
    UnitResult,
    units_of_folds,
)
from optirank.estimators.selection import make_folds
from optirank.ranks.orders import order_for_fitting
from optirank_lab.device.backend import DeviceError, backend_of, orders_for
from optirank_lab.device.search import search

REFERENCE_SIZES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
GPU_ONLY = "--gpu-only" in sys.argv
PENALTIES = (0, 1e-5, 1e-4, 1e-3, 1e-2)


def seconds(work: Callable[[], object]) -> tuple[float, object]:
    """Wall time of the second of two calls, the device being waited for; what it
    returned.
    """
    xp = backend_of("cuda").xp
    for _ in range(2):
        xp.get_default_memory_pool().free_all_blocks()
        xp.cuda.Stream.null.synchronize()
        start = time.perf_counter()
        found = work()
        xp.cuda.Stream.null.synchronize()
        taken = time.perf_counter() - start
    return taken, found


def counts(n: int, d: int, n_classes: int, seed: int = 0) -> tuple[NDArray, NDArray]:
    """Counts of cells, about 16 % filled: each class has 5 % of the genes three
    times up.
    """
    rng = np.random.default_rng(seed)
    base = np.exp(rng.normal(-1.2, 0.8, d)).astype(np.float32)
    profiles = np.tile(base, (n_classes, 1))
    for one in profiles:
        one[rng.choice(d, d // 20, replace=False)] *= 3.0
    y = rng.integers(0, n_classes, n)
    X = np.empty((n, d), np.float32)

    def fill(begin: int) -> None:
        part = slice(begin, begin + 10_000)
        own = np.random.default_rng((seed, begin))
        own.standard_exponential(out=X[part], dtype=np.float32)
        X[part] *= profiles[y[part]]
        X[part] *= np.exp(own.normal(0, 0.4, len(y[part]))).astype(np.float32)[:, None]
        np.floor(X[part], out=X[part])

    Parallel(n_jobs=-1, prefer="threads")(delayed(fill)(k) for k in range(0, n, 10_000))
    return X, y


def fit(family: Family, X: NDArray, codes: NDArray) -> UnitResult:
    """A family on the GPU, all samples being its one unit."""
    train = orders_for(X, "cuda")
    unit = Unit(train=train, codes=codes, n_classes=int(codes.max()) + 1)
    return search(family, [unit], device="cuda")[0]


def anchors() -> None:
    heading("Anchor problems: objective on the GPU less that on the CPU")
    columns()
    worst = -np.inf
    with (ANCHORS / "published.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        data = np.load(ANCHORS / f"{row['problem']}.npz")
        s, l1, l2 = int(row["s"]), float(row["lambda_1"]), float(row["lambda_2"])
        cpu = OptirankClassifier(s, l1, l2).fit(data["X"], data["y"])
        family = Family((l1,), (l2,), n_references=(s,), warm_start=False)
        (gpu,) = fit(family, data["X"], data["y"].astype(int)).models(0).values()
        worst = max(worst, float(gpu.objective - cpu.objective_[0]))
    line(f"largest of {len(rows)}", f"{worst:.1e}", "<= 1e-4", worst <= 1e-4)


def grid() -> None:
    heading(
        "250 settings x 5 folds, 875 samples x 1000 genes (700 in each training part)"
    )
    columns()
    data = np.load(ANCHORS / "nb_n1000_d1000.npz")
    X, codes = data["X"][:875], data["y"][:875].astype(int)
    family = Family(PENALTIES, PENALTIES, n_references=REFERENCE_SIZES)
    folds = make_folds(codes, 5, None)

    def run(device: str, n_jobs: int | None = None) -> list[UnitResult]:
        if device == "cuda":
            orders = orders_for(X, device)
        else:
            orders = order_for_fitting(X, n_jobs)
        units = units_of_folds(orders, codes, folds, n_classes=2)
        return search(family, units, device=device, n_jobs=n_jobs)

    def best(results: list[UnitResult]) -> float:
        """The highest mean accuracy of held-out samples."""
        right = [
            [
                ((result.decision(k, HELD_OUT)[:, 0] > 0) == codes[test]).mean()
                for result, (_, test) in zip(results, folds, strict=True)
            ]
            for k in range(len(results[0].params))
        ]
        return float(np.mean(right, axis=1).max())

    taken, results = seconds(lambda: run("cuda"))
    line("GPU", f"{taken:.1f} s", "< 3 s", taken < 3)
    line("held-out accuracy of the best setting, GPU", f"{best(results):.4f}")
    if GPU_ONLY:
        return
    start, cpu_start = time.perf_counter(), time.process_time()
    results = run("cpu", -1)
    wall, used = time.perf_counter() - start, time.process_time() - cpu_start
    line(f"CPU, {os.cpu_count()} cores", f"{wall:.0f} s, {used:.0f} CPU s")
    line("held-out accuracy of the best setting, CPU", f"{best(results):.4f}")


def one_fit(n: int, n_classes: int, limit: float) -> None:
    heading(f"One fit, {n} x 2000, {n_classes} classes, one against the rest")
    columns()
    X, y = counts(n, 2000, n_classes)
    family = Family((1e-3,), (1e-3,), n_references=(0.2,), warm_start=False)
    taken, gpu = seconds(lambda: fit(family, X, y))
    what = "GPU, with the transfer of float32 values"
    line(what, f"{taken:.2f} s", f"< {limit:g} s", taken < limit)
    first = next(iter(gpu.models(0).values()))
    line("its objective, first class", f"{first.objective:.5f}")
    if not GPU_ONLY:
        cpu = OptirankClassifier(0.2, 1e-3, 1e-3, n_jobs=-1)
        start, cpu_start = time.perf_counter(), time.process_time()
        cpu.fit(X, y)
        wall, used = time.perf_counter() - start, time.process_time() - cpu_start
        line("CPU", f"{wall:.0f} s, {used:.0f} CPU s")
        line("its objective, first class", f"{cpu.objective_[0]:.5f}")


PARTS: dict[str, Callable[[], None]] = {
    "anchors": anchors,
    "grid": grid,
    "binary": lambda: one_fit(80_000, 2, 1.0),
    "classes": lambda: one_fit(20_000, 20, 10.0),
}


def main() -> None:
    try:
        backend_of("cuda")
    except DeviceError as error:
        print(error)
        return
    for name in [one for one in sys.argv[1:] if one in PARTS] or (
        ["binary"] if QUICK else PARTS
    ):
        PARTS[name]()


if __name__ == "__main__":
    main()
