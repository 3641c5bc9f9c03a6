"""Profiles that may be larger than memory: what training reads of them, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from optirank.datasets.data import ExpressionData

BLOCK_ENTRIES = 20_000_000  # of the dense matrix in one block: 80 MB in single precision
_GROWTH = 1.2  # room made ahead for what is still to be read


class Profiles(Protocol):
    """A matrix of samples by genes with names and annotations, in memory or on disk."""

    gene_names: np.ndarray
    sample_names: np.ndarray
    obs: pd.DataFrame
    source: str

    @property
    def n_samples(self) -> int:
        """Number of samples."""

    def blocks(
        self,
        genes: NDArray | None = None,
        block_size: int = 1024,
        rows: NDArray | None = None,
    ) -> Iterator[ExpressionData]:
        """Blocks of samples, with these genes of these rows (sorted positions) alone."""


def block_rows(n_genes: int) -> int:
    """How many samples of so many genes are read together."""
    return max(64, BLOCK_ENTRIES // max(1, n_genes))


def gather(profiles: Profiles, genes: NDArray, rows: NDArray) -> Any:
    """These genes of these rows in memory: CSR matrix or array.

    It is read block by block, so that memory follows what is kept. Values of sparse matrices are
    held in 32 bits where they fit exactly.
    """
    from scipy.sparse import csr_matrix, issparse

    size = block_rows(len(profiles.gene_names))
    values, indices, lengths, dense = _Growing(), _Growing(), [], []
    for part in profiles.blocks(genes, size, rows):
        if not issparse(part.X):
            dense.append(part.X)
            continue
        block = csr_matrix(part.X)
        values.add(_compact(block.data))
        indices.add(block.indices.astype(np.int32))
        lengths.append(np.diff(block.indptr))
    if dense:
        return np.concatenate(dense)
    pointers = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    shape = len(rows), len(genes)
    return csr_matrix((values.whole(), indices.whole(), pointers), shape=shape)


def _compact(values: NDArray) -> NDArray:
    """The same values in 32 bits, where that loses nothing."""
    if values.dtype.itemsize > 4:
        narrow = values.astype(np.float32)
        return narrow if (narrow == values).all() else values
    return values


class _Growing:
    """Blocks of an array joined as they come, without a second copy of what is there already."""

    def __init__(self) -> None:
        self._array, self._size = np.empty(0, np.int8), 0

    def add(self, block: NDArray) -> None:
        """Put a block behind the others."""
        kind = np.result_type(self._array, block) if self._size else block.dtype
        self._array = self._array.astype(kind, copy=False)
        end = self._size + len(block)
        if end > len(self._array):
            self._array.resize(int(_GROWTH * end), refcheck=False)  # moves pages, copies nothing
        self._array[self._size : end] = block
        self._size = end

    def whole(self) -> NDArray:
        """All blocks."""
        self._array.resize(self._size, refcheck=False)
        return self._array
