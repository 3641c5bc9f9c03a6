"""Profiles: samples by genes, the one object that the verbs work on.

`optirank.data.opening.open_profiles` makes them of a file, and
`optirank.data.objects.profiles_of` of an AnnData or a data frame.
`optirank.data.passes.run_pass` is the way to their values. Several data sets of one
training are a list of profiles over the same genes
(`optirank.data.joining.join_profiles`).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from optirank._util.names import some
from optirank.data.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    var : what is known of the genes; columns of text may hold other names.
    source : where the data come from, for messages.
    name : what they are called among several.
    raw_genes : the genes of ``raw`` of an AnnData whose X or layer is read.
    notes : what a reader has to say; the verb that works on the profiles says it.
    opening : how another process opens the same file; None for what is in memory.
    """

    X: Any
    obs: pd.DataFrame
    genes: NDArray[np.object_]
    columns: NDArray[np.intp]
    gene_of_column: NDArray[np.intp] | None
    var: pd.DataFrame
    source: str
    name: str = ""
    raw_genes: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    opening: Opening | None = None

    def __repr__(self) -> str:
        return f"Profiles of {self.source}: {self.n_samples} x {len(self.genes)} genes"

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return len(self.obs)

    @property
    def sample_names(self) -> NDArray[np.object_]:
        """Names of the samples, in order."""
        return self.obs.index.to_numpy(dtype=object)

    def with_genes(self, positions: NDArray) -> Profiles:
        """The same samples with some of the genes, in this order."""
        columns, sums = self.features_of(positions)
        return replace(
            self,
            genes=self.genes[positions],
            columns=columns,
            gene_of_column=None if sums is None else sums.indices,
            var=self.var.iloc[positions],
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

    def other_names(self) -> dict[str, NDArray[np.object_]]:
        """Other names of the genes: the columns of ``var`` that hold text."""
        return {
            str(column): stripped(values)
            for column, values in self.var.items()
            if values.dtype.kind not in "biufcmM"
        }


def annotations_of(parts: Sequence[Profiles]) -> pd.DataFrame:
    """The annotations of all samples of one or several data sets."""
    return parts[0].obs if len(parts) == 1 else pd.concat([part.obs for part in parts])


def source_of(parts: Sequence[Profiles]) -> str:
    """Where data come from, for messages; of several data sets, their names."""
    if len(parts) == 1:
        return parts[0].source
    return ", ".join(part.name for part in parts)


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
