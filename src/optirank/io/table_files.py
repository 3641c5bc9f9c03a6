"""Files that hold a table, text (CSV, TSV, plain or gzipped) or Parquet: where the
table is in the file, and what its columns are. Only the columns asked for are parsed.

The rules, in this order; "names" are those of the lines:

1. ``#1.2`` or ``#1.3`` in the first line: GCT. The header is the third line; genes are
   in rows, ``Description`` and other row annotations are about genes, the column
   annotations of ``#1.3`` are annotations of the samples.
2. A line that begins with ``!Series_`` or ``!Sample_`` first: GEO series matrix. The
   table is what follows ``!series_matrix_table_begin``; genes are in rows; titles and
   characteristics are annotations of the samples.
3. Four fields, the first ``N_unmapped``: STAR's counts of one sample, without a header.
   The unstranded counts (second column) are read; names that begin with ``N_`` are left
   out.
4. Two fields, the second a whole number, and a later name ``__no_feature``, or a first
   name that is an Ensembl gene: HTSeq's counts of one sample, without a header. Names
   that begin with ``__`` are left out.
5. Lines that begin with ``#`` before the header are comments (featureCounts). The last
   one is the header where it has as many fields, two or more, as the line after it.
6. A header of Salmon, kallisto or RSEM: one sample; ``TPM`` is read.
7. A header that begins with ``Hugo_Symbol`` or ``Entrez_Gene_Id`` (cBioPortal), or with
   ``Geneid Chr Start End Strand Length`` (featureCounts): genes are in rows.
8. Anything else is a table with a header, whose orientation must be said. Where the
   lines have a field more than the header, it has no name above those of the lines (R),
   unless the last field of all of them is empty.

In a table with genes in rows, columns whose names are in `ABOUT_GENES` are left out.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import pandas as pd

from optirank._util.names import some
from optirank.io.data import DataError, need, readable

# How files with a table end, in lower case; also before .gz
SUFFIXES = (".csv", ".tsv", ".txt", ".tab", ".gct", ".sf", ".results")
# Names of columns that describe genes, as they are without case, blanks and marks
ABOUT_GENES = frozenset((
    "entrezgeneid", "entrezid", "entrezgene", "entrez", "hugosymbol", "symbol",
    "genesymbol", "genename", "geneid", "ensemblid", "ensemblgeneid", "ensembl",
    "genetype", "genebiotype", "biotype", "description", "genedescription", "chr",
    "chrom", "chromosome", "start", "end", "strand", "length", "genelength",
    "effectivelength", "efflength", "cytoband", "transcriptids",
))  # fmt: skip
_FEATURE_COUNTS = ["Geneid", "Chr", "Start", "End", "Strand", "Length"]
# Headers of one sample's estimates: the program, and the column that is read
_QUANTIFIED = {
    ("Name", "Length", "EffectiveLength", "TPM", "NumReads"): ("Salmon", "TPM"),
    ("target_id", "length", "eff_length", "est_counts", "tpm"): ("kallisto", "tpm"),
    (
        *("gene_id", "transcript_id(s)", "length", "effective_length"),
        *("expected_count", "TPM", "FPKM"),
    ): ("RSEM", "TPM"),
}
_ENSEMBL_GENE = re.compile(r"ENS[A-Z]*G\d{6,}(\.\d+)?")
# Ends of names of files that are no part of the sample's name
_ENDINGS = re.compile(
    r"(\.gz|\.txt|\.tsv|\.tab|\.csv|\.sf|\.out|\.counts?|\.genes|\.results|"
    r"_?ReadsPerGene|[._]htseq|_counts?)+$",
    re.IGNORECASE,
)
_BARE = ("quant", "quant.genes", "abundance", "")  # the folder names the sample
_PEEKED = 100  # lines that tell whether every line ends in a separator
TABLE_BEGIN = "!series_matrix_table_begin"
TABLE_END = "!series_matrix_table_end"
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
_WINDOWS = "optirank.windows"  # how bytes that are no UTF-8 are read
# Columns up to which all are parsed at once: beyond, pandas takes long for each column
_WIDE = 20_000
_TEXT = ("string", "large_string", "dictionary<values=string")  # types of Arrow


@dataclass(frozen=True)
class Layout:
    """Where a table is in its file, and what the format says about it."""

    format: str = ""  # "" where the file does not say it; else genes are in rows
    header: list[str] = field(default_factory=list)
    skipped: int = 0  # lines before the values
    left_out: tuple[str, ...] = ()  # columns that are not read, whatever their names
    no_genes: str | None = None  # how names begin that are no genes
    separator: str = "\t"
    platform: str = ""  # of an array, as GEO calls it
    obs: dict[str, list[str]] = field(default_factory=dict)


def find_layout(path: Path, lines: Iterator[str]) -> Layout:
    """The layout that the first lines of a file say; see the rules of this module."""
    first = next(lines, "")
    if re.match(r"#1\.[23]\s*$", first):
        return _gct(path, first, lines)
    if first.startswith(("!Series_", "!Sample_")):
        return _series_matrix(path, chain([first], lines))
    fields = first.rstrip("\r\n").split("\t")
    sample = sample_of(path)
    if len(fields) == 4 and fields[0] == "N_unmapped":
        return Layout(
            "STAR",
            ["gene", sample, "forward", "reverse"],
            left_out=("forward", "reverse"),
            no_genes="N_",
        )
    is_gene = _ENSEMBL_GENE.fullmatch(fields[0]) is not None
    if len(fields) == 2 and fields[1].isdecimal():
        if is_gene or any(line.startswith("__no_feature") for line in lines):
            return Layout("HTSeq", ["gene", sample], no_genes="__")
    elif is_gene and len(fields) > 2 and all(map(str.isdecimal, fields[1:])):
        raise DataError(
            f"{path} has no header: its first line is the gene {fields[0]}; put a line "
            "with the names of the samples above it"
        )
    return _with_header(path, first, lines)


def separator_of(line: str, path: Path) -> str:
    """The separator of a line: that of the file's name, else the most frequent."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    usual = "," if ".csv" in suffixes else "\t"
    return usual if usual in line else max((usual, ",", "\t", ";"), key=line.count)


