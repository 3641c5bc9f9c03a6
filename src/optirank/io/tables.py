"""CSV and TSV tables, plain or gzipped, with genes in rows or in columns as the caller says."""

from __future__ import annotations

import csv
import functools
import gzip
import logging
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from optirank._util.names import some
from optirank._util.scales import value_scale
from optirank.io.data import DataError, duplicates, readable
from optirank.io.stored import Sliceable

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("optirank.datasets")

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
_MISSING = ("", "na", "nan", "n/a", "null", "none", ".", "-")
_CLINICAL = re.compile(
    r"(^|[\W_])(age|ihc|percent|pct|bmi|weight|height|size|score|stage|grade|status|survival|time|"
    r"event|months|days|years|dose)([\W_]|$)|%",
    re.IGNORECASE,
)  # words of clinical columns; no gene has such a symbol
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec"
_DATE = re.compile(
    rf"\d{{1,2}}-({_MONTHS})(-\d+)?|({_MONTHS})-\d{{1,2}}", re.IGNORECASE
)
_MANY = 20  # genes that tell what is usual; clinical columns are fewer


def open_text(path: Path) -> IO[str]:
    """Open a text file (UTF-8), unpacking ``.gz``."""
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def separator(path: Path) -> str:
    """The separator of a table: that of its name, or else the one its header has most often."""
    usual = "," if ".csv" in path.suffixes[-2:] else "\t"
    with readable(path), open_text(path) as file:
        header = file.readline()
    return usual if usual in header else max((usual, ",", "\t", ";"), key=header.count)


