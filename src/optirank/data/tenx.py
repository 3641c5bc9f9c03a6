"""Folders of 10x: matrix.mtx, features.tsv (or genes.tsv) and barcodes.tsv, plain or
gzipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.io import mminfo
from scipy.sparse import csr_matrix

from optirank._util.names import some
from optirank.data.errors import DataError, readable
from optirank.data.features import GENE_EXPRESSION, gene_profiles
from optirank.data.profiles import Profiles
from optirank.data.stores import tenx_features
from optirank.data.tables import open_text


def profiles_of_folder(
    folder: Path, gene_column: str | None, known_genes: Sequence[str]
) -> Profiles:
    """The profiles of a folder; its matrix is read."""
    parts = {
        "matrix.mtx": find_part(folder, "matrix.mtx"),
        "features.tsv": find_part(folder, "features.tsv", "genes.tsv"),
        "barcodes.tsv": find_part(folder, "barcodes.tsv"),
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
        X = _read_matrix(matrix_file, (len(features), len(barcodes)))
    var = tenx_features(
        [fields[0] for fields in features],
        [fields[min(1, len(fields) - 1)] for fields in features],
        [fields[2] if len(fields) > 2 else GENE_EXPRESSION for fields in features],
    )
    obs = pd.DataFrame(index=pd.Index(barcodes))
    return gene_profiles(X, obs, var, str(folder), gene_column, known_genes)


def find_part(folder: Path, *stems: str) -> Path | None:
    """The first file of the folder named as one of ``stems``, plain or gzipped."""
    names = [f"{stem}{end}" for stem in stems for end in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _fields(path: Path) -> list[list[str]]:
    with readable(path), open_text(path) as file:
        return [line.rstrip("\r\n").split("\t") for line in file if line.strip()]


def _read_matrix(path: Path, shape: tuple[int, int]) -> csr_matrix:
    """Read a sparse matrix of genes by cells, transposed; sizes are checked first.

    scipy's ``mmread`` ends the process on some damaged files, so pandas reads the
    entries.
    """
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
