"""Blocks from a large file: memory follows the block, not the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from optirank.data.opening import open_profiles
from profiles import values

GENES, PER_CELL, STEP = 20_000, 1_000, 1_000

CODE = """
import sys
import numpy as np
from optirank.data.opening import open_profiles
from optirank.data.passes import read_blocks
genes = np.arange(0, 20_000, 50)
total = cells = 0.0
with open_profiles(sys.argv[1]) as profiles:
    for block in read_blocks(profiles, genes, size=512):
        total += float(block.sum())
        cells += block.shape[0]
# VmHWM starts anew with a program; ru_maxrss would count the parent that started it
lines = open("/proc/self/status").read().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(peak / 1024, total / cells)
"""


def write_large(path: Path, n_cells: int, storage: str) -> None:
    """Write a file of random cells, each with PER_CELL genes."""
    rng = np.random.default_rng(0)
    columns = np.sort(
        rng.random((STEP, GENES)).argpartition(PER_CELL)[:, :PER_CELL]
    ).astype("i4")
    indices = np.tile(columns.ravel(), n_cells // STEP)
    pointers = np.arange(0, indices.size + 1, PER_CELL)
    X = sparse.csr_matrix(
        (np.ones(indices.size, "f4"), indices, pointers), (n_cells, GENES)
    )
    var = pd.DataFrame(index=[f"G{j}" for j in range(GENES)])
    anndata.AnnData(X.toarray() if storage == "dense" else X, var=var).write_h5ad(path)


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc").is_dir(), reason="reads the peak memory from /proc"
)
@pytest.mark.parametrize(
    ("storage", "small", "large"), [("csr", 2_000, 30_000), ("dense", 1_000, 4_000)]
)
def test_memory_stays_flat(storage, small, large, tmp_path):
    peaks, means = [], []
    for n_cells in (small, large):
        path = tmp_path / f"{n_cells}.h5ad"
        write_large(path, n_cells, storage)
        done = subprocess.run(
            [sys.executable, "-c", CODE, str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
        peak, mean = map(float, done.stdout.split())
        peaks.append(peak)
        means.append(mean)
        path.unlink()
    assert means[0] == pytest.approx(means[1])
    assert peaks[1] - peaks[0] < 40  # the large file holds more than 200 MB more
    assert peaks[1] < 500


@pytest.mark.parametrize("form", ["csr", "csc", "dense"])
def test_chosen_rows_are_read_alone(tmp_path, form):
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.5, (200, 7)).astype(np.float32)
    X = dense if form == "dense" else sparse.csr_matrix(dense).asformat(form)
    anndata.AnnData(X).write_h5ad(tmp_path / "a.h5ad")
    rows = np.sort(rng.permutation(200)[:23])
    with open_profiles(tmp_path / "a.h5ad") as profiles:
        found = values(profiles, ["4", "1"], 5, rows)
    np.testing.assert_array_equal(found, dense[np.ix_(rows, [4, 1])])
