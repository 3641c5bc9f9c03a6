"""Tables of text (.csv, .tsv, .txt, .tab, also .gz) and Parquet files: samples by genes
or genes by samples.

A table is read whole by pandas. Columns of numbers are values, the others are
annotations. Separator, decimal mark and encoding are found by themselves; so is where
the genes are, by the names of genes, samples or labels that are known, else the user is
asked.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import itertools
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd

from optirank._util.numbers import inverted
from optirank._util.words import counted, note, some
from optirank.data.genes import gene_profiles, without_case
from optirank.data.profiles import (
    DataError,
    Profiles,
    duplicates,
    need,
    readable,
    stripped,
)

# How files with a table of text end, in lower case; also before .gz
SUFFIXES = (".csv", ".tsv", ".txt", ".tab")
PARQUET = ".parquet"
_PEEKED = 100  # lines that tell whether every line ends in a separator
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
_MISSING = ("", "na", "nan", "n/a", "null", "none", ".", "-")
_ABOUT_GENES = ("chr", "chromosome", "start", "end", "strand", "length")
_UNDETECTED = ("undetermined", "undet", "undetected", "no ct", "nd")  # of qPCR
_WINDOWS = "optirank.windows"  # how bytes that are no UTF-8 are read


class Table(NamedTuple):
    """What is in the file of a table.

    Attributes
    ----------
    frame : its columns by their names, which may occur twice; the index has the names
        of the lines, which are in the first column.
    decimal : what stands between the whole and the rest of a number.
    """

    frame: pd.DataFrame
    decimal: str

    def names_of_lines(self) -> list[Any]:
        """What may be the names of the lines: the first column, and those of text."""
        texts = self.frame.select_dtypes(exclude=["number", "bool"]).astype(str)
        return [self.frame.index, *texts.to_numpy().T]

    def names(self) -> list[str]:
        """All names: of the lines, of the columns, and in columns of text."""
        beside = itertools.chain.from_iterable(self.names_of_lines())
        names = [str(self.frame.index.name), *self.frame.columns, *beside]
        return list(dict.fromkeys(names))


def profiles_of_table(
    path: Path,
    *,
    label: Sequence[str] = (),
    gene_column: str | None = None,
    genes_in: str | None = None,
    sample_names: Collection[str] = (),
    invert: bool = False,
    known_genes: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Profiles:
    """The profiles of a table.

    ``sample_names`` are those of a table about the samples; the other options are those
    of `optirank.data.opening.open_profiles`.
    """
    table = read_table(path)
    if not table.frame.shape[1]:
        raise DataError(
            "it has a single column: separate its columns by commas, tabs or semicolons"
        )
    known = set(map(without_case, known_genes))
    _refuse_long(table, known)
    in_rows = _has_genes_in_rows(table, genes_in, known, sample_names, label)
    about_genes = [name for name in table.frame if name.lower() in _ABOUT_GENES]
    beside = [gene_column, *about_genes] if in_rows else label
    no_values = {*exclude, *beside}
    numbers, annotations = _numbers_and_annotations(table, no_values, invert=invert)
    if numbers.empty:
        raise DataError(f"it holds no numbers in its {len(table.frame)} lines")
    values = numbers.to_numpy()
    if invert:
        values = inverted(values)
        note("values are inverted: the lowest of the table is the most expressed")
    obs, var = annotations, pd.DataFrame(index=numbers.columns)
    if in_rows:
        obs, var, values = var, obs, values.T
    _refuse_missing(values, var.index, obs.index, known)
    X = np.ascontiguousarray(values)
    return gene_profiles(X, obs, var, str(path), gene_column, known_genes)


def _has_genes_in_rows(
    table: Table,
    genes_in: str | None,
    known: set[str],
    sample_names: Collection[str],
    label: Sequence[str],
) -> bool:
    """Whether the lines of a table are genes, as the user says, or as known genes,
    samples or the columns of labels tell; where nothing tells, the user is asked.
    """
    if genes_in is not None:
        if genes_in not in ("rows", "columns"):
            raise DataError(f"genes_in={genes_in!r}: use 'rows' or 'columns'")
        return genes_in == "rows"
    header, lines = table.frame.columns, table.frame.index
    n_in_header = _n_shared(known, header)
    n_in_lines = max(_n_shared(known, names) for names in table.names_of_lines())
    if n_in_lines == n_in_header:  # no gene is known: samples are where genes are not
        n_in_header = lines.isin([*sample_names]).sum()
        n_in_lines = header.isin([*sample_names]).sum()
    if n_in_lines == n_in_header and not (label and set(header).issuperset(label)):
        raise DataError(
            f"it is a table of {len(lines)} lines and {len(header)} columns, and "
            "nothing tells where its genes are: say it (genes_in='rows' or 'columns')"
        )
    return bool(n_in_lines > n_in_header)


def _n_shared(known: set[str], names: Iterable[str]) -> int:
    return len(known.intersection(map(without_case, names))) if known else 0


def _refuse_long(table: Table, known: set[str]) -> None:
    """Refuse a long table: a line for each sample and gene, so that there are many more
    lines than names.
    """
    n_lines, n_columns = table.frame.shape
    beside = table.names_of_lines()
    is_narrow = n_columns - (len(beside) - 1) <= 2
    for number, names in enumerate(beside):
        n_names = len(set(names))
        many = 2 if is_narrow else 10  # several probes of a gene are no long table
        if many * n_names < n_lines and (number == 0 or _n_shared(known, names) > 1):
            raise DataError(
                f"it has {n_lines} lines with {n_names} different names "
                f"({some(dict.fromkeys(names), 3)}): it looks like a long table, with "
                "a line for each sample and gene. Make it one with a line per sample: "
                "pandas.DataFrame.pivot"
            )


def _numbers_and_annotations(
    table: Table, beside: Collection[str | None], *, invert: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The columns of numbers, and the others: those that hold words, or are named.

    Columns without name and values, which separators at the end of lines make, are left
    out.
    """
    frame = table.frame
    numbers: list[int] = []
    annotations: list[int] = []
    parsed: dict[int, np.ndarray] = {}
    for k, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if name in beside or dtype.kind == "b":
            annotations.append(k)
        elif dtype.kind in "iuf":
            numbers.append(k)
        else:
            found = _parsed_numbers(table, k, invert=invert)
            if found is not None:
                parsed[k] = found
                numbers.append(k)
            elif name.strip() or frame.iloc[:, k].astype(str).str.strip().any():
                annotations.append(k)
    repeated = duplicates(frame.columns[annotations])
    if repeated:
        raise DataError(
            f"it has several columns called {some(repeated)}: rename or remove them"
        )
    values = frame.iloc[:, numbers]
    if parsed or not all(isinstance(dtype, np.dtype) for dtype in values.dtypes):
        columns: list[Any] = [
            parsed[k]
            if k in parsed
            else frame.iloc[:, k].to_numpy(dtype=float, na_value=np.nan)
            for k in numbers
        ]
        made = np.column_stack(columns)
        values = pd.DataFrame(made, index=frame.index, columns=values.columns)
    return values, frame.iloc[:, annotations]


