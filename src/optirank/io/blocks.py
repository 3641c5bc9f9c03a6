"""Blocks of samples with chosen genes: the one way to the values of an AnnData."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from optirank._util.names import counted, some
from optirank._util.scales import value_scale
from optirank.io.data import (
    KEY,
    DataError,
    about,
    duplicates,
    matrix_of,
    readable,
    source_of,
    used_features,
    used_names,
    with_genes,
)
from optirank.io.stored import Block, reader_of, take_rows

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

SCALE_SAMPLES = 200  # samples and genes that tell what kind of values data hold
_SCALE_GENES = 2000


class Columns(NamedTuple):
    """Where the values of genes are in a matrix.

    Attributes
    ----------
    places : positions of columns; None for all.
    sums : what adds them up to genes, where several features are one gene.
    """

    places: NDArray[np.intp] | None
    sums: csr_matrix | None = None

    def of(self, block: Block) -> Block:
        """The values of the genes, from a block of the columns at ``places``."""
        return block if self.sums is None else block @ self.sums.astype(block.dtype)


def blocks(
    adata: AnnData,
    genes: Sequence[str] | NDArray | None = None,
    size: int = 1024,
    rows: NDArray | range | None = None,
) -> Iterator[Block]:
    """Read all samples, or those at some sorted positions, in blocks.

    Memory follows the size of a block. Rows that are not asked for are not kept, and
    long runs of them are not read.

    Parameters
    ----------
    adata : as readers leave it.
    genes : names, in any order; None for all. Features of one name are summed.
    size : samples of a block.
    rows : rising positions of samples; None for all.
    """
    rows = range(adata.n_obs) if rows is None else rows
    columns = columns_of(adata, genes)
    yield from read_blocks(matrix_of(adata), columns, size, rows, source_of(adata))


def read_blocks(
    X: Any, columns: Columns, size: int, rows: NDArray | range, source: str
) -> Iterator[Block]:
    """Blocks of a matrix, see `blocks`."""
    if not len(rows):
        return
    with readable(source):
        reader = reader_of(X, columns.places, source)
    for first in range(0, len(rows), size):
        with readable(source):
            block = columns.of(take_rows(reader, rows[first : first + size]))
        yield block


def read_features(
    adata: AnnData,
    features: NDArray[np.intp] | None = None,
    rows: NDArray | range | None = None,
) -> Block:
    """The values of features by their positions, of all samples or of some."""
    rows = range(adata.n_obs) if rows is None else rows
    if features is not None and np.array_equal(features, np.arange(adata.n_vars)):
        features = None
    source = source_of(adata)
    with readable(source):
        return take_rows(reader_of(matrix_of(adata), features, source), rows)


def columns_of(adata: AnnData, genes: Sequence[str] | NDArray | None = None) -> Columns:
    """Where genes are, by name; None for all in use."""
    used = np.flatnonzero(used_features(adata))
    names = pd.Index(used_names(adata), dtype=object)
    if genes is None and names.is_unique:
        return Columns(None if len(used) == adata.n_vars else used)
    wanted = pd.Index(names.unique() if genes is None else genes, dtype=object)
    if names.is_unique:
        places = names.get_indexer(wanted)
        _check_found(wanted, places, adata)
        is_whole = np.array_equal(used[places], np.arange(adata.n_vars))
        return Columns(None if is_whole else used[places])
    group = wanted.get_indexer(names)  # of each feature, the gene that it is
    members = np.flatnonzero(group >= 0)
    _check_found(wanted, np.isin(np.arange(len(wanted)), group) - 1, adata)
    entries = (np.ones(len(members)), (np.arange(len(members)), group[members]))
    sums = csr_matrix(entries, shape=(len(members), len(wanted)))
    if len(members) == len(wanted):  # none of these has several
        return Columns(used[members[np.argsort(group[members])]])
    return Columns(used[members], sums)


def _check_found(wanted: pd.Index, places: NDArray, adata: AnnData) -> None:
    missing = wanted[places < 0]
    if len(missing):
        raise DataError(
            f"{source_of(adata)} lacks {len(missing)} of the {len(wanted)} genes asked "
            f"for: {some(missing)}"
        )


def unique_genes(adata: AnnData) -> AnnData:
    """Decide what genes of the same name are, without reading the data: the one rule.

    Counts are added up. Of values on another scale the first gene of each name is
    used, since sums of logarithms mean nothing.
    """
    names = used_names(adata)
    repeated = duplicates(names)
    if not repeated or about(adata).get("summed"):
        return adata
    used = used_features(adata)
    how = "their counts are summed"
    if _scale_of_features(adata) != "counts":
        how = "the first of each is used"
        later = pd.Index(names, dtype=object).duplicated()
        used[np.flatnonzero(used)[later]] = False
    what = counted(len(repeated), "gene name occurs", "gene names occur")
    note = f"{what} more than once, {how}: {some(repeated)}"
    unique = with_genes(adata, names, [note], used)
    unique.uns[KEY]["summed"] = True
    return unique


def _scale_of_features(adata: AnnData) -> str:
    """What kind of values some features of some samples hold, evenly spaced."""
    if not adata.n_obs:
        return "none"
    rows = np.arange(0, adata.n_obs, max(1, adata.n_obs // SCALE_SAMPLES))
    features = np.flatnonzero(used_features(adata))
    features = features[:: max(1, len(features) // _SCALE_GENES)]
    return value_scale(read_features(adata, features, rows))
