"""Files of 10x (.h5 of version 2 or 3, and folders with matrix.mtx), and .loom files: a
matrix of genes by cells in HDF5, with attributes of both.
"""

from __future__ import annotations

import contextlib
from collections import UserDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
from anndata import AnnData
from scipy.sparse import csr_matrix

from optirank._util.names import some
from optirank.io.data import DataError, make_profiles, readable
from optirank.io.formats import (
    Format,
    ReadOptions,
    check_matrix,
    check_sizes,
    open_hdf5,
    open_sparse,
)
from optirank.io.genes import GENE_EXPRESSION
from optirank.io.objects import layer_of
from optirank.io.table_files import open_text


@contextlib.contextmanager
def _open_folder(folder: Path, options: ReadOptions) -> Iterator[AnnData]:
    """Read matrix.mtx, features.tsv (or genes.tsv) and barcodes.tsv, plain or
    gzipped.
    """
    parts = {
        "matrix.mtx": _find_part(folder, "matrix.mtx"),
        "features.tsv": _find_part(folder, "features.tsv", "genes.tsv"),
        "barcodes.tsv": _find_part(folder, "barcodes.tsv"),
    }
    missing = [name for name, path in parts.items() if path is None]
    if missing:
        raise DataError(
            f"{folder} is not a 10x folder: it has no {some(missing)} (plain or .gz)"
        )
    matrix_file, features_file, barcodes_file = filter(None, parts.values())
    features = _fields(features_file)
    barcodes = [fields[0] for fields in _fields(barcodes_file)]
    with readable(matrix_file):
        matrix = _read_matrix(matrix_file, (len(features), len(barcodes)))
    var = _features(
        [fields[0] for fields in features],
        [fields[min(1, len(fields) - 1)] for fields in features],
        [fields[2] if len(fields) > 2 else GENE_EXPRESSION for fields in features],
    )
    obs = pd.DataFrame(index=pd.Index(barcodes))
    yield make_profiles(matrix, obs, var, str(folder))


