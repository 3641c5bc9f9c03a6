"""Expression in tables: genes in rows or columns, annotations beside them, and what can
be wrong with the values: words, gaps, clinical columns, dates.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from anndata import AnnData

from optirank._util.matrices import inverted, value_scale
from optirank._util.names import some
from optirank.io.data import DataError, duplicates, make_profiles, stripped
from optirank.io.formats import Format, ReadOptions
from optirank.io.genes import plain_gene_names
from optirank.io.table_files import (
    ABOUT_GENES,
    SUFFIXES,
    Table,
    open_table,
    refuse_repeated,
)

logger = logging.getLogger("optirank.datasets")

_OF_ONE_SAMPLE = ("STAR", "HTSeq", "Salmon", "kallisto", "RSEM")
_TRANSCRIPT = re.compile(r"ENS[A-Z]*T\d{6,}|[NX][MR]_\d+")
_MISSING = ("", "na", "nan", "n/a", "null", "none", ".", "-")
_UNDETECTED = ("undetermined", "undet", "undetected", "no ct", "nd")
# Numbers that stand for missing values; no expression value is as low as -99
_CODES = (-9.0, -99.0, -999.0, -9999.0, -99999.0)
# Probes of Affymetrix (also gene arrays), Illumina and Agilent
_PROBE = re.compile(
    r"(AFFX-.+|\d+(_[a-z]+)*_at|\d{7,8}|TC\w{6,}\.hg\.\d+|ILMN_\d+|A_\d\d_P\d+)"
)
# Words of clinical columns; no gene has such a symbol
_CLINICAL = re.compile(
    r"(^|[\W_])(age|ihc|percent|pct|bmi|weight|height|size|score|stage|grade|status|"
    r"survival|time|event|months|days|years|dose)([\W_]|$)|%",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[\W_]+")  # blanks and marks in the names of columns
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec"
_DATE = re.compile(
    rf"\d{{1,2}}-({_MONTHS})(-\d+)?|({_MONTHS})-\d{{1,2}}", re.IGNORECASE
)
_MANY = 20  # genes that tell what is usual; clinical columns are fewer
_FEWEST_SAMPLES = 5  # of fewer, whole numbers among logarithms are often chance
# Logarithms of genes lie closer together than this factor, and have medians below 20,
# the log2 of a million
_FACTOR = 3.0
_HIGHEST_MEDIAN = 20.0
_FEWEST_CYCLES = 5.0  # no gene is detected earlier by qPCR


@contextlib.contextmanager
def _open(path: Path, options: ReadOptions) -> Iterator[AnnData]:
    """Names of genes and annotations of samples of a table; its values are parsed and
    checked when they are read.

    With ``genes_in="columns"`` a line is a sample and ``annotations``, and the label,
    are the columns that describe samples. With ``genes_in="rows"`` a line is a gene and
    ``annotations`` are columns that describe genes; they are left out, save
    ``gene_column``, which then names the genes. A format that says where its genes are
    needs no ``genes_in``, see `optirank.io.table_files`.
    """
    table = open_table(path)
    in_rows = _are_genes_in_rows(table, options.genes_in)
    described = _described_columns(table, options, in_rows)
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
    notes = []
    if in_rows:
        genes = _names_of_lines(table, frame, beside, options, notes)
        samples = inside_names
        of_samples = table.layout.obs.items()
        annotations = {k: texts for k, texts in of_samples if len(texts) == len(inside)}
    else:
        genes = stripped(inside_names)
        samples = frame[0].to_numpy(dtype=object)
        annotations = {table.header[k]: frame[k].to_numpy() for k in beside}
    genes, spelling = plain_gene_names(genes)
    notes = [*spelling, *notes]
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
        _warn_of_names(matrix.genes, options.known_genes, table)
    obs = pd.DataFrame(annotations, index=pd.Index(samples, dtype=object))
    var = pd.DataFrame(index=pd.Index(matrix.genes, dtype=object))
    yield make_profiles(matrix, obs, var, str(path), notes=notes)


_TAKES = ("genes_in", "annotations", "drop_missing", "any_scale", "invert")
TABLE = Format("table", SUFFIXES, _open, _TAKES)
PARQUET = Format("parquet", (".parquet",), _open, _TAKES)


def _are_genes_in_rows(table: Table, genes_in: str | None) -> bool:
    """Where the genes are: as the format says, else as was said; it is not guessed."""
    format = table.layout.format
    if format and genes_in not in (None, "rows"):
        raise DataError(
            f"{table.path} is a {format} file, which has its genes in rows: leave "
            f"genes_in={genes_in!r} out"
        )
    if not format and genes_in not in ("rows", "columns"):
        n_lines = len(table.read([0]))
        raise DataError(
            f"{table.path} is a table of {n_lines} lines and {len(table.header) - 1} "
            "columns: say whether its genes are in 'rows' or in 'columns' (genes_in=), "
            "it is not guessed"
        )
    return genes_in != "columns"


def _described_columns(table: Table, options: ReadOptions, in_rows: bool) -> list[str]:
    """The columns that hold no expression, as the user says; those that are not there,
    or there twice, are refused.
    """
    described = [*options.annotations]
    if not in_rows and options.samples is None:
        described += options.label
    if options.gene_column:
        described.append(options.gene_column)
    columns = table.header[1:]
    absent = [name for name in described if name not in columns]
    if absent:
        hint = ""
        if bool(np.isin(table.read([0])[0].to_numpy(dtype=object), absent).any()):
            hint = "; it has such a line: is it transposed? (genes_in='rows')"
        raise DataError(
            f"{table.path} has no column {some(absent)}: there are "
            f"{some(columns, 20)}{hint}"
        )
    repeated = [name for name in duplicates(columns) if name in described]
    refuse_repeated(repeated, table.path)
    if options.gene_column and not in_rows:
        raise DataError(
            f"{table.path}: the gene column {options.gene_column!r} is for tables with "
            "genes in rows"
        )
    return described


def _about_genes(table: Table, described: Sequence[str]) -> list[str]:
    """Columns that are about genes, or not read, in a table with genes in rows."""
    left_out = table.layout.left_out
    return [
        name
        for name in table.header[1:]
        if name not in described
        and (name in left_out or _MARKS.sub("", name).casefold() in ABOUT_GENES)
    ]


def _empty_columns(table: Table) -> list[int]:
    """Columns without name and values, which a separator at the end of lines makes."""
    unnamed = [k for k, name in enumerate(table.header) if k and not name.strip()]
    if not unnamed:
        return []
    is_empty = table.read([0, *unnamed]).isin(["", None, np.nan]).to_numpy()[:, 1:]
    return [k for place, k in enumerate(unnamed) if is_empty[:, place].all()]


def _names_of_lines(
    table: Table,
    frame: pd.DataFrame,
    beside: Sequence[int],
    options: ReadOptions,
    notes: list[str],
) -> np.ndarray:
    """Names of the genes in rows: of the column that is asked for, else of that with
    most of the genes that are known. Transcripts, which no model knows, are refused.
    """
    known = set(options.known_genes)
    if options.gene_column:
        column = table.header.index(options.gene_column, 1)
    else:
        shared = {k: len(known.intersection(stripped(frame[k]))) for k in (0, *beside)}
        column = max(shared, key=lambda k: (shared[k], -k))
    if column and not options.gene_column:
        notes.append(
            f"genes are named by the column {table.header[column]!r}, which has more "
            "of the model's genes than the first"
        )
    names = stripped(frame[column])
    is_sample = table.layout.format in _OF_ONE_SAMPLE
    if is_sample and _TRANSCRIPT.match(next(iter(names), "")):
        raise DataError(
            f"{table.path} has the transcripts of one sample ({table.layout.format}), "
            f"such as {names[0]}: sum them by gene, of all samples together, in R: "
            "library(tximport); tximport(files, type = 'salmon', tx2gene = table), and "
            "write its matrix of abundances as a table"
        )
    return names


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
        whole = self._values
        values = self._parsed(columns) if whole is None else whole[:, columns]
        genes = self.genes[columns]
        path = self._table.path
        refuse_missing(values, genes, self.samples, path, self._code)
        if not self._options.any_scale and values.size:
            known = self._options.known_genes
            refuse_clinical(values, genes, known, path, self._in_rows)
            if not self._options.invert:
                warn_of_cycles(values, path)
        return values

    def drop_missing(self) -> None:
        """Leave out the genes that have missing values."""
        values = self._parsed(np.arange(len(self.genes)))
        is_complete = np.isfinite(values).all(axis=0)
        if not is_complete.any():
            raise DataError(
                f"{self._table.path}: every gene has a missing value: fill them in"
            )
        self.genes = self.genes[is_complete]
        self._values = values[:, is_complete]

    def _parsed(self, columns: np.ndarray) -> np.ndarray:
        chosen = self._inside if self._in_rows else [self._inside[k] for k in columns]
        invert = self._options.invert
        frame = self._table.read([0, *chosen])
        values = numbers_of(frame, chosen, self._table, cycles=invert)
        if self._in_rows:
            values = values[columns].T
        if not self._options.any_scale:
            self._code = missing_code(values)
        if self._code is not None:
            values = np.where(values == self._code, np.nan, values)
        return np.ascontiguousarray(inverted(values) if invert else values)


def numbers_of(
    frame: pd.DataFrame, columns: list[int], table: Table, *, cycles: bool = False
) -> np.ndarray:
    """The columns as numbers, NaN where a value is missing; words are refused.

    ``frame`` has the names of the lines in column 0; its columns are positions in the
    header. Columns that a missing value has left as text are written with the table's
    decimal mark. With ``cycles`` the values are Ct of qPCR, where "Undetermined" is
    infinite.
    """
    values = frame[columns]
    parsed = {}
    for k in values.select_dtypes(exclude="number"):
        text = frame[k].astype(str).str.strip()
        if cycles:
            text = text.where(~text.str.lower().isin(_UNDETECTED), "inf")
        text = text.str.replace(table.decimal, ".", regex=False)
        is_number = pd.Series(pd.to_numeric(text, errors="coerce")).notna()
        wrong = ~(is_number | text.str.lower().isin(_MISSING)).to_numpy()
        if wrong.any():
            _refuse_words(frame, k, wrong, table)
        # Not pandas' numbers, whose last bit may differ from those of other columns
        parsed[k] = text.where(is_number, "nan").astype(float)
    if not parsed:
        return values.to_numpy()
    numbers = [parsed.get(k, frame[k]) for k in columns]
    return pd.concat(numbers, axis=1).to_numpy(dtype=float)


def _refuse_words(
    frame: pd.DataFrame, column: int, wrong: np.ndarray, table: Table
) -> None:
    row = int(np.flatnonzero(wrong)[0])
    remedy = "correct it"
    if str(frame[column].iloc[row]).strip().lower() in _UNDETECTED:
        remedy = (
            "if these are Ct values of qPCR, of which less is more, say so (invert=)"
        )
    elif wrong.all():
        remedy = "if that column describes the lines, name it (annotations=)"
    raise DataError(
        f"{table.path}: line {frame[0].iloc[row]!r} (number {row + 1} below the "
        f"header), column {table.header[column]!r} holds {frame[column].iloc[row]!r}, "
        f"which is not a number: {remedy}"
    )


def missing_code(values: np.ndarray) -> float | None:
    """The number that stands for missing values, such as -999; None where none does.

    That is the lowest value: -9, -99, -999 and so on, where no other value is negative,
    or where it is -99 or less and no other is below a third of it. Among whole numbers,
    as counts are, -1 is one too.
    """
    code = float(np.min(values, where=np.isfinite(values), initial=0.0))
    if not code < 0:
        return None
    others = values[(values != code) & np.isfinite(values)]
    lowest = float(others.min()) if others.size else 0.0
    if code in _CODES and (lowest >= 0 or (code <= -99 and lowest > code / 3)):
        return code
    if code == -1 and lowest >= 0 and not np.any(others % 1):
        return code
    return None


def refuse_missing(
    values: np.ndarray,
    genes: np.ndarray,
    samples: np.ndarray,
    path: Path,
    code: float | None = None,
) -> None:
    """Refuse missing and infinite values, with the names of all their genes.

    ``code`` is a number that stands for missing values.
    """
    missing = ~np.isfinite(values)
    if not missing.any():
        return
    counts = missing.sum(axis=0)
    named = [f"{genes[j]} ({counts[j]})" for j in np.flatnonzero(counts)]
    in_sample = missing.any(axis=1)
    verb = "has" if len(named) == 1 else "have"
    coded = "" if code is None else f" ({code:g} stands for a missing one)"
    raise DataError(
        f"{path}: {len(named)} of {len(genes)} genes {verb} missing or infinite "
        f"values{coded}, in {int(in_sample.sum())} of {len(samples)} samples (first "
        f"{samples[in_sample][0]!r}): {some(named, 20)}; fill them in, or leave these "
        "genes out (drop_missing=True)"
        + ("" if code is None else "; if it is a value, say so (any_scale=True)")
    )


@functools.cache  # a file that is read again says it once
def _warn_once(message: str, *values: object) -> None:
    logger.warning(message, *values)


def _warn_of_names(genes: np.ndarray, known: Iterable[str], table: Table) -> None:
    """Warn of gene names that a spreadsheet turned into dates, and of probes of arrays,
    save where a model knows some of these.
    """
    dates = [name for name in genes if _DATE.fullmatch(name)]
    if dates:
        _warn_once(
            "%s: %s look like gene names that a spreadsheet turned into dates (1-Mar "
            "was MARCH1, 2-Sep was SEPT2): restore them, or they match no other data",
            table.path,
            some(dates),
        )
    n_probes = sum(_PROBE.fullmatch(name) is not None for name in genes)
    is_array = 2 * n_probes > len(genes) >= _MANY
    if is_array and set(known).isdisjoint(genes):
        page = "https://www.ncbi.nlm.nih.gov/geo/query/acc.cgi?acc="
        platform = table.layout.platform
        _warn_once(
            "%s: %s are probes of an array and no genes: they match only data of the "
            "same array; for genes, give a table of two columns, probe and symbol, "
            "made from the platform's table%s (homologs=)",
            table.path,
            some(genes[:3]),
            f" ({page}{platform})" if platform else "",
        )


def refuse_clinical(
    values: np.ndarray,
    genes: np.ndarray,
    known: Iterable[str],
    path: Path,
    in_rows: bool,
) -> None:
    """Refuse columns that look like clinical data among genes: by their name or scale.

    Nothing is refused with fewer than five samples, in which every whole number looks
    clinical, and never a gene that is ``known``, such as one of a model's panel.
    """
    if len(values) < _FEWEST_SAMPLES:
        return
    spared = {name.casefold() for name in known}
    odd = {j for j, name in enumerate(genes) if _CLINICAL.search(str(name))}
    odd |= _unlike_the_others(values)
    names = [str(genes[j]) for j in sorted(odd)]
    names = [name for name in names if name.casefold() not in spared]
    if not names:
        return
    where = "lines" if in_rows else "columns"
    remedy = f"name them as annotations (annotations={names[:3]!r})"
    if in_rows:
        remedy = "remove these lines"
    raise DataError(
        f"{path}: the {where} {some(names)} look like clinical data among the genes "
        f"(by their name, or by values unlike those of the others): {remedy}; if they "
        "are genes, say so (any_scale=True)"
    )


def _unlike_the_others(values: np.ndarray) -> set[int]:
    """Positions of a few columns that are on another scale than logarithms
    around them.
    """
    largest = np.abs(values).max(axis=0)
    median = np.median(np.abs(values), axis=0)
    # Most columns must look like logarithms; a few may be clinical ones
    usual = largest <= np.quantile(largest, 0.8)
    if values.shape[1] < _MANY or value_scale(values[:, usual]) != "log":
        return set()
    top = max(median[usual].max(), 1.0)
    whole = (values == np.rint(values)).all(axis=0)
    high = median > max(_FACTOR * top, _HIGHEST_MEDIAN)
    unlike = np.flatnonzero(high | (whole & (median > top)))
    if len(unlike) > _MANY:  # they are genes on a linear scale
        return set()
    return set(unlike.tolist())


def warn_of_cycles(values: np.ndarray, path: Path) -> None:
    """Warn of values that may be Ct of qPCR: 5 to 50, mostly above any logarithm."""
    if value_scale(values) != "log" or values.min() < _FEWEST_CYCLES:
        return
    if np.median(values) > _HIGHEST_MEDIAN:
        _warn_once(
            "%s: half of the values are above %g and none above 50, as those of Ct "
            "(qPCR), of which less is more: labels would be reversed; if they are, say "
            "so (invert=)",
            path,
            _HIGHEST_MEDIAN,
        )