def sample_of(path: Path) -> str:
    """The name of the sample that a file is of: its own, or that of its folder."""
    name = _ENDINGS.sub("", path.name)
    return path.resolve().parent.name if name in _BARE else name


def _fields(line: str) -> list[str]:
    return next(csv.reader([line], delimiter="\t"), [])


def _gct(path: Path, version: str, lines: Iterator[str]) -> Layout:
    sizes = [int(size) for size in _fields(next(lines, "")) if size.strip()]
    header = _fields(next(lines, ""))
    n_about, n_obs = sizes[2:4] if version.startswith("#1.3") else (1, 0)
    if n_about < 0 or n_obs < 0 or len(header) < 2 + n_about:
        raise DataError(f"{path} is no GCT file: its third line has no samples")
    annotations = [_fields(line) for line in islice(lines, n_obs)]
    return Layout(
        "GCT",
        header,
        skipped=3 + n_obs,
        left_out=tuple(header[1 : 1 + n_about]),
        obs={name: values[n_about:] for name, *values in annotations},
    )


def _series_matrix(path: Path, lines: Iterator[str]) -> Layout:
    about: list[list[str]] = []
    supplements = []
    platform = ""
    before = 0
    for line in lines:
        before += 1
        if line.startswith(TABLE_BEGIN):
            break
        name, *values = _fields(line) or [""]
        if name.startswith("!Sample_"):
            about.append([name.removeprefix("!Sample_"), *values])
        if name.endswith("_supplementary_file"):
            supplements += [text for text in values if text and text != "NONE"]
        if name == "!Series_platform_id":
            platform = "".join(values[:1])
    else:
        raise DataError(
            f"{path} is a GEO series matrix without {TABLE_BEGIN}: it may be cut off, "
            "fetch it again"
        )
    header = _fields(next(lines, ""))
    if next(lines, TABLE_END).startswith(TABLE_END):
        raise DataError(
            f"{path} is a GEO series matrix without values, as those of RNA-Seq are: "
            "the values are in the supplementary files of the series, fetch one of "
            f"them: {some(supplements, 3)}"
        )
    return Layout(
        "GEO series matrix",
        header,
        skipped=before + 1,
        no_genes=TABLE_END,
        platform=platform,
        obs=_characteristics(about, len(header) - 1),
    )


def _characteristics(about: list[list[str]], n_samples: int) -> dict[str, list[str]]:
    """Titles, sources and characteristics (``"key: value"``) of GEO's samples."""
    obs: dict[str, list[str]] = {}
    for name, *values in about:
        if len(values) != n_samples:
            continue
        if name in ("title", "source_name_ch1"):
            obs[name] = values
        if name.startswith("characteristics_ch"):
            for k, text in enumerate(values):
                key, colon, value = text.partition(":")
                if colon:
                    obs.setdefault(key.strip(), [""] * n_samples)[k] = value.strip()
    return obs


