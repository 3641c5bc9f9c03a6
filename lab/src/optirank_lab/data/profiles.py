"""AnnData of a set, and changes of it while it is built.

``uns["origin"]`` says where the values come from, for messages.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from anndata import AnnData
from scipy.sparse import csr_matrix, issparse, vstack

from optirank._util.words import some
from optirank.data.profiles import DataError, check_column, duplicates, text_column
from optirank.data.tables import read_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ORIGIN = "origin"


def made(X: Any, genes: Any, obs: pd.DataFrame, source: str) -> AnnData:
    """An AnnData of some values."""
    if X.shape != (len(obs), len(genes)):
        raise DataError(
            f"{source}: the matrix is {X.shape[0]} x {X.shape[1]}, but there are "
            f"{len(obs)} sample names and {len(genes)} gene names"
        )
    var = pd.DataFrame(index=pd.Index(genes, dtype=object).astype(str))
    obs = obs.set_axis(obs.index.astype(str).rename(None))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*names are not unique")
        return AnnData(X, obs, var, {_ORIGIN: source})


def origin_of(data: AnnData) -> str:
    """Where the values come from."""
    return data.uns.get(_ORIGIN, "these data")


def changed(
    data: AnnData,
    *,
    X: Any = None,
    genes: Any = None,
    obs: pd.DataFrame | None = None,
    source: str | None = None,
) -> AnnData:
    """The same with other values, names of genes, annotations or source."""
    return made(
        data.X if X is None else X,
        data.var_names if genes is None else genes,
        obs_of(data) if obs is None else obs,
        origin_of(data) if source is None else source,
    )


def obs_of(data: AnnData) -> pd.DataFrame:
    """The annotations, which are in memory."""
    obs: Any = data.obs
    return obs


def labels_of(data: AnnData, column: str) -> pd.Series:
    """A column of the annotations as text, missing values as NaN."""
    return text_column(obs_of(data), column, origin_of(data))


def take_samples(data: AnnData, rows: Any) -> AnnData:
    """Some samples: a mask or positions."""
    X: Any = data.X
    positions = np.arange(data.n_obs)[rows]
    obs = obs_of(data).iloc[positions]
    return made(X[positions], data.var_names, obs, origin_of(data))


def take_genes(data: AnnData, positions: NDArray) -> AnnData:
    """Some genes, in this order."""
    X: Any = data.X
    genes = data.var_names[positions]
    return made(X[:, positions], genes, obs_of(data), origin_of(data))


def merged_genes(data: AnnData, how: str) -> AnnData:
    """Data in which every name occurs once: the ``first`` of each, or their ``sum``."""
    names = np.array(data.var_names, dtype=str)
    _, first, group = np.unique(names, return_index=True, return_inverse=True)
    if how == "first":
        return take_genes(data, np.sort(first))
    X: Any = data.X
    entries = (np.ones(len(names), X.dtype), (np.arange(len(names)), group))
    order = np.argsort(first)
    sums = (X @ csr_matrix(entries, shape=(len(names), len(first))))[:, order]
    return changed(data, X=sums, genes=names[first[order]])


def concatenated(parts: Sequence[AnnData]) -> AnnData:
    """Parts of one set below each other, over the genes that all of them have."""
    common = list(dict.fromkeys(parts[0].var_names))
    for part in parts[1:]:
        present = set(part.var_names)
        common = [name for name in common if name in present]
    if not common:
        raise DataError(f"{some(map(origin_of, parts))} have no gene in common")
    if len(parts) > 1:
        parts = [take_genes(p, p.var_names.get_indexer(common)) for p in parts]
    matrices: list[Any] = [part.X for part in parts]
    is_sparse = any(map(issparse, matrices))
    return made(
        vstack(matrices, format="csr") if is_sparse else np.concatenate(matrices),
        parts[0].var_names,
        pd.concat([obs_of(part) for part in parts]),
        some([origin_of(part) for part in parts]),
    )


def join_annotations(
    obs: pd.DataFrame, paths: Sequence[Path], source: str, key: str | None = None
) -> tuple[pd.DataFrame, NDArray]:
    """Annotations joined with tables about samples, and the mask of samples that these
    name. Names are in the first column or in ``key``.
    """
    table = pd.concat([_read_annotations(path, key) for path in paths])
    named = np.asarray(obs.index.isin(table.index))
    if not named.any():
        raise DataError(
            f"{paths[0]} names no sample of {source}: it has {some(table.index, 3)}, "
            f"the data have {some(obs.index, 3)}"
        )
    return obs.drop(columns=[*table.columns], errors="ignore").join(table), named


def _read_annotations(path: Path, key: str | None) -> pd.DataFrame:
    """A table about samples, as text."""
    frame = read_table(path, as_text=True).frame.replace("", np.nan)
    if key is not None:
        frame = frame.reset_index()
        check_column(frame, key, str(path))
        frame = frame.set_index(key)
    repeated = duplicates(frame.index)
    if repeated:
        raise DataError(f"{path} names these samples more than once: {some(repeated)}")
    return frame.set_axis(frame.index.rename(None))