def read_table(
    path: Path,
    *,
    genes_in: str | None,
    annotations: Sequence[str] = (),
    gene_column: str | None = None,
    drop_missing: bool = False,
    any_scale: bool = False,
) -> tuple[Sliceable, np.ndarray, pd.DataFrame]:
    """Read a table of numbers whose first column and first line hold the names.

    With ``genes_in="columns"`` a line is a sample and ``annotations`` are the columns that describe
    samples. With ``genes_in="rows"`` a line is a gene and ``annotations`` are columns that
    describe genes; they are left out, save ``gene_column``, which then names the genes. See
    `read_expression` for ``drop_missing`` and ``any_scale``.
    """
    import pandas as pd

    header, frame = _read_oriented(path, genes_in)
    described = [*annotations, *([gene_column] if gene_column else [])]
    _check_described(described, header, frame, path)
    if gene_column and genes_in == "columns":
        raise DataError(
            f"{path}: the gene column {gene_column!r} is for tables with genes in rows"
        )
    beside = [k for k, name in enumerate(header) if k and name in described]
    inside = [k for k in range(1, len(header)) if k not in set(beside)]
    if not inside or frame.empty:
        raise DataError(
            f"{path} holds no numbers: it has {len(frame)} lines, {len(inside)} columns"
        )
    values = _numbers(frame, inside, header, path)
    lines = frame[0].to_numpy(dtype=object)
    columns = np.array([header[k] for k in inside], dtype=object)
    if genes_in == "rows":
        genes = (
            frame[header.index(gene_column, 1)].to_numpy(dtype=object)
            if gene_column
            else lines
        )
        values, samples = np.ascontiguousarray(values.T), columns
        obs = pd.DataFrame(index=pd.Index(columns, dtype=str))
    else:
        genes, samples = columns, lines
        obs = pd.DataFrame(
            {header[k]: frame[k].to_numpy() for k in beside}, index=pd.Index(lines)
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        kept = _complete(values, genes, samples, path, drop_missing)
        values, genes = values[:, kept], genes[kept]
    if not any_scale:
        _point_out_dates(
            tuple(name for name in genes if _DATE.fullmatch(str(name))), path
        )
        _check_scales(values, genes, path, genes_in)
    return Sliceable(values), genes, obs


def read_gene_names(path: Path, genes_in: str | None) -> list[str]:
    """The names that a table has where its genes are, annotations among them."""
    header, frame = _read_oriented(path, genes_in)
    return header[1:] if genes_in == "columns" else frame[0].tolist()


def _read_annotations(path: Path, key: str | None) -> pd.DataFrame:
    """Read a table about samples, as text; their names are in the first column or in ``key``."""
    import pandas as pd

    header, frame = _read(path, text=True)
    _refuse_twice(duplicates(header), path)
    if key is not None and key not in header:
        raise DataError(f"{path} has no column {key!r}: there are {some(header, 20)}")
    names = 0 if key is None else header.index(key)
    twice = frame[names][frame[names].duplicated()]
    if len(twice):
        raise DataError(f"{path} names these samples more than once: {some(twice)}")
    frame.columns = pd.Index(header)
    index = pd.Index(frame.iloc[:, names].to_numpy(dtype=object), dtype=str)
    return frame.drop(columns=header[names]).replace("", np.nan).set_index(index)


def join_annotations(
    obs: pd.DataFrame, paths: Sequence[Path], source: str, key: str | None = None
) -> tuple[pd.DataFrame, np.ndarray]:
    """Annotations joined with tables about the samples, and the mask of the samples they name."""
    import pandas as pd

    table = pd.concat([_read_annotations(path, key) for path in paths])
    named = obs.index.isin(table.index)
    if not named.any():
        raise DataError(
            f"{paths[0]} names no sample of {source}: it has {some(table.index, 3)}, the data have "
            f"{some(obs.index, 3)}"
        )
    both = [column for column in table.columns if column in obs.columns]
    return obs.drop(columns=both).join(table), named


def _read_oriented(path: Path, genes_in: str | None) -> tuple[list[str], pd.DataFrame]:
    """Read a table, whose genes must be said to be in rows or in columns."""
    header, frame = _read(path)
    if genes_in not in ("rows", "columns"):
        raise DataError(
            f"{path} is a table of {len(frame)} lines and {len(header) - 1} columns: say whether "
            "its genes are in 'rows' or in 'columns' (genes_in=, --genes-in), it is not guessed"
        )
    return header, frame


def _read(path: Path, *, text: bool = False) -> tuple[list[str], pd.DataFrame]:
    """Read a table: its header, and the lines below with columns numbered from 0."""
    import pandas as pd

    sep = separator(path)
    with readable(path), open_text(path) as file:
        reader = csv.reader(file, delimiter=sep)
        header, first = next(reader, []), next(reader, [])
    if len(header) == 1 and not text:
        raise DataError(
            f"{path} has a single column: separate its columns by commas, tabs or semicolons"
        )
    if not first:
        raise DataError(
            f"{path} is empty: it should have a header line and a line for each entry"
        )
    if len(first) == len(header) + 1:  # R writes no name above the names of rows
        header = ["", *header]
    with readable(path), open_text(path) as file, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(
            file,
            sep=sep,
            decimal=","
            if sep != "," and any(map(_DECIMAL_COMMA.fullmatch, first))
            else ".",
            header=0,
            names=list(range(len(header))),
            index_col=False,
            dtype=str if text else {0: str},
            keep_default_na=False,
            float_precision="round_trip",
            low_memory=False,
        )
    return header, frame


def _check_described(
    described: Sequence[str], header: list[str], frame: pd.DataFrame, path: Path
) -> None:
    """Refuse names of columns that are not there, or there twice."""
    absent = [name for name in described if name not in header[1:]]
    if absent:
        hint = ""
        if frame[0].isin(absent).any():
            hint = "; it has such a line: is it transposed? (genes_in='rows', --genes-in rows)"
        raise DataError(
            f"{path} has no column {some(absent)}: there are {some(header[1:], 20)}{hint}"
        )
    _refuse_twice([name for name in duplicates(header[1:]) if name in described], path)


def _refuse_twice(twice: list[str], path: Path) -> None:
    if twice:
        raise DataError(
            f"{path} has several columns called {some(twice)}: rename or remove them"
        )


def _numbers(
    frame: pd.DataFrame, columns: list[int], header: list[str], path: Path
) -> np.ndarray:
    """The columns as numbers, NaN where a value is missing; words are refused."""
    import pandas as pd

    parsed = {}
    for k in columns:
        if frame[k].dtype.kind in "iuf":
            continue
        text = frame[k].astype(str).str.strip()
        parsed[k] = pd.to_numeric(text, errors="coerce")
        wrong = (parsed[k].isna() & ~text.str.lower().isin(_MISSING)).to_numpy()
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            remedy = "correct it"
            if wrong.all():
                remedy = "if that column describes the lines, name it (annotations=, --annotations)"
            raise DataError(
                f"{path}: line {frame[0].iloc[row]!r} (number {row + 1} below the header), column "
                f"{header[k]!r} holds {frame[k].iloc[row]!r}, which is not a number: {remedy}"
            )
    if not parsed:
        return frame[columns].to_numpy()
    return pd.concat([parsed.get(k, frame[k]) for k in columns], axis=1).to_numpy(
        dtype=float
    )


def _complete(
    values: np.ndarray, genes: np.ndarray, samples: np.ndarray, path: Path, drop: bool
) -> np.ndarray:
    """The positions of genes without missing values, if the others may be left out."""
    missing = ~np.isfinite(values)
    counts = missing.sum(axis=0)
    if not drop:
        named = [f"{genes[j]} ({counts[j]})" for j in np.flatnonzero(counts)]
        row = samples[int(np.flatnonzero(missing.any(axis=1))[0])]
        has = "has" if len(named) == 1 else "have"
        raise DataError(
            f"{path}: {len(named)} of {len(genes)} genes {has} missing or infinite values, in "
            f"{int(missing.any(axis=1).sum())} of {len(samples)} samples (first {row!r}): "
            f"{some(named, 20)}; fill them in, or leave these genes out (drop_missing=True, "
            "--drop-missing-genes)"
        )
    if not (counts == 0).any():
        raise DataError(f"{path}: every gene has a missing value: fill them in")
    return np.flatnonzero(counts == 0)


@functools.cache  # a file that is read again says it once
def _point_out_dates(dates: tuple[str, ...], path: Path) -> None:
    if dates:
        logger.warning(
            "%s: %s look like gene names that a spreadsheet turned into dates (1-Mar was MARCH1, "
            "2-Sep was SEPT2): restore them, or they match no other data",
            path,
            some(dates),
        )


def _check_scales(
    values: np.ndarray, genes: np.ndarray, path: Path, genes_in: str
) -> None:
    """Refuse columns that look like clinical data among genes: by their name or their scale."""
    odd = {j for j, name in enumerate(genes) if _CLINICAL.search(str(name))}
    largest, median = np.abs(values).max(axis=0), np.median(np.abs(values), axis=0)
    # Most columns must look like logarithms; a few may be clinical ones
    usual = largest <= np.quantile(largest, 0.8)
    if len(genes) >= _MANY and value_scale(values[:, usual]) == "log":
        top = max(median[usual].max(), 1.0)
        whole = (values == np.rint(values)).all(axis=0)
        # Logarithms of genes lie closer together than a factor of 3, and have medians below 20,
        # the log2 of a million
        high = median > max(3.0 * top, 20.0)
        unlike = np.flatnonzero(high | (whole & (median > top)))
        if len(unlike) <= _MANY:  # more are genes on a linear scale
            odd |= set(unlike.tolist())
    if odd:
        names = [str(genes[j]) for j in sorted(odd)]
        where = "columns" if genes_in == "columns" else "lines"
        remedy = f"name them as annotations (annotations={names[:3]!r}, --annotations {names[0]})"
        if genes_in == "rows":
            remedy = "remove these lines"
        raise DataError(
            f"{path}: the {where} {some(names)} look like clinical data among the genes (by their "
            f"name, or by values unlike those of the others): {remedy}; if they are genes, give "
            "any_scale=True"
        )
