"""Prediction from a file: peak memory and cells per second, at 20,000 and at 200,000 cells.

``python benchmarks/bench_predict_file.py 20000`` measures one size; a file takes 8 kB a cell.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_predict import DENSITY, N_CLASSES, N_GENES, N_REFERENCE, make_model
from timing import columns, heading, line

from optirank.model import save

SIZES = (20_000, 200_000)
RATE = 10_000  # cells per second per core
PEAK = 1000  # MB
GROWTH = 100  # MB more for ten times the cells
_STEP = 1000  # cells written together

_WORK = """
import json, re, sys, time
import optirank.workflow.predict as workflow
from optirank.model import load
from threadpoolctl import threadpool_limits

def memory(field):
    with open("/proc/self/status") as file:
        return int(re.search(field + r":\\s+(\\d+) kB", file.read()).group(1)) / 1024

model = load(sys.argv[2])
loaded = memory("VmRSS")
with threadpool_limits(1):
    clocks = []
    for _ in range(2):  # the first time loads numba
        clocks.append((time.perf_counter(), time.process_time()))
        done = workflow.predict_file(sys.argv[1], model, sys.argv[3])
    clocks.append((time.perf_counter(), time.process_time()))
(start, _), (again, cpu), (end, cpu_end) = clocks
print(json.dumps([done.n_samples, again - start, cpu_end - cpu, loaded, memory("VmHWM")]))
"""


def write_cells(path: Path, n_cells: int, compression: str | None = None) -> None:
    """Write counts of cells as CSR, block by block; 5 % of them are not zero."""
    import anndata
    import h5py
    import pandas as pd

    obs = pd.DataFrame(index=[f"cell_{i}" for i in range(n_cells)])
    var = pd.DataFrame(index=[f"GENE{j}" for j in range(N_GENES)])
    anndata.AnnData(obs=obs, var=var, shape=(n_cells, N_GENES)).write_h5ad(path)
    rng = np.random.default_rng(0)
    per_cell = int(DENSITY * N_GENES)
    genes = np.sort(rng.random((_STEP, N_GENES)).argpartition(per_cell)[:, :per_cell], axis=1)
    size, made = n_cells * per_cell, {"chunks": (100_000,), "compression": compression}
    with h5py.File(path, "a") as file:
        if "X" in file:
            del file["X"]
        X = file.create_group("X")
        X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
        X.attrs["shape"] = (n_cells, N_GENES)
        X["indptr"] = np.arange(0, size + 1, per_cell)
        data = X.create_dataset("data", (size,), "f4", **made)
        indices = X.create_dataset("indices", (size,), "i4", **made)
        for start in range(0, n_cells, _STEP):
            n = min(_STEP, n_cells - start)
            place = slice(start * per_cell, (start + n) * per_cell)
            indices[place] = rng.permutation(genes)[:n].ravel()
            data[place] = rng.geometric(0.3, n * per_cell)


def measure(query: Path, model: Path, out: Path) -> tuple[int, float, float, float, float]:
    """Cells, seconds of the first call and CPU seconds of the second, MB before and at the peak."""
    import json

    code = [sys.executable, "-c", _WORK, str(query), str(model), str(out)]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout))


def command_seconds(query: Path, model: Path, out: Path) -> float:
    """Wall time of `optirank predict` in a process of its own, all imports included."""
    arguments = ["predict", str(query), "--model", str(model), "--out", str(out)]
    code = [sys.executable, "-c", "from optirank.cli import main; main()", *arguments]
    start = time.perf_counter()
    subprocess.run(code, capture_output=True, check=True)
    return time.perf_counter() - start


def main(sizes: tuple[int, ...] = SIZES) -> None:
    heading(f"{N_CLASSES} classes x {N_REFERENCE} reference genes, {N_GENES} genes, 5 % filled")
    columns()
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.optirank"
        save(make_model(), model)
        for n_cells in sizes:
            query = Path(folder) / f"{n_cells}.h5ad"
            write_cells(query, n_cells)
            out = Path(folder) / "labels.csv"
            n, first, cpu, before, peak = measure(query, model, out)
            command = command_seconds(query, model, out)
            peaks.append(peak)
            rate = n / cpu  # other programs disturb the wall clock
            figure = f"{rate:,.0f} cells/s per core"
            line(f"{n_cells:,} cells to .csv", figure, f">= {RATE}", rate >= RATE)
            line(f"{n_cells:,} cells, wall time, numba loaded first", f"{first:.1f} s")
            line(f"{n_cells:,} cells, wall time of the command", f"{command:.1f} s")
            memory = f"{peak:.0f} MB ({before:.0f} before)"
            line(f"{n_cells:,} cells, peak memory", memory, f"<= {PEAK}", peak <= PEAK)
            query.unlink()
    if len(peaks) > 1:
        growth = peaks[-1] - peaks[0]
        line("more memory for the largest", f"{growth:.0f} MB", f"<= {GROWTH}", growth <= GROWTH)


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or SIZES)
