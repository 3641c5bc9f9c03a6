"""Files that hold a table: text (CSV, TSV, plain or gzipped) and Parquet.

Of a wide table only the columns that are asked for are parsed.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from optirank.io.data import DataError, need, readable
from optirank.io.table_layouts import Layout, find_layout, separator_of

if TYPE_CHECKING:
    import pandas as pd

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
_WINDOWS = "optirank.windows"  # how bytes that are no UTF-8 are read
# Columns up to which all are parsed at once: beyond, pandas takes long for each column
_WIDE = 20_000


def open_text(path: Path) -> IO[str]:
    """Open a text file (UTF-8, UTF-16 with its mark, or Windows-1252), unpacking
    ``.gz``.
    """
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rb") as file:
        mark = file.read(2)
    utf16 = mark in (b"\xff\xfe", b"\xfe\xff")
    encoding = "utf-16" if utf16 else "utf-8-sig"
    errors = "strict" if utf16 else _WINDOWS
    return opener(path, "rt", encoding=encoding, errors=errors, newline="")


def _as_windows(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are no UTF-8 as Windows-1252 has them, which spreadsheets write."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return wrong.decode("cp1252", "replace"), error.end


codecs.register_error(_WINDOWS, _as_windows)


def separator(path: Path) -> str:
    """The separator of a table: that of its name, else the most frequent of
    its header.
    """
    with readable(path), open_text(path) as file:
        return separator_of(file.readline(), path)


class Table:
    """A table of a file: the names of its columns, and some of these when asked for.

    Attributes
    ----------
    path : the file.
    layout : what the file says about itself.
    decimal : what stands between the whole and the rest of a number.
    """

    decimal = "."

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path = path
        self.layout = layout

    @property
    def header(self) -> list[str]:
        """Names of the columns; the first is that of the names of the lines."""
        return self.layout.header

    def read(self, columns: Sequence[int]) -> pd.DataFrame:
        """Some columns, by their positions in the header; column 0 as text."""
        raise NotImplementedError


class TextTable(Table):
    """A table of text; its first column holds the names of the lines.

    ``as_text``: values are words, and one column is enough.
    """

    def __init__(self, path: Path, *, as_text: bool = False) -> None:
        with readable(path), open_text(path) as file:
            super().__init__(path, find_layout(path, file))
        self._as_text = as_text
        if len(self.header) == 1 and not as_text:
            raise DataError(
                f"{path} has a single column: separate its columns by commas, tabs or "
                "semicolons"
            )
        separator = self.layout.separator
        with self._body() as file:
            first_line = next(csv.reader(file, delimiter=separator), [])
        if not first_line:
            raise DataError(
                f"{path} is empty: it should have a header line and a line for each "
                "entry"
            )
        if separator != "," and any(map(_DECIMAL_COMMA.fullmatch, first_line)):
            self.decimal = ","

    def read(self, columns: Sequence[int]) -> pd.DataFrame:
        """Some columns; where the table is not wide, all are parsed once and kept."""
        import pandas as pd

        if len(self.header) <= _WIDE or self._as_text:
            return pd.DataFrame(self._whole[list(columns)])
        if 2 * len(columns) > len(self.header):  # pandas is slow at choosing many
            return pd.DataFrame(self._parse(None)[list(columns)])
        return self._parse(sorted(set(columns)))

    @cached_property
    def _whole(self) -> pd.DataFrame:
        return self._parse(None)

    @contextlib.contextmanager
    def _body(self) -> Iterator[IO[str]]:
        """The file behind its header."""
        layout = self.layout
        with readable(self.path), open_text(self.path) as file:
            for _ in islice(file, layout.before):
                pass
            if layout.has_header:
                next(csv.reader(file, delimiter=layout.separator), None)
            for _ in islice(file, layout.after):
                pass
            yield file

    def _parse(self, columns: list[int] | None) -> pd.DataFrame:
        import pandas as pd

        options: dict[str, Any] = {
            "sep": self.layout.separator,
            "decimal": self.decimal,
            "header": None,
            "index_col": False,
            "dtype": str if self._as_text else None,
            # A converter: a type for one column makes pandas slow where there are many
            "converters": None if self._as_text else {0: str},
            "keep_default_na": False,
            "float_precision": "round_trip",
            "low_memory": False,
        }
        # Naming a million columns takes longer than reading some of them
        if columns is None:
            options["names"] = list(range(len(self.header)))
        else:
            options["usecols"] = columns
        with self._body() as file, warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(file, **options)
        if self.layout.no_genes is None:
            return frame
        # The lines whose names do not say that they are no genes
        is_gene = ~frame[0].astype(str).str.startswith(self.layout.no_genes)
        return frame.loc[is_gene].reset_index(drop=True)


class ParquetTable(Table):
    """A Parquet file; the names of its lines are its index, or else its first column
    where that is text.
    """

    def __init__(self, path: Path) -> None:
        parquet = need("pyarrow.parquet", "parquet", f"reading {path}")
        with readable(path):
            self._file = parquet.ParquetFile(path)
            schema = self._file.schema_arrow
        known = (schema.pandas_metadata or {}).get("index_columns", [])
        index = [name for name in known if isinstance(name, str)][:1]
        names = [name for name in schema.names if name not in known]
        if not index and names and str(schema.field(names[0]).type).startswith(_TEXT):
            index = [names.pop(0)]
        self._index = index
        super().__init__(path, Layout(header=[*(index or [""]), *names]))

    def read(self, columns: Sequence[int]) -> pd.DataFrame:
        """Some columns."""
        wanted = [k for k in columns if k != 0]
        names = [self.header[k] for k in wanted]
        with readable(self.path):
            read = self._file.read(columns=[*self._index, *names])
        frame = read.to_pandas(ignore_metadata=True)
        lines = range(read.num_rows)
        if self._index:
            lines = frame[self._index[0]]
        table = frame[names].set_axis(wanted, axis=1)
        table.insert(0, 0, [str(line) for line in lines])
        return table


_TEXT = ("string", "large_string", "dictionary<values=string")


def open_table(path: Path, *, as_text: bool = False) -> Table:
    """Open a table of text, or a Parquet file by its name."""
    if path.suffix.lower() == ".parquet":
        return ParquetTable(path)
    return TextTable(path, as_text=as_text)
