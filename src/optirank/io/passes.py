"""A pass over the samples of one or several AnnData: here, lazily, or on a cluster.

Groups of blocks are folded (`optirank._util.passes`) and merged in the order of the
samples. Blocks and groups are the same ones whatever folds them, so results are the
same to the last bit.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from optirank._util.passes import Accumulator, merge_all
from optirank.io.blocks import Columns, columns_of, read_blocks
from optirank.io.data import DataError, gene_names, matrix_of, parts_of, source_of
from optirank.io.stored import is_lazy, is_sparse

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank.io.cluster import Cluster

Progress = Callable[[int, int], None]
Gathered = list[dict[str, Any]]  # what each accumulator of a group has gathered
Groups = Generator[tuple[int, Gathered]]  # with the end of each group


class Cut(NamedTuple):
    """A block of which some genes are an array too, made once for all accumulators.

    An accumulator whose class says ``takes_all`` gets ``whole``, all others ``some``.
    """

    some: NDArray
    whole: Any

    def for_(self, accumulator: Accumulator) -> Any:
        """What an accumulator takes of the block."""
        return self.whole if getattr(accumulator, "takes_all", False) else self.some


@dataclass(frozen=True)
class Form:
    """What the blocks of a pass look like.

    Attributes
    ----------
    size : samples of a block.
    together : blocks of a group.
    as_sparse : whether blocks are made sparse, because those of another set are.
    as_dense : whether blocks are made arrays.
    dense : where some genes alone are, their positions, see `Cut`.
    source : where the samples come from, for messages.
    """

    size: int
    together: int
    as_sparse: bool
    as_dense: bool
    source: str
    dense: tuple[int, ...] = ()

    def block(self, X: Any) -> Any:
        """The values of a block as accumulators take them: an array or a CSR matrix."""
        if self.dense:
            whole = sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X)
            return Cut(_dense(whole[:, list(self.dense)]), whole)
        if self.as_dense:
            return _dense(X)
        if self.as_sparse or sparse.issparse(X):
            return sparse.csr_matrix(X)
        return np.asarray(X)


def _dense(X: Any) -> NDArray:
    return X.toarray() if sparse.issparse(X) else np.ascontiguousarray(X)


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
    dense : where some genes alone are, their positions, see `Cut`.
    cluster : where groups are folded instead of here.
    progress : called with the number of samples that were seen, and of all.
    """
    empty = [copy.copy(accumulator) for accumulator in accumulators]
    parts = parts_of(data)
    some_sparse = len(parts) > 1 and any(is_sparse(matrix_of(part)) for part in parts)
    form = Form(size, together, some_sparse, as_dense, source_of(parts), tuple(dense))
    pieces = _pieces_of(parts, genes, rows)
    n_samples = sum(len(piece.rows) for piece in pieces)
    if cluster is not None:
        groups = cluster.groups(empty, pieces, form)
    else:
        groups = _groups_here(empty, pieces, form)
    with contextlib.closing(groups):  # an interrupted pass ends its tasks at once
        for seen, gathered in groups:
            merge_all(accumulators, filled(empty, gathered))
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


def _groups_here(
    empty: Sequence[Accumulator], pieces: Sequence[Piece], form: Form
) -> Groups:
    """Read and fold the groups of all pieces in this process, or by the user's dask."""
    for piece in pieces:
        X = matrix_of(piece.adata)
        if is_lazy(X):
            from optirank.io.cluster import lazy_groups

            yield from lazy_groups(empty, X, piece, form)
        else:
            yield from groups_of(empty, X, piece.columns, piece.rows, piece.start, form)


def groups_of(
    empty: Sequence[Accumulator],
    X: Any,
    columns: Columns,
    rows: NDArray | range,
    start: int,
    form: Form,
) -> Groups:
    """Read and fold groups of some rows of a matrix, the first of which is ``start``.

    Gives the samples that were seen up to the end of each group, and what was gathered.
    """
    read = read_blocks(X, columns, form.size, rows, form.source)
    blocks = map(form.block, read)
    for first in blocks:
        rest = itertools.islice(blocks, form.together - 1)
        group = itertools.chain([first], rest)
        start, gathered = fold_group(empty, group, start, form.source)
        yield start, gathered


def fold_group(
    empty: Sequence[Accumulator], blocks: Iterable[Any], start: int, source: str
) -> tuple[int, Gathered]:
    """Where a group ends that begins at ``start``, and what accumulators gather
    from it.

    An error says which samples it is about.
    """
    own = [copy.copy(accumulator) for accumulator in empty]
    for block in blocks:
        cut = block if isinstance(block, Cut) else Cut(block, block)
        stop = start + cut.some.shape[0]
        try:
            for accumulator in own:
                accumulator.add(cut.for_(accumulator), slice(start, stop))
        except DataError:
            raise
        except ValueError as error:
            place = f"{source}, samples {start + 1} to {stop}"
            raise DataError(f"{place}: {error}") from None
        start = stop
    return start, [
        {name: value for name, value in vars(after).items() if value is not old[name]}
        for after, old in zip(own, map(vars, empty), strict=True)
    ]


def filled(
    empty: Sequence[Accumulator], gathered: Sequence[dict[str, Any]]
) -> list[Accumulator]:
    """Accumulators that have gathered this."""
    accumulators = [copy.copy(accumulator) for accumulator in empty]
    for accumulator, values in zip(accumulators, gathered, strict=True):
        vars(accumulator).update(values)
    return accumulators
