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
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from anndata import AnnData
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse, vstack

from optirank._util.matrices import Accumulator, Progress, as_dense, value_scale
from optirank._util.names import counted, some
from optirank.io.data import (
    DataError,
    about,
    block_rows,
    changed,
    duplicates,
    gene_names,
    matrix_of,
    parts_of,
    readable,
    source_of,
    used_features,
    used_names,
)

if TYPE_CHECKING:
    from optirank.io.cluster import Cluster

logger = logging.getLogger("optirank.datasets")

_SCALE_SAMPLES = 200  # samples and genes that tell what kind of values data hold
_SCALE_GENES = 2000
# Values of whole rows read together, of which some columns are kept: at most 160 MB
_WHOLE_VALUES = 20_000_000
# Up to so many rows between two wanted ones are cheaper to read than to leave out
_GAP = 16

Block = Any  # an array, or a CSR matrix


Group = tuple[int, list[dict[str, Any]]]  # samples seen up to its end; see `Fold`


class Piece(NamedTuple):
    """Samples and genes of one AnnData, those of a pass among them.

    Attributes
    ----------
    adata : where they are.
    places : positions of columns.
    sums : what adds these up to genes, where several features are one gene.
    rows : rising positions of the samples.
    start : of the first of them among the samples of a pass.
    """

    adata: AnnData
    places: NDArray[np.intp]
    sums: csr_matrix | None
    rows: NDArray[np.intp] | range
    start: int = 0

    def blocks(self, size: int) -> Iterator[Block]:
        """Read the samples, so many at a time."""
        source = source_of(self.adata)
        with readable(source):
            X, columns = _chosen_columns(matrix_of(self.adata), self.places, source)
        n_together = size
        if is_dask(X):  # whole chunks, so that each is computed once or twice
            n_together *= max(1, -(-max(X.chunks[0]) // size))
        for first in range(0, len(self.rows), n_together):
            with readable(source):
                read = _take_rows(X, columns, self.rows[first : first + n_together])
            if self.sums is not None:
                read = read @ self.sums.astype(read.dtype)
            for start in range(0, read.shape[0], size):
                yield read[start : start + size]


def blocks(
    adata: AnnData,
    genes: Sequence[str] | NDArray | None = None,
    size: int = 1024,
    rows: NDArray | range | None = None,
) -> Iterator[Block]:
    """Read all samples, or those at some sorted positions, in blocks.

    Memory follows the size of a block; of lazy data that of a chunk, where this is
    larger. Rows that are not asked for are not kept, and long runs of them are not
    read.

    Parameters
    ----------
    adata : as readers leave it.
    genes : names, in any order; None for all. Features of one name are summed.
    size : samples of a block.
    rows : rising positions of samples; None for all.
    """
    rows = range(adata.n_obs) if rows is None else rows
    return Piece(adata, *columns_of(adata, genes), rows).blocks(size)


def read_features(
    adata: AnnData,
    features: NDArray[np.intp],
    rows: NDArray | range | None = None,
) -> Block:
    """The values of features by their positions, of all samples or of some."""
    rows = range(adata.n_obs) if rows is None else rows
    source = source_of(adata)
    with readable(source):
        return _take_rows(*_chosen_columns(matrix_of(adata), features, source), rows)


def columns_of(
    adata: AnnData, genes: Sequence[str] | NDArray | None = None
) -> tuple[NDArray[np.intp], csr_matrix | None]:
    """Where genes are, by name, None for all in use: ``places`` and ``sums`` of a
    `Piece`.
    """
    used = np.flatnonzero(used_features(adata))
    names = pd.Index(used_names(adata), dtype=object)
    wanted = pd.Index(names.unique() if genes is None else genes, dtype=object)
    missing = wanted[~wanted.isin(names)]
    if len(missing):
        raise DataError(
            f"{source_of(adata)} lacks {len(missing)} of the {len(wanted)} genes asked "
            f"for: {some(missing)}"
        )
    if names.is_unique:
        return used[names.get_indexer(wanted)], None
    group = wanted.get_indexer(names)  # of each feature, the gene that it is
    members = np.flatnonzero(group >= 0)
    if len(members) == len(wanted):  # none of these has several
        return used[members[np.argsort(group[members])]], None
    entries = (np.ones(len(members)), (np.arange(len(members)), group[members]))
    return used[members], csr_matrix(entries, shape=(len(members), len(wanted)))


def unique_genes(adata: AnnData) -> AnnData:
    """Decide what genes of the same name are, without reading all data: the one rule.

    Counts are added up. Of values on another scale the first gene of each name is
    used, since sums of logarithms mean nothing. Some features of some samples, evenly
    spaced, tell the scale.
    """
    names = used_names(adata)
    repeated = duplicates(names)
    if not repeated or about(adata).get("summed"):
        return adata
    used = used_features(adata)
    places = np.flatnonzero(used)
    features = places[:: max(1, len(places) // _SCALE_GENES)]
    rows = np.arange(0, adata.n_obs, max(1, adata.n_obs // _SCALE_SAMPLES))
    how = "their counts are summed"
    if value_scale(read_features(adata, features, rows)) != "counts":
        how = "the first of each is used"
        used[places[pd.Index(names, dtype=object).duplicated()]] = False
    what = counted(len(repeated), "gene name occurs", "gene names occur")
    note = f"{what} more than once, {how}: {some(repeated)}"
    return changed(adata, used=used, notes=[note], summed=True)


def is_dask(X: Any) -> bool:
    """Whether this is a dask array, without importing dask."""
    return hasattr(X, "dask") and hasattr(X, "chunks")


def streams(X: Any) -> bool:
    """Whether some rows of a stored matrix can be read without all others."""
    if isinstance(X, np.ndarray) or issparse(X):
        return False
    return getattr(X, "streams", _format(X) != "csc")


def _format(X: Any) -> str:
    """How a matrix is sparse, "" where it is not."""
    return getattr(X._meta if is_dask(X) else X, "format", "")


def _chosen_columns(
    X: Any, places: np.ndarray, source: str
) -> tuple[Any, np.ndarray | None]:
    """What gives slices of rows, and the columns that are still to be chosen of them,
    None for all.

    Of a matrix that is stored by genes (CSC), columns are read once and kept as rows;
    the log says so where these are all.
    """
    is_whole = np.array_equal(places, np.arange(X.shape[1]))
    columns = None if is_whole else places
    if hasattr(X, "take_genes"):  # numbers that are parsed when they are read
        return X.take_genes(columns), None
    if _format(X) == "csc":
        if columns is not None:
            order = np.argsort(columns)
            return _in_memory(X[:, columns[order]], np.argsort(order)), None
        if not issparse(X):
            logger.warning(
                "%s stores its matrix by genes (CSC): it is read whole; write it as "
                "CSR to stream",
                source,
            )
        return _in_memory(X), None
    if is_dask(X) and columns is not None:
        # dask slices rising positions well, and makes many small chunks of others
        return X[:, np.sort(columns)], np.argsort(np.argsort(columns))
    return X, columns


def _take_rows(X: Any, columns: np.ndarray | None, rows: np.ndarray | range) -> Block:
    """The rows at sorted positions; those with few others between are read together."""
    rows = np.asarray(rows)
    if is_dask(X):
        return _in_memory(X[rows], columns)
    # zarr then reads only the chunks with these columns
    selects = columns is not None and hasattr(X, "get_orthogonal_selection")
    most = X.shape[0] + 1
    if columns is not None and not selects and not _format(X):
        # Whole rows are read, so few at a time: the columns chosen are few of them
        most = max(1, _WHOLE_VALUES // max(1, X.shape[1]))
    is_end = (np.diff(rows) > _GAP) | (np.diff(rows // most) > 0)
    parts = []
    for span in np.split(rows, np.flatnonzero(is_end) + 1):
        first, last = (int(span[0]), int(span[-1]) + 1) if len(span) else (0, 0)
        if selects:
            selected = X.get_orthogonal_selection((slice(first, last), columns))
            block = np.ascontiguousarray(selected)
        else:
            block = _in_memory(X[first:last], columns)
        parts.append(block if len(span) == last - first else block[span - first])
    if len(parts) == 1:
        return parts[0]
    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)


def _in_memory(X: Any, columns: np.ndarray | None = None) -> Block:
    """A matrix, or part of one, that may be on disk or lazy, with some of its columns;
    a sparse one by rows.
    """
    for way in ("to_memory", "compute"):
        if hasattr(X, way):
            X = getattr(X, way)()
    if not issparse(X):
        values = np.asarray(X)
        return np.ascontiguousarray(values if columns is None else values[:, columns])
    # Entries outside of it are refused before anything follows them into memory. As
    # unsigned numbers, negative ones are larger than all others
    places = X.indices.view(f"u{X.indices.itemsize}")
    if places.size and places.max() >= X.shape[X.format == "csr"]:
        raise ValueError("its sparse matrix has entries outside its shape")
    by_rows = csr_matrix(X if columns is None else X[:, columns])
    by_rows.sum_duplicates()
    return by_rows


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
    dense : positions of genes, see `run_pass`.
    """

    empty: list[Accumulator]
    source: str
    size: int
    together: int
    as_sparse: bool
    dense: NDArray[np.intp] | None

    def groups(self, piece: Piece) -> Generator[Group]:
        """Read and fold groups of blocks.

        Gives the samples that were seen up to the end of each, and what each
        accumulator has gathered: its attributes that differ from those of the empty
        one. An error says which samples it is about.
        """
        start = piece.start
        blocks = piece.blocks(self.size)
        for first in blocks:
            own = [copy.copy(accumulator) for accumulator in self.empty]
            rest = itertools.islice(blocks, self.together - 1)
            for block in itertools.chain([first], rest):
                rows = slice(start, start + block.shape[0])
                try:
                    self._add(block, rows, own)
                except DataError:
                    raise
                except ValueError as error:
                    place = f"{self.source}, samples {start + 1} to {rows.stop}"
                    raise DataError(f"{place}: {error}") from None
                start = rows.stop
            yield start, list(map(_gathered, own, self.empty))

    def _add(self, X: Any, rows: slice, accumulators: list[Accumulator]) -> None:
        """Give a block to accumulators as they take it: an array or a CSR matrix."""
        if self.as_sparse:
            X = csr_matrix(X)
        some = X if self.dense is None else as_dense(X[:, self.dense])
        for accumulator in accumulators:
            takes_all = getattr(accumulator, "takes_all", False)
            accumulator.add(X if takes_all else some, rows)


def _gathered(accumulator: Accumulator, empty: Accumulator) -> dict[str, Any]:
    """The attributes that an accumulator has bound anew."""
    old = vars(empty)
    new = vars(accumulator)
    return {name: value for name, value in new.items() if value is not old[name]}


def run_pass(
    data: AnnData | Sequence[AnnData],
    accumulators: Sequence[Accumulator],
    genes: Sequence[str] | NDArray | None = None,
    *,
    size: int | None = None,
    rows: NDArray | None = None,
    together: int | None = None,
    dense: NDArray[np.intp] | None = None,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> None:
    """Feed accumulators with all samples, those of one data set after the other.

    They are read one block after the other, unless a cluster is given; lazy data are
    computed by the scheduler of dask that the user has.

    Parameters
    ----------
    data : AnnData as readers leave it, or several.
    accumulators : empty ones; afterwards they have seen all samples.
    genes : names, in any order; None for all that all data sets have.
    size : samples of a block; None for as many as the data's genes allow
        (`block_rows`).
    rows : rising positions of samples; None for all.
    together : blocks of a group, which is one task where there are tasks; None for what
        an accumulator has as ``together``, else 1.
    dense : positions of genes that are made an array, once for all accumulators; those
        whose class says ``takes_all`` get all genes, as they are. None for all genes,
        as they are.
    cluster : where groups are folded instead of here.
    progress : called with the number of samples that were seen, and of all.
    """
    empty = [copy.copy(accumulator) for accumulator in accumulators]
    parts = parts_of(data)
    as_sparse = len(parts) > 1 and any(_format(matrix_of(part)) for part in parts)
    if size is None:
        size = block_rows(len(gene_names(parts)))
    if together is None:
        together = max(int(getattr(look, "together", 1)) for look in accumulators)
    fold = Fold(empty, source_of(parts), size, together, as_sparse, dense)
    pieces = _pieces_of(parts, genes, rows)
    n_samples = sum(len(piece.rows) for piece in pieces)
    if cluster is None:
        groups = (group for piece in pieces for group in fold.groups(piece))
    else:
        groups = cluster.groups(fold, pieces)
    with contextlib.closing(groups):  # an interrupted pass ends its tasks at once
        for seen, gathered in groups:
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
    first = start = 0
    for part in parts:
        stop = first + part.n_obs
        inside: NDArray[np.intp] | range = range(part.n_obs)
        if rows is not None:
            inside = rows[(rows >= first) & (rows < stop)] - first
        if len(inside):
            pieces.append(Piece(part, *columns_of(part, genes), inside, start))
        first = stop
        start += len(inside)
    return pieces
