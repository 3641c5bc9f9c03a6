"""Profiles: samples by genes, the one object that the verbs work on.

`optirank.data.opening.open_profiles` makes them of a file, and
`optirank.data.objects.profiles_of` of an AnnData or a data frame.
`optirank.data.passes.run_pass` is the way to their values. Several data sets of one
training are a list of profiles over the same genes
(`join_profiles`).
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

from optirank._util.words import some
from optirank.data.errors import DataError
from optirank.data.genes import check_case, match_genes

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE_COLUMN = "file"  # of obs: which of several data sets a sample is from


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


def join_profiles(
    parts: Sequence[Profiles], names: Sequence[str] | None = None
) -> list[Profiles]:
    """Several data sets over the genes that all of them have, in the order of the
    first. ``obs`` gets a column that names the data set of a sample.

    ``names`` are what they are called; None for their sources, numbered where two are
    the same.
    """
    if names is None:
        names = [part.source for part in parts]
        if len(set(names)) < len(names):
            names = [f"{name} {number}" for number, name in enumerate(names, 1)]
    first = parts[0].genes
    columns = np.array([_places_of(first, part.genes) for part in parts])
    common = np.flatnonzero((columns >= 0).all(axis=0))
    if len(common) < 2:
        raise DataError(
            f"{some(names)} have {len(common)} genes in common: their gene names may "
            "be of different kinds (gene_column=)"
        )
    joined = []
    for part, name, places in zip(parts, names, columns, strict=True):
        same = part.with_genes(places[common])
        obs = part.obs.assign(**{FILE_COLUMN: name})
        notes = tuple(f"{name}: {text}" for text in part.notes)
        joined.append(
            replace(same, genes=first[common], obs=obs, source=name, notes=notes)
        )
    return joined


def _places_of(genes: NDArray, others: NDArray) -> NDArray[np.intp]:
    """Where genes are among others, -1 where they are not; versions of Ensembl ids
    count only where few names are the same.
    """
    places = pd.Index(others).get_indexer(pd.Index(genes))
    if 2 * (places >= 0).sum() >= len(genes):
        return places
    match = match_genes(genes, others)
    check_case(match)
    return match.columns


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
