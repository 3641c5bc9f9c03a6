""".loom files: a matrix of genes by cells in HDF5, with attributes of both."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.names import some
from optirank.io.choice import layer_of
from optirank.io.data import DataError, make_profiles
from optirank.io.formats import (
    Format,
    ReadOptions,
    check_matrix,
    check_sizes,
    open_hdf5,
)

if TYPE_CHECKING:
    from anndata import AnnData

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
        var = _attributes(file["row_attrs"], _GENES, int(n_genes), path)
        obs = _attributes(file["col_attrs"], _CELLS, int(n_cells), path)
        yield make_profiles(GenesBySamples(matrix), obs, var, str(path))


LOOM = Format("loom", (".loom",), _open_loom, ("layer",))


@dataclass(frozen=True)
class GenesBySamples:
    """The array of a .loom file, read as samples by genes."""

    values: Any
    columns: np.ndarray | None = None
    streams = True  # some samples can be read without the others

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        n_genes, n_samples = self.values.shape
        return n_samples, n_genes

    def take_genes(self, columns: np.ndarray | None) -> GenesBySamples:
        """Choose genes (None: all)."""
        return GenesBySamples(self.values, columns)

    def __getitem__(self, samples: slice) -> np.ndarray:
        """These samples; few genes are read alone."""
        if self.columns is None:
            return self.values[:, samples].T
        if len(self.columns) > _MANY * self.values.shape[0]:
            return self.values[:, samples][self.columns].T
        genes = [self.values[int(gene), samples] for gene in self.columns]
        if not genes:
            return np.zeros((samples.stop - samples.start, 0), self.values.dtype)
        return np.stack(genes, axis=1)


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
    texts = [
        name.decode("utf-8") if isinstance(name, bytes) else str(name)
        for name in columns[named_by]
    ]
    return pd.DataFrame(columns, index=pd.Index(texts, dtype=str))