def _parsed_numbers(table: Table, k: int, *, invert: bool) -> np.ndarray | None:
    """A column of text as numbers, NaN where a value is missing; None where it holds
    words. A few words among many numbers are refused.
    """
    column = table.frame.iloc[:, k]
    text: Any = column.astype(str).str.strip()
    words = text.str.lower()
    if invert:
        text = text.where(~words.isin(_UNDETECTED), "inf")
    text = text.str.replace(table.decimal, ".", regex=False)
    is_number = pd.Series(pd.to_numeric(text, errors="coerce")).notna().to_numpy()
    wrong = ~is_number & ~words.isin(_MISSING).to_numpy()
    if not is_number.any() or wrong.sum() > is_number.sum():
        return None
    if wrong.any():
        line = int(np.flatnonzero(wrong)[0])
        word = column.iloc[line]
        remedy = "correct it, or name the column as no gene (exclude=)"
        if words.iloc[line] in _UNDETECTED:
            remedy = "if less is more, as in Ct of qPCR, say so (invert=)"
        raise DataError(
            f"line {column.index[line]!r} (number {line + 1} below the header), column "
            f"{column.name!r} holds {word!r}, which is not a number: {remedy}"
        )
    # Not pandas' numbers, whose last bit may differ from those of other columns
    return text.where(is_number, "nan").to_numpy(dtype=float)


