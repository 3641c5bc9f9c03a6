"""Prediction: cells per second and core, for 20 classes with 200 reference genes each."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits
from timing import columns, heading, interleaved, line

from optirank import OptirankClassifier
from optirank.model import Predictor, load, save

N_CLASSES, N_GENES, N_REFERENCE, N_WEIGHTS = 20, 20_000, 200, 200
DENSITY = 0.05
TARGET = 10_000  # cells per second per core


def make_model(n_weights: int = N_WEIGHTS) -> OptirankClassifier:
    """A model as if fitted: random reference sets and weights."""
    rng = np.random.default_rng(0)
    model = OptirankClassifier(n_reference=N_REFERENCE)
    model.classes_ = np.array([f"type {k:02d}" for k in range(N_CLASSES)])
    model.coef_ = np.zeros((N_CLASSES, N_GENES))
    model.reference_weights_ = np.zeros((N_CLASSES, N_GENES))
    for w, gamma in zip(model.coef_, model.reference_weights_, strict=True):
        w[rng.choice(N_GENES, n_weights, replace=False)] = rng.normal(size=n_weights)
        gamma[rng.choice(N_GENES, N_REFERENCE, replace=False)] = 1.0
    model.intercept_ = rng.normal(size=N_CLASSES)
    model.reference_ = model.reference_weights_ > 0
    model.genes_ = (model.reference_ | (model.coef_ != 0)).any(axis=0)
    model.objective_ = np.full(N_CLASSES, 0.1)
    model.n_iter_ = np.full(N_CLASSES, 100)
    model.path_ = []
    model.n_features_in_ = N_GENES
    model.feature_names_in_ = np.array([f"GENE{j}" for j in range(N_GENES)], dtype=object)
    return model


def make_cells(n: int) -> sparse.csr_array:
    """Counts, 5 % of them not zero."""
    rng = np.random.default_rng(1)
    X = sparse.random_array((n, N_GENES), density=DENSITY, format="csr", rng=rng, dtype=np.float32)
    X.data = np.ceil(X.data * 20)
    return X


def speed() -> None:
    heading(f"{N_CLASSES} classes x {N_REFERENCE} reference genes, {N_GENES} genes, 5 % filled")
    columns()
    X = make_cells(4000)
    panel_dense = X[:500].toarray()
    for n_weights in (N_WEIGHTS, 2000):
        model = make_model(n_weights)
        ways = {
            "compiled, CSR": (Predictor(model, compiled=True), X, TARGET),
            "NumPy alone, CSR": (Predictor(model, compiled=False), X[:500], None),
            "compiled, dense block": (Predictor(model, compiled=True), panel_dense, None),
            "NumPy alone, dense block": (Predictor(model, compiled=False), panel_dense, None),
        }
        works = {
            name: (lambda who=who, data=data: who.predict(data))
            for name, (who, data, _) in ways.items()
        }
        taken = interleaved(works, repeats=3)
        for name, (_, data, target) in ways.items():
            rate = data.shape[0] / taken[name]
            what = f"{name}, {n_weights} weights per class"
            if target is None or n_weights != N_WEIGHTS:
                line(what, f"{rate:,.0f} cells/s")
            else:
                line(what, f"{rate:,.0f} cells/s", f">= {target}", rate >= target)


_FIRST = """
import sys, time
import numpy as np
from optirank.model import Predictor, load
start = time.perf_counter()
model = load(sys.argv[1])
X = np.random.default_rng(0).poisson(0.1, size=(100, model.n_features_in_))
loaded = time.perf_counter()
Predictor(model).predict(X)
print(loaded - start, time.perf_counter() - loaded, "numba" in sys.modules)
"""


def file() -> None:
    heading("The model file")
    columns()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.optirank"
        start = time.perf_counter()
        save(make_model(), path)
        wrote = time.perf_counter()
        load(path)
        read = time.perf_counter()
        size = path.stat().st_size
        line("size", f"{size / 1e3:.0f} kB", "<= 300", size <= 300e3)
        line("save, load", f"{(wrote - start) * 1e3:.0f} ms, {(read - wrote) * 1e3:.0f} ms")
        code = [sys.executable, "-c", _FIRST, str(path)]
        out = subprocess.run(code, capture_output=True, text=True, check=True).stdout.split()
        times = f"{float(out[0]):.2f} s, {float(out[1]):.2f} s"
        line("fresh process: load, then 100 dense cells", times)
        line("numba was loaded for that", out[2], "False", out[2] == "False")


def main() -> None:
    with threadpool_limits(1):
        speed()
        file()


if __name__ == "__main__":
    main()
