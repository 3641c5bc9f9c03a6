"""Expression in tables: genes in rows or columns, annotations beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank._util.scales import inverted
from optirank.io import table_checks
from optirank.io.data import DataError, duplicates
from optirank.io.gene_spelling import plain_gene_names
from optirank.io.stored import RowReader, Sliceable, StoredMatrix
from optirank.io.table_files import ParquetTable, Table, TextTable, open_table
from optirank.io.table_layouts import describes_genes, refuse_transcripts

if TYPE_CHECKING:
    import pandas as pd

# How files with a table end, in lower case; also before .gz
SUFFIXES = (".csv", ".tsv", ".txt", ".tab", ".gct", ".sf", ".results")


@dataclass(frozen=True)
class TableOptions:
    """How a table is read, see `optirank.io.reading.read_expression`."""

    genes_in: str | None
    annotations: Sequence[str] = ()
    gene_column: str | None = None
    drop_missing: bool = False
    any_scale: bool = False
    invert: bool = False
    known_genes: Sequence[str] = ()


def read_table(
    path: Path, options: TableOptions
) -> tuple[StoredMatrix, np.ndarray, pd.DataFrame]:
    """Matrix, names of genes and annotations of samples of a table of numbers.

    With ``genes_in="columns"`` a line is a sample and ``annotations`` are the columns
    that describe samples. With ``genes_in="rows"`` a line is a gene and ``annotations``
    are columns that describe genes; they are left out, save ``gene_column``, which then
    names the genes. A format that says where its genes are needs no ``genes_in``, see
    `optirank.io.table_layouts`. Values are parsed and checked when they are read.
    ``obs.attrs["notes"]`` has a sentence for everything that was left out or changed.
    """
    table = open_table(path)
    options = replace(options, genes_in=_orientation(table, options.genes_in))
    in_rows = options.genes_in == "rows"
    described = [*options.annotations]
    if options.gene_column:
        described.append(options.gene_column)
    _check_described(described, table)
    if options.gene_column and not in_rows:
        raise DataError(
            f"{path}: the gene column {options.gene_column!r} is for tables with genes "
            "in rows"
        )
    about_genes = _about_genes(table, described) if in_rows else []
    named = {*described, *about_genes}
    beside = [k for k, name in enumerate(table.header) if k and name in named]
    empty = _empty_columns(table)
    skipped = {0, *beside, *empty}
    inside = [k for k in range(len(table.header)) if k not in skipped]
    frame = table.read([0, *beside])
    if not inside or frame.empty:
        raise DataError(
            f"{path} holds no numbers: it has {len(frame)} lines, {len(inside)} columns"
        )
    if in_rows:
        matrix, obs, notes = _genes_in_rows(table, frame, inside, beside, options)
        if about_genes:
            notes.append(
                f"columns that are no samples are left out: {some(about_genes)}"
            )
    else:
        matrix, obs, notes = _genes_in_columns(table, frame, inside, beside, options)
    if options.invert:
        notes.append(
            "values are inverted: the lowest of the table is the most expressed"
        )
    if options.drop_missing:
        matrix = matrix.complete()
    if not options.any_scale:
        table_checks.warn_of_dates(matrix.genes, path)
        table_checks.warn_of_probes(
            matrix.genes, options.known_genes, path, table.layout.platform
        )
    obs.attrs["notes"] = notes
    return matrix, matrix.genes, obs


def _about_genes(table: Table, described: Sequence[str]) -> list[str]:
    """Columns that are about genes, or not read, in a table with genes in rows."""
    layout = table.layout
    about = set(table.header[1 : 1 + layout.n_about])
    return [
        name
        for name in table.header[1:]
        if name not in described
        and (
            name in about
            or describes_genes(name)
            or (layout.counted is not None and name != layout.counted)
        )
    ]


def _empty_columns(table: Table) -> list[int]:
    """Columns without name and values, which a separator at the end of lines makes."""
    unnamed = [k for k, name in enumerate(table.header) if k and not name.strip()]
    if not unnamed:
        return []
    values = table.read([0, *unnamed]).isin(["", None, np.nan]).to_numpy()[:, 1:]
    return [k for place, k in enumerate(unnamed) if values[:, place].all()]


def _genes_in_rows(
    table: Table,
    frame: pd.DataFrame,
    inside: list[int],
    beside: list[int],
    options: TableOptions,
) -> tuple[TableMatrix, pd.DataFrame, list[str]]:
    import pandas as pd

    if options.gene_column:
        named_by = table.header.index(options.gene_column, 1)
    else:
        named_by = _named_by(frame, beside, options.known_genes)
    names = _stripped(frame[named_by])
    refuse_transcripts(names, table.layout, table.path)
    genes, notes = plain_gene_names(names)
    if named_by and not options.gene_column:
        notes.append(
            f"genes are named by the column {table.header[named_by]!r}, which has more "
            "of the model's genes than the first"
        )
    samples = np.array([table.header[k] for k in inside], dtype=object)
    index = pd.Index(samples, dtype=str)
    annotations = {
        name: values
        for name, values in table.layout.obs.items()
        if len(values) == len(samples)
    }
    obs = pd.DataFrame(annotations, index=index)
    notes += table_checks.repeated_samples(samples)
    return TableMatrix(table, inside, genes, samples, options), obs, notes


def _named_by(
    frame: pd.DataFrame, beside: Sequence[int], known_genes: Sequence[str]
) -> int:
    """The column with most of the genes that are known; the first if none has more."""
    known = set(known_genes)
    if not known:
        return 0
    found = {k: len(known.intersection(_stripped(frame[k]))) for k in (0, *beside)}
    return max(found, key=lambda k: (found[k], -k))


def _genes_in_columns(
    table: Table,
    frame: pd.DataFrame,
    inside: list[int],
    beside: list[int],
    options: TableOptions,
) -> tuple[TableMatrix, pd.DataFrame, list[str]]:
    import pandas as pd

    genes, notes = plain_gene_names(_stripped(table.header[k] for k in inside))
    samples = frame[0].to_numpy(dtype=object)
    annotations = {table.header[k]: frame[k].to_numpy() for k in beside}
    obs = pd.DataFrame(annotations, index=pd.Index(samples))
    notes += table_checks.repeated_samples(samples)
    return TableMatrix(table, inside, genes, samples, options), obs, notes


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
        self._code: float | None = None  # a number that stands for missing values

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
        invert = self._options.invert
        values = table_checks.numbers_of(
            frame,
            chosen,
            table.header,
            table.path,
            decimal=table.decimal,
            cycles=invert,
        )
        if in_rows:
            values = values[positions].T
        if not self._options.any_scale:
            self._code = table_checks.missing_code(values)
        if self._code is not None:
            values = np.where(values == self._code, np.nan, values)
        return np.ascontiguousarray(inverted(values) if invert else values)

    def _check(self, values: np.ndarray, genes: np.ndarray) -> None:
        path = self._table.path
        options = self._options
        table_checks.refuse_missing(values, genes, self.samples, path, self._code)
        if not options.any_scale and values.size:
            table_checks.refuse_clinical(
                values, genes, options.known_genes, path, str(options.genes_in)
            )
            if not options.invert:
                table_checks.warn_of_cycles(values, path)


def read_gene_names(path: Path, genes_in: str | None) -> list[str]:
    """The names that a table has where its genes are, annotations among them."""
    table = open_table(path)
    in_columns = _orientation(table, genes_in) == "columns"
    names = table.header[1:] if in_columns else table.read([0])[0]
    genes, _ = plain_gene_names(_stripped(names))
    return genes.tolist()


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


def _orientation(table: Table, genes_in: str | None) -> str:
    """Where the genes are: as the format says, else as was said; it is not guessed."""
    layout = table.layout
    if layout.genes_in and genes_in not in (None, layout.genes_in):
        raise DataError(
            f"{table.path} is a {layout.format} file, which has its genes in "
            f"{layout.genes_in}: leave genes_in={genes_in!r} out"
        )
    genes_in = genes_in or layout.genes_in
    if genes_in not in ("rows", "columns"):
        n_lines = len(table.read([0]))
        raise DataError(
            f"{table.path} is a table of {n_lines} lines and {len(table.header) - 1} "
            "columns: say whether its genes are in 'rows' or in 'columns' (genes_in=), "
            "it is not guessed"
        )
    return genes_in


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
            hint = "; it has such a line: is it transposed? (genes_in='rows')"
        raise DataError(
            f"{path} has no column {some(absent)}: there are {some(columns, 20)}{hint}"
        )
    _refuse_repeated([name for name in duplicates(columns) if name in described], path)


def _refuse_repeated(repeated: list[str], path: Path) -> None:
    if repeated:
        raise DataError(
            f"{path} has several columns called {some(repeated)}: rename or remove them"
        )
