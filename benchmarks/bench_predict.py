"""Prediction: cells per second and memory, from arrays and from files, for 20 classes.

Two models with random weights: the panel model with 100 genes, and one of the paper's
kind with 200 reference genes and 200 weights per class. Files have 20,000 genes, 5 % of
the entries filled.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits
from timing import QUICK, columns, heading, interleaved, line

from optirank import OptirankClassifier, PanelClassifier
from optirank.model import Model, load, save
from optirank.panel.elimination import Panel

N_CLASSES, N_GENES, N_REFERENCE, N_PANEL = 20, 20_000, 200, 100
DENSITY = 0.05
SIZES = (500,) if QUICK else (20_000, 200_000)
RATES = {"panel": 40_000, "optirank": 10_000}  # cells per CPU second, from a file
PEAK = 1000  # MB
GROWTH = 100  # MB more for ten times the cells
_STEP = 500  # cells written together


def make_model(name: str) -> PanelClassifier | OptirankClassifier:
    """A model as if fitted, with random weights."""
    rng = np.random.default_rng(0)
    classes = np.array([f"type {k:02d}" for k in range(N_CLASSES)])
    names = np.array([f"GENE{j}" for j in range(N_GENES)], dtype=object)
    if name == "panel":
        model = PanelClassifier(N_PANEL)
        model.n_features_in_, model.feature_names_in_, model.classes_ = (
            N_GENES,
            names,
            classes,
        )
        genes = np.sort(rng.choice(N_GENES, N_PANEL, replace=False))
        coef = rng.normal(size=(N_CLASSES, N_PANEL))
        panel = Panel(genes, coef)
        model.path_ = {N_PANEL: panel}
        return model._take(panel)
    model = OptirankClassifier(n_reference=N_REFERENCE)
    model.n_features_in_, model.feature_names_in_, model.classes_ = (
        N_GENES,
        names,
        classes,
    )
    model.coef_ = np.zeros((N_CLASSES, N_GENES))
    model.reference_weights_ = np.zeros((N_CLASSES, N_GENES))
    for w, gamma in zip(model.coef_, model.reference_weights_, strict=True):
        w[rng.choice(N_GENES, 200, replace=False)] = rng.normal(size=200)
        gamma[rng.choice(N_GENES, N_REFERENCE, replace=False)] = 1.0
    model.intercept_ = rng.normal(size=N_CLASSES)
    model.reference_ = model.reference_weights_ > 0
    model.genes_ = (model.reference_ | (model.coef_ != 0)).any(axis=0)
    model.objective_ = np.full(N_CLASSES, 0.1)
    model.n_iter_ = np.full(N_CLASSES, 100)
    model.path_ = []
    return model


def arrays() -> None:
    """Cells per second from values in memory, and what the first cells take."""
    heading(f"{N_CLASSES} classes, {N_GENES} genes, 5 % filled, in memory, one core")
    columns()
    rng, n = np.random.default_rng(1), 200 if QUICK else 4000
    X = sparse.random_array(
        (n, N_GENES), density=DENSITY, format="csr", rng=rng, dtype=np.float32
    )
    X.data = np.ceil(X.data * 20)
    works, sizes = {}, {}
    for name in RATES:
        model = Model.from_estimator(make_model(name))
        for compiled in (True, False):
            some = X if compiled else X[: n // 8]
            what = f"{name}, {'compiled' if compiled else 'NumPy alone'}"
            everything = np.ones(model.n_genes, dtype=bool)
            columns_of_panel = model.panel.columns
            works[what] = partial(
                model.panel.scores,
                some,
                everything,
                columns_of_panel,
                compiled=compiled,
            )
            sizes[what] = some.shape[0]
    for what, seconds in interleaved(works, repeats=3).items():
        line(what, f"{sizes[what] / seconds:,.0f} cells/s")


_FIRST = """
import sys, time
import numpy as np
from optirank.model import load
start = time.perf_counter()
model = load(sys.argv[1])
X = np.random.default_rng(0).poisson(0.1, size=(100, model.n_features))
loaded = time.perf_counter()
model.predict(X)
print(loaded - start, time.perf_counter() - loaded, "numba" in sys.modules)
"""


def model_file(folder: Path) -> None:
    """Size and times of the model file."""
    for name in RATES:
        heading(f"The model file, {name}")
        columns()
        path = folder / f"{name}.optirank"
        start = time.perf_counter()
        save(make_model(name), path)
        wrote = time.perf_counter()
        load(path)
        read = time.perf_counter()
        size = path.stat().st_size
        line("size", f"{size / 1e3:.0f} kB", "<= 300", size <= 300e3)
        line(
            "save, load",
            f"{(wrote - start) * 1e3:.0f} ms, {(read - wrote) * 1e3:.0f} ms",
        )
        code = [sys.executable, "-c", _FIRST, str(path)]
        out = subprocess.run(
            code, capture_output=True, text=True, check=True
        ).stdout.split()
        times = f"{float(out[0]):.2f} s, {float(out[1]):.2f} s"
        line("fresh process: load, then 100 dense cells", times)
        line("numba was loaded for that", out[2], "False", out[2] == "False")


_WORK = """
import json, re, sys, time
import optirank.verbs.label_files as workflow
from optirank.model import load
from threadpoolctl import threadpool_limits

