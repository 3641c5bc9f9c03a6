"""The usable samples and genes of some profiles, as a training reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.scales import GeneMoments, value_scale
from optirank.io.data import SCALE_SAMPLES, DataError, block_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.io.data import Profiles


class EmptySamplesError(DataError):
    """Some samples have the same value in every gene; ``rows`` are their positions."""

    def __init__(self, rows: NDArray) -> None:
        super().__init__(f"{len(rows)} samples have the same value in every gene")
        self.rows = rows


class TrainingData:
    """The usable samples and genes of some profiles, read in blocks.

    The first pass over all genes checks the values, makes a checksum of names and values,
    and sees whether the values were standardised per gene.
    """

    def __init__(self, profiles: Profiles, rows: NDArray, columns: NDArray) -> None:
        self._profiles = profiles
        self._rows = rows
        self._columns = columns
        self.shape = (len(rows), len(columns))
        self.genes = np.asarray(profiles.gene_names, dtype=object)[columns]
        looked_at = rows[:: max(1, len(rows) // SCALE_SAMPLES)]
        sample = next(iter(profiles.blocks(columns, len(looked_at), looked_at))).X
        _refuse_no_numbers(sample, profiles.source)
        self.scale = value_scale(sample)
        self.standardised = False  # until all samples were read once
        self.checksum = ""

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """All samples in order, with some genes (all): arrays or CSR matrices."""
        if columns is not None:
            yield from self._read(self._columns[columns])
            return
        digest = self._digest_of_names()
        moments = GeneMoments()
        empty: list[NDArray] = []
        start = 0
        for X in self._read(self._columns):
            _refuse_no_numbers(X, self._profiles.source)
            empty.append(start + np.flatnonzero(_is_constant(X)))
            _add_values(digest, X)
            moments.add(X)
            start += X.shape[0]
            yield X
        positions = np.concatenate(empty)
        if len(positions):
            raise EmptySamplesError(self._rows[positions])
        self.checksum = digest.hexdigest()
        self.standardised = moments.standardised()

    def _read(self, columns: NDArray) -> Iterator[Any]:
        """Blocks of the samples with some columns of the profiles."""
        profiles = self._profiles
        n_genes = len(profiles.gene_names)
        is_whole = len(columns) == n_genes and bool((np.diff(columns) == 1).all())
        chosen = None if is_whole else columns
        rows = None if len(self._rows) == profiles.n_samples else self._rows
        for block in profiles.blocks(chosen, block_rows(n_genes), rows):
            yield block.X.tocsr() if sparse.issparse(block.X) else np.asarray(block.X)

    def _digest_of_names(self) -> Any:
        samples = self._profiles.sample_names[self._rows]
        names = [*map(str, self.genes), *map(str, samples)]
        content = "\0".join(names).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16)


def _is_constant(X: Any) -> NDArray:
    """Which samples have the same value in every gene."""
    if sparse.issparse(X):
        return np.diff(X.indptr) == 0
    return X.min(axis=1) == X.max(axis=1)


def _add_values(digest: Any, X: Any) -> None:
    """Add values to a checksum, the same for a sparse and for a dense matrix."""
    values = sparse.csr_matrix(X)
    parts = {"<i8": values.indptr, "<i4": values.indices, "<f8": values.data}
    for kind, part in parts.items():
        digest.update(np.ascontiguousarray(part, dtype=kind).data)


def _refuse_no_numbers(X: Any, source: str) -> None:
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "buif":
        raise DataError(f"{source}: the matrix holds {values.dtype}, not numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        n_missing = int((~np.isfinite(values)).sum())
        what = "1 value is" if n_missing == 1 else f"{n_missing} values are"
        raise DataError(
            f"{source}: {what} missing or infinite (NaN, inf): fill in what is missing, or "
            "leave these genes or samples out"
        )
