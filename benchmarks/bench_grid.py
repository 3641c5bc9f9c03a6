"""The whole grid of the paper: time, memory, and what warm starts cost in quality.

``python benchmarks/bench_grid.py time single quality others`` runs the parts named, all by default.
Anchor problems are read from OPTIRANK_ANCHORS, real sets from OPTIRANK_DATA (else ../shared/anchors
and ../shared/data beside the repository). CPU seconds are what to compare on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from optirank.tuning.family import Samples
from sklearn.metrics import balanced_accuracy_score
from timing import columns, heading, line

from optirank import OptirankClassifier, OptirankClassifierCV
from optirank.benchmark.classifiers import PENALTIES, REFERENCE_SIZES, get
from optirank.ranks.orders import order_samples
from optirank.tuning.folds import make_folds
from optirank.tuning.search import fold_units, search

_SHARED = Path(__file__).resolve().parents[2] / "shared"
ANCHORS = Path(os.environ.get("OPTIRANK_ANCHORS", _SHARED / "anchors"))
DATA = Path(os.environ.get("OPTIRANK_DATA", _SHARED / "data"))

N_FOLDS = 5
N_SAMPLES = 875  # 700 in each fold
PRESELECTED = 300  # genes of the real pairs, by the correlation of their ranks with the labels
SMALL_GRID = ((0.02, 0.05, 0.2, 0.6), (0.0, 1e-3), (1e-4, 1e-3, 1e-2))
GRID_CPU = 300.0  # seconds: two cores for two and a half minutes

Split = tuple[str, NDArray, NDArray, NDArray, NDArray]  # name, X, y, X_test, y_test


def anchor(name: str, n: int | None = None) -> tuple[NDArray, NDArray]:
    data = np.load(ANCHORS / f"{name}.npz")
    return data["X"][:n], data["y"][:n].astype(int)


# --- time and memory ------------------------------------------------------------------------------

_FULL_GRID = """
import json, resource, sys, time
import bench_grid
X, y = bench_grid.anchor("nb_n1000_d1000", bench_grid.N_SAMPLES)
bench_grid.full_grid().set_params(cv=2).fit(X[:60, :30], y[:60])
wall, cpu = time.perf_counter(), time.process_time()
model = bench_grid.full_grid().fit(X, y)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
score = model.best_score_
print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak, "score": score, **model.best_params_}))
"""


def full_grid() -> OptirankClassifierCV:
    return OptirankClassifierCV(REFERENCE_SIZES, PENALTIES, PENALTIES, cv=N_FOLDS, n_jobs=2)


def whole_grid() -> float:
    """Time and memory of the full grid, in a process of its own; its CPU seconds."""
    heading("The paper's grid, 250 settings x 5 folds, 875 samples x 1000 genes, two threads")
    columns()
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", _FULL_GRID], capture_output=True, text=True, check=True, cwd=here
    )
    found = json.loads(done.stdout)
    line("wall time", f"{found['wall']:.0f} s", "<= 150 s", found["wall"] <= 150)
    line("CPU time", f"{found['cpu']:.0f} s", "<= 300 s", found["cpu"] <= GRID_CPU)
    line(
        "peak memory of the process", f"{found['peak'] / 1e6:.0f} MB", "< 1 GB", found["peak"] < 1e9
    )
    chosen = f"s/d {found['n_reference']:g}, l1 {found['l1']:g}, l2 {found['l2']:g}"
    line("chosen, with its validation score", f"{chosen}: {found['score']:.3f}")
    return found["cpu"]


def one_by_one(grid_cpu: float | None) -> None:
    """The same fits done independently, every 13th of one fold, scaled to all."""
    heading("The same fits one by one with OptirankClassifier, from every 13th setting of one fold")
    columns()
    X, y = anchor("nb_n1000_d1000", N_SAMPLES)
    train, _ = make_folds(y, N_FOLDS, None)[0]
    settings = list(product(REFERENCE_SIZES, PENALTIES, PENALTIES))
    some = settings[6::13]
    OptirankClassifier(5).fit(X[:60, :30], y[:60])
    start = time.process_time()
    for setting in some:
        OptirankClassifier(*setting).fit(X[train], y[train])
    each = (time.process_time() - start) / len(some)
    total = each * len(settings) * N_FOLDS
    line(f"CPU time of a fit, mean of {len(some)}", f"{each:.2f} s")
    line(f"of {len(settings) * N_FOLDS} such fits", f"{total:.0f} s")
    if grid_cpu is not None:
        ratio = total / grid_cpu
        line("of the whole grid", f"{grid_cpu:.0f} s, {ratio:.1f}x", ">= 2x", ratio >= 2)


# --- quality --------------------------------------------------------------------------------------


def splits() -> Iterator[Split]:
    """Anchor problems cut in two ways, and real pairs of platforms."""
    for name in ("nb_n700_d200", "gauss_n700_d200", "nb_n1000_d1000"):
        X, y = anchor(name)
        n = 5 * len(y) // 7
        yield f"{name}, first {n}", X[:n], y[:n], X[n:], y[n:]
        yield f"{name}, last {n}", X[-n:], y[-n:], X[:-n], y[:-n]
    if not DATA.is_dir():
        print(f"no real sets in {DATA}: set OPTIRANK_DATA")
        return
    for train, test, positive in (
        ("golub_leukemia", "armstrong_leukemia", "aml"),
        ("nki_er", "expo_er", "er positive"),
    ):
        yield real_pair(train, test, positive)


def real_pair(train: str, test: str, positive: str) -> Split:
    import anndata
    from scipy.stats import rankdata

    sets = [anndata.read_h5ad(DATA / f"{name}.h5ad") for name in (train, test)]
    genes = sets[0].var_names.intersection(sets[1].var_names)
    (X, y), (X_test, y_test) = (
        (one[:, genes].X.toarray(), (one.obs["cell_type"] == positive).to_numpy().astype(int))
        for one in sets
    )
    ranks = rankdata(X, axis=1)
    ranks -= ranks.mean(axis=0)
    spread = np.sqrt((ranks**2).sum(axis=0)) + 1e-12
    best = np.argsort(-np.abs((y - y.mean()) @ ranks) / spread, kind="stable")[:PRESELECTED]
    return f"{train} -> {test}", X[:, best], y, X_test[:, best], y_test


def quality() -> None:
    heading("Balanced accuracy on held-out samples: settings chosen from warm and from cold starts")
    columns()
    rows, validation = [], []
    for name, X, y, X_test, y_test in splits():
        scores, seconds, means = {}, {}, {}
        for warm in (True, False):
            start = time.process_time()
            model = OptirankClassifierCV(*SMALL_GRID, n_jobs=2, warm_start=warm).fit(X, y)
            seconds[warm] = time.process_time() - start
            means[warm] = 100 * model.cv_results_["mean_test_score"].mean()
            scores[warm] = 100 * balanced_accuracy_score(y_test, model.predict(X_test))
        rows.append(scores[True] - scores[False])
        validation.append(means[True] - means[False])
        figure = f"{scores[True]:.1f} | {scores[False]:.1f} {rows[-1]:+.1f}"
        line(f"{name} ({seconds[True]:.0f} | {seconds[False]:.0f} CPU s)", figure)
    mean = float(np.mean(rows))
    line("mean difference, points", f"{mean:+.2f}", ">= 0", mean >= 0)
    line("of the validation scores of all settings", f"{np.mean(validation):+.2f}")
    loss = max(0.0, *(-row for row in rows))
    line("largest loss, points", f"{loss:.2f}", "<= 0.5", loss <= 0.5)


# --- other classifiers ----------------------------------------------------------------------------


def others() -> None:
    heading("The grids of the other classifiers on the same samples and folds, two threads")
    columns()
    X, y = anchor("nb_n1000_d1000", N_SAMPLES)
    samples = Samples(np.log1p(X.astype(float)), order_samples(X), np.arange(N_SAMPLES) % 2)
    folds = make_folds(y, N_FOLDS, None)
    for name in ("rank-lr", "lr", "ANrank-lr"):
        classifier = get(name)
        family = classifier.make_family(classifier.grid)
        wall, cpu = time.perf_counter(), time.process_time()
        search(family, fold_units(samples, y, folds, n_classes=2), n_jobs=2)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        line(f"{name}, {classifier.n_settings} settings", f"{wall:.1f} s, {cpu:.1f} CPU s")


PARTS = ("time", "single", "quality", "others")


def main(chosen: tuple[str, ...] = PARTS) -> None:
    grid_cpu = whole_grid() if "time" in chosen else None
    if "single" in chosen:
        one_by_one(grid_cpu)
    if "quality" in chosen:
        quality()
    if "others" in chosen:
        others()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="part", help=", ".join(PARTS))
    given = tuple(parser.parse_args().parts)
    if unknown := set(given) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}: use {', '.join(PARTS)}")
    main(given)
