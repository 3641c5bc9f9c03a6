"""AnnData as readers leave it, what a workflow asks of it, and the errors of data.

Every reader ends in an AnnData whose ``X`` is in memory or left where it is stored: an
anndata ``sparse_dataset``, an array of HDF5 or zarr, a dask array. Names of genes are
``var_names``, annotations ``obs``. ``uns["optirank"]`` holds

- ``source``: where the data come from, for messages;
- ``name``: what the data are called among several;
- ``notes``: what was left out or changed, a sentence each;
- ``used``: a mask of the features that are genes in use, where not all are;
- ``raw_genes``: the genes of ``raw``, where there is one that was not asked for;
- ``summed``: True where it is decided that features of one name are summed;
- ``store``: how another process opens the same matrix (`optirank.io.reading.Store`);
- ``matrix``: of a table or a .loom file, whose numbers no AnnData can hold before they
  are read, what reads them: it has a ``shape`` of samples by genes, and ``streams``
  says whether some samples can be read without the others. That of a table has a method
  ``take_genes``, that of a .loom file is read like an array of zarr.

Features that are left out stay in ``var``: the matrix of a file is not cut before it
is read. Genes of one name are one gene, the sum of its features.
"""

from __future__ import annotations

import contextlib
import importlib
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from optirank._util.names import some

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData
    from numpy.typing import NDArray

KEY = "optirank"  # of uns
FEATURE_TYPES = ("feature_types", "feature_type")  # columns of var, in this order


class DataError(ValueError):
    """A file or a choice of data that cannot be used; the message says why and
    what to do.
    """


class MissingExtraError(ImportError):
    """An optional dependency that is not installed; the message has the line that
    installs it.
    """


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say which line installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs {module.split('.')[0]}: pip install 'optirank[{extra}]'"
        ) from error


