"""10x Genomics output: the folder with matrix.mtx, and the .h5 file."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any

import numpy as np

from optirank._util.names import some
from optirank.datasets.anndata_files import Parts, check_sizes, open_hdf5
from optirank.datasets.errors import DataError, readable
from optirank.datasets.stored import CompressedRows, Sliceable
from optirank.datasets.tables import open_text

logger = logging.getLogger("optirank.datasets")

_EXPRESSION = "Gene Expression"


def find_part(folder: Path, *stems: str) -> Path | None:
    """Return the first file of the folder named as one of ``stems``, plain or gzipped."""
    names = [f"{stem}{end}" for stem in stems for end in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_tenx_folder(folder: Path, gene_column: str | None) -> Parts:
    """Read matrix.mtx, features.tsv (or genes.tsv) and barcodes.tsv, plain or gzipped."""
    import pandas as pd

    wanted = {
        "matrix.mtx": find_part(folder, "matrix.mtx"),
        "features.tsv": find_part(folder, "features.tsv", "genes.tsv"),
        "barcodes.tsv": find_part(folder, "barcodes.tsv"),
    }
    missing = [name for name, found in wanted.items() if found is None]
    if missing:
        raise DataError(f"{folder} is not a 10x folder: it has no {some(missing)} (plain or .gz)")
    matrix_file, features_file, barcodes_file = wanted.values()
    features = [line.split("\t") for line in _lines(features_file)]
    barcodes = [line.split("\t")[0] for line in _lines(barcodes_file)]
    with readable(matrix_file):
        matrix = _read_matrix(matrix_file, (len(features), len(barcodes)))
    table = {
        "id": [fields[0] for fields in features],
        "name": [fields[min(1, len(fields) - 1)] for fields in features],
    }
    kinds = [fields[2] if len(fields) > 2 else _EXPRESSION for fields in features]
    kept, names, others = _expressed(table, np.array(kinds), gene_column, folder)
    if kept is not None:
        matrix = matrix[:, kept]
    return Sliceable(matrix), names, pd.DataFrame(index=pd.Index(barcodes, dtype=str)), others


def open_tenx_h5(path: Path, gene_column: str | None) -> contextlib.AbstractContextManager[Parts]:
    """Open a 10x .h5 file (version 2 or 3); its matrix stays on disk and is read by cells."""
    return open_hdf5(path, _h5_parts, gene_column)


def _read_matrix(path: Path, shape: tuple[int, int]) -> Any:
    """Read a sparse matrix of genes by cells, transposed; sizes are checked before entries.

    scipy's ``mmread`` ends the process on some damaged files, so the entries are read by pandas.
    """
    import pandas as pd
    from scipy.io import mminfo
    from scipy.sparse import csr_matrix

    n_rows, n_columns, n_entries, form, field, symmetry = mminfo(str(path))
    if (n_rows, n_columns) != shape:
        raise DataError(
            f"{path} holds {n_rows} genes x {n_columns} cells, but the other files name {shape[0]} "
            f"genes and {shape[1]} cells"
        )
    if form != "coordinate" or symmetry != "general" or n_entries > n_rows * n_columns:
        raise DataError(
            f"{path} is no general sparse matrix, or says it has {n_entries} entries, more than "
            "its places"
        )
    with open_text(path) as file:
        while file.readline().startswith("%"):  # up to the line with the sizes
            pass
        kinds = {0: np.int64, 1: np.int64, 2: np.int64 if field == "integer" else np.float64}
        kinds = dict(list(kinds.items())[: 2 if field == "pattern" else 3])
        entries = pd.read_csv(file, sep=r"\s+", header=None, names=list(kinds), dtype=kinds)
    rows, columns = entries[0].to_numpy() - 1, entries[1].to_numpy() - 1
    if len(entries) != n_entries:
        raise ValueError(f"it says it has {n_entries} entries and has {len(entries)}")
    if n_entries and (min(rows.min(), columns.min()) < 0 or not (rows < n_rows).all()):
        raise ValueError(f"it has entries outside of its {n_rows} x {n_columns} places")
    values = entries[2].to_numpy() if 2 in entries else np.ones(n_entries)
    return csr_matrix((values, (columns, rows)), shape=(n_columns, n_rows))


def _h5_parts(file: Any, path: Path, gene_column: str | None) -> Parts:
    import pandas as pd

    groups = [key for key in file if hasattr(file[key], "keys") and "indptr" in file[key]]
    if "X" in file or not groups:
        hint = ": it looks like AnnData, use format='h5ad'" if "X" in file else ""
        raise DataError(f"{path} is not a 10x file: it has no group with a matrix{hint}")
    if len(groups) > 1:
        raise DataError(f"{path} holds several genomes, {some(groups)}: split it first")
    group = file[groups[0]]
    check_sizes(group, path)
    if "features" in group:
        features = group["features"]
        table = {"id": _text(features["id"]), "name": _text(features["name"])}
        kinds = np.array(_text(features["feature_type"])) if "feature_type" in features else None
    else:
        table, kinds = {"id": _text(group["genes"]), "name": _text(group["gene_names"])}, None
    kept, names, others = _expressed(table, kinds, gene_column, path)
    barcodes = _text(group["barcodes"])
    shape = (len(barcodes), len(table["id"]))
    matrix = CompressedRows(group["data"], group["indices"], group["indptr"], shape, kept)
    return matrix, names, pd.DataFrame(index=pd.Index(barcodes, dtype=str)), others


def _expressed(
    table: dict[str, list[str]], kinds: np.ndarray | None, gene_column: str | None, path: Path
) -> tuple[np.ndarray | None, np.ndarray, dict[str, np.ndarray]]:
    """Return the positions of genes (None: all are), their names and their other names."""
    column = gene_column or "name"
    if column not in table:
        raise DataError(f"{path} has no gene column {column!r}: use one of {some(table)}")
    named = {key: np.array(names, dtype=object) for key, names in table.items()}
    names = named.pop(column)
    if kinds is None or (kinds == _EXPRESSION).all():
        return None, names, named
    kept = np.flatnonzero(kinds == _EXPRESSION)
    logger.info("%s: %d features that are not genes are left out", path, len(kinds) - len(kept))
    return kept, names[kept], {key: others[kept] for key, others in named.items()}


def _lines(path: Path) -> list[str]:
    with readable(path), open_text(path) as file:
        return [line.rstrip("\r\n") for line in file if line.strip()]


def _text(array: Any) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for value in array[:]]
