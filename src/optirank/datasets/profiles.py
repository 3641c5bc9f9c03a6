"""Profiles that may be larger than memory: what training reads of them, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from optirank.datasets.data import ExpressionData

BLOCK_ENTRIES = 20_000_000  # of the dense matrix: rows that are read together


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
    blocks = [
        _compact(part.X) if issparse(part.X) else part.X
        for part in profiles.blocks(genes, size, rows)
    ]
    if not any(issparse(block) for block in blocks):
        return np.concatenate(blocks)
    blocks = [csr_matrix(block) for block in blocks]
    ends = np.cumsum([block.nnz for block in blocks])
    starts = np.concatenate([[0], ends[:-1]])
    pointers = np.concatenate(
        [[0], *(block.indptr[1:] + start for block, start in zip(blocks, starts, strict=True))]
    )
    # One after the other, each let go when it is joined: the blocks and the whole are never both
    # held in full.
    indices = np.concatenate([block.indices for block in blocks])
    values = [block.data for block in blocks]
    del blocks
    return csr_matrix((np.concatenate(values), indices, pointers), shape=(len(rows), len(genes)))


def _compact(X: Any) -> Any:
    """The same values in 32 bits, where that loses nothing."""
    if X.dtype.itemsize > 4:
        narrow = X.data.astype(np.float32)
        if (narrow == X.data).all():
            X = X.copy()
            X.data = narrow
    return X