def _find_part(folder: Path, *stems: str) -> Path | None:
    """The first file of the folder named as one of ``stems``, plain or gzipped."""
    names = [f"{stem}{end}" for stem in stems for end in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _fields(path: Path) -> list[list[str]]:
    with readable(path), open_text(path) as file:
        return [line.rstrip("\r\n").split("\t") for line in file if line.strip()]


def _features(
    ids: Sequence[str], names: Sequence[str], types: Sequence[str]
) -> pd.DataFrame:
    columns = {"id": ids, "name": names, "feature_types": types}
    return pd.DataFrame(columns, index=pd.Index(names, dtype=str))


def _read_matrix(path: Path, shape: tuple[int, int]) -> csr_matrix:
    """Read a sparse matrix of genes by cells, transposed; sizes are checked first.

    scipy's ``mmread`` ends the process on some damaged files, so pandas reads the
    entries.
    """
    from scipy.io import mminfo

    n_rows, n_columns, n_entries, form, field, symmetry = mminfo(str(path))
    if (n_rows, n_columns) != shape:
        raise DataError(
            f"{path} holds {n_rows} genes x {n_columns} cells, but the other files "
            f"name {shape[0]} genes and {shape[1]} cells"
        )
    if form != "coordinate" or symmetry != "general" or n_entries > n_rows * n_columns:
        raise DataError(
            f"{path} is no general sparse matrix, or says it has {n_entries} entries, "
            "more than its places"
        )
    kinds: dict[int, Any] = {0: np.int64, 1: np.int64}
    if field != "pattern":
        kinds[2] = np.int64 if field == "integer" else np.float64
    with open_text(path) as file:
        while file.readline().startswith("%"):  # up to the line with the sizes
            pass
        options: dict[str, Any] = {"names": list(kinds), "dtype": kinds}
        entries = pd.read_csv(file, sep=r"\s+", header=None, **options)
    rows = entries[0].to_numpy() - 1
    columns = entries[1].to_numpy() - 1
    if len(entries) != n_entries:
        raise ValueError(f"it says it has {n_entries} entries and has {len(entries)}")
    if n_entries and (min(rows.min(), columns.min()) < 0 or not (rows < n_rows).all()):
        raise ValueError(f"it has entries outside of its {n_rows} x {n_columns} places")
    values = entries[2].to_numpy() if 2 in entries else np.ones(n_entries)
    return csr_matrix((values, (columns, rows)), shape=(n_columns, n_rows))


@contextlib.contextmanager
def _open_h5(path: Path, options: ReadOptions) -> Iterator[AnnData]:
    with open_hdf5(path) as file:
        groups = [
            key for key in file if hasattr(file[key], "keys") and "indptr" in file[key]
        ]
        if "X" in file or not groups:
            hint = ": it looks like AnnData, use format='h5ad'" if "X" in file else ""
            raise DataError(
                f"{path} is not a 10x file: it has no group with a matrix{hint}"
            )
        if len(groups) > 1:
            raise DataError(
                f"{path} holds several genomes, {some(groups)}: split it first"
            )
        group = file[groups[0]]
        check_sizes(group, path)
        is_new = "features" in group
        ids = _texts(group, "features/id" if is_new else "genes")
        names = _texts(group, "features/name" if is_new else "gene_names")
        types = [GENE_EXPRESSION] * len(ids)
        if "features/feature_type" in group:
            types = _texts(group, "features/feature_type")
        obs = pd.DataFrame(index=pd.Index(_texts(group, "barcodes")))
        shape = len(obs), len(ids)
        stored = open_sparse(_described(group, shape), path, shape)
        yield make_profiles(stored, obs, _features(ids, names, types), str(path))


def _texts(group: Any, key: str) -> list[str]:
    return list(group[key].asstr("utf-8")[:])


def _described(group: Any, shape: tuple[int, int]) -> Any:
    """The group of a matrix of 10x with the attributes that anndata asks for.

    10x stores the arrays of a CSR matrix of cells by genes, without them.
    """

    class Described(h5py.Group):
        attrs: Any = UserDict(
            {
                "encoding-type": "csr_matrix",
                "encoding-version": "0.1.0",
                "shape": shape,
            }
        )

    return Described(group.id)


TENX_H5 = Format("10x_h5", (".h5",), _open_h5)
TENX_FOLDER = Format(
    "10x_mtx",
    (),
    _open_folder,
    is_folder=lambda folder: _find_part(folder, "matrix.mtx") is not None,
)


# A gene costs one request to the file: with more than this share of them chosen, all
# are read instead
_MANY = 0.25

# Attributes that hold names: of loompy, of scanpy, of older files
_GENES = ("Gene", "var_names", "gene_names", "GeneName", "Accession")
_CELLS = ("CellID", "obs_names", "cell_names", "Cell")


@contextlib.contextmanager
def _open_loom(path: Path, options: ReadOptions) -> Iterator[AnnData]:
    with open_hdf5(path) as file:
        needed = ("matrix", "row_attrs", "col_attrs")
        missing = [key for key in needed if key not in file]
        if missing:
            raise DataError(
                f"{path} is not a .loom file: it has no {' and no '.join(missing)}"
            )
        matrix = file["matrix"]
        if options.layer is not None:
            matrix = layer_of(file.get("layers", {}), options.layer, path)
        check_matrix(matrix, path, "its matrix")
        n_genes, n_cells = matrix.shape
        var = _attributes(file["row_attrs"], _GENES, n_genes, path)
        obs = _attributes(file["col_attrs"], _CELLS, n_cells, path)
        yield make_profiles(GenesBySamples(matrix), obs, var, str(path))


def _attributes(
    group: Any, name_keys: tuple[str, ...], count: int, path: Path
) -> pd.DataFrame:
    """The attributes of genes or cells; their index is the one that holds names."""
    check_sizes(group, path)
    columns = {}
    for key, values in group.items():
        if values.shape == (count,):
            is_text = values.dtype.kind == "O"
            columns[str(key)] = values.asstr()[:] if is_text else values[:]
    named_by = next((key for key in name_keys if key in columns), None)
    if named_by is None:
        raise DataError(
            f"{path}: {group.name} has none of {some(name_keys)}: there are "
            f"{some(columns)}; rename the attribute that holds the names"
        )
    texts = [
        name.decode("utf-8") if isinstance(name, bytes) else str(name)
        for name in columns[named_by]
    ]
    return pd.DataFrame(columns, index=pd.Index(texts, dtype=str))


class GenesBySamples:
    """The array of a .loom file, read as samples by genes."""

    streams = True  # some samples can be read without the others

    def __init__(self, values: Any) -> None:
        self._values = values
        self.shape = values.shape[::-1]

    def __getitem__(self, samples: slice) -> np.ndarray:
        """These samples."""
        return self._values[:, samples].T

    def get_orthogonal_selection(
        self, selection: tuple[slice, np.ndarray]
    ) -> np.ndarray:
        """Some samples and genes, as of an array of zarr; few genes are read alone."""
        samples, columns = selection
        if len(columns) > _MANY * len(self._values):
            return self._values[:, samples][columns].T
        shape = len(columns), samples.stop - samples.start
        chosen = np.empty(shape, self._values.dtype)
        for place, gene in enumerate(columns):
            chosen[place] = self._values[int(gene), samples]
        return chosen.T


LOOM = Format("loom", (".loom",), _open_loom, ("layer",))