def _with_header(path: Path, first: str, lines: Iterator[str]) -> Layout:
    before = 0
    comment = ""
    while first.startswith("#"):
        comment = first
        first = next(lines, "")
        before += 1
    separator = separator_of(first, path)
    if comment and 1 <= comment.count(separator) == first.count(separator):
        lines = chain([first], lines)
        first = comment  # a header that begins with a #
        before -= 1
    reader = csv.reader(chain([first], lines), delimiter=separator)
    header = next(reader, [])
    skipped = before + reader.line_num
    peeked = [line for line in islice(reader, _PEEKED) if line]
    if peeked and len(peeked[0]) == len(header) + 1:
        ends_empty = [len(line) == len(header) + 1 and not line[-1] for line in peeked]
        # A separator ends every line; or R writes no name above the names of the lines
        header = [*header, ""] if all(ends_empty) else ["", *header]
    program, counted = _QUANTIFIED.get(tuple(header), ("", ""))
    left_out = tuple(name for name in header[1:] if program and name != counted)
    if program:
        header = [sample_of(path) if name == counted else name for name in header]
    elif header[:6] == _FEATURE_COUNTS:
        program = "featureCounts"
    elif header and header[0] in ("Hugo_Symbol", "Entrez_Gene_Id"):
        program = "cBioPortal"
    return Layout(program, header, skipped, left_out, separator=separator)


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


def separator(path: Path) -> str:
    """The separator of a table: that of its name, else the most frequent of
    its header.
    """
    with readable(path), open_text(path) as file:
        return separator_of(file.readline(), path)


def read_fields(path: Path) -> list[tuple[int, list[str]]]:
    """The numbers and fields of the lines of a small table, without empty lines."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    with readable(path), open_text(path) as file:
        reader = csv.reader(file, delimiter=separator(path))
        return [(reader.line_num, line) for line in reader if any(line)]


def read_pairs(path: Path, what: str) -> list[tuple[str, str]]:
    """The lines of a table of two columns; ``what`` says in errors what these are."""
    pairs = []
    for number, line in read_fields(path):
        if len(line) != 2:
            raise DataError(f"{path}, line {number} has {len(line)} columns: {what}")
        pairs.append((line[0].strip(), line[1].strip()))
    return pairs


class TextTable:
    """A table of text; its first column holds the names of the lines.

    Attributes
    ----------
    path : the file.
    layout : what the file says about itself.
    header : names of the columns; the first is that of the names of the lines.
    decimal : what stands between the whole and the rest of a number.
    as_text : whether values are words, and one column is enough.
    """

    def __init__(self, path: Path, *, as_text: bool = False) -> None:
        with readable(path), open_text(path) as file:
            self.layout = find_layout(path, file)
        self.path = path
        self.header = self.layout.header
        self.as_text = as_text
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
        has_commas = separator != "," and any(map(_DECIMAL_COMMA.fullmatch, first_line))
        self.decimal = "," if has_commas else "."

    def read(self, columns: Sequence[int]) -> pd.DataFrame:
        """Some columns, by their positions in the header, column 0 as text; where the
        table is not wide, all are parsed once and kept.
        """
        if len(self.header) <= _WIDE:
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
        with readable(self.path), open_text(self.path) as file:
            for _ in islice(file, self.layout.skipped):
                pass
            yield file

    def _parse(self, columns: list[int] | None) -> pd.DataFrame:
        # Naming a million columns takes longer than reading some of them
        options: dict[str, Any] = {"usecols": columns, "float_precision": "round_trip"}
        if columns is None:
            options["names"] = list(range(len(self.header)))
        with self._body() as file, warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                file,
                sep=self.layout.separator,
                decimal=self.decimal,
                header=None,
                index_col=False,
                dtype=str if self.as_text else None,
                # A type for one column makes pandas slow where there are many
                converters=None if self.as_text else {0: str},
                keep_default_na=False,
                low_memory=False,
                **options,
            )
        if self.layout.no_genes is None:
            return frame
        # The lines whose names do not say that they are no genes
        is_gene = ~frame[0].astype(str).str.startswith(self.layout.no_genes)
        return frame.loc[is_gene].reset_index(drop=True)


class ParquetTable:
    """A Parquet file like a `TextTable`; the names of its lines are its index, or else
    its first column where that is text.
    """

    decimal = "."

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
        self.path = path
        self.header = [*(index or [""]), *names]
        self.layout = Layout(header=self.header)

    def read(self, columns: Sequence[int]) -> pd.DataFrame:
        """Some columns."""
        wanted = [k for k in columns if k != 0]
        names = [self.header[k] for k in wanted]
        with readable(self.path):
            read = self._file.read(columns=[*self._index, *names])
        frame = read.to_pandas(ignore_metadata=True)
        lines = frame[self._index[0]] if self._index else range(read.num_rows)
        table = frame[names].set_axis(wanted, axis=1)
        table.insert(0, 0, [str(line) for line in lines])
        return table


Table = TextTable | ParquetTable


def open_table(path: Path, *, as_text: bool = False) -> Table:
    """Open a table of text, or a Parquet file by its name."""
    if path.suffix.lower() == ".parquet":
        return ParquetTable(path)
    return TextTable(path, as_text=as_text)


def refuse_repeated(repeated: list[str], path: Path) -> None:
    """Refuse columns that share a name."""
    if repeated:
        raise DataError(
            f"{path} has several columns called {some(repeated)}: rename or remove them"
        )
