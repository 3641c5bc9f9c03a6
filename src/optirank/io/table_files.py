"""Files that hold a table: text (CSV, TSV, plain or gzipped) and Parquet.

Of a wide table only the columns that are asked for are parsed.
"""

from __future__ import annotations

import csv
import gzip
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import numpy as np

from optirank.io.data import DataError, need, readable

if TYPE_CHECKING:
    import pandas as pd

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
# Columns up to which all are parsed at once: beyond, pandas takes long for each column
_WIDE = 20_000


class Table(Protocol):
    """A table of a file: the names of its columns, and some of these when asked for."""

    path: Path
    header: list[str]  # the first is that of the names of the lines

    def read(self, columns: Sequence[int]) -> pd.DataFrame:
        """Some columns, by their positions in the header; column 0 as text."""
        ...


def open_text(path: Path) -> IO[str]:
    """Open a text file (UTF-8, or UTF-16 with its mark), unpacking ``.gz``."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rb") as file:
        mark = file.read(2)
    utf16 = mark in (b"\xff\xfe", b"\xfe\xff")
    encoding = "utf-16" if utf16 else "utf-8-sig"
    return opener(path, "rt", encoding=encoding, newline="")


def separator(path: Path) -> str:
    """The separator of a table: that of its name, else the most frequent of
    its header.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    usual = "," if ".csv" in suffixes else "\t"
    with readable(path), open_text(path) as file:
        header = file.readline()
    return usual if usual in header else max((usual, ",", "\t", ";"), key=header.count)


@dataclass
class TextTable:
    """A table of text; its first column holds the names of the lines."""

    path: Path
    header: list[str]
    separator: str
    decimal: str
    as_text: bool = False

    @classmethod
    def open(cls, path: Path, *, as_text: bool = False) -> TextTable:
        """Read the header. ``as_text``: values are words, and one column is enough."""
        sep = separator(path)
        with readable(path), open_text(path) as file:
            reader = csv.reader(file, delimiter=sep)
            header = next(reader, [])
            first_line = next(reader, [])
        if len(header) == 1 and not as_text:
            raise DataError(
                f"{path} has a single column: separate its columns by commas, tabs or "
                "semicolons"
            )
        if not first_line:
            raise DataError(
                f"{path} is empty: it should have a header line and a line for each "
                "entry"
            )
        if len(first_line) == len(header) + 1:  # R writes no name above names of rows
            header = ["", *header]
        commas = sep != "," and any(map(_DECIMAL_COMMA.fullmatch, first_line))
        return cls(path, header, sep, "," if commas else ".", as_text)

    def read(self, columns: Sequence[int]) -> pd.DataFrame:
        """Some columns; where the table is not wide, all are parsed once and kept."""
        import pandas as pd

        if len(self.header) <= _WIDE or self.as_text:
            return pd.DataFrame(self._whole[list(columns)])
        if len(columns) > len(self.header) // 2:
            return self._wide_numbers(columns)
        return self._parse(sorted(set(columns)))

    @cached_property
    def _whole(self) -> pd.DataFrame:
        return self._parse(None)

    def _parse(self, columns: list[int] | None) -> pd.DataFrame:
        import pandas as pd

        names = None if columns is not None else list(range(len(self.header)))
        options: dict[str, Any] = {
            "sep": self.separator,
            "decimal": self.decimal,
            "index_col": False,
            "dtype": str if self.as_text else {0: str},
            "keep_default_na": False,
            "float_precision": "round_trip",
            "low_memory": False,
        }
        with (
            readable(self.path),
            open_text(self.path) as file,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error", pd.errors.ParserWarning)
            if names is not None:
                return pd.read_csv(file, header=0, names=names, **options)
            # Naming a million columns takes longer than reading some of them
            options |= {"header": None, "skiprows": 1, "usecols": columns}
            return pd.read_csv(file, **options)

    def _wide_numbers(self, columns: Sequence[int]) -> pd.DataFrame:
        """Many columns of a wide table, line by line: far faster than column
        by column.
        """
        import pandas as pd

        inside = np.asarray([k for k in columns if k != 0])
        described = sorted({0, *range(1, len(self.header))}.difference(inside.tolist()))
        names = self._parse(described)[0]
        lines = []
        with readable(self.path), open_text(self.path) as file:
            file.readline()
            for line in file:
                fields = line.rstrip("\r\n").split(self.separator)
                if self.decimal == ",":
                    fields = [text.replace(",", ".") for text in fields]
                try:
                    lines.append(np.array(fields, dtype=object)[inside].astype(float))
                except (ValueError, IndexError):  # words, gaps or quotes: say which
                    return self._parse(sorted(set(columns)))
        frame = pd.DataFrame(np.array(lines), columns=inside.tolist())
        frame.insert(0, 0, names.to_numpy())
        return frame


@dataclass
class ParquetTable:
    """A Parquet file; the names of its lines are its index, or else its
    first column.
    """

    path: Path
    header: list[str]
    lines: np.ndarray

    @classmethod
    def open(cls, path: Path) -> ParquetTable:
        """Read names of columns and lines."""
        parquet = need("pyarrow.parquet", "parquet", f"reading {path}")
        with readable(path):
            schema = parquet.read_schema(path)
            described = schema.pandas_metadata or {}
            indices = [
                name
                for name in described.get("index_columns", [])
                if isinstance(name, str)
            ]
            names = [name for name in schema.names if name not in indices]
            if not indices and names and str(schema.field(names[0]).type) in _TEXT:
                indices = [names.pop(0)]
            if indices:
                column = parquet.read_table(path, columns=indices[:1]).column(0)
                lines = np.array([str(name) for name in column.to_pylist()], object)
            else:
                count = parquet.read_metadata(path).num_rows
                lines = np.array([str(k) for k in range(count)], object)
        return cls(path, [indices[0] if indices else "", *names], lines)

    def read(self, columns: Sequence[int]) -> pd.DataFrame:
        """Some columns."""
        import pandas as pd

        parquet = need("pyarrow.parquet", "parquet", f"reading {self.path}")
        wanted = [k for k in columns if k != 0]
        names = [self.header[k] for k in wanted]
        with readable(self.path):
            table = parquet.read_table(self.path, columns=names)
        values = {
            k: table.column(name).to_pandas()
            for k, name in zip(wanted, names, strict=True)
        }
        return pd.DataFrame({0: self.lines, **values})


_TEXT = (
    "string",
    "large_string",
    "dictionary<values=string, indices=int32, ordered=0>",
)


def open_table(path: Path) -> Table:
    """Open a table of text, or a Parquet file by its name."""
    if path.suffix.lower() == ".parquet":
        return ParquetTable.open(path)
    return TextTable.open(path)
