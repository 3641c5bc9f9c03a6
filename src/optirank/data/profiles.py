"""Profiles: samples by genes, the one object that the verbs work on.

`optirank.data.opening.open_profiles` makes them of a file, and
`optirank.data.objects.profiles_of` of an AnnData or a data frame.
`optirank.data.passes.run_pass` is the way to their values. Several data sets of one
training are a list of profiles over the same genes
(`optirank.data.genes.join_profiles`). Here are the errors of data, too.
"""

from __future__ import annotations

import contextlib
import importlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from optirank._util.words import some

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE_COLUMN = "file"  # of obs: which of several data sets a sample is from


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
    """Turn what libraries raise on a damaged file into a DataError with its name and
    remedy.
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


class Opening(NamedTuple):
    """How another process opens a file: its path, when it was last changed, and the
    options of `open_profiles`.
    """

    path: str
    changed: int
    options: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Profiles:
    """Samples by genes, with the values in memory or left where they are stored.

    Attributes
    ----------
    X : samples x features: an array, a sparse matrix, a ``sparse_dataset`` of anndata,
        an array of HDF5 or zarr, or a dask array.
    obs : annotations; its index has the names of the samples, as text.
    genes : names of the genes, each once.
    columns : the features of ``X`` that are these genes.
    gene_of_column : the position of the gene that each of these features is, where
        several features are summed to one gene; None where each is a gene.
    source : where the data come from, for messages.
    raw_genes : the genes of ``raw`` of an AnnData whose X or layer is read.
    notes : what a reader has to say; the verb that works on the profiles says it.
    opening : how another process opens the same file; None for what is in memory.
    """

    X: Any
    obs: pd.DataFrame
    genes: NDArray[np.object_]
    columns: NDArray[np.intp]
    gene_of_column: NDArray[np.intp] | None
    source: str
    raw_genes: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    opening: Opening | None = None

    def __repr__(self) -> str:
        return f"Profiles of {self.source}: {self.n_samples} x {len(self.genes)} genes"

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return len(self.obs)

    def with_genes(self, positions: NDArray) -> Profiles:
        """The same samples with some of the genes, in this order."""
        columns, sums = self.features_of(positions)
        return replace(
            self,
            genes=self.genes[positions],
            columns=columns,
            gene_of_column=None if sums is None else sums.indices,
        )

    def features_of(
        self, positions: NDArray | None = None
    ) -> tuple[NDArray[np.intp], csr_matrix | None]:
        """The features that some genes are (None: all), and what sums these up to
        genes, None where each is a gene.
        """
        group = self.gene_of_column
        if group is None:
            return self.columns if positions is None else self.columns[positions], None
        if positions is None:
            positions = np.arange(len(self.genes))
        places = np.full(len(self.genes), -1)
        places[positions] = np.arange(len(positions))
        group = places[group]
        members = np.flatnonzero(group >= 0)
        if len(members) == len(positions):
            return self.columns[members[np.argsort(group[members])]], None
        entries = (np.ones(len(members)), (np.arange(len(members)), group[members]))
        sums = csr_matrix(entries, shape=(len(members), len(positions)))
        return self.columns[members], sums


def annotations_of(parts: Sequence[Profiles]) -> pd.DataFrame:
    """The annotations of all samples of one or several data sets."""
    return parts[0].obs if len(parts) == 1 else pd.concat([part.obs for part in parts])


def source_of(parts: Sequence[Profiles]) -> str:
    """Where data come from, for messages; of several data sets, their names."""
    return ", ".join(part.source for part in parts)


def duplicates(names: Iterable[Any]) -> list[Any]:
    """The names that occur more than once, each once, in order of first occurrence."""
    return [name for name, count in Counter(names).items() if count > 1]


def stripped(names: Iterable[object]) -> NDArray[np.object_]:
    """Names without blanks around them, which nobody sees and no other data have."""
    texts = [str(name) for name in names]
    return np.array([text.strip() or text for text in texts], dtype=object)


def check_column(obs: pd.DataFrame, column: str, source: str) -> None:
    """Refuse a column that is not there; the error lists those that are."""
    if column not in obs.columns:
        raise DataError(
            f"{source} has no column {column!r} for its samples: there are "
            f"{some(obs.columns, 20)}"
        )


def text_column(obs: pd.DataFrame, column: str, source: str) -> pd.Series:
    """A column of annotations as text, missing values as NaN.

    Letters with accents are single characters (NFC), however a file writes them: the
    same label is the same class.
    """
    check_column(obs, column, source)
    text = [
        np.nan if pd.isna(value) else unicodedata.normalize("NFC", str(value))
        for value in obs[column].astype(object)
    ]
    return pd.Series(text, index=obs.index, name=column, dtype=object)
