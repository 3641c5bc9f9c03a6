"""Expression in tables: genes in rows or columns, annotations beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.io import table_checks
from optirank.io.data import DataError, duplicates
from optirank.io.stored import RowReader, Sliceable, StoredMatrix
from optirank.io.table_files import ParquetTable, Table, TextTable, open_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TableOptions:
    """How a table is read, see `optirank.io.reading.read_expression`."""

    genes_in: str | None
    annotations: Sequence[str] = ()
    gene_column: str | None = None
    drop_missing: bool = False
    any_scale: bool = False
    known_genes: Sequence[str] = ()


def read_table(
    path: Path, options: TableOptions
) -> tuple[StoredMatrix, np.ndarray, pd.DataFrame]:
    """Matrix, names of genes and annotations of samples of a table of numbers.

    With ``genes_in="columns"`` a line is a sample and ``annotations`` are the columns
    that describe samples. With ``genes_in="rows"`` a line is a gene and ``annotations``
    are columns that describe genes; they are left out, save ``gene_column``, which then
    names the genes. Values are parsed and checked when they are read.
    """
    table = open_table(path)
    _check_orientation(table, options.genes_in)
    described = [*options.annotations]
    if options.gene_column:
        described.append(options.gene_column)
    _check_described(described, table)
    if options.gene_column and options.genes_in == "columns":
        raise DataError(
            f"{path}: the gene column {options.gene_column!r} is for tables with genes "
            "in rows"
        )
    named = set(described)
    beside = [k for k, name in enumerate(table.header) if k and name in named]
    skipped = {0, *beside}
    inside = [k for k in range(len(table.header)) if k not in skipped]
    frame = table.read([0, *beside])
    if not inside or frame.empty:
        raise DataError(
            f"{path} holds no numbers: it has {len(frame)} lines, {len(inside)} columns"
        )
    if options.genes_in == "rows":
        matrix, obs = _genes_in_rows(table, frame, inside, options)
    else:
        matrix, obs = _genes_in_columns(table, frame, inside, beside, options)
    if options.drop_missing:
        matrix = matrix.complete()
    if not options.any_scale:
        table_checks.warn_of_dates(matrix.genes, path)
    return matrix, matrix.genes, obs


def _genes_in_rows(
    table: Table, frame: pd.DataFrame, inside: list[int], options: TableOptions
) -> tuple[TableMatrix, pd.DataFrame]:
    import pandas as pd

    named_by = 0
    if options.gene_column:
        named_by = table.header.index(options.gene_column, 1)
    genes = _stripped(frame[named_by])
    samples = np.array([table.header[k] for k in inside], dtype=object)
    obs = pd.DataFrame(index=pd.Index(samples, dtype=str))
    return TableMatrix(table, inside, genes, samples, options), obs


def _genes_in_columns(
    table: Table,
    frame: pd.DataFrame,
    inside: list[int],
    beside: list[int],
    options: TableOptions,
) -> tuple[TableMatrix, pd.DataFrame]:
    import pandas as pd

    genes = _stripped(table.header[k] for k in inside)
    samples = frame[0].to_numpy(dtype=object)
    annotations = {table.header[k]: frame[k].to_numpy() for k in beside}
    obs = pd.DataFrame(annotations, index=pd.Index(samples))
    return TableMatrix(table, inside, genes, samples, options), obs


def _stripped(names: Any) -> np.ndarray:
    texts = [str(name) for name in names]
    return np.array([text.strip() or text for text in texts], dtype=object)


class TableMatrix:
    """The numbers of a table as samples by genes, parsed and checked when they
    are read.
    """

    def __init__(
        self,
        table: Table,
        inside: list[int],
        genes: np.ndarray,
        samples: np.ndarray,
        options: TableOptions,
        kept: np.ndarray | None = None,
    ) -> None:
        self.genes = genes
        self.samples = samples
        self._table = table
        self._inside = inside
        self._options = options
        self._kept = kept  # positions of the genes that are left, None for all
        self._values: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        return len(self.samples), len(self.genes)

    def reader(self, columns: np.ndarray | None) -> RowReader:
        """Parse and check the genes chosen; all are kept once most of them
        were read.
        """
        if columns is None:
            columns = np.arange(len(self.genes))
        in_rows = self._options.genes_in == "rows"
        if self._values is None and (in_rows or 2 * len(columns) > len(self.genes)):
            self._values = self._parsed(np.arange(len(self.genes)))
        if self._values is None:
            values = self._parsed(columns)
        else:
            values = self._values[:, columns]
        self._check(values, self.genes[columns])
        return Sliceable(values)

    def complete(self) -> TableMatrix:
        """The matrix without the genes that have missing values."""
        values = self._parsed(np.arange(len(self.genes)))
        kept = table_checks.complete_genes(values, self._table.path)
        complete = TableMatrix(
            self._table,
            self._inside,
            self.genes[kept],
            self.samples,
            self._options,
            kept,
        )
        complete._values = values[:, kept]
        return complete

    def _parsed(self, columns: np.ndarray) -> np.ndarray:
        positions = columns if self._kept is None else self._kept[columns]
        table = self._table
        in_rows = self._options.genes_in == "rows"
        chosen = self._inside if in_rows else [self._inside[k] for k in positions]
        frame = table.read([0, *chosen])
        values = table_checks.numbers_of(frame, chosen, table.header, table.path)
        if in_rows:
            values = values[positions].T
        return np.ascontiguousarray(values)

    def _check(self, values: np.ndarray, genes: np.ndarray) -> None:
        path = self._table.path
        options = self._options
        table_checks.refuse_missing(values, genes, self.samples, path)
        if not options.any_scale and values.size:
            table_checks.refuse_clinical(
                values, genes, options.known_genes, path, str(options.genes_in)
            )


def read_gene_names(path: Path, genes_in: str | None) -> list[str]:
    """The names that a table has where its genes are, annotations among them."""
    table = open_table(path)
    _check_orientation(table, genes_in)
    names = table.header[1:] if genes_in == "columns" else table.read([0])[0]
    return _stripped(names).tolist()


def _read_annotations(path: Path, key: str | None) -> pd.DataFrame:
    """A table about samples, as text; their names are in the first column or in
    ``key``.
    """
    import pandas as pd

    if path.suffix.lower() == ".parquet":
        table = ParquetTable.open(path)
    else:
        table = TextTable.open(path, as_text=True)
    header = table.header
    _refuse_repeated(duplicates(header), path)
    if key is not None and key not in header:
        raise DataError(f"{path} has no column {key!r}: there are {some(header, 20)}")
    frame = table.read(list(range(len(header)))).copy()
    position = 0 if key is None else header.index(key)
    names = frame[position]
    repeated = names[names.duplicated()]
    if len(repeated):
        raise DataError(f"{path} names these samples more than once: {some(repeated)}")
    frame.columns = pd.Index(header)
    index = pd.Index(names.to_numpy(dtype=object), dtype=str)
    return frame.drop(columns=header[position]).replace("", np.nan).set_index(index)


def join_annotations(
    obs: pd.DataFrame, paths: Sequence[Path], source: str, key: str | None = None
) -> tuple[pd.DataFrame, np.ndarray]:
    """Annotations joined with tables about samples, and the mask of samples
    they name.
    """
    import pandas as pd

    table = pd.concat([_read_annotations(path, key) for path in paths])
    named = np.asarray(obs.index.isin(table.index))
    if not named.any():
        raise DataError(
            f"{paths[0]} names no sample of {source}: it has {some(table.index, 3)}, "
            f"the data have {some(obs.index, 3)}"
        )
    both = [column for column in table.columns if column in obs.columns]
    return obs.drop(columns=both).join(table), named


def _check_orientation(table: Table, genes_in: str | None) -> None:
    """Refuse a table whose genes are not said to be in rows or in columns."""
    if genes_in not in ("rows", "columns"):
        n_lines = len(table.read([0]))
        raise DataError(
            f"{table.path} is a table of {n_lines} lines and {len(table.header) - 1} "
            "columns: say whether its genes are in 'rows' or in 'columns' (genes_in=, "
            "--genes-in), it is not guessed"
        )


def _check_described(described: Sequence[str], table: Table) -> None:
    """Refuse names of columns that are not there, or there twice."""
    if not described:
        return
    path = table.path
    columns = table.header[1:]
    absent = [name for name in described if name not in columns]
    if absent:
        hint = ""
        if bool(np.isin(table.read([0])[0].to_numpy(dtype=object), absent).any()):
            hint = (
                "; it has such a line: is it transposed? (genes_in='rows', "
                "--genes-in rows)"
            )
        raise DataError(
            f"{path} has no column {some(absent)}: there are {some(columns, 20)}{hint}"
        )
    _refuse_repeated([name for name in duplicates(columns) if name in described], path)


def _refuse_repeated(repeated: list[str], path: Path) -> None:
    if repeated:
        raise DataError(
            f"{path} has several columns called {some(repeated)}: rename or remove them"
        )
