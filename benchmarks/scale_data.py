"""Counts of many cells in a .h5ad file, written block by block: python scale_data.py CELLS FILE.

20,000 genes, about 6 % of the entries filled. 20 classes in 5 groups: each group has 100 genes at
four times the level, each class 40 more at 2.5 times. Counts are geometric; library sizes and the
gene-wise effects of donors are log-normal. Memory follows the size of a block, not of the file, so
that a million cells (about 9 GB on disk) can be made on a small machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
from numpy.typing import NDArray

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


def draw_block(expected: NDArray, rng: np.random.Generator) -> tuple[NDArray, NDArray, NDArray]:
    """Geometric counts with these means as values, columns and numbers of entries per row."""
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
        [np.exp(np.random.default_rng(1000 + one).normal(0, 0.35, N_GENES)) for one in donors]
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
        group.attrs["encoding-type"], group.attrs["encoding-version"] = "csr_matrix", "0.1.0"
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


def main() -> None:
    """Read the command line and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--donors", default="0,1,2", help="such as 0,1,2 to train on, 9 to test")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    donors = [int(one) for one in arguments.donors.split(",")]
    write_cells(arguments.file, arguments.cells, donors, arguments.seed)


if __name__ == "__main__":
    main()
