"""Training on many cells: `optirank train` in a process of its own, its time, memory
and accuracy.

    python benchmarks/bench_scale.py             5,000 and 80,000 generated cells
    python benchmarks/bench_scale.py 1000000     another number of cells

Generated cells have 20,000 genes, about 6 % of the entries filled, and 20 classes in 5
groups: each group has 100 genes at four times the level, each class 40 more at 2.5
times. Counts are geometric; library sizes and the gene-wise effects of donors are
log-normal. Three donors train, another is the query. Files are written block by block
in a temporary folder: a million cells take 9 GB of disk.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from timing import QUICK, columns, heading, line

SIZES = (400,) if QUICK else (5000, 80_000)
QUERY = 200 if QUICK else 3000
LIMITS = {80_000: (240, 1.5), 1_000_000: (1200, 6.0)}  # CPU seconds of two cores, GB
N_GENES, N_CLASSES, N_GROUPS = 20_000, 20, 5
_BLOCK = 500  # cells drawn together
_CHUNK = 1 << 18  # entries of a chunk of the file


def class_profiles() -> NDArray:
    """Expected counts of each class, classes x genes."""
    rng = np.random.default_rng(0)
    base = np.exp(rng.normal(-4.2, 1.9, N_GENES))
    profiles = np.tile(base, (N_CLASSES, 1))
    middle = np.flatnonzero((base > 0.01) & (base < 1))
    size = N_CLASSES // N_GROUPS
    for group in range(N_GROUPS):
        raised = rng.choice(middle, 100, replace=False)
        profiles[group * size : (group + 1) * size, raised] *= 4
    for one in range(N_CLASSES):
        profiles[one, rng.choice(middle, 40, replace=False)] *= 2.5
    return profiles


def draw_block(
    expected: NDArray, rng: np.random.Generator
) -> tuple[NDArray, NDArray, NDArray]:
    """Geometric counts with these means as values, columns and numbers of entries
    per row.
    """
    chance = (expected / (1 + expected)).astype(np.float32)
    uniform = rng.random(expected.shape, dtype=np.float32)
    rows, columns = np.nonzero(uniform < chance)
    there = uniform[rows, columns], chance[rows, columns]
    logs = [np.log(np.maximum(one, 1e-30)) for one in there]
    counts = np.maximum(np.floor(logs[0] / logs[1]), 1)
    per_row = np.bincount(rows, minlength=len(expected))
    return counts.astype(np.float32), columns.astype(np.int32), per_row


def write_cells(path: Path, n_cells: int, donors: Sequence[int], seed: int) -> None:
    """Write a .h5ad file of so many cells, in random order of class and donor."""
    rng = np.random.default_rng(seed)
    profiles = class_profiles()
    effects = np.array(
        [
            np.exp(np.random.default_rng(1000 + one).normal(0, 0.35, N_GENES))
            for one in donors
        ]
    )
    classes = rng.integers(0, N_CLASSES, n_cells)
    donor = rng.integers(0, len(donors), n_cells)
    obs = pd.DataFrame(
        {
            "cell_type": pd.Categorical([f"T{one:02d}" for one in classes]),
            "donor": pd.Categorical([f"D{donors[one]}" for one in donor]),
        },
        index=[f"c{i}" for i in range(n_cells)],
    )
    var = pd.DataFrame(index=[f"G{i}" for i in range(N_GENES)])
    anndata.AnnData(obs=obs, var=var, shape=(n_cells, N_GENES)).write_h5ad(path)
    with h5py.File(path, "r+") as file:
        if "X" in file:
            del file["X"]
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["encoding-version"] = (
            "csr_matrix",
            "0.1.0",
        )
        group.attrs["shape"] = (n_cells, N_GENES)
        growing = {"maxshape": (None,), "chunks": (_CHUNK,)}
        values = group.create_dataset("data", (0,), np.float32, **growing)
        columns = group.create_dataset("indices", (0,), np.int32, **growing)
        pointers = np.zeros(n_cells + 1, np.int64)
        end = 0
        for start in range(0, n_cells, _BLOCK):
            cells = slice(start, min(start + _BLOCK, n_cells))
            size = cells.stop - start
            library = np.exp(rng.normal(0, 0.4, size))[:, None]
            expected = library * profiles[classes[cells]] * effects[donor[cells]]
            counts, where, per_row = draw_block(expected, rng)
            for dataset, block in ((values, counts), (columns, where)):
                dataset.resize((end + len(block),))
                dataset[end:] = block
            pointers[start + 1 : cells.stop + 1] = end + np.cumsum(per_row)
            end += len(counts)
        group.create_dataset("indptr", data=pointers)


_TRAIN = """
import json, sys, time
from optirank import save
from optirank.data.opening import open_profiles
from optirank.verbs.training import TrainingOptions, train
with open_profiles(sys.argv[1], label=["cell_type"]) as data:
    result = train(data, TrainingOptions(label="cell_type", n_jobs=2))
save(result.model, sys.argv[2])
lines = open("/proc/self/status").read().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps([time.process_time(), peak / 1024**2, result.model.n_genes,
                  result.performance.balanced_accuracy]))
"""


def measure(n_cells: int, folder: Path, query: Path) -> None:
    """Train on so many cells, and label the query."""
    heading(f"{n_cells:,} cells, {N_GENES} genes, {N_CLASSES} classes, two threads")
    columns()
    file, model = folder / f"cells_{n_cells}.h5ad", folder / f"cells_{n_cells}.optirank"
    write_cells(file, n_cells, (0, 1, 2), seed=n_cells)
    command = [sys.executable, "-c", _TRAIN, str(file), str(model)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    cpu, gigabytes, n_genes, held_out = json.loads(done.stdout.splitlines()[-1])
    most_cpu, most_gigabytes = LIMITS.get(n_cells, (None, None))
    line("CPU time", f"{cpu:.0f} s", *_target(cpu, most_cpu))
    line("peak memory", f"{gigabytes:.2f} GB", *_target(gigabytes, most_gigabytes))
    line("genes of the panel", str(n_genes))
    line("balanced accuracy of held-out samples", f"{100 * held_out:.1f} %")
    line("of the query, a new donor", f"{100 * accuracy(model, query):.1f} %")
    file.unlink()


def _target(figure: float, limit: float | None) -> tuple[str, bool] | tuple[()]:
    return () if limit is None else (f"<= {limit:g}", figure <= limit)


def accuracy(model: Path, query: Path) -> float:
    """Balanced accuracy of a model file on a query."""
    from optirank import load
    from optirank._util.numbers import balanced_accuracy
    from optirank_lab.data.conversion import read_expression

    data = read_expression(query)
    predicted = load(model).predict(data.X, data.var_names)
    return balanced_accuracy(data.obs["cell_type"].to_numpy(), predicted)


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:] if one.isdigit()]
    with tempfile.TemporaryDirectory() as name:
        query = Path(name) / "query.h5ad"
        write_cells(query, QUERY, (9,), seed=2)
        for n_cells in sizes or SIZES:
            measure(n_cells, Path(name), query)


if __name__ == "__main__":
    main()
