"""Text files of profiles: CSV and TSV tables, and 10x Genomics output (its folder and .h5 file)."""

from __future__ import annotations

import csv
import functools
import gzip
import logging
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.datasets.data import DataError, duplicates, readable
from optirank.datasets.stored import CompressedRows, Sliceable, StoredMatrix
from optirank.preprocessing.scales import value_scale

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("optirank.datasets")

# The matrix, the names of the genes, the annotations, and other names that the genes have.
Parts = tuple[StoredMatrix, np.ndarray, "pd.DataFrame", dict[str, np.ndarray]]

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*")
_MISSING = ("", "na", "nan", "n/a", "null", "none", ".", "-")
_CLINICAL = re.compile(
    r"(^|[\W_])(age|ihc|percent|pct|bmi|weight|height|size|score|stage|grade|status|survival|time|"
    r"event|months|days|years|dose)([\W_]|$)|%",
    re.IGNORECASE,
)  # words of clinical columns; no gene has such a symbol
_EXPRESSION = "Gene Expression"  # the features of 10x that are genes
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec"
_DATE = re.compile(rf"\d{{1,2}}-({_MONTHS})(-\d+)?|({_MONTHS})-\d{{1,2}}", re.IGNORECASE)
_SMALL = 1 << 26  # bytes that any array may have, such as one that was never written
_EXPANSION = 1 << 14  # compressors reach more than the thousand of deflate; a bomb exceeds this
_MANY = 20  # genes that tell what is usual; clinical columns are fewer
_USUAL = 0.8  # of the columns, by their largest value: those that must look like logarithms
_HIGHEST = 20.0  # log2 of a million: medians of logarithms stay below
_FACTOR = 3.0  # of the largest median of another gene: logarithms of genes lie closer together


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
) -> Parts:
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
        raise DataError(f"{path}: the gene column {gene_column!r} is for tables with genes in rows")
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
        genes = frame[header.index(gene_column, 1)].to_numpy(dtype=object) if gene_column else lines
        values, samples = np.ascontiguousarray(values.T), columns
        obs = pd.DataFrame(index=pd.Index(columns, dtype=str))
    else:
        genes, samples = columns, lines
        obs = pd.DataFrame({header[k]: frame[k].to_numpy() for k in beside}, index=pd.Index(lines))
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        kept = _complete(values, genes, samples, path, drop_missing)
        values, genes = values[:, kept], genes[kept]
    if not any_scale:
        _point_out_dates(tuple(name for name in genes if _DATE.fullmatch(str(name))), path)
        _check_scales(values, genes, path, genes_in)
    return Sliceable(values), genes, obs, {}


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
        raise DataError(f"{path} is empty: it should have a header line and a line for each entry")
    if len(first) == len(header) + 1:  # R writes no name above the names of rows
        header = ["", *header]
    with readable(path), open_text(path) as file, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(
            file,
            sep=sep,
            decimal="," if sep != "," and any(map(_DECIMAL_COMMA.fullmatch, first)) else ".",
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
        raise DataError(f"{path} has several columns called {some(twice)}: rename or remove them")


def _numbers(frame: pd.DataFrame, columns: list[int], header: list[str], path: Path) -> np.ndarray:
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
    return pd.concat([parsed.get(k, frame[k]) for k in columns], axis=1).to_numpy(dtype=float)


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


def _check_scales(values: np.ndarray, genes: np.ndarray, path: Path, genes_in: str) -> None:
    """Refuse columns that look like clinical data among genes: by their name or their scale."""
    odd = {j for j, name in enumerate(genes) if _CLINICAL.search(str(name))}
    largest, median = np.abs(values).max(axis=0), np.median(np.abs(values), axis=0)
    usual = largest <= np.quantile(largest, _USUAL)
    if len(genes) >= _MANY and value_scale(values[:, usual]) == "log":
        top = max(median[usual].max(), 1.0)
        whole = (values == np.rint(values)).all(axis=0)
        high = median > max(_FACTOR * top, _HIGHEST)
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


def find_part(folder: Path, *stems: str) -> Path | None:
    """Return the first file of the folder named as one of ``stems``, plain or gzipped."""
    names = [f"{stem}{end}" for stem in stems for end in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_tenx_folder(folder: Path, gene_column: str | None) -> Parts:
    """Read matrix.mtx, features.tsv (or genes.tsv) and barcodes.tsv, plain or gzipped."""
    import pandas as pd

    wanted = {
        "matrix.mtx": find_part(folder, "matrix.mtx"),
        "features.tsv": find_part(folder, "features.tsv", "genes.tsv"),
        "barcodes.tsv": find_part(folder, "barcodes.tsv"),
    }
    missing = [name for name, found in wanted.items() if found is None]
    if missing:
        raise DataError(f"{folder} is not a 10x folder: it has no {some(missing)} (plain or .gz)")
    matrix_file, features_file, barcodes_file = wanted.values()
    features = [line.split("\t") for line in _lines(features_file)]
    barcodes = [line.split("\t")[0] for line in _lines(barcodes_file)]
    with readable(matrix_file):
        matrix = _read_matrix(matrix_file, (len(features), len(barcodes)))
    table = {
        "id": [fields[0] for fields in features],
        "name": [fields[min(1, len(fields) - 1)] for fields in features],
    }
    kinds = [fields[2] if len(fields) > 2 else _EXPRESSION for fields in features]
    kept, names, others = _expressed(table, np.array(kinds), gene_column, folder)
    if kept is not None:
        matrix = matrix[:, kept]
    return Sliceable(matrix), names, pd.DataFrame(index=pd.Index(barcodes, dtype=str)), others


def _read_matrix(path: Path, shape: tuple[int, int]) -> Any:
    """Read a sparse matrix of genes by cells, transposed; sizes are checked before entries.

    scipy's ``mmread`` ends the process on some damaged files, so the entries are read by pandas.
    """
    import pandas as pd
    from scipy.io import mminfo
    from scipy.sparse import csr_matrix

    n_rows, n_columns, n_entries, form, field, symmetry = mminfo(str(path))
    if (n_rows, n_columns) != shape:
        raise DataError(
            f"{path} holds {n_rows} genes x {n_columns} cells, but the other files name {shape[0]} "
            f"genes and {shape[1]} cells"
        )
    if form != "coordinate" or symmetry != "general" or n_entries > n_rows * n_columns:
        raise DataError(
            f"{path} is no general sparse matrix, or says it has {n_entries} entries, more than "
            "its places"
        )
    with open_text(path) as file:
        while file.readline().startswith("%"):  # up to the line with the sizes
            pass
        kinds = {0: np.int64, 1: np.int64}
        if field != "pattern":
            kinds[2] = np.int64 if field == "integer" else np.float64
        entries = pd.read_csv(file, sep=r"\s+", header=None, names=list(kinds), dtype=kinds)
    rows, columns = entries[0].to_numpy() - 1, entries[1].to_numpy() - 1
    if len(entries) != n_entries:
        raise ValueError(f"it says it has {n_entries} entries and has {len(entries)}")
    if n_entries and (min(rows.min(), columns.min()) < 0 or not (rows < n_rows).all()):
        raise ValueError(f"it has entries outside of its {n_rows} x {n_columns} places")
    values = entries[2].to_numpy() if 2 in entries else np.ones(n_entries)
    return csr_matrix((values, (columns, rows)), shape=(n_columns, n_rows))


def tenx_parts(file: Any, path: Path, gene_column: str | None) -> Parts:
    """Find matrix (left on disk), gene names and cells in a 10x .h5 file of version 2 or 3."""
    import pandas as pd

    groups = [key for key in file if hasattr(file[key], "keys") and "indptr" in file[key]]
    if "X" in file or not groups:
        hint = ": it looks like AnnData, use format='h5ad'" if "X" in file else ""
        raise DataError(f"{path} is not a 10x file: it has no group with a matrix{hint}")
    if len(groups) > 1:
        raise DataError(f"{path} holds several genomes, {some(groups)}: split it first")
    group = file[groups[0]]
    check_sizes(group, path)
    if "features" in group:
        features = group["features"]
        table = {"id": _text(features["id"]), "name": _text(features["name"])}
        kinds = np.array(_text(features["feature_type"])) if "feature_type" in features else None
    else:
        table, kinds = {"id": _text(group["genes"]), "name": _text(group["gene_names"])}, None
    kept, names, others = _expressed(table, kinds, gene_column, path)
    barcodes = _text(group["barcodes"])
    shape = (len(barcodes), len(table["id"]))
    obs = pd.DataFrame(index=pd.Index(barcodes, dtype=str))
    return CompressedRows(group, shape, kept), names, obs, others


def _expressed(
    table: dict[str, list[str]], kinds: np.ndarray | None, gene_column: str | None, path: Path
) -> tuple[np.ndarray | None, np.ndarray, dict[str, np.ndarray]]:
    """Return the positions of genes (None: all are), their names and their other names."""
    column = gene_column or "name"
    if column not in table:
        raise DataError(f"{path} has no gene column {column!r}: use one of {some(table)}")
    named = {key: np.array(names, dtype=object) for key, names in table.items()}
    names = named.pop(column)
    if kinds is None or (kinds == _EXPRESSION).all():
        return None, names, named
    kept = np.flatnonzero(kinds == _EXPRESSION)
    logger.info("%s: %d features that are not genes are left out", path, len(kinds) - len(kept))
    return kept, names[kept], {key: others[kept] for key, others in named.items()}


def _lines(path: Path) -> list[str]:
    with readable(path), open_text(path) as file:
        return [line.rstrip("\r\n") for line in file if line.strip()]


def _text(array: Any) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for value in array[:]]


def check_sizes(element: Any, path: Path) -> None:
    """Refuse an array, or a group of arrays, that says it is far larger than what is stored."""
    if hasattr(element, "keys"):
        for key in element:
            check_sizes(element[key], path)
        return
    if element.shape is None:
        return
    low = getattr(element, "id", None)
    stored = low.get_storage_size() if hasattr(low, "get_storage_size") else element.nbytes_stored
    stored = stored() if callable(stored) else stored
    declared = int(np.prod(element.shape, dtype=object)) * max(1, element.dtype.itemsize)
    if declared > max(_SMALL, _EXPANSION * stored):
        raise DataError(
            f"{path} cannot be read, {element.name} says it has {tuple(element.shape)} values, "
            "more than are stored: it may be damaged (copy or fetch it again)"
        )
