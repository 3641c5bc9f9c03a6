"""Labelling an atlas on a dask cluster: seconds beside one process, and equal bytes, also
where a worker is killed.

    python benchmarks/bench_cluster.py [--cells 200000] [--workers 1 2 4] [--quick]

The atlas is a zarr store of generated cells with 20,000 genes, 5 % of the entries
filled. Workers are processes of one thread on the loopback address.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
from scipy import sparse
from timing import QUICK, columns, heading, line

N_GENES, PER_CELL, N_CLASSES = 20_000, 1000, 20
CELLS = 4_000 if QUICK else 200_000
WORKERS = (2,) if QUICK else (1, 2, 4)


def cells(n_cells: int, seed: int) -> anndata.AnnData:
    """Counts of cells; the genes of each are one pattern, shifted by class and at random."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n_cells) % N_CLASSES
    pattern = rng.permutation(N_GENES)[:PER_CELL]
    shifts = 900 * classes + rng.integers(0, 90, n_cells)
    genes = np.sort((pattern + shifts[:, None]) % N_GENES, axis=1).astype(np.int32)
    counts = rng.geometric(0.3, genes.size).astype(np.float32)
    indptr = np.arange(0, genes.size + 1, PER_CELL)
    X = sparse.csr_matrix((counts, genes.ravel(), indptr), (n_cells, N_GENES))
    obs = pd.DataFrame({"type": [f"type {k:02}" for k in classes]})
    obs.index = obs.index.astype(str)
    var = pd.DataFrame(index=[f"GENE{j}" for j in range(N_GENES)])
    return anndata.AnnData(X, obs=obs, var=var)


def optirank(*words: object) -> float:
    """Run a command with one thread; its seconds."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "optirank", "-q", *map(str, words), "--force"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=environment)
    return time.perf_counter() - start


def measure(folder: Path, n_cells: int, workers: tuple[int, ...]) -> None:
    """All figures of an atlas."""
    from distributed import LocalCluster

    reference, atlas = folder / "reference.h5ad", folder / "atlas.zarr"
    model, alone = folder / "model.optirank", folder / "alone.parquet"
    cells(20 * N_CLASSES, 0).write_h5ad(reference)
    cells(n_cells, 0).write_zarr(atlas)
    optirank("train", reference, "--label", "type", "--n-genes", 100, "-o", model)
    heading(f"{n_cells:,} cells x {N_GENES} genes, zarr, {os.cpu_count()} processors")
    columns()
    predict = ("predict", atlas, "-m", model)
    line("one process", f"{optirank(*predict, '-o', alone):.1f} s")
    for n_workers in workers:
        with LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None
        ) as cluster:
            address = cluster.scheduler_address
            out = folder / "labels.parquet"
            seconds = optirank(*predict, "--dask", address, "-o", out)
            line(f"{n_workers} workers", f"{seconds:.1f} s")
            same = filecmp.cmp(alone, out, shallow=False)
            line("the same labels", str(same), "True", same)
            worker = next(iter(cluster.workers.values())).pid
            killing = threading.Timer(seconds / 2, os.kill, (worker, signal.SIGKILL))
            killing.start()
            optirank(*predict, "--dask", address, "-o", out)
            killing.cancel()
            same = filecmp.cmp(alone, out, shallow=False)
            line("a worker killed: the same labels", str(same), "True", same)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--workers", type=int, nargs="*", default=WORKERS)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), args.cells, tuple(args.workers))


if __name__ == "__main__":
    main()
