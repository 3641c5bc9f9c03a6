"""Read expression data from files: AnnData (.h5ad, .zarr), 10x, .loom and tables, and
write them as .h5ad and .csv.

A file format is one `Format`, an entry of `FORMATS`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from anndata import AnnData

from optirank._util.files import replacing
from optirank._util.matrices import as_dense
from optirank._util.names import counted, some, valid_text
from optirank.io.data import (
    DataError,
    about,
    annotations_of,
    check_column,
    duplicates,
    features_of,
    make_profiles,
    notes_of,
    readable,
    source_of,
    used_features,
    used_names,
)
from optirank.io.formats import H5AD, ZARR, Format, ReadOptions
from optirank.io.genes import with_named_genes
from optirank.io.passes import columns_of, read_features
from optirank.io.table_files import open_table, refuse_repeated
from optirank.io.tables import PARQUET, TABLE
from optirank.io.tenx_loom import LOOM, TENX_FOLDER, TENX_H5

logger = logging.getLogger("optirank.datasets")

_EXACT = 2**53  # whole numbers up to here are exact in double precision


FORMATS: dict[str, Format] = {
    known.name: known
    for known in (H5AD, ZARR, TENX_H5, TENX_FOLDER, LOOM, TABLE, PARQUET)
}
_TABLES = (TABLE.name, PARQUET.name)
_R_OBJECT = "in R: library(zellkonverter); writeH5AD(OBJECT, {new!r})"
_EXCEL = (
    "in Python: import pandas; pandas.read_excel({name!r}).to_csv({csv!r}, index=False)"
)
# Files that are not read, and what converts them
_CONVERTED = {
    ".rds": "in R: library(Seurat); library(zellkonverter); "
    "writeH5AD(as.SingleCellExperiment(readRDS({name!r})), {new!r})",
    ".rda": _R_OBJECT,
    ".rdata": _R_OBJECT,
    ".h5seurat": "in R: SeuratDisk::Convert({name!r}, dest = 'h5ad')",
    ".xlsx": _EXCEL,
    ".xls": _EXCEL,
}


def guess_format(path: Path) -> str:
    """The format that a file's name or a folder's content says."""
    path = Path(path)
    is_folder = path.is_dir()
    for known in FORMATS.values():
        has_ending = path.suffix.lower() in known.suffixes
        if known.is_folder(path) if is_folder else has_ending:
            return known.name
    if is_folder:
        raise DataError(
            f"{path} is a folder without matrix.mtx (10x) and not a zarr: name a file"
        )
    if any(ending.lower() in TABLE.suffixes for ending in path.suffixes[-2:]):
        return TABLE.name  # .csv.gz
    if path.suffix.lower() in _CONVERTED:
        remedy = _CONVERTED[path.suffix.lower()].format(
            name=str(path), new=f"{path.stem}.h5ad", csv=f"{path.stem}.csv"
        )
        raise DataError(
            f"{path}: {path.suffix} files are not read: convert it first, {remedy}"
        )
    suffixes = [suffix for known in FORMATS.values() for suffix in known.suffixes]
    raise DataError(
        f"{path}: its name has no ending of a known format ({some(suffixes, 20)}, a "
        f"10x folder): give the format, one of {some(FORMATS)} (format=)"
    )


def check_path(path: str | os.PathLike[str]) -> Path:
    """A file or folder that is there; the error of one that is not says why."""
    path = Path(path)
    try:
        os.stat(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except OSError as error:
        what = f"{str(path)[:200]} cannot be opened ({error.strerror})"
        raise DataError(f"{what}: check the path") from error
    except ValueError as error:  # a name with a null character
        raise DataError(f"{str(path)!r} is no name of a file: {error}") from error
    return path


@contextlib.contextmanager
def open_file(path: str | os.PathLike[str], **options: Any) -> Iterator[AnnData]:
    """Open expression data and leave the values where they are, see `optirank.io.data`.

    Options are those of `read_expression`; one that the format does not have is
    refused.
    """
    path = check_path(path)
    if isinstance(options.get("label"), str):
        options["label"] = (options["label"],)
    for name in ("label", "annotations", "known_genes"):
        options[name] = tuple(options.get(name) or ())
    if options.get("samples") is not None:
        options["samples"] = str(check_path(options["samples"]))
    options["format"] = options.get("format") or guess_format(path)
    if options["format"] not in FORMATS:
        raise DataError(f"format {options['format']!r}: use one of {some(FORMATS)}")
    asked = ReadOptions(**options)
    for option in fields(ReadOptions):
        takers = [
            known.name for known in FORMATS.values() if option.name in known.takes
        ]
        if takers and getattr(asked, option.name) and asked.format not in takers:
            raise DataError(
                f"{path}: {option.name}= is for {some(takers)}, not {asked.format}"
            )
    store = Store(str(path), asked, signature(path))
    with contextlib.ExitStack() as stack:
        yield _with_genes_and_annotations(store.open(stack), store)


class ChangedFileError(DataError):
    """A file that has changed since it was opened."""


def signature(path: str | Path) -> tuple[int, ...]:
    """The last change and the size; of a folder the last change of all folders and of
    the files right in it, and the size of these.

    A chunk of a zarr store that is written again changes the time of its folder.
    """
    path = Path(path)
    is_folder = path.is_dir()
    files = [part for part in path.iterdir() if part.is_file()] if is_folder else [path]
    folders = [folder for folder, _, _ in os.walk(path)]
    times = [os.stat(part).st_mtime_ns for part in (*files, *folders)]
    return max(times), sum(file.stat().st_size for file in files)


def check_unchanged(path: str | Path, mark: tuple[int, ...]) -> None:
    """Refuse a file whose signature is another one now, or here."""
    host = socket.gethostname()
    try:
        now = signature(path)
    except OSError as error:
        raise ChangedFileError(
            f"{path} cannot be read on {host} ({error.strerror}): put it where all "
            "workers see it under this name, and start again"
        ) from None
    if now != mark:
        raise ChangedFileError(
            f"{path} has changed while it was being read, or is another file on "
            f"{host}: put one file where all workers see it, and start again"
        )


class Store(NamedTuple):
    """How this process, or another one, opens a file."""

    path: str
    options: ReadOptions
    mark: tuple[int, ...]  # the signature of the file

    def open(self, stack: contextlib.ExitStack) -> AnnData:
        """What the file holds, which the stack closes."""
        chosen = FORMATS[str(self.options.format)]
        with readable(self.path):
            return stack.enter_context(chosen.open(Path(self.path), self.options))


def _with_genes_and_annotations(stored: AnnData, store: Store) -> AnnData:
    """What a file holds, with the genes and the annotations that are asked for."""
    path, options = store.path, store.options
    # The reader of a table looks for the column itself
    gene_column = None if options.format in _TABLES else options.gene_column
    with readable(path):
        named = with_named_genes(stored, gene_column)
    if options.samples is not None:
        named.obs, is_named = join_annotations(
            annotations_of(named), [Path(options.samples)], path
        )
        if not is_named.all():
            logger.warning(
                "%s has no entry for %s",
                options.samples,
                counted(int((~is_named).sum()), "sample", "samples"),
            )
    for column in options.label:
        check_column(annotations_of(named), column, options.samples or path)
    text = valid_text(path)
    about(named).update(source=text, name=text, store=store)
    return named


def join_annotations(
    obs: pd.DataFrame, paths: Sequence[Path], source: str, key: str | None = None
) -> tuple[pd.DataFrame, np.ndarray]:
    """Annotations joined with tables about samples, and the mask of samples
    they name.
    """
    table = pd.concat([_read_annotations(path, key) for path in paths])
    named = np.asarray(obs.index.isin(table.index))
    if not named.any():
        raise DataError(
            f"{paths[0]} names no sample of {source}: it has {some(table.index, 3)}, "
            f"the data have {some(obs.index, 3)}"
        )
    other = obs.drop(columns=[*table.columns], errors="ignore")
    return other.join(table), named


def _read_annotations(path: Path, key: str | None) -> pd.DataFrame:
    """A table about samples, as text; their names are in the first column or in
    ``key``.
    """
    table = open_table(path, as_text=True)
    header = table.header
    refuse_repeated(duplicates(header), path)
    if key is not None and key not in header:
        raise DataError(f"{path} has no column {key!r}: there are {some(header, 20)}")
    frame = table.read(range(len(header))).set_axis(header, axis=1)
    frame = frame.set_index(header[0] if key is None else key).replace("", np.nan)
    frame.index = frame.index.astype(str).rename(None)
    repeated = frame.index[frame.index.duplicated()]
    if len(repeated):
        raise DataError(f"{path} names these samples more than once: {some(repeated)}")
    return frame


@contextlib.contextmanager
def open_expression(path: str | os.PathLike[str], **options: Any) -> Iterator[AnnData]:
    """Open expression data as an AnnData whose ``X`` stays where it is stored.

    Values of tables and .loom files are read. Options are those of `read_expression`.
    """
    with open_file(path, **options) as opened:
        _warn_of_repeated_genes(opened)
        yield _with_values(opened) if opened.X is None else opened


def read_expression(
    path: str | Path, *, genes: Sequence[str] | np.ndarray | None = None, **options
) -> AnnData:
    """Read expression profiles from a file into an AnnData.

    Parameters
    ----------
    path : a .h5ad, .h5mu, .h5 (10x) or .loom file, a .zarr or 10x folder, a .parquet
        file, or a .csv/.tsv/.txt table (also .gz); suffixes in any case
    genes : names or positions of genes, to read only these, in this order
    format : "h5ad", "zarr", "10x_h5", "10x_mtx", "loom", "table" or "parquet", where
        the name does not tell
    label : a column of the annotations that must be there, or several
    layer : a layer of an AnnData or .loom file instead of ``X``
    use_raw : whether to read ``raw`` of an AnnData file instead of ``X``
    table : which table of a SpatialData folder, or modality of a .h5mu file
    gene_column : a column of ``var`` instead of its index; "id" instead of the name for
        10x
    genes_in : "rows" or "columns"; required for tables whose format does not say it
    annotations : columns of a table that hold no expression
    samples : a table about the samples (names first), joined to the annotations
    drop_missing : leave out the genes of a table that have missing values, instead of
        refusing it
    any_scale : accept genes of a table that look like clinical columns (age, IHC %)
    invert : of the values of a table, less is more, such as Ct of qPCR
    known_genes : names that are genes, such as those of a model's panel, and therefore
        never taken for clinical columns

    Returns
    -------
    AnnData
        ``X`` is an array or a CSR matrix, ``var_names`` are the genes, ``obs`` the
        annotations, and ``uns["optirank"]["notes"]`` says what was left out or changed.
    """
    with open_file(path, **options) as opened:
        _warn_of_repeated_genes(opened)
        return _with_values(opened, genes)


def _warn_of_repeated_genes(opened: AnnData) -> None:
    """Log genes that share a name; training and prediction note what they do with them,
    see `unique_genes`.
    """
    repeated = duplicates(used_names(opened))
    if repeated:
        logger.warning(
            "%s: %s more than once: %s",
            source_of(opened),
            counted(len(repeated), "gene name occurs", "gene names occur"),
            some(repeated),
        )


def _with_values(
    opened: AnnData, genes: Sequence[str] | np.ndarray | None = None
) -> AnnData:
    """The values of genes (names or positions among those in use; None: all)."""
    source = source_of(opened)
    columns = np.flatnonzero(used_features(opened))
    wanted = np.arange(len(columns)) if genes is None else np.asarray(genes)
    twice = duplicates(wanted.tolist())
    if twice:
        raise DataError(f"{source}: asked for the same gene twice: {some(twice)}")
    if wanted.dtype.kind in "iu":
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(columns)):
            raise DataError(f"{source}: gene positions must be 0 to {len(columns) - 1}")
        columns = columns[wanted]
    else:
        several = set(duplicates(used_names(opened))).intersection(wanted.tolist())
        if several:
            raise DataError(
                f"{source} has several genes called {some(sorted(several))}: ask for "
                "them by position, or take other names (gene_column=)"
            )
        columns, _ = columns_of(opened, wanted)
    return make_profiles(
        read_features(opened, columns),
        annotations_of(opened),
        features_of(opened).iloc[columns],
        source,
        notes=notes_of(opened),
    )


def is_table(path: Path, format: str | None = None) -> bool:
    """Whether a file is there and is a table, so that ``genes_in`` must be said."""
    return path.exists() and (format or guess_format(path)) in _TABLES


def read_gene_names(path: Path, genes_in: str | None = None) -> list[str]:
    """The names of a file's genes; of a table, annotations may be among them."""
    options = {"genes_in": genes_in, "any_scale": True} if is_table(path) else {}
    with open_file(path, **options) as opened:
        return used_names(opened).tolist()


