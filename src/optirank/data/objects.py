"""Profiles of objects in memory or lazy: AnnData, SpatialData, MuData, data frames; and
which matrix of an AnnData is read.

Packages are recognised by the attributes of their objects and never imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from optirank._util.words import collected_notes, note, some
from optirank.data.genes import gene_profiles, join_profiles
from optirank.data.passes import is_dask
from optirank.data.profiles import FILE_COLUMN, DataError, Profiles, duplicates

# Where other containers have tables that are AnnData: MuData, SpatialData
TABLES_OF = {"mod": "modalities", "tables": "tables"}
_RAW = "raw"  # the layer that stands for raw
_LABELS = "label"  # the column of labels that were given apart from the data
_ENOUGH = 0.9  # share of the known genes above which X is used as it is


def profiles_of(
    data: Any,
    *,
    layer: str | None = None,
    table: str | None = None,
    gene_column: str | None = None,
    label: Sequence[str] = (),
    known_genes: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> Profiles:
    """The profiles of an object.

    Parameters
    ----------
    data : AnnData in memory, backed or lazy (``anndata.experimental.read_lazy``, or
        with a dask array as ``X``); SpatialData or MuData; a pandas DataFrame of
        samples x genes, or a Series with one sample.
    layer : a layer of an AnnData to read instead of ``X``; "raw" for its raw.
    table : which table of a SpatialData, or modality of a MuData.
    gene_column : the column of ``var`` with the names of the genes.
    label : columns with labels and the like; of a data frame these are no genes.
    known_genes : the genes of a model, which tell whether ``raw`` has to be read, and
        which column of ``var`` has the names.
    exclude : further columns of a data frame that are no genes.
    """
    with collected_notes() as said:
        if is_frame(data):
            if layer is not None or gene_column is not None:
                raise DataError(
                    "layer and gene_column are for AnnData: leave them out for a "
                    f"{type(data).__name__}"
                )
            profiles = _profiles_of_frame(data, [*label, *exclude])
        else:
            parts = anndata_of(data, table)
            profiles = profiles_of_parts(
                parts, "adata", layer, gene_column, known_genes
            )
    return replace(profiles, notes=tuple(said.notes))


def is_frame(thing: object) -> bool:
    """Whether this is a data frame, or a series of pandas."""
    return hasattr(thing, "iloc") and hasattr(thing, "index")


def anndata_of(thing: Any, table: str | None = None) -> Any:
    """The AnnData of a SpatialData or MuData object, by the name of the table or
    modality; an AnnData is itself.
    """
    kind = type(thing).__name__
    for key in TABLES_OF:
        tables = getattr(thing, key, None)
        if hasattr(tables, "keys"):
            return choose_table(tables, table, f"the {kind}", key)
    if table is not None:
        raise DataError(f"table={table!r}: a {kind} has no tables, leave it out")
    if all(hasattr(thing, name) for name in ("obs", "var", "obsm", "uns")):
        return thing
    raise TypeError(
        "profiles are read from an AnnData, a SpatialData, a MuData or a DataFrame, "
        f"not a {kind}: read a file first (anndata.read_h5ad), and name the genes of "
        "an array (pandas.DataFrame(array, columns=genes))"
    )


def choose_table(tables: Any, name: str | None, source: str, key: str) -> Any:
    """The table to read: the one that is named, or the only one."""
    names = sorted(map(str, tables))
    if name is None and len(names) != 1:
        raise DataError(
            f"{source} has {len(names)} {TABLES_OF[key]}, {some(names)}: name one of "
            "them (table=); points have to be aggregated first"
        )
    if name not in (None, *names):
        raise DataError(f"{source} has no table {name!r}: there are {some(names)}")
    return tables[name or names[0]]


def profiles_of_parts(
    adata: Any,
    source: str,
    layer: str | None,
    gene_column: str | None,
    known_genes: Sequence[str],
    matrix_of: Any = None,
) -> Profiles:
    """The profiles of an AnnData, or of what has its X, layers, obs, var and raw.

    Where neither a layer nor a gene column is named, raw is read if X lacks a tenth of
    the known genes or more, and raw has half of these at least: after scanpy's usual
    steps X has the variable genes alone, often scaled, and raw has all.

    ``matrix_of`` makes the matrix of what the parts have; None where they have it.
    """
    raw: Any = adata.raw
    part: Any = adata
    if raw is not None and layer == _RAW:
        part, layer = raw, None
    elif raw is not None and not (layer or gene_column):
        in_x, in_raw = adata.var.index, raw.var.index
        part = raw if _raw_has_more(known_genes, in_x, in_raw) else adata
    if layer is not None and layer not in adata.layers:
        raise DataError(
            f"{source} has no {layer!r} (layer=): there are {some(adata.layers)}"
        )
    matrix = part.X if layer is None else adata.layers[layer]
    if matrix is None:
        raise DataError(
            f"{source} has no X: name one of its layers (layer=), there are "
            f"{some(adata.layers)}"
        )
    if matrix_of is not None:
        matrix = matrix_of(matrix)
    if is_dask(matrix) and np.isnan(matrix.shape).any():
        raise DataError(
            "its dask array does not know its number of samples: call "
            "compute_chunk_sizes() on it first"
        )
    obs, var = (
        frame.to_memory() if hasattr(frame, "to_memory") else frame  # a lazy one
        for frame in (adata.obs, part.var)
    )
    return gene_profiles(
        matrix,
        obs,
        var,
        source,
        gene_column,
        known_genes,
        raw_genes=() if raw is None or part is raw else raw.var.index,
    )


def _raw_has_more(
    known_genes: Iterable[str], genes: Iterable[str], raw_genes: Iterable[str]
) -> bool:
    """Whether raw is to be read instead of X, with a note."""
    known = {name.casefold() for name in known_genes}
    n_in_x, n_in_raw = (
        len(known.intersection(str(name).strip().casefold() for name in names))
        for names in (genes, raw_genes)
    )
    n_lacking = len(known) - n_in_x
    has_enough = not known or n_in_x > _ENOUGH * len(known)
    if has_enough or n_in_raw - n_in_x < n_lacking / 2:
        return False
    note(
        f"raw is read: X has {n_in_x} of the {len(known)} genes of the model, raw has "
        f"{n_in_raw}"
    )
    return True


def _profiles_of_frame(frame: Any, no_genes: Sequence[str]) -> Profiles:
    """Samples x genes of a data frame; columns of text or flags are annotations."""
    if frame.ndim == 1:
        name = "sample" if frame.name is None else frame.name
        frame = frame.to_frame(name).T.infer_objects()
    holds_numbers = [dtype.kind in "iuf" for dtype in frame.dtypes]
    is_gene = np.array(holds_numbers, dtype=bool) & ~frame.columns.isin(no_genes)
    if not is_gene.any():
        raise DataError(
            "the data frame has no column of numbers: it should hold samples x genes"
        )
    values = frame.loc[:, is_gene].to_numpy()
    if values.dtype.kind not in "iuf":  # of types that have missing integers
        values = frame.loc[:, is_gene].to_numpy(dtype=float, na_value=np.nan)
    var = pd.DataFrame(index=frame.columns[is_gene].astype(str))
    return gene_profiles(values, frame.loc[:, ~is_gene], var, "the data frame")


def labelled_profiles(
    data: Any, label: Any, batch: str | None, **reading: Any
) -> tuple[list[Profiles], str | tuple[str, ...], str | None]:
    """Profiles of one or several objects, the columns of labels and that of sources.

    ``label`` names columns, or is the labels themselves: by the names of samples where
    a Series has them, else in their order. ``reading`` are options of `profiles_of`.
    """
    several = isinstance(data, Sequence)
    sets = [*data] if several else [data]
    columns = _label_columns(label, sets[0], reading.get("table"))
    named = [*columns, *([] if batch is None else [batch])]
    parts = [profiles_of(part, label=named, **reading) for part in sets]
    if several and not columns:
        raise TypeError(
            "label: of several data sets, name the column with their labels"
        )
    asked = label if isinstance(label, str) else columns
    if several:
        return join_profiles(parts), asked, batch or FILE_COLUMN
    if columns:
        return parts, asked, batch
    return [_with_labels(parts[0], label)], _LABELS, batch


def _label_columns(label: Any, data: Any, table: str | None) -> tuple[str, ...]:
    """The columns that are named, from coarse to fine; none where these are labels."""
    if isinstance(label, str):
        return (label,)
    frame = data if is_frame(data) else anndata_of(data, table).obs
    if not isinstance(label, list | tuple):
        return ()
    columns = list(getattr(frame, "columns", ()))
    missing = [name for name in label if name not in columns]
    if 0 < len(missing) < len(label) != len(frame.index):
        raise DataError(
            f"there is no column {some(missing)} (label=): there are {some(columns)}"
        )
    return () if missing else tuple(label)


def _with_labels(profiles: Profiles, labels: Any) -> Profiles:
    """Profiles with labels that were given apart: by the names of samples where a
    Series has any of these, else in their order.
    """
    values = np.asarray(labels, dtype=object)
    names = profiles.obs.index.tolist()
    index = [str(name) for name in labels.index] if is_frame(labels) else []
    shared = set(names).intersection(index)
    if shared and index != names:
        wrong = duplicates(index) or [name for name in names if name not in shared]
        if wrong:
            raise DataError(
                "in the index of the labels, samples have no label or several: "
                f"{some(wrong)}; name each sample once, or give labels in the order "
                "of the samples without names (labels.to_numpy())"
            )
        values = pd.Series(values, index, dtype=object).loc[names].to_numpy()
    elif len(values) != len(names):
        raise DataError(
            f"{len(values)} labels for {len(names)} samples: give one label per sample"
        )
    return replace(profiles, obs=profiles.obs.assign(**{_LABELS: values}))
