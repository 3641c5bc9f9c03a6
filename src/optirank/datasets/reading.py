"""Read expression data from any supported file: all of it, some genes, some rows, or in blocks."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.names import some
from optirank.datasets import anndata_files, tables, tenx
from optirank.datasets.data import ExpressionData, check_column, duplicates, gene_positions
from optirank.datasets.errors import DataError, readable
from optirank.datasets.stored import StoredMatrix, take_rows

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("optirank.datasets")

FORMATS = ("h5ad", "zarr", "10x_h5", "10x_mtx", "table")
_TABLES = (".csv", ".tsv", ".txt", ".tab")
_R_OBJECT = "in R: library(zellkonverter); writeH5AD(OBJECT, {new!r})"
_EXCEL = "in Python: import pandas; pandas.read_excel({name!r}).to_csv({csv!r}, index=False)"
_OTHERS = {
    ".rds": "in R: library(Seurat); library(zellkonverter); "
    "writeH5AD(as.SingleCellExperiment(readRDS({name!r})), {new!r})",
    ".rda": _R_OBJECT,
    ".rdata": _R_OBJECT,
    ".h5seurat": "in R: SeuratDisk::Convert({name!r}, dest = 'h5ad')",
    ".loom": "in Python: import anndata; anndata.io.read_loom({name!r}).write_h5ad({new!r})",
    ".xlsx": _EXCEL,
    ".xls": _EXCEL,
}  # files that are not read, and what converts them


@dataclass(frozen=True)
class OpenExpression:
    """An opened file: names and annotations in memory, the matrix where it is stored.

    Formats that can be read in parts (h5ad, zarr, 10x h5) are; others are in memory already.
    """

    matrix: StoredMatrix
    gene_names: np.ndarray
    obs: pd.DataFrame
    path: Path | str
    other_gene_names: dict[str, np.ndarray] = field(default_factory=dict)
    """What ``gene_column`` could name instead, by column."""

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.matrix.shape[0]

    @property
    def n_genes(self) -> int:
        """Number of genes."""
        return len(self.gene_names)

    @property
    def source(self) -> str:
        """Where the data come from; error messages name it."""
        return str(self.path)

    @property
    def sample_names(self) -> np.ndarray:
        """Names of the samples."""
        return self.obs.index.to_numpy(dtype=object)

    def read(
        self,
        genes: Sequence[str] | np.ndarray | None = None,
        rows: tuple[int, int] | None = None,
    ) -> ExpressionData:
        """Read these genes (names or positions, in this order; None: all) of these rows."""
        start, stop = (0, self.n_samples) if rows is None else rows
        if not 0 <= start <= stop <= self.n_samples:
            raise DataError(f"{self.path}: rows={rows} of {self.n_samples} samples")
        return next(self._blocks(genes, np.arange(start, stop), max(stop - start, 1)))

    def blocks(
        self,
        genes: Sequence[str] | np.ndarray | None = None,
        block_size: int = 1024,
        rows: np.ndarray | None = None,
    ) -> Iterator[ExpressionData]:
        """Read all samples, or those at some sorted positions, in blocks.

        Memory follows the size of a block. Rows that are not asked for are not kept, and long runs
        of them are not read.
        """
        if block_size < 1:
            raise ValueError(f"block_size={block_size}: use at least 1")
        rows = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        if len(rows):
            yield from self._blocks(genes, rows, block_size)

    def _blocks(self, genes, rows: np.ndarray, size: int) -> Iterator[ExpressionData]:
        columns = None if genes is None else gene_positions(self.gene_names, genes, str(self.path))
        names = self.gene_names if columns is None else self.gene_names[columns]
        with readable(self.path):
            reader = self.matrix.reader(columns)
        for first in range(0, max(len(rows), 1), size):
            here = rows[first : first + size]
            with readable(self.path):
                block = take_rows(reader, here)
            obs = self.obs.iloc[here]
            samples = obs.index.to_numpy(dtype=object)
            yield ExpressionData(block, names, samples, obs, str(self.path))


def guess_format(path: Path) -> str:
    """Return the format a file's name or a folder's content says."""
    if path.is_dir():
        if tenx.find_part(path, "matrix.mtx"):
            return "10x_mtx"
        if path.suffix == ".zarr" or any((path / key).exists() for key in (".zgroup", "zarr.json")):
            return "zarr"
        raise DataError(f"{path} is a folder without matrix.mtx (10x) and not a zarr: name a file")
    suffixes = path.suffixes[-2:]
    if path.suffix == ".h5ad":
        return "h5ad"
    if path.suffix == ".h5":
        return "10x_h5"
    if any(suffix in _TABLES for suffix in suffixes):
        return "table"
    if path.suffix.lower() in _OTHERS:
        names = {"name": str(path), "new": f"{path.stem}.h5ad", "csv": f"{path.stem}.csv"}
        remedy = _OTHERS[path.suffix.lower()].format(**names)
        raise DataError(f"{path}: {path.suffix} files are not read: convert it first, {remedy}")
    raise DataError(
        f"{path}: its name does not tell its format (.h5ad, .zarr, .h5, .csv, .tsv, a 10x folder): "
        f"give the format, one of {some(FORMATS)} (format=, --format)"
    )


@contextlib.contextmanager
def open_expression(
    path: str | Path,
    *,
    format: str | None = None,
    label: str | None = None,
    layer: str | None = None,
    gene_column: str | None = None,
    genes_in: str | None = None,
    annotations: Sequence[str] = (),
    samples: str | Path | None = None,
    sep: str | None = None,
    drop_missing: bool = False,
    any_scale: bool = False,
) -> Iterator[OpenExpression]:
    """Open expression data; see `read_expression` for the options."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    kind = format or guess_format(path)
    if kind not in FORMATS:
        raise DataError(f"format={format!r}: use one of {some(FORMATS)}")
    for option, value, kinds in (
        ("layer= (--layer)", layer, ("h5ad", "zarr")),
        ("genes_in= (--genes-in)", genes_in, ("table",)),
        ("annotations= (--annotations)", annotations, ("table",)),
        ("sep=", sep, ("table",)),
        ("drop_missing= (--drop-missing-genes)", drop_missing, ("table",)),
    ):
        if value and kind not in kinds:
            raise DataError(f"{path}: {option} is for {some(kinds)}, this is {kind}")
    with contextlib.ExitStack() as stack:
        if kind == "h5ad":
            parts = stack.enter_context(anndata_files.open_h5ad(path, layer, gene_column))
        elif kind == "zarr":
            parts = stack.enter_context(anndata_files.open_zarr(path, layer, gene_column))
        elif kind == "10x_h5":
            parts = stack.enter_context(tenx.open_tenx_h5(path, gene_column))
        elif kind == "10x_mtx":
            parts = tenx.read_tenx_folder(path, gene_column)
        else:
            beside = list(annotations)
            if label and genes_in == "columns" and not samples and label not in beside:
                beside.append(label)
            parts = tables.read_table(
                path,
                genes_in=genes_in,
                annotations=beside,
                gene_column=gene_column,
                sep=sep,
                drop_missing=drop_missing,
                any_scale=any_scale,
            )
        matrix, names, obs, others = parts
        if samples is not None:
            if not Path(samples).exists():
                raise FileNotFoundError(f"{samples} does not exist")
            obs, named = tables.join_annotations(obs, [Path(samples)], str(path))
            if not named.all():
                logger.warning("%s has no entry for %d samples", samples, (~named).sum())
        if label is not None:
            check_column(obs, label, str(path))
        twice = duplicates(names)
        if twice:
            logger.warning("%s: %d gene names occur twice: %s", path, len(twice), some(twice))
        yield OpenExpression(matrix, names, obs, path, others)


