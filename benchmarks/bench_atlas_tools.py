"""100,000 cells of a file, labelled by optirank, by a plain loop and by CellTypist:
time and memory.

    python benchmarks/bench_atlas_tools.py

The file is a .h5ad of generated cells with 20,000 genes, 5 % of the entries filled, not
compressed. The plain loop reads blocks of 1000 cells with AnnData (backed) and calls
`PanelClassifier.predict`. CellTypist runs in the environment that
`benchmarks/make_peers.py celltypist` makes; it is trained on the same cells. Each is a
process of its own, with a limit of 240 seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from bench_cluster import N_GENES, N_PANEL, training_cells, write_atlas
from timing import QUICK, columns, heading, line

from optirank_lab.baselines.peers import PEERS_FOLDER, python_of

CELLS = 4_000 if QUICK else 100_000
LIMIT = 240  # seconds

_LOOP = """
import sys
import anndata
import numpy as np
import optirank

query, training, out = sys.argv[1:]
cells = anndata.read_h5ad(training)
model = optirank.PanelClassifier({n_genes}).fit(cells.to_df(), cells.obs["type"])
atlas = anndata.read_h5ad(query, backed="r")
atlas_genes = {{gene: place for place, gene in enumerate(atlas.var_names)}}
columns = [atlas_genes[gene] for gene in cells.var_names]
labels = []
for start in range(0, atlas.n_obs, 1000):
    block = atlas.X[start : start + 1000]
    labels.append(model.predict(block[:, columns]))
np.savetxt(out, np.concatenate(labels), fmt="%s")
"""

_CELLTYPIST = """
import os, sys
query, training, out = sys.argv[1:]
os.environ["CELLTYPIST_FOLDER"] = os.path.dirname(out)
import anndata
import celltypist
import scanpy

cells = anndata.read_h5ad(training)
scanpy.pp.normalize_total(cells, target_sum=1e4)
scanpy.pp.log1p(cells)
model = celltypist.train(cells, labels="type", check_expression=False)
atlas = anndata.read_h5ad(query)
scanpy.pp.normalize_total(atlas, target_sum=1e4)
scanpy.pp.log1p(atlas)
found = celltypist.annotate(atlas, model=model)
found.predicted_labels.to_csv(out)
"""


def write_files(folder: Path, n_cells: int) -> None:
    """The cells to label, and those to train on."""
    import anndata

    write_atlas(folder / "atlas.zarr", n_cells)
    atlas = anndata.read_zarr(folder / "atlas.zarr")
    atlas.write_h5ad(folder / "atlas.h5ad")
    X, genes, types = training_cells()
    cells = anndata.AnnData(X)
    cells.var_names = genes.astype(str)
    cells.obs["type"] = types
    cells.write_h5ad(folder / "training.h5ad")


def run_limited(command: list[str]) -> tuple[float, float, str]:
    """Seconds, largest memory in MB, and what went wrong."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    watched = psutil.Process(process.pid)
    memory = 0.0
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()))
    reader.start()
    problem = ""
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            memory = max(memory, watched.memory_info().rss / 1e6)
        if time.perf_counter() - start > LIMIT:
            process.kill()
            problem = f"stopped at {LIMIT} s"
        time.sleep(0.05)
    reader.join()
    if not problem and process.returncode:
        problem = errors[-1].strip() if errors else f"status {process.returncode}"
    return time.perf_counter() - start, memory, problem


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--peers", type=Path, default=PEERS_FOLDER)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, args.cells)
        heading(
            f"{args.cells:,} cells x {N_GENES} genes in a .h5ad file, with training"
        )
        columns()
        query, training = folder / "atlas.h5ad", folder / "training.h5ad"
        loop = _LOOP.format(n_genes=N_PANEL)
        model = folder / "model.optirank"
        train = ["train", training, "--label", "type", "--genes", N_PANEL, "-o", model]
        predict = ["predict", query, "-m", model, "-o", folder / "labels.csv"]
        files = [str(query), str(training), str(folder / "out.csv")]
        optirank = [sys.executable, "-m", "optirank"]
        tools = {
            "optirank train": [*optirank, *map(str, train)],
            "optirank predict": [*optirank, *map(str, predict)],
            "a loop over blocks": [sys.executable, "-c", loop, *files],
            "CellTypist": [
                str(python_of(args.peers / "celltypist")),
                "-c",
                _CELLTYPIST,
                *files,
            ],
        }
        for tool, command in tools.items():
            if not Path(command[0]).exists():
                line(tool, "not installed")
                continue
            seconds, memory, problem = run_limited(command)
            line(tool, problem or f"{seconds:.1f} s, {memory:.0f} MB")


if __name__ == "__main__":
    main()