@contextlib.contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Turn what libraries raise on a damaged file into one DataError with its name
    and remedy.
    """
    try:
        yield
    except ImportError:
        raise
    except DataError as error:
        if str(path) in str(error):
            raise
        raise DataError(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(
            f"{path} asks for more memory than there is: it is too large for this "
            "machine, or damaged (copy or fetch it again)"
        ) from error
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise DataError(
            f"{path} cannot be read, it may be truncated or damaged: {text} "
            "(copy or fetch it again)"
        ) from error


def make_profiles(
    X: Any,
    obs: pd.DataFrame,
    var: pd.DataFrame,
    source: str = "these data",
    *,
    notes: Sequence[str] = (),
    **further: Any,
) -> AnnData:
    """An AnnData as readers leave it.

    Parameters
    ----------
    X : samples x features: anything that AnnData takes, or ``matrix``, see above.
    obs, var : tables with the names of samples and genes as index.
    source, notes, further : entries of ``uns["optirank"]``, see above.
    """
    import anndata

    if X.shape != (len(obs), len(var)):
        raise DataError(
            f"{source}: the matrix is {X.shape[0]} x {X.shape[1]}, but there are "
            f"{len(obs)} sample names and {len(var)} gene names"
        )
    known = {"name": source, **further, "source": source, "notes": list(notes)}
    shape = None
    if hasattr(X, "streams"):
        known["matrix"] = X
        shape = X.shape
        X = None
    with warnings.catch_warnings():
        # Readers say which names occur twice
        warnings.filterwarnings("ignore", message=".*names are not unique")
        obs, var = (
            table.set_axis(table.index.astype(str).rename(None)) for table in (obs, var)
        )
        return anndata.AnnData(X=X, obs=obs, var=var, uns={KEY: known}, shape=shape)


def changed(
    adata: AnnData,
    *,
    obs: pd.DataFrame | None = None,
    var: pd.DataFrame | None = None,
    notes: Sequence[str] = (),
    **known: Any,
) -> AnnData:
    """The same values with other annotations, features, further notes, or other
    entries of ``uns["optirank"]``.
    """
    known = {**about(adata), **known}
    known["notes"] = [*known["notes"], *notes]
    X = known.pop("matrix", adata.X)
    obs = annotations_of(adata) if obs is None else obs
    return make_profiles(X, obs, features_of(adata) if var is None else var, **known)


def about(adata: AnnData) -> dict[str, Any]:
    """What a reader says of data, see above; little of those that no reader made."""
    known = adata.uns.get(KEY, {})
    if "source" in known:
        return known
    return {"source": "these data", "name": "these data", "notes": []}


def matrix_of(adata: AnnData) -> Any:
    """The matrix of samples by features, in memory or where it is stored."""
    return about(adata).get("matrix", adata.X)


def used_features(adata: AnnData) -> NDArray[np.bool_]:
    """Mask of the features that are genes in use."""
    used = about(adata).get("used")
    return np.ones(adata.n_vars, dtype=bool) if used is None else used.copy()


def used_names(adata: AnnData) -> NDArray[np.object_]:
    """Names of the features in use, as often as they occur."""
    return np.array(adata.var_names, dtype=object)[used_features(adata)]


def features_of(adata: AnnData) -> pd.DataFrame:
    """What is known of all features, in use or not."""
    return cast("pd.DataFrame", adata.var)


def other_names(adata: AnnData) -> dict[str, NDArray[np.object_]]:
    """Other names of the features in use: the columns of ``var`` that hold text."""
    features = features_of(adata)[used_features(adata)]
    return {
        str(column): stripped(values)
        for column, values in features.items()
        if column not in FEATURE_TYPES and values.dtype.kind not in "biufcmM"
    }


def stripped(names: Iterable[object]) -> NDArray[np.object_]:
    """Names without blanks around them, which nobody sees and no other data have."""
    texts = [str(name) for name in names]
    return np.array([text.strip() or text for text in texts], dtype=object)


def source_of(data: AnnData | Sequence[AnnData]) -> str:
    """Where data come from, for messages; of several data sets, their names."""
    known = [about(part) for part in parts_of(data)]
    if len(known) == 1:
        return known[0]["source"]
    return ", ".join(part["name"] for part in known)


def notes_of(data: AnnData | Sequence[AnnData]) -> list[str]:
    """What readers left out or changed; of several data sets, with their names."""
    known = [about(part) for part in parts_of(data)]
    if len(known) == 1:
        return list(known[0]["notes"])
    return [f"{part['name']}: {note}" for part in known for note in part["notes"]]


def parts_of(data: AnnData | Sequence[AnnData]) -> list[AnnData]:
    """One data set, or several, as a list."""
    return list(data) if isinstance(data, Sequence) else [data]


def annotations_of(data: AnnData | Sequence[AnnData]) -> pd.DataFrame:
    """The annotations of all samples of one or several data sets."""
    import pandas as pd

    tables = [cast("pd.DataFrame", part.obs) for part in parts_of(data)]
    return tables[0] if len(tables) == 1 else pd.concat(tables)


def gene_names(data: AnnData | Sequence[AnnData]) -> NDArray[np.object_]:
    """Names of the genes that all data sets have, each once, in the order of the
    first.
    """
    parts = parts_of(data)
    names = dict.fromkeys(used_names(parts[0]))
    for part in parts[1:]:
        known = set(used_names(part))
        names = {name: None for name in names if name in known}
    if len(parts) > 1 and len(names) < 2:
        raise DataError(
            f"{some(about(part)['name'] for part in parts)} have {len(names)} genes in "
            "common: their gene names may be of different kinds (gene_column=)"
        )
    return np.array(list(names), dtype=object)


def block_rows(n_genes: int) -> int:
    """How many samples of so many genes are read together."""
    # Were it dense, a block has 80 MB in single precision
    return max(64, 20_000_000 // max(1, n_genes))


def duplicates(names: Iterable[Any]) -> list[Any]:
    """Return the names that occur more than once, each once, in order of first
    occurrence.
    """
    return [name for name, count in Counter(names).items() if count > 1]


def text_column(obs: pd.DataFrame, column: str, source: str) -> pd.Series:
    """Return a column of annotations as text, missing values as NaN.

    Letters with accents are single characters (NFC), however a file writes them: the
    same label is the same class.
    """
    import pandas as pd

    check_column(obs, column, source)
    text = [
        np.nan if pd.isna(value) else unicodedata.normalize("NFC", str(value))
        for value in obs[column].astype(object)
    ]
    return pd.Series(text, index=obs.index, name=column, dtype=object)


def check_column(obs: pd.DataFrame, column: str, source: str) -> None:
    """Raise a DataError that lists the columns there are where ``column`` is not one
    of them.
    """
    if column not in obs.columns:
        raise DataError(
            f"{source} has no column {column!r} for its samples: there are "
            f"{some(obs.columns, 20)}"
        )