def read_expression(
    path: str | Path,
    *,
    genes: Sequence[str] | np.ndarray | None = None,
    rows: tuple[int, int] | None = None,
    **options,
) -> ExpressionData:
    """Read expression profiles from a file.

    Parameters
    ----------
    path : a .h5ad or .h5 (10x) file, a .zarr or 10x folder, or a .csv/.tsv/.txt table (also .gz)
    genes : names or positions of genes, to read only these, in this order
    rows : (start, stop), to read only these samples
    format : "h5ad", "zarr", "10x_h5", "10x_mtx" or "table", where the name does not tell
    label : a column of the annotations that must be there
    layer : a layer of an AnnData file instead of ``X``
    gene_column : a column of ``var`` instead of its index; "id" instead of the name for 10x
    genes_in : "rows" or "columns"; required for tables
    annotations : columns of a table that hold no expression
    samples : a table about the samples (names first), joined to the annotations
    sep : the separator of a table, where its name does not tell
    drop_missing : leave out the genes of a table that have missing values, instead of refusing it
    any_scale : accept genes of a table that look like clinical columns (age, IHC %)

    Returns
    -------
    ExpressionData
    """
    with open_expression(path, **options) as opened:
        return opened.read(genes, rows)


def is_table(path: Path, format: str | None = None) -> bool:
    """Whether a file is there and is a table."""
    return path.exists() and (format or guess_format(path)) == "table"


def read_gene_names(path: Path, genes_in: str | None = None) -> list[str]:
    """The names of a file's genes; of a table, those of its annotations may be among them."""
    if is_table(path):
        return tables.read_gene_names(path, genes_in)
    with open_expression(path) as opened:
        return [str(name) for name in opened.gene_names]