def write_h5ad(
    data: AnnData, path: str | Path, source: dict[str, str] | None = None
) -> Path:
    """Write values, names and annotations as a gzipped .h5ad file, whole or not at all.

    ``source`` goes to ``uns``.
    """
    obs = annotations_of(data)
    texts = [name for name in obs if pd.api.types.is_object_dtype(obs[name])]
    obs = obs.astype(dict.fromkeys(texts, "category"))
    uns = {"source": source} if source else None
    with warnings.catch_warnings(), replacing(path) as temporary:
        warnings.filterwarnings("ignore", message=".*names are not unique")
        whole = AnnData(data.X, obs, features_of(data).iloc[:, :0], uns)
        whole.write_h5ad(temporary, compression="gzip")
    return Path(path)


def write_table(data: AnnData, path: str | Path) -> Path:
    """Write a CSV table (.csv, .csv.gz): samples as lines with their annotations."""
    values = as_dense(data.X)
    is_exact = values.size and np.abs(values).max() < _EXACT
    if is_exact and (values == np.rint(values)).all():
        values = values.astype(np.int64)  # 3, not 3.0
    frame = pd.DataFrame(values, index=data.obs_names, columns=data.var_names)
    frame = pd.concat([annotations_of(data), frame], axis=1)
    packed = "gzip" if Path(path).suffix.lower() == ".gz" else None
    with replacing(path) as temporary:
        frame.to_csv(temporary, index_label="sample", compression=packed)
    return Path(path)
