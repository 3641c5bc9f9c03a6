"""Open files as profiles, several as one reference, and tables about samples that are
joined to them.

What a file is follows from its name, and for folders and HDF5 from its content.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from optirank._util.words import collected_notes, counted, note, some, valid_text
from optirank.data.genes import join_profiles
from optirank.data.objects import profiles_of_parts
from optirank.data.profiles import (
    FILE_COLUMN,
    DataError,
    Opening,
    Profiles,
    check_column,
    duplicates,
    readable,
)
from optirank.data.stores import (
    find_part,
    open_store,
    profiles_of_folder,
    stored_matrix,
)
from optirank.data.tables import PARQUET, SUFFIXES, profiles_of_table, read_table

STORES = (".h5ad", ".h5mu", ".h5", ".zarr")


@contextlib.contextmanager
def open_profiles(
    path: str | os.PathLike[str],
    *,
    label: Sequence[str] | str = (),
    layer: str | None = None,
    table: str | None = None,
    gene_column: str | None = None,
    genes_in: str | None = None,
    samples: str | os.PathLike[str] | None = None,
    invert: bool = False,
    known_genes: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Iterator[Profiles]:
    """Open a file or folder as profiles; values of stores stay where they are.

    Parameters
    ----------
    path : a .h5ad, .h5mu or .h5 (10x) file, a .zarr or 10x folder, a .parquet file, or
        a .csv, .tsv, .txt or .tab table (also .gz).
    label : columns of annotations that must be there; of a table these are no genes.
    layer : a layer of an AnnData to read instead of ``X``; "raw" for its raw.
    table : which table of a SpatialData folder, or modality of a .h5mu file.
    gene_column : the column with the names of the genes; "id" instead of the name for
        10x. None for the usual names, or the column with far more of ``known_genes``.
    genes_in : "rows" or "columns" of a table; None where known genes, the samples or
        the labels tell.
    samples : a table about the samples (names first), joined to the annotations.
    invert : whether of the values of a table less is more, such as Ct of qPCR.
    known_genes : the genes of a model.
    exclude : columns of a table that are no genes, though they hold numbers.
    """
    path = check_path(path)
    label = (label,) if isinstance(label, str) else tuple(label)
    kind = file_kind(path)
    options: dict[str, Any] = {
        "label": label,
        "layer": layer,
        "table": table,
        "gene_column": gene_column,
        "genes_in": genes_in,
        "samples": None if samples is None else os.path.abspath(samples),
        "invert": invert,
        "known_genes": tuple(known_genes),
        "exclude": tuple(exclude),
    }
    if kind != "store" and (layer or table):
        raise DataError(f"{path}: layer= and table= are for AnnData: leave them out")
    if kind != "table" and invert:
        raise DataError(f"{path}: invert= is for tables: leave it out")
    about = None if samples is None else read_annotations(check_path(samples))
    with contextlib.ExitStack() as stack:
        with readable(path), collected_notes() as said:
            if kind == "table":
                profiles = profiles_of_table(
                    path,
                    label=() if about is not None else label,
                    sample_names=() if about is None else about.index,
                    gene_column=gene_column,
                    genes_in=genes_in,
                    invert=invert,
                    known_genes=known_genes,
                    exclude=exclude,
                )
            elif kind == "folder of 10x":
                profiles = profiles_of_folder(path, gene_column, known_genes)
            else:
                profiles = profiles_of_parts(
                    open_store(path, table, stack),
                    str(path),
                    layer,
                    gene_column,
                    known_genes,
                    stored_matrix,
                )
            obs = profiles.obs
            if about is not None:
                obs = _joined_annotations(obs, about, Path(str(samples)), str(path))
            for column in label:
                check_column(obs, column, str(samples or path))
        yield replace(
            profiles,
            obs=obs,
            source=valid_text(path),
            notes=tuple(said.notes),
            opening=Opening(
                os.path.abspath(path), os.stat(path).st_mtime_ns, tuple(options.items())
            ),
        )


def check_path(path: str | os.PathLike[str]) -> Path:
    """A file or folder that is there."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    return path


def file_kind(path: Path) -> str:
    """What a file or folder is: "store", "folder of 10x" or "table"."""
    suffix = path.suffix.lower()
    if path.is_dir():
        marks = [path / name for name in (".zgroup", "zarr.json")]
        if suffix == ".zarr" or any(mark.exists() for mark in marks):
            return "store"
        if find_part(path, "matrix.mtx") is not None:
            return "folder of 10x"
        raise DataError(
            f"{path} is a folder without matrix.mtx (10x) and not a zarr: name a file"
        )
    if suffix in STORES:
        return "store"
    ending = path.suffixes[-2:-1] if suffix == ".gz" else [suffix]
    if suffix == PARQUET or any(part.lower() in SUFFIXES for part in ending):
        return "table"
    raise DataError(
        f"{path}: its name has no ending of a known format "
        f"({some([*STORES, PARQUET, *SUFFIXES], 20)}, tables also .gz): convert it, in "
        "R with zellkonverter::writeH5AD, or a sheet with pandas.read_excel"
    )


def read_annotations(path: Path) -> pd.DataFrame:
    """A table about samples, as text; their names are in the first column."""
    frame = read_table(path, as_text=True).frame
    repeated = duplicates(frame.columns)
    if repeated:
        raise DataError(
            f"{path} has several columns called {some(repeated)}: rename or remove them"
        )
    frame = frame.replace("", np.nan)
    names = duplicates(frame.index)
    if names:
        raise DataError(f"{path} names these samples more than once: {some(names)}")
    return frame


def _joined_annotations(
    obs: pd.DataFrame, about: pd.DataFrame, path: Path, source: str
) -> pd.DataFrame:
    """Annotations with those of a table about samples."""
    is_named = obs.index.isin(about.index)
    if not is_named.any():
        raise DataError(
            f"{path} names no sample of {source}: it has {some(about.index, 3)}, the "
            f"data have {some(obs.index, 3)}"
        )
    if not is_named.all():
        n_others = counted(int((~is_named).sum()), "sample", "samples")
        note(f"{path.name} has no entry for {n_others}")
    return obs.drop(columns=[*about.columns], errors="ignore").join(about)


@contextlib.contextmanager
def open_sources(
    files: Sequence[Path],
    labels: Sequence[str],
    batch: str | None = None,
    **reading: Any,
) -> Iterator[tuple[list[Profiles], str | None]]:
    """Open the reference files of a training; columns that must be there are looked for
    first.

    Gives the profiles and the column of the sources: of several files, the file where
    no other column is named.
    """
    columns = [*labels] if batch is None else [*labels, batch]
    with contextlib.ExitStack() as stack:
        parts = [
            stack.enter_context(open_profiles(path, label=columns, **reading))
            for path in files
        ]
        if len(parts) == 1:
            yield parts, batch
        else:
            yield join_profiles(parts, names_of_files(files)), batch or FILE_COLUMN


def names_of_files(paths: Sequence[Path]) -> list[str]:
    """Short names of files that differ: without folder and ending where that
    suffices.
    """
    for names in ([path.stem for path in paths], [path.name for path in paths]):
        if len(set(names)) == len(names):
            return names
    names = [str(path) for path in paths]
    if repeated := duplicates(names):
        raise DataError(f"{some(repeated)} is named twice: name each file once")
    return names
