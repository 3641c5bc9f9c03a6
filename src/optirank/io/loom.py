""".loom files: a matrix of genes by cells in HDF5, with attributes of both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from optirank._util.names import some
from optirank.io.data import DataError, readable
from optirank.io.formats import Contents, Format, check_sizes, open_hdf5
from optirank.io.options import ReadOptions
from optirank.io.stored import StoredMatrix, TransposedDense

# Attributes that hold names: of loompy, of scanpy, of older files
_GENES = ("Gene", "var_names", "gene_names", "GeneName", "Accession")
_CELLS = ("CellID", "obs_names", "cell_names", "Cell")


@contextlib.contextmanager
def _open_loom(path: Path, options: ReadOptions) -> Iterator[Contents]:
    with open_hdf5(path) as file:
        with readable(path):
            contents = _contents(file, path, options)
        yield contents


LOOM = Format("loom", (".loom",), _open_loom, ("layer",))


def _contents(file: Any, path: Path, options: ReadOptions) -> Contents:
    missing = [key for key in ("matrix", "row_attrs", "col_attrs") if key not in file]
    if missing:
        raise DataError(
            f"{path} is not a .loom file: it has no {' and no '.join(missing)}"
        )
    matrix = file["matrix"]
    if options.layer is not None:
        layers = file.get("layers", {})
        if options.layer not in layers:
            raise DataError(
                f"{path} has no layer {options.layer!r}: there are {some(list(layers))}"
            )
        matrix = layers[options.layer]
    if len(matrix.shape) != 2 or np.dtype(matrix.dtype).kind not in "fiub":
        raise DataError(
            f"{path}: its matrix has shape {tuple(matrix.shape)} and type "
            f"{matrix.dtype}; it should be a matrix of numbers"
        )
    n_genes, n_cells = matrix.shape
    var = _attributes(file["row_attrs"], _GENES, int(n_genes), path)
    obs = _attributes(file["col_attrs"], _CELLS, int(n_cells), path)
    stored: StoredMatrix = TransposedDense(matrix)
    return Contents(stored, var, obs)


def _attributes(
    group: Any, name_keys: tuple[str, ...], count: int, path: Path
) -> pd.DataFrame:
    """The attributes of genes or cells; their index is the one that holds names."""
    check_sizes(group, path)
    columns = {}
    for key in group:
        values = group[key]
        if values.shape != (count,):
            continue
        columns[str(key)] = values.asstr()[:] if values.dtype.kind == "O" else values[:]
    named_by = next((key for key in name_keys if key in columns), None)
    if named_by is None:
        raise DataError(
            f"{path}: {group.name} has none of {some(name_keys)}: there are "
            f"{some(columns)}; rename the attribute that holds the names"
        )
    texts = [_text(name) for name in columns[named_by]]
    return pd.DataFrame(columns, index=pd.Index(texts, dtype=str))


def _text(value: object) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
