"""Expression in tables: genes in rows or columns, annotations beside them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.matrices import inverted
from optirank._util.names import some
from optirank.io import table_checks
from optirank.io.data import DataError, duplicates, make_profiles
from optirank.io.features import plain_gene_names, stripped
from optirank.io.formats import Format
from optirank.io.table_files import Table, open_table
from optirank.io.table_layouts import describes_genes, refuse_transcripts

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

    from optirank.io.options import ReadOptions

# How files with a table end, in lower case; also before .gz
SUFFIXES = (".csv", ".tsv", ".txt", ".tab", ".gct", ".sf", ".results")


@contextlib.contextmanager
def _open(path: Path, options: ReadOptions) -> Iterator[AnnData]:
    """Names of genes and annotations of samples of a table; its values are parsed and
    checked when they are read.

    With ``genes_in="columns"`` a line is a sample and ``annotations``, and the label,
    are the columns that describe samples. With ``genes_in="rows"`` a line is a gene and
    ``annotations`` are columns that describe genes; they are left out, save
    ``gene_column``, which then names the genes. A format that says where its genes are
    needs no ``genes_in``, see `optirank.io.table_layouts`.
    """
    import pandas as pd

    table = open_table(path)
    in_rows = _orientation(table, options.genes_in) == "rows"
    described = _described_columns(table, options, in_rows=in_rows)
    about_genes = _about_genes(table, described) if in_rows else []
    named = {*described, *about_genes}
    beside = [k for k, name in enumerate(table.header) if k and name in named]
    skipped = {0, *beside, *_empty_columns(table)}
    inside = [k for k in range(len(table.header)) if k not in skipped]
    frame = table.read([0, *beside])
    if not inside or frame.empty:
        raise DataError(
            f"{path} holds no numbers: it has {len(frame)} lines, {len(inside)} columns"
        )
    inside_names = np.array([table.header[k] for k in inside], dtype=object)
    if in_rows:
        lines, further = _names_of_lines(table, frame, beside, options)
        genes, notes = plain_gene_names(lines)
        notes += further
        samples = inside_names
        annotations = {
            name: values
            for name, values in table.layout.obs.items()
            if len(values) == len(samples)
        }
    else:
        genes, notes = plain_gene_names(stripped(inside_names))
        samples = frame[0].to_numpy(dtype=object)
        annotations = {table.header[k]: frame[k].to_numpy() for k in beside}
    obs = pd.DataFrame(annotations, index=pd.Index(samples, dtype=object))
    if about_genes:
        notes.append(f"columns that are no samples are left out: {some(about_genes)}")
    if options.invert:
        notes.append(
            "values are inverted: the lowest of the table is the most expressed"
        )
    matrix = TableMatrix(table, inside, genes, samples, in_rows, options)
    if options.drop_missing:
        matrix.drop_missing()
    if not options.any_scale:
        table_checks.warn_of_dates(matrix.genes, path)
        table_checks.warn_of_probes(
            matrix.genes, options.known_genes, path, table.layout.platform
        )
    var = pd.DataFrame(index=pd.Index(matrix.genes, dtype=object))
    yield make_profiles(matrix, obs, var, str(path), notes=notes)


_TAKES = ("genes_in", "annotations", "drop_missing", "any_scale", "invert")
TABLE = Format("table", SUFFIXES, _open, _TAKES)
PARQUET = Format("parquet", (".parquet",), _open, _TAKES)


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


def _names_of_lines(
    table: Table, frame: pd.DataFrame, beside: Sequence[int], options: ReadOptions
) -> tuple[np.ndarray, list[str]]:
    """Names of the genes in rows, and which column has them where it is not the first:
    the one that is asked for, else that with most of the genes that are known.
    """
    notes = []
    if options.gene_column:
        column = table.header.index(options.gene_column, 1)
    else:
        known = set(options.known_genes)
        column = max(
            (0, *beside),
            key=lambda k: (len(known.intersection(stripped(frame[k]))), -k),
        )
        if column:
            notes.append(
                f"genes are named by the column {table.header[column]!r}, which has "
                "more of the model's genes than the first"
            )
    names = stripped(frame[column])
    refuse_transcripts(names, table.layout, table.path)
    return names, notes


class TableMatrix:
    """The numbers of a table as samples by genes, parsed and checked when they
    are read.
    """

    streams = False  # no sample can be read without the others

    def __init__(
        self,
        table: Table,
        inside: list[int],
        genes: np.ndarray,
        samples: np.ndarray,
        in_rows: bool,
        options: ReadOptions,
    ) -> None:
        self.genes = genes
        self.samples = samples
        self._table = table
        self._inside = inside
        self._in_rows = in_rows
        self._options = options
        self._values: np.ndarray | None = None
        self._code: float | None = None  # a number that stands for missing values

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and genes."""
        return len(self.samples), len(self.genes)

    def take_genes(self, columns: np.ndarray | None) -> np.ndarray:
        """Parse and check the genes chosen; all are kept once most of them
        were read.
        """
        every = np.arange(len(self.genes))
        columns = every if columns is None else columns
        if self._values is None and (self._in_rows or 2 * len(columns) > len(every)):
            self._values = self._parsed(every)
        if self._values is None:
            values = self._parsed(columns)
        else:
            values = self._values[:, columns]
        self._check(values, self.genes[columns])
        return values

    def drop_missing(self) -> None:
        """Leave out the genes that have missing values."""
        values = self._parsed(np.arange(len(self.genes)))
        kept = table_checks.complete_genes(values, self._table.path)
        self.genes = self.genes[kept]
        self._values = values[:, kept]

    def _parsed(self, columns: np.ndarray) -> np.ndarray:
        table = self._table
        chosen = self._inside if self._in_rows else [self._inside[k] for k in columns]
        frame = table.read([0, *chosen])
        invert = self._options.invert
        values = table_checks.numbers_of(frame, chosen, table, cycles=invert)
        if self._in_rows:
            values = values[columns].T
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
                values, genes, options.known_genes, path, self._in_rows
            )
            if not options.invert:
                table_checks.warn_of_cycles(values, path)


def _read_annotations(path: Path, key: str | None) -> pd.DataFrame:
    """A table about samples, as text; their names are in the first column or in
    ``key``.
    """
    import pandas as pd

    table = open_table(path, as_text=True)
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


def _described_columns(
    table: Table, options: ReadOptions, *, in_rows: bool
) -> list[str]:
    """The columns that hold no expression, as the user says; those that are not there,
    or there twice, are refused.
    """
    described = [*options.annotations]
    if options.label and options.genes_in == "columns" and options.samples is None:
        described.append(options.label)
    if options.gene_column:
        described.append(options.gene_column)
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
    if options.gene_column and not in_rows:
        raise DataError(
            f"{path}: the gene column {options.gene_column!r} is for tables with genes "
            "in rows"
        )
    return described


def _refuse_repeated(repeated: list[str], path: Path) -> None:
    if repeated:
        raise DataError(
            f"{path} has several columns called {some(repeated)}: rename or remove them"
        )
