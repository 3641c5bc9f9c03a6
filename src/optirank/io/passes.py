"""Blocks of samples with chosen genes, and passes over them: the one way to the values
of an AnnData, wherever they are: in memory, in a store, or lazy.

In a pass, groups of blocks are folded (`optirank._util.matrices`), here or on a
cluster, and merged in the order of the samples. Blocks and groups are the same ones
whatever folds them, so results are the same to the last bit.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse import csr_matrix, issparse, vstack

from optirank._util.matrices import as_dense, value_scale
from optirank._util.names import counted, some
from optirank.io.data import (
    KEY,
    DataError,
    about,
    duplicates,
    gene_names,
    matrix_of,
    parts_of,
    readable,
    source_of,
    used_features,
    used_names,
    with_genes,
)

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank._util.matrices import Accumulator, Progress
    from optirank.io.cluster import Cluster

logger = logging.getLogger("optirank.datasets")

SCALE_SAMPLES = 200  # samples and genes that tell what kind of values data hold
_SCALE_GENES = 2000
# Values of whole rows read together, of which some columns are kept: at most 160 MB
_WHOLE_VALUES = 20_000_000
# Up to so many rows between two wanted ones are cheaper to read than to leave out
_GAP = 16

Block = csr_matrix | np.ndarray


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
        X, places = _chosen_columns(X, columns.places, source)
    for first in range(0, len(rows), size):
        with readable(source):
            block = columns.of(_take_rows(X, places, rows[first : first + size]))
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
        return _take_rows(*_chosen_columns(matrix_of(adata), features, source), rows)


def columns_of(adata: AnnData, genes: Sequence[str] | NDArray | None = None) -> Columns:
    """Where genes are, by name; None for all in use."""
    used = np.flatnonzero(used_features(adata))
    names = pd.Index(used_names(adata), dtype=object)
    if genes is None and names.is_unique:
        return Columns(None if len(used) == adata.n_vars else used)
    wanted = pd.Index(names.unique() if genes is None else genes, dtype=object)
    missing = wanted[~wanted.isin(names)]
    if len(missing):
        raise DataError(
            f"{source_of(adata)} lacks {len(missing)} of the {len(wanted)} genes asked "
            f"for: {some(missing)}"
        )
    if names.is_unique:
        places = used[names.get_indexer(wanted)]
        is_whole = np.array_equal(places, np.arange(adata.n_vars))
        return Columns(None if is_whole else places)
    group = wanted.get_indexer(names)  # of each feature, the gene that it is
    members = np.flatnonzero(group >= 0)
    if len(members) == len(wanted):  # none of these has several
        return Columns(used[members[np.argsort(group[members])]])
    entries = (np.ones(len(members)), (np.arange(len(members)), group[members]))
    sums = csr_matrix(entries, shape=(len(members), len(wanted)))
    return Columns(used[members], sums)


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


def is_dask(X: Any) -> bool:
    """Whether this is a dask array, without importing dask."""
    return hasattr(X, "dask") and hasattr(X, "chunks")


def is_sparse(X: Any) -> bool:
    """Whether blocks of a matrix are sparse."""
    return _format(X) in ("csr", "csc")


def is_lazy(X: Any) -> bool:
    """Whether this is a dask array that can be cut by rows: CSC ones cannot."""
    return is_dask(X) and _format(X) != "csc"


def streams(X: Any) -> bool:
    """Whether some rows of a stored matrix can be read without all others."""
    if isinstance(X, np.ndarray) or issparse(X):
        return False
    return getattr(X, "streams", _format(X) != "csc")


def _format(X: Any) -> str:
    """How a matrix is sparse, "" where it is not."""
    return getattr(X._meta if is_dask(X) else X, "format", "")


def _chosen_columns(
    X: Any, columns: np.ndarray | None, source: str
) -> tuple[Any, np.ndarray | None]:
    """What gives slices of rows, and the columns that are still to be chosen of them.

    Of a matrix that is stored by genes (CSC), columns are read once and kept as rows;
    the log says so where these are all.
    """
    if hasattr(
        X, "take_genes"
    ):  # numbers that no AnnData can hold before they are read
        return X.take_genes(columns), None
    if _format(X) == "csc":
        if columns is None and not issparse(X):
            logger.warning(
                "%s stores its matrix by genes (CSC): it is read whole; write it as "
                "CSR to stream",
                source,
            )
        return _columns_as_rows(X, columns), None
    if is_dask(X) and columns is not None:
        return X[:, columns], None
    return X, columns


def _take_rows(X: Any, columns: np.ndarray | None, rows: np.ndarray | range) -> Block:
    """The rows at sorted positions; those with few others between are read together."""
    rows = np.asarray(rows)
    if not len(rows):
        return _slice(X, columns, 0, 0)
    parts = []
    for span in np.split(rows, np.flatnonzero(np.diff(rows) > _GAP) + 1):
        first, last = int(span[0]), int(span[-1]) + 1
        block = _slice(X, columns, first, last)
        parts.append(block if len(span) == last - first else block[span - first])
    return _stacked(parts)


def _slice(X: Any, columns: np.ndarray | None, start: int, stop: int) -> Block:
    """Rows that follow each other, with some of their columns."""
    if columns is None or is_sparse(X):
        return _chosen(_in_memory(X[start:stop]), columns)
    if hasattr(X, "get_orthogonal_selection"):
        # zarr then reads only the chunks with these columns
        return np.asarray(X.get_orthogonal_selection((slice(start, stop), columns)))
    # Whole rows are read, so few at a time: the columns chosen are few of them
    step = max(1, _WHOLE_VALUES // max(1, X.shape[1]))
    parts = [
        _chosen(_in_memory(X[first : min(first + step, stop)]), columns)
        for first in range(start, max(stop, start + 1), step)
    ]
    return _stacked(parts)


def _in_memory(X: Any) -> Any:
    """A matrix, or part of one, that may be on disk or lazy, in memory."""
    for way in ("to_memory", "compute"):
        if hasattr(X, way):
            return getattr(X, way)()
    return X if hasattr(X, "tocsr") else np.asarray(X)


def _chosen(block: Any, columns: np.ndarray | None) -> Block:
    """A block in memory with some of its columns."""
    if not issparse(block):
        return np.ascontiguousarray(block if columns is None else block[:, columns])
    _check_places(block.indices, block.shape[1])
    block = csr_matrix(block if columns is None else block[:, columns])
    block.sum_duplicates()
    return block


def _columns_as_rows(X: Any, columns: np.ndarray | None) -> csr_matrix:
    """Columns of a matrix that is stored by genes, in rows.

    Memory follows the number of entries in the columns chosen: little for the genes of
    a panel, the whole matrix when all columns are asked for.
    """
    if columns is None:
        chosen = _in_memory(X)
    else:
        order = np.argsort(columns)
        chosen = _in_memory(X[:, columns[order]])
    _check_places(chosen.indices, chosen.shape[0])
    by_rows = csr_matrix(chosen if columns is None else chosen[:, np.argsort(order)])
    by_rows.sum_duplicates()
    return by_rows


def _check_places(indices: np.ndarray, count: int) -> None:
    """Refuse entries outside of a matrix, before anything follows them into memory."""
    # As unsigned numbers, negative ones are larger than all others
    if indices.size and indices.view(f"u{indices.itemsize}").max() >= count:
        raise ValueError("its sparse matrix has entries outside its shape")


def _stacked(parts: list[Any]) -> Block:
    """Rows below each other, in flat memory."""
    if len(parts) == 1:
        return parts[0]
    if any(issparse(part) for part in parts):
        return csr_matrix(vstack(parts, format="csr"))
    return np.concatenate(parts)


Gathered = list[dict[str, Any]]  # what each accumulator of a group has gathered
Group = tuple[int, Gathered]  # with the samples that were seen up to its end


class Piece(NamedTuple):
    """Samples of one AnnData among those of a pass.

    Attributes
    ----------
    adata : where they are.
    columns : where the genes are in it.
    rows : rising positions of its samples.
    start : of its first sample among those of the pass.
    """

    adata: AnnData
    columns: Columns
    rows: NDArray[np.intp] | range
    start: int


@dataclass(frozen=True)
class Fold:
    """How the blocks of a pass are added to accumulators, group by group.

    Attributes
    ----------
    empty : the accumulators, which have seen nothing.
    source : where the samples come from, for messages.
    size : samples of a block.
    together : blocks of a group.
    as_sparse : whether blocks are made sparse, because those of another set are.
    as_dense : whether blocks are made arrays.
    dense : positions of genes, see `run_pass`.
    """

    empty: list[Accumulator]
    source: str
    size: int
    together: int
    as_sparse: bool
    as_dense: bool
    dense: list[int]

    def groups(
        self, X: Any, columns: Columns, rows: NDArray | range, start: int
    ) -> Generator[Group]:
        """Read and fold groups of some rows of a matrix, the first of which is
        ``start``.
        """
        blocks = read_blocks(X, columns, self.size, rows, self.source)
        for first in blocks:
            rest = itertools.islice(blocks, self.together - 1)
            group = self.group(itertools.chain([first], rest), start)
            start = group[0]
            yield group

    def group(self, blocks: Iterable[Any], start: int) -> Group:
        """Fold the blocks of one group, which begins at ``start``.

        An error says which samples it is about.
        """
        own = [copy.copy(accumulator) for accumulator in self.empty]
        for block in blocks:
            stop = start + block.shape[0]
            try:
                self._add(block, slice(start, stop), own)
            except DataError:
                raise
            except ValueError as error:
                place = f"{self.source}, samples {start + 1} to {stop}"
                raise DataError(f"{place}: {error}") from None
            start = stop
        return start, [
            {
                name: value
                for name, value in vars(ours).items()
                if value is not old[name]
            }
            for ours, old in zip(own, map(vars, self.empty), strict=True)
        ]

    def _add(self, X: Any, rows: slice, accumulators: list[Accumulator]) -> None:
        """Give a block to accumulators as they take it: an array or a CSR matrix."""
        if self.as_sparse or sparse.issparse(X):
            X = sparse.csr_matrix(X)
        if self.dense:
            some = as_dense(X[:, self.dense])
        else:
            some = X = as_dense(X) if self.as_dense else X
        for accumulator in accumulators:
            takes_all = getattr(accumulator, "takes_all", False)
            accumulator.add(X if takes_all else some, rows)


def run_pass(
    data: AnnData | Sequence[AnnData],
    accumulators: Sequence[Accumulator],
    genes: Sequence[str] | NDArray | None = None,
    *,
    size: int,
    rows: NDArray | None = None,
    together: int = 1,
    as_dense: bool = False,
    dense: Sequence[int] = (),
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> None:
    """Feed accumulators with all samples, those of one data set after the other.

    Lazy data are computed by the scheduler of dask that the user has; all others are
    read one block after the other, unless a cluster is given.

    Parameters
    ----------
    data : AnnData as readers leave it, or several.
    accumulators : empty ones; afterwards they have seen all samples.
    genes : names, in any order; None for all that all data sets have.
    size : samples of a block.
    rows : rising positions of samples; None for all.
    together : blocks of a group, which is one task where there are tasks.
    as_dense : whether blocks are arrays also where the values are sparse.
    dense : positions of genes that are made an array, once for all accumulators; those
        whose class says ``takes_all`` get all genes, as they are.
    cluster : where groups are folded instead of here.
    progress : called with the number of samples that were seen, and of all.
    """
    empty = [copy.copy(accumulator) for accumulator in accumulators]
    parts = parts_of(data)
    as_sparse = len(parts) > 1 and any(is_sparse(matrix_of(part)) for part in parts)
    source = source_of(parts)
    fold = Fold(empty, source, size, together, as_sparse, as_dense, list(dense))
    pieces = _pieces_of(parts, genes, rows)
    n_samples = sum(len(piece.rows) for piece in pieces)
    folded = (
        _groups_here(fold, pieces) if cluster is None else cluster.groups(fold, pieces)
    )
    with contextlib.closing(folded):  # an interrupted pass ends its tasks at once
        for seen, gathered in folded:
            for accumulator, before, values in zip(
                accumulators, empty, gathered, strict=True
            ):
                other = copy.copy(before)
                vars(other).update(values)
                accumulator.merge(other)
            if progress is not None:
                progress(seen, n_samples)


def _pieces_of(
    parts: Sequence[AnnData],
    genes: Sequence[str] | NDArray | None,
    rows: NDArray | None,
) -> list[Piece]:
    """The data sets that a pass reads, in order; no block has samples of two."""
    if genes is None and len(parts) > 1:
        genes = gene_names(parts)
    pieces = []
    first = 0
    start = 0
    for part in parts:
        inside: NDArray[np.intp] | range = range(part.n_obs)
        if rows is not None:
            stop = first + part.n_obs
            inside = rows[(rows >= first) & (rows < stop)] - first
        if len(inside):
            pieces.append(Piece(part, columns_of(part, genes), inside, start))
        first += part.n_obs
        start += len(inside)
    return pieces


def _groups_here(fold: Fold, pieces: Sequence[Piece]) -> Generator[Group]:
    """Read and fold the groups of all pieces in this process, or by the user's dask."""
    for piece in pieces:
        X = matrix_of(piece.adata)
        if is_lazy(X):
            from optirank.io.cluster import lazy_groups

            yield from lazy_groups(fold, X, piece)
        else:
            yield from fold.groups(X, piece.columns, piece.rows, piece.start)
