"""What the first pass of a training checks: empty samples, checksums, values that are
no numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.names import counted
from optirank._util.passes import PerSample
from optirank.io.data import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAMES = 100_000  # that are joined at a time


class EmptySamples(PerSample):
    """Accumulates which samples have the same value in every gene.

    Values that are missing, or no numbers, are refused.
    """

    def __init__(self, n_samples: int, source: str) -> None:
        super().__init__(n_samples)
        self._source = source

    def of_block(self, block: Any, rows: slice) -> NDArray[np.bool_]:
        """Which samples of a block are empty."""
        refuse_no_numbers(block, self._source)
        if sparse.issparse(block):
            return np.diff(block.indptr) == 0
        return block.min(axis=1) == block.max(axis=1)


class Checksums(PerSample):
    """Accumulates a checksum of the values of each sample, sparse or not.

    That of a sample is ``sum over j of a_j x_j`` modulo 2^64, with x_j the bits of a
    value in single precision and a_j random odd numbers, always the same ones.
    """

    def of_block(self, block: Any, rows: slice) -> NDArray[np.uint64]:
        """The checksums of a block."""
        random = np.random.default_rng(0).integers(
            0, 1 << 63, block.shape[1], np.uint64
        )
        factors = 2 * random + np.uint64(1)
        if not sparse.issparse(block):
            return _bits(block) @ factors
        bits = (_bits(block.data), block.indices, block.indptr)
        return sparse.csr_matrix(bits, block.shape) @ factors

    def checksum(
        self, genes: Sequence[object] | NDArray, samples: Sequence[object] | NDArray
    ) -> str:
        """One checksum of the names of genes and samples and of all values.

        The order of the samples does not matter.
        """
        values = self.result().astype("<u8")
        names = np.array([str(name) for name in samples], dtype=object)
        order = np.lexsort([values, np.unique(names, return_inverse=True)[1]])
        digest = hashlib.blake2b(digest_size=16)
        for some in (genes, names[order]):
            for start in range(0, len(some), _NAMES):
                text = "\0".join(map(str, some[start : start + _NAMES]))
                digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(values[order].data)
        return digest.hexdigest()


def _bits(values: Any) -> NDArray[np.uint64]:
    """The bits of values in single precision."""
    return np.asarray(values, "<f4").view("<u4").astype(np.uint64)


def refuse_no_numbers(X: Any, source: str) -> None:
    """Refuse values that are missing, infinite or no numbers."""
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "buif":
        raise DataError(f"{source}: the matrix holds {values.dtype}, not numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        n_missing = int((~np.isfinite(values)).sum())
        what = counted(n_missing, "value is", "values are")
        raise DataError(
            f"{source}: {what} missing or infinite (NaN, inf): fill in what is "
            "missing, or leave these genes or samples out"
        )
