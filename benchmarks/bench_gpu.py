"""Fits on a GPU beside the same fits on the CPU, in one run: time, objectives,
predictions.

``python benchmarks/bench_gpu.py anchors grid units binary classes`` runs the parts
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
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import Manager, get_context
from threading import Barrier

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from timing import ANCHORS, QUICK, columns, heading, line

from optirank import OptirankClassifier, OptirankClassifierCV
from optirank.solver.device.backend import DeviceError, backend_of, orders_for
from optirank.tuning.search import OptirankFamily, Unit, search

REFERENCE_SIZES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
PROCESSES = (
    5  # as with `optirank-lab benchmark run --jobs 5`: one alone does not fill the GPU
)
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


def anchors() -> None:
    heading("Anchor problems: objective on the GPU less that on the CPU")
    columns()
    worst, agreement = -np.inf, 1.0
    with (ANCHORS / "published.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        data = np.load(ANCHORS / f"{row['problem']}.npz")
        setting = int(row["s"]), float(row["lambda_1"]), float(row["lambda_2"])
        cpu = OptirankClassifier(*setting).fit(data["X"], data["y"])
        gpu = OptirankClassifier(*setting, device="cuda").fit(data["X"], data["y"])
        worst = max(worst, float(gpu.objective_[0] - cpu.objective_[0]))
        same = (cpu.predict(data["X"]) == gpu.predict(data["X"])).mean()
        agreement = min(agreement, float(same))
    line(f"largest of {len(rows)}", f"{worst:.1e}", "<= 1e-4", worst <= 1e-4)
    line("least agreement of the predictions", f"{100 * agreement:.1f} %")


def grid() -> None:
    heading(
        "250 settings x 5 folds, 875 samples x 1000 genes (700 in each training part)"
    )
    columns()
    data = np.load(ANCHORS / "nb_n1000_d1000.npz")
    X, y, X_test, y_test = (
        data[k][s] for s in (slice(875), slice(875, None)) for k in "Xy"
    )
    model = OptirankClassifierCV(REFERENCE_SIZES, PENALTIES, PENALTIES, cv=5)
    taken, gpu = seconds(lambda: model.set_params(device="cuda").fit(X, y))
    line("GPU", f"{taken:.1f} s", "< 3 s", taken < 3)
    line("validation score of the chosen setting, GPU", f"{gpu.best_score_:.4f}")
    line("accuracy on the other 125 samples, GPU", f"{gpu.score(X_test, y_test):.3f}")
    if GPU_ONLY:
        return
    start, cpu_start = time.perf_counter(), time.process_time()
    cpu = OptirankClassifierCV(
        REFERENCE_SIZES, PENALTIES, PENALTIES, cv=5, n_jobs=-1
    ).fit(X, y)
    wall, used = time.perf_counter() - start, time.process_time() - cpu_start
    line(f"CPU, {os.cpu_count()} cores", f"{wall:.0f} s, {used:.0f} CPU s")
    line("validation score of the chosen setting, CPU", f"{cpu.best_score_:.4f}")
    line("accuracy on the other 125 samples, CPU", f"{cpu.score(X_test, y_test):.3f}")


def units(n: int, number: int, ready: Barrier) -> float:
    """Time of some units of `optirank-lab benchmark`, with as many samples to score as to
    train on.
    """
    X, y = counts(2 * n, 1000, 2)
    family = OptirankFamily(PENALTIES, PENALTIES, n_references=REFERENCE_SIZES)

    def fit() -> None:
        train, test = (orders_for(part, "cuda") for part in (X[:n], X[n:]))
        unit = Unit(train=train, codes=y[:n], n_classes=2, views={"test": test})
        search(family, [unit])

    fit()
    ready.wait()
    start = time.perf_counter()
    for _ in range(number):
        fit()
    return time.perf_counter() - start


def paper_units() -> None:
    """Units of the paper's evaluation at a few sizes."""
    heading(
        f"250 settings on n samples x 1000 genes, {PROCESSES} processes side by side"
    )
    columns()
    number = 4
    with (
        Manager() as manager,
        ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool,
    ):
        for n in (300, 1200, 3600):
            ready = manager.Barrier(PROCESSES)
            running = [pool.submit(units, n, number, ready) for _ in range(PROCESSES)]
            each = max(one.result() for one in running) / (number * PROCESSES)
            line(f"{n} samples, a unit", f"{each:.2f} s")


def one_fit(n: int, n_classes: int, limit: float) -> None:
    heading(f"One fit, {n} x 2000, {n_classes} classes, one against the rest")
    columns()
    X, y = counts(n, 2000, n_classes)
    model = OptirankClassifier(0.2, 1e-3, 1e-3)
    taken, gpu = seconds(lambda: model.set_params(device="cuda").fit(X, y))
    what = "GPU, with the transfer of float32 values"
    line(what, f"{taken:.2f} s", f"< {limit:g} s", taken < limit)
    line("its objective, first class", f"{gpu.objective_[0]:.5f}")
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
    "units": paper_units,
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
