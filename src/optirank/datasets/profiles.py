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
    from scipy.sparse import csr_matrix, issparse, vstack

    parts = []
    for part in profiles.blocks(genes, block_rows(len(profiles.gene_names)), rows):
        block = csr_matrix(part.X) if issparse(part.X) else part.X
        if issparse(block):
            block.data = _compact(block.data)
        parts.append(block)
    if issparse(parts[0]):
        return vstack(parts, format="csr")
    return np.concatenate(parts)


def _compact(values: NDArray) -> NDArray:
    """The same values in 32 bits, where that loses nothing."""
    if values.dtype.itemsize > 4:
        narrow = values.astype(np.float32)
        return narrow if (narrow == values).all() else values
    return values