def _refuse_missing(
    values: np.ndarray, genes: pd.Index, samples: pd.Index, known: set[str]
) -> None:
    """Refuse missing and infinite values, with the names of their genes: known ones,
    where there are such.
    """
    missing = ~np.isfinite(values)
    if known and missing.any():
        missing &= [without_case(name) in known for name in genes]
    if not missing.any():
        return
    counts = missing.sum(axis=0)
    named = [f"{genes[j]} ({counts[j]})" for j in np.flatnonzero(counts)]
    in_sample = missing.any(axis=1)
    what = counted(len(named), "gene has", "genes have")
    raise DataError(
        f"{what} missing or infinite values, in {int(in_sample.sum())} of "
        f"{len(samples)} samples (first {samples[in_sample][0]!r}): {some(named, 20)}; "
        "fill them in, or remove these genes"
    )


def read_table(path: Path, *, as_text: bool = False) -> Table:
    """Read a table: all values as they are written, or as numbers where a column holds
    no words.
    """
    with readable(path):
        if path.suffix.lower() == PARQUET:
            decimal = "."
            need("pyarrow", "parquet", f"reading {path}")
            frame = pd.read_parquet(path)
            is_numbered = isinstance(frame.index, pd.RangeIndex) and frame.shape[1] > 0
            if is_numbered and frame.dtypes.iloc[0].kind not in "biuf":
                frame = frame.set_index(frame.columns[0])
        else:
            frame, decimal = _read_text(path, as_text=as_text)
        for axis in (0, 1):  # letters with accents are single characters
            plain = [
                unicodedata.normalize("NFC", str(name)) for name in frame.axes[axis]
            ]
            names = pd.Index(stripped(plain), name=frame.axes[axis].name)
            frame = frame.set_axis(names, axis=axis)
        return Table(frame, decimal)


def _read_text(path: Path, *, as_text: bool) -> tuple[pd.DataFrame, str]:
    """A table of text, and its decimal mark."""
    with open_text(path) as file:
        header, n_skipped, separator, first_line = _header(file, path)
    has_commas = separator != "," and any(map(_DECIMAL_COMMA.fullmatch, first_line))
    decimal = "," if has_commas else "."
    with open_text(path) as file, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        for _ in itertools.islice(file, n_skipped):
            pass
        options: dict[str, Any] = {"float_precision": "round_trip"}
        frame = pd.read_csv(
            file,
            sep=separator,
            decimal=decimal,
            header=None,
            names=list(range(len(header))),
            index_col=False,
            dtype=str if as_text else None,
            converters=None if as_text else {0: str},
            keep_default_na=False,
            low_memory=False,
            **options,
        )
    frame = frame.set_index(0).set_axis(header[1:], axis=1)
    return frame.rename_axis(header[0]), decimal


def _header(file: IO[str], path: Path) -> tuple[list[str], int, str, list[str]]:
    """The names of the columns, the number of lines before the values, the separator,
    and the fields of the first line of values.

    Lines that begin with # before the header are comments, save a header that does.
    """
    before = 0
    comment = ""
    first = file.readline()
    while first.startswith("#"):
        comment, first = first, file.readline()
        before += 1
    separator = _separator_of(first, path)
    lines = itertools.chain([first], file)
    if comment and 1 <= comment.count(separator) == first.count(separator):
        lines = itertools.chain([comment], lines)
        before -= 1
    reader = csv.reader(lines, delimiter=separator)
    header = next(reader, [])
    n_skipped = before + reader.line_num
    peeked = [line for line in itertools.islice(reader, _PEEKED) if line]
    if not peeked:
        raise DataError("it is empty: it needs a header and a line for each entry")
    if len(peeked[0]) == len(header) + 1:
        ends_empty = [len(line) == len(header) + 1 and not line[-1] for line in peeked]
        # A separator ends every line; or R writes no name above the names of the lines
        header = [*header, ""] if all(ends_empty) else ["", *header]
    return header, n_skipped, separator, peeked[0]


def _separator_of(line: str, path: Path) -> str:
    """The separator of a line: that of the file's name, else the most frequent."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    usual = "," if ".csv" in suffixes else "\t"
    return usual if usual in line else max((usual, ",", "\t", ";"), key=line.count)


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


def _as_windows(error: Any) -> tuple[str, int]:
    """Bytes that are no UTF-8 as Windows-1252 has them, which spreadsheets write."""
    wrong = error.object[error.start : error.end]
    return wrong.decode("cp1252", "replace"), error.end


codecs.register_error(_WINDOWS, _as_windows)
