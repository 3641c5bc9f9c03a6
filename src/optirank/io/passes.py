"""A pass over the samples of one or several AnnData: here, lazily, or on a cluster.

Groups of blocks are folded (`optirank._util.matrices`) and merged in the order of the
samples. Blocks and groups are the same ones whatever folds them, so results are the
same to the last bit.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from optirank._util.matrices import as_dense
from optirank.io.blocks import Columns, columns_of, is_lazy, is_sparse, read_blocks
from optirank.io.data import DataError, gene_names, matrix_of, parts_of, source_of

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank._util.matrices import Accumulator, Progress
    from optirank.io.cluster import Cluster

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
