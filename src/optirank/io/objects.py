"""Profiles of objects in memory or lazy: AnnData, SpatialData, MuData, data frames.

Packages are recognised by the attributes of their objects and never imported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.io.anndata_files import choose_table
from optirank.io.data import (
    DataError,
    MissingExtraError,
    about,
    make_profiles,
    with_annotations,
)
from optirank.io.features import gene_names_of, genes_among
from optirank.io.gene_choice import raw_note
from optirank.io.gene_spelling import plain_gene_names
from optirank.io.joining import FILE_COLUMN, join
from optirank.io.stored import is_dask
from optirank.io.table_checks import repeated_samples

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData
    from numpy.typing import NDArray

_LABELS = "label"  # the column of labels that were given apart from the data


def is_anndata(thing: object) -> bool:
    """Whether this has the parts of an AnnData."""
    return all(hasattr(thing, name) for name in ("obs", "var", "obsm", "uns"))


def is_frame(thing: object) -> bool:
    """Whether this is a data frame, or a series of pandas."""
    return hasattr(thing, "iloc") and hasattr(thing, "index")


def anndata_of(thing: Any, table: str | None = None) -> Any:
    """The AnnData of a SpatialData or MuData object, by the name of the table or
    modality.

    An AnnData is itself. Where there are several tables and none is named, the error
    lists them.
    """
    if hasattr(thing, "mod") and hasattr(thing.mod, "keys"):
        return thing.mod[choose_table(thing.mod, table, "the MuData", "modalities")]
    if hasattr(thing, "tables") and hasattr(thing.tables, "keys"):
        if not len(thing.tables):
            raise DataError("the SpatialData has no table: aggregate the points first")
        name = choose_table(thing.tables, table, "the SpatialData", "tables")
        return thing.tables[name]
    if table is not None:
        raise DataError(
            f"table={table!r}: a {type(thing).__name__} has no tables, leave it out"
        )
    return thing


def check_anndata(data: object, function: str) -> None:
    """Refuse what holds no profiles, and say how to make an AnnData of it."""
    if is_anndata(data) or is_frame(data) or hasattr(data, "mod"):
        return
    if hasattr(data, "tables"):
        return
    remedy = "give an AnnData, or a DataFrame of samples x genes"
    if isinstance(data, str | os.PathLike):
        remedy = f"read it first, anndata.read_h5ad({str(data)!r})"
    elif hasattr(data, "shape"):
        remedy = (
            "name its genes, pandas.DataFrame(array, columns=genes), or use "
            "optirank.PanelClassifier"
        )
    raise TypeError(
        f"tl.{function} takes an AnnData or a DataFrame, not a "
        f"{type(data).__name__}: {remedy}"
    )


def profiles_of(
    data: Any,
    layer: str | None = None,
    gene_column: str | None = None,
    *,
    use_raw: bool = False,
    table: str | None = None,
    annotations: Sequence[str] = (),
    known_genes: Sequence[str] = (),
) -> AnnData:
    """The profiles of an object as an AnnData like that of a reader, with the same
    values.

    Parameters
    ----------
    data : AnnData in memory, backed or lazy (``anndata.experimental.read_lazy``, or
        with a dask array as ``X``); SpatialData or MuData; a pandas DataFrame of
        samples x genes, or a Series with one sample.
    layer, gene_column, use_raw : which matrix and which names of an AnnData to use.
    table : which table of a SpatialData, or modality of a MuData.
    annotations : columns of a data frame that describe samples, beside those that hold
        text.
    known_genes : the genes of a model; where X lacks many of them and ``raw`` has them,
        ``raw`` is read, with a note, unless a layer is named.
    """
    if is_frame(data):
        if layer is not None or use_raw or gene_column is not None:
            raise ValueError(
                "layer, use_raw and gene_column are for AnnData: leave them out for a "
                f"{type(data).__name__}"
            )
        return _profiles_of_frame(data, annotations)
    adata = anndata_of(data, table)
    if not is_anndata(adata):
        raise TypeError(
            "profiles are read from an AnnData, a SpatialData, a MuData or a "
            f"DataFrame, not from a {type(adata).__name__}"
        )
    note = None
    if layer is None and not use_raw and gene_column is None:
        raw = getattr(adata, "raw", None)
        note = raw_note(
            known_genes, adata.var_names, None if raw is None else raw.var_names
        )
    raw_is_read = use_raw or note is not None
    profiles = _profiles_of_anndata(adata, layer, gene_column, raw_is_read)
    if note is not None:
        notes = about(profiles)["notes"]
        about(profiles)["notes"] = [note, *notes]
    return profiles


def labelled_profiles(
    data: Any, label: str | Sequence[str] | pd.Series, batch: str | None, **reading: Any
) -> tuple[list[AnnData], str | tuple[str, ...], str | None]:
    """Profiles of one or several objects, the columns of labels and that of sources."""
    several = isinstance(data, Sequence) and not isinstance(data, str)
    for part in data if several else [data]:
        check_anndata(part, "train")
    if several:
        columns = _label_columns(label, [*data])
        if columns is None:
            raise TypeError(
                "label: of several data sets, name the column with their labels"
            )
        parts = join([profiles_of(part, **reading) for part in data])
        return parts, columns, batch or FILE_COLUMN
    columns = _label_columns(label, [data], reading.get("table"))
    if is_frame(data):  # of a data frame, these are not genes
        named = [columns] if isinstance(columns, str) else [*(columns or ())]
        reading["annotations"] = named if batch is None else [*named, batch]
    profiles = profiles_of(data, **reading)
    if columns is not None:
        return [profiles], columns, batch
    return [_with_labels(profiles, label)], _LABELS, batch


def _label_columns(
    label: Any, data: Sequence[Any], table: str | None = None
) -> str | tuple[str, ...] | None:
    """The columns that are named, from coarse to fine; None where these are labels."""
    if isinstance(label, str):
        return label
    if not isinstance(label, list | tuple):
        return None
    frames = (part if is_frame(part) else anndata_of(part, table).obs for part in data)
    names = {name for frame in frames for name in getattr(frame, "columns", ())}
    return tuple(label) if label and names.issuperset(label) else None


def _with_labels(adata: AnnData, labels: Any) -> AnnData:
    """Profiles with labels that were given apart, matched by the names of samples."""
    values = np.asarray(labels, dtype=object)
    index = labels.index if is_frame(labels) else None
    names = adata.obs_names.astype(str)
    if index is not None and set(index.map(str)) >= set(names):
        by_name = dict(zip(index.map(str), values, strict=True))
        values = np.array([by_name[name] for name in names], dtype=object)
    elif len(values) != len(names):
        raise ValueError(
            f"{len(values)} labels for {len(names)} samples: give one label per sample"
        )
    return with_annotations(adata, **{_LABELS: values})


def _profiles_of_anndata(
    adata: Any, layer: str | None, gene_column: str | None, use_raw: bool
) -> AnnData:
    raw = getattr(adata, "raw", None)
    source = "adata"
    beside = {}
    if use_raw:
        if layer is not None:
            raise ValueError(f"use_raw=True and layer={layer!r}: give one of them")
        if raw is None:
            raise ValueError(
                "use_raw=True: adata.raw is empty; use X (use_raw=False) or a layer"
            )
        matrix = raw.X
        var = _frame_in_memory(raw.var)
        source = "adata.raw"
    else:
        matrix = _layer_of(adata, layer)
        var = _frame_in_memory(adata.var)
        if raw is not None:
            beside["raw_genes"] = np.array(
                [str(name) for name in raw.var_names], object
            )
    if is_dask(matrix) and np.isnan(matrix.shape).any():
        raise ValueError(
            "its dask array does not know its number of samples: call "
            "compute_chunk_sizes() on it first"
        )
    names = gene_names_of(var, gene_column, source)
    spelling: list[str] = []
    if gene_column is None:
        names, spelling = plain_gene_names(names)
    kept, notes = genes_among(names, var)
    return make_profiles(
        matrix,
        _frame_in_memory(adata.obs),
        var.drop(columns=gene_column or []).set_axis(names),
        source,
        notes=[*spelling, *notes, *repeated_samples(adata.obs_names)],
        used=_mask(kept, len(names)),
        **beside,
    )


def _mask(kept: NDArray | None, count: int) -> NDArray[np.bool_] | None:
    return None if kept is None else np.isin(np.arange(count), kept)


def _layer_of(adata: Any, layer: str | None) -> Any:
    if layer is not None:
        if layer not in adata.layers:
            raise DataError(
                f"adata has no layer {layer!r}: there are {some(adata.layers)}"
            )
        return adata.layers[layer]
    if adata.X is None:
        raise DataError(f"adata has no X: name one of its layers, {some(adata.layers)}")
    return adata.X


def _frame_in_memory(frame: Any) -> pd.DataFrame:
    """A table of annotations; that of a lazy AnnData is read."""
    if not hasattr(frame, "to_memory"):
        return frame
    try:
        return frame.to_memory()
    except ImportError as error:
        raise MissingExtraError(
            "a lazy AnnData needs xarray: pip install 'optirank[dask]'"
        ) from error


def _profiles_of_frame(data: Any, annotations: Sequence[str]) -> AnnData:
    """Samples x genes of a data frame; columns of text are annotations."""
    frame = data
    if getattr(data, "ndim", 2) == 1:
        frame = data.to_frame("sample" if data.name is None else data.name).T
        frame = frame.infer_objects()
    if getattr(frame.columns, "nlevels", 1) > 1:
        raise DataError(
            "the data frame has several levels of columns: join them to one name each"
        )
    absent = [name for name in annotations if name not in frame.columns]
    if absent:
        raise DataError(
            f"the data frame has no column {some(absent)}: there are "
            f"{some(frame.columns, 20)}"
        )
    beside = [
        name in annotations or dtype.kind not in "biuf"
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True)
    ]
    described = np.array(beside, dtype=bool)
    if described.all():
        raise DataError(
            "the data frame has no column of numbers: it should hold samples x genes"
        )
    expression = frame.loc[:, ~described]
    stripped = [str(name).strip() or str(name) for name in expression.columns]
    names = np.array(stripped, dtype=object)
    values = expression.to_numpy()
    if values.dtype.kind not in "iuf":  # of mixed kinds, such as flags among numbers
        values = values.astype(float)
    kept, notes = genes_among(names, None)
    return make_profiles(
        values,
        frame.loc[:, described],
        expression.iloc[:0].T.iloc[:, :0].set_axis(names),
        "the data frame",
        notes=[*notes, *repeated_samples(frame.index)],
        used=_mask(kept, len(names)),
    )
