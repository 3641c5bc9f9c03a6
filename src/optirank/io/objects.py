"""Profiles of objects in memory or lazy: AnnData, SpatialData, MuData, data frames;
which matrix of them is read; and several data sets that are used as one, over the genes
that all of them have.

Packages are recognised by the attributes of their objects and never imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from anndata import AnnData

from optirank._util.names import some
from optirank.io.data import (
    DataError,
    annotations_of,
    changed,
    gene_names,
    make_profiles,
    need,
    source_of,
    used_names,
)
from optirank.io.genes import with_named_genes
from optirank.io.homologs import in_names_of
from optirank.io.passes import is_dask, unique_genes

FILE_COLUMN = "file"  # says which of several sources a sample is from
_LABELS = "label"  # the column of labels that were given apart from the data
# Where other containers have tables that are AnnData: MuData, SpatialData
TABLES_OF = {"mod": "modalities", "tables": "tables"}
_ENOUGH = 0.9  # share of the known genes above which X is used as it is


def choose_table(tables: Any, name: str | None, source: object, what: str) -> Any:
    """The table to read: the one that is named, or the only one."""
    names = [str(key) for key in tables]
    if not names:
        raise DataError(f"{source} has no {what}: aggregate the points first")
    if name is None and len(names) > 1:
        raise DataError(
            f"{source} has {len(names)} {what}, {some(names)}: name one of them "
            "(table=)"
        )
    if name not in (None, *names):
        raise DataError(f"{source} has no table {name!r}: there are {some(names)}")
    return tables[name or names[0]]


def choose_matrix(
    adata: Any,
    source: object,
    *,
    layer: str | None,
    use_raw: bool,
    gene_column: str | None,
    known_genes: Sequence[str],
) -> tuple[Any, Any, dict[str, Any]]:
    """The matrix to read, what has its genes (the AnnData, or its raw), and what there
    is to say of it, for `make_profiles`.

    ``adata`` is an AnnData, or has its X, layers, raw and var_names.
    """
    raw: Any = adata.raw
    if use_raw and layer is not None:
        raise DataError(f"{source}: use_raw=True and layer={layer!r}: give one of them")
    if use_raw and raw is None:
        raise DataError(
            f"{source} has no raw (use_raw=True): use X (use_raw=False) or a layer"
        )
    is_open = layer is None and gene_column is None and not use_raw
    notes = []
    if is_open and raw is not None:
        notes = raw_notes(known_genes, adata.var_names, raw.var_names)
    if raw is not None and (use_raw or notes):
        return raw.X, raw, {"notes": notes}
    matrix = adata.X if layer is None else layer_of(adata.layers, layer, source)
    if matrix is None:
        raise DataError(
            f"{source} has no X: name one of its layers (layer=), there are "
            f"{some(adata.layers)}"
        )
    known = {} if raw is None else {"raw_genes": [str(name) for name in raw.var_names]}
    return matrix, adata, known


def layer_of(layers: Mapping[str, Any], layer: str, source: object) -> Any:
    """A layer; the error of one that is not there lists all."""
    if layer not in layers:
        raise DataError(f"{source} has no layer {layer!r}: there are {some(layers)}")
    return layers[layer]


def raw_notes(
    known_genes: Iterable[str], genes: Iterable[str], raw_genes: Iterable[str]
) -> list[str]:
    """Why raw is to be read instead of X; nothing where X is.

    Asked where the user named neither a layer nor ``use_raw``. After scanpy's usual
    steps X has the variable genes alone, often scaled, and raw has all. raw is used if
    X lacks a tenth of the known genes or more, and raw has half of these at least.

    Parameters
    ----------
    known_genes : the genes of the model (of all its panels).
    genes, raw_genes : those of X and of raw.
    """
    known = {name.casefold() for name in known_genes}
    in_x = len(known.intersection(str(name).casefold() for name in genes))
    in_raw = len(known.intersection(str(name).casefold() for name in raw_genes))
    lacking = len(known) - in_x
    has_enough = in_x > _ENOUGH * len(known)
    if not known or has_enough or in_raw - in_x < lacking / 2:
        return []
    return [
        f"raw is read: X has {in_x} of the {len(known)} genes of the model, raw has "
        f"{in_raw}"
    ]


def is_frame(thing: object) -> bool:
    """Whether this is a data frame, or a series of pandas."""
    return hasattr(thing, "iloc") and hasattr(thing, "index")


def anndata_of(thing: Any, table: str | None = None) -> Any:
    """The AnnData of a SpatialData or MuData object, by the name of the table or
    modality.

    An AnnData is itself. Where there are several tables and none is named, the error
    lists them.
    """
    for key, what in TABLES_OF.items():
        tables = getattr(thing, key, None)
        if hasattr(tables, "keys"):
            return choose_table(tables, table, f"the {type(thing).__name__}", what)
    if table is not None:
        raise DataError(
            f"table={table!r}: a {type(thing).__name__} has no tables, leave it out"
        )
    return thing


def profiles_of(
    data: Any,
    layer: str | None = None,
    gene_column: str | None = None,
    use_raw: bool = False,
    table: str | None = None,
    *,
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
    annotations : columns of a data frame that describe samples and are no genes,
        beside those that hold text.
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
    if not all(hasattr(adata, name) for name in ("obs", "var", "obsm", "uns")):
        remedy = "give an AnnData, or a DataFrame of samples x genes"
        if isinstance(data, str | os.PathLike):
            remedy = f"read it first, anndata.read_h5ad({str(data)!r})"
        elif hasattr(data, "shape"):
            remedy = (
                "name its genes, pandas.DataFrame(array, columns=genes), or use "
                "optirank.PanelClassifier"
            )
        raise TypeError(
            "profiles are read from an AnnData, a SpatialData, a MuData or a "
            f"DataFrame, not a {type(data).__name__}: {remedy}"
        )
    matrix, part, known = choose_matrix(
        adata,
        "adata",
        layer=layer,
        use_raw=use_raw,
        gene_column=gene_column,
        known_genes=known_genes,
    )
    if is_dask(matrix) and np.isnan(matrix.shape).any():
        raise ValueError(
            "its dask array does not know its number of samples: call "
            "compute_chunk_sizes() on it first"
        )
    obs, var = _frame_in_memory(adata.obs), _frame_in_memory(part.var)
    source = "adata" if part is adata else "adata.raw"
    profiles = make_profiles(matrix, obs, var, source, **known)
    return with_named_genes(profiles, gene_column)


def labelled_profiles(
    data: Any,
    label: Any,
    batch: str | None,
    layer: str | None = None,
    gene_column: str | None = None,
    use_raw: bool = False,
    table: str | None = None,
) -> tuple[list[AnnData], str | tuple[str, ...], str | None]:
    """Profiles of one or several objects, the columns of labels and that of sources.

    ``label`` names columns, or is the labels themselves: by the names of samples where
    a Series has them, else in their order.
    """
    reading = (layer, gene_column, use_raw, table)
    several = isinstance(data, Sequence) and not isinstance(data, str)
    sets = [*data] if several else [data]
    columns = _label_columns(label, sets, table)
    if several:
        if columns is None:
            raise TypeError(
                "label: of several data sets, name the column with their labels"
            )
        parts = join([profiles_of(part, *reading) for part in sets])
        return parts, columns, batch or FILE_COLUMN
    named = [columns] if isinstance(columns, str) else [*(columns or ())]
    named += [] if batch is None else [batch]
    profiles = profiles_of(data, *reading, annotations=named)
    if columns is not None:
        return [profiles], columns, batch
    return [_with_labels(profiles, label)], _LABELS, batch


def _label_columns(
    label: Any, sets: Sequence[Any], table: str | None
) -> str | tuple[str, ...] | None:
    """The columns that are named, from coarse to fine; None where these are labels."""
    if isinstance(label, str):
        return label
    if not isinstance(label, list | tuple) or not label:
        return None
    names: set[object] = set()
    for part in sets:
        frame = part
        if not is_frame(part):
            frame = getattr(anndata_of(part, table), "obs", None)
        names.update(getattr(frame, "columns", ()))
    return tuple(label) if names.issuperset(label) else None


def _with_labels(profiles: AnnData, labels: Any) -> AnnData:
    """Profiles with labels that were given apart, matched by the names of samples."""
    values = np.asarray(labels, dtype=object)
    names = profiles.obs_names
    index = [str(name) for name in labels.index] if is_frame(labels) else []
    if set(index) >= set(names):
        by_name = dict(zip(index, values, strict=True))
        values = np.array([by_name[name] for name in names], dtype=object)
    elif len(values) != len(names):
        raise ValueError(
            f"{len(values)} labels for {len(names)} samples: give one label per sample"
        )
    return changed(profiles, obs=annotations_of(profiles).assign(**{_LABELS: values}))


def _frame_in_memory(frame: Any) -> pd.DataFrame:
    """A table of annotations; that of a lazy AnnData is read."""
    if not hasattr(frame, "to_memory"):
        return frame
    need("xarray", "dask", "a lazy AnnData")
    return frame.to_memory()


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
    is_text = np.array([dtype.kind not in "biuf" for dtype in frame.dtypes], dtype=bool)
    described = is_text | frame.columns.isin(annotations)
    if described.all():
        raise DataError(
            "the data frame has no column of numbers: it should hold samples x genes"
        )
    expression = frame.loc[:, ~described]
    values = expression.to_numpy()
    if values.dtype.kind not in "iuf":  # of mixed kinds, such as flags among numbers
        values = values.astype(float)
    var = pd.DataFrame(index=expression.columns.astype(str))
    profiles = make_profiles(values, frame.loc[:, described], var, "the data frame")
    return with_named_genes(profiles)


def join(parts: Sequence[AnnData], names: Sequence[str] | None = None) -> list[AnnData]:
    """Data sets whose genes have the names of those of the first, each once.

    Genes that share a name within one set are merged (`unique_genes`), and sets whose
    genes have names of another kind are translated (`in_names_of`). ``obs`` gets a
    column that names the source of a sample. What looks at all of them, such as
    `gene_names` and `run_pass`, takes the list.

    Parameters
    ----------
    parts : the sets, in order.
    names : what the column says of each, all different; by default where they come
        from, numbered where that is the same.
    """
    if names is None:
        names = [source_of(part) for part in parts]
        if len(set(names)) < len(names):
            names = [f"{name} {number}" for number, name in enumerate(names, 1)]
    first = unique_genes(parts[0])
    panel = dict.fromkeys(used_names(first))
    # Such as Ensembl ids beside symbols
    translated = [first, *(in_names_of(part, panel) for part in parts[1:])]
    named = [
        changed(part, obs=annotations_of(part).assign(**{FILE_COLUMN: name}), name=name)
        for part, name in zip(translated, names, strict=True)
    ]
    gene_names(named)  # refuses sets that share none
    return named
