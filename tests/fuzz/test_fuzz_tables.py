"""Damaged tables, 10x folders, HDF5 files and zarr folders: read or refused
in words.
"""

from __future__ import annotations

import logging
import shutil
import warnings

import numpy as np
import pytest
from fuzzing import ROUNDS, fuzz
from mutations import mutated

from expression_files import (
    make,
    read_expression,
    to_anndata,
    write_table,
    write_tenx_folder,
    write_tenx_h5,
)
from optirank.datasets import DataError

pytestmark = pytest.mark.slow
COUNTS = {
    "csv": 5000,
    "csv.gz": 1000,
    "10x": 5000,
    "h5ad": 2000,
    "h5": 1000,
    "zarr": 300,
}


@pytest.fixture
def data():
    return make(np.random.default_rng(0).poisson(1.0, (30, 20)).astype(np.float32))


def written(kind: str, data, folder):
    """The path of an intact file, those of its parts that are damaged, and options to
    read it.
    """
    options = {}
    if kind.startswith("csv"):
        path = write_table(data, folder / f"data.{kind}")
        options = {"genes_in": "columns", "label": "cell_type"}
    elif kind == "10x":
        path = write_tenx_folder(data, folder / "tenx", version=2)
    elif kind == "h5":
        path = write_tenx_h5(data, folder / "data.h5")
    elif kind == "h5ad":
        path = folder / "data.h5ad"
        to_anndata(data).write_h5ad(path)
    else:
        path = folder / "data.zarr"
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of what anndata will do when writing some day
            to_anndata(data).write_zarr(path)
    parts = (
        sorted(one for one in path.rglob("*") if one.is_file())
        if path.is_dir()
        else [path]
    )
    return path, parts, options


@pytest.mark.parametrize("kind", COUNTS)
def test_damaged_files_are_read_or_refused(kind, data, tmp_path):
    path, parts, options = written(kind, data, tmp_path)
    good = {part: part.read_bytes() for part in parts}
    read_expression(path, **options)  # all that is imported is imported

    def case(rng) -> str:
        part = rng.choice(parts)
        part.write_bytes(mutated(good[part], rng))
        logging.disable()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read_expression(path, **options)
            return "read"
        except (DataError, FileNotFoundError):
            return "refused"
        finally:
            if path.is_dir() and not part.exists():
                shutil.rmtree(path, ignore_errors=True)
            part.write_bytes(good[part])

    hdf5 = kind in ("h5ad", "h5")  # its library may crash, hang, or allocate up to 4 GB
    for round_ in range(ROUNDS):
        memory = 5000.0 if hdf5 or kind == "zarr" else 300.0
        outcome = fuzz(
            case, COUNTS[kind], seed=round_, seconds=20.0, memory=memory, may_crash=hdf5
        )
        assert not outcome.bad, outcome
        assert outcome.results["refused"] > COUNTS[kind] // 50
        assert outcome.results["crashed"] <= COUNTS[kind] // 100
        assert sum(outcome.results.values()) == COUNTS[kind]