def memory(field):
    with open("/proc/self/status") as file:
        return int(re.search(field + r":\\s+(\\d+) kB", file.read()).group(1)) / 1024

model = load(sys.argv[2])
loaded = memory("VmRSS")
with threadpool_limits(1):
    for k in range(2):  # the first time loads numba
        start = time.process_time()
        workflow.predict_file(sys.argv[1], model, sys.argv[3].replace("K", str(k)))
print(json.dumps([time.process_time() - start, loaded, memory("VmHWM")]))
"""


def from_files(folder: Path) -> None:
    """Cells per CPU second with reading, peak memory, and the time of the command."""
    peaks: dict[str, list[float]] = {}
    for n_cells in SIZES:
        query = folder / f"{n_cells}.h5ad"
        write_cells(query, n_cells)
        for name, target in RATES.items():
            heading(f"{n_cells:,} cells in a .h5ad file, {name}")
            columns()
            model = folder / f"{name}.optirank"
            out = folder / f"{name}-{n_cells}-K.csv"
            code = [sys.executable, "-c", _WORK, str(query), str(model), str(out)]
            done = subprocess.run(code, capture_output=True, text=True, check=True)
            cpu, before, peak = json.loads(done.stdout)
            peaks.setdefault(name, []).append(peak)
            rate = n_cells / cpu
            line(
                "with reading",
                f"{rate:,.0f} cells/CPU s",
                f">= {target}",
                rate >= target,
            )
            memory = f"{peak:.0f} MB ({before:.0f} before)"
            line("peak memory", memory, f"<= {PEAK}", peak <= PEAK)
            arguments = [
                "predict",
                query,
                "--model",
                model,
                "--out",
                folder / f"{name}.csv",
            ]
            code = [sys.executable, "-m", "optirank", *map(str, arguments), "--force"]
            start = time.perf_counter()
            subprocess.run(code, capture_output=True, check=True)
            line("wall time of the command", f"{time.perf_counter() - start:.1f} s")
        query.unlink()
    for name, (first, *_, last) in peaks.items() if len(SIZES) > 1 else ():
        growth = last - first
        what = f"more memory for the largest, {name}"
        line(what, f"{growth:.0f} MB", f"<= {GROWTH}", growth <= GROWTH)


def write_cells(path: Path, n_cells: int) -> None:
    """Write counts of cells as CSR, block by block."""
    import anndata
    import h5py
    import pandas as pd

    obs = pd.DataFrame(index=[f"cell_{i}" for i in range(n_cells)])
    var = pd.DataFrame(index=[f"GENE{j}" for j in range(N_GENES)])
    anndata.AnnData(obs=obs, var=var, shape=(n_cells, N_GENES)).write_h5ad(path)
    rng = np.random.default_rng(0)
    per_cell = int(DENSITY * N_GENES)
    genes = np.sort(
        rng.random((_STEP, N_GENES)).argpartition(per_cell)[:, :per_cell], axis=1
    )
    size = n_cells * per_cell
    with h5py.File(path, "a") as file:
        if "X" in file:
            del file["X"]
        X = file.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
        X.attrs["shape"] = (n_cells, N_GENES)
        X["indptr"] = np.arange(0, size + 1, per_cell)
        data = X.create_dataset("data", (size,), "f4", chunks=(100_000,))
        indices = X.create_dataset("indices", (size,), "i4", chunks=(100_000,))
        for start in range(0, n_cells, _STEP):
            n = min(_STEP, n_cells - start)
            place = slice(start * per_cell, (start + n) * per_cell)
            indices[place] = rng.permutation(genes)[:n].ravel()
            data[place] = rng.geometric(0.3, n * per_cell)


def main() -> None:
    with threadpool_limits(1), tempfile.TemporaryDirectory() as name:
        arrays()
        model_file(Path(name))
        from_files(Path(name))


if __name__ == "__main__":
    main()
