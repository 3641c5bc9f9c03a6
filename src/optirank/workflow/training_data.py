"""The usable samples and genes of some profiles, as a training reads them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from optirank._util.names import counted
from optirank._util.scales import GeneMoments, value_scale
from optirank.io.blocks import BlockJob, run_blocks
from optirank.io.data import SCALE_SAMPLES, DataError, block_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.io.blocks import Engine
    from optirank.io.data import Profiles

_ROW_DIGEST = 16  # bytes of the checksum of a sample


class EmptySamplesError(DataError):
    """Some samples have the same value in every gene; ``rows`` are their positions."""

    def __init__(self, rows: NDArray) -> None:
        what = counted(len(rows), "sample has", "samples have")
        super().__init__(f"{what} the same value in every gene")
        self.rows = rows


class TrainingData:
    """The usable samples and genes of some profiles, read in blocks.

    The first pass over all genes checks the values, makes a checksum of names and
    values, and sees whether the values were standardised per gene. ``engine`` runs over
    the blocks, see `optirank.io.blocks`.
    """

    def __init__(
        self,
        profiles: Profiles,
        rows: NDArray,
        columns: NDArray,
        engine: Engine | None = None,
    ) -> None:
        self._profiles = profiles
        self._rows = rows
        self._columns = columns
        self._engine = engine
        self.shape = len(rows), len(columns)
        self.genes = np.asarray(profiles.gene_names, dtype=object)[columns]
        looked_at = rows[:: max(1, len(rows) // SCALE_SAMPLES)]
        sample = next(iter(profiles.blocks(columns, len(looked_at), looked_at))).X
        _refuse_no_numbers(sample, profiles.source)
        self.scale = value_scale(sample)
        self.standardised = False  # until all samples were read once
        self.checksum = ""

    def each(
        self,
        function: Callable[..., Any],
        columns: NDArray | None = None,
        *,
        per_sample: tuple[NDArray, ...] = (),
        combine: Callable[[Any, Any], Any] | None = None,
        together: int = 1,
    ) -> Iterator[tuple[slice, Any]]:
        """Rows and the result of a function for each block of samples, in order.

        Blocks are arrays or CSR matrices. With all genes their values are checked
        first.
        """
        profiles = self._profiles
        chosen = self._columns if columns is None else self._columns[columns]
        if len(chosen) == len(profiles.gene_names) and (np.diff(chosen) == 1).all():
            chosen = None
        job = BlockJob(
            function,
            profiles,
            chosen,
            block_rows(len(profiles.gene_names)),
            None if len(self._rows) == profiles.n_samples else self._rows,
            per_sample,
            together,
            combine,
        )
        if columns is None:
            return self._checked(job)
        return run_blocks(replace(job, function=_OfRows(function)), self._engine)

    def some_samples(self, rows: NDArray) -> Any:
        """Some samples (rising positions) with all genes: an array or a CSR matrix."""
        profiles = self._profiles
        step = block_rows(len(profiles.gene_names))
        blocks = profiles.blocks(self._columns, step, self._rows[rows])
        parts = [_by_rows(block.X) for block in blocks]
        if sparse.issparse(parts[0]):
            return sparse.vstack(parts, format="csr")
        return np.concatenate(parts)

    def _checked(self, job: BlockJob) -> Iterator[tuple[slice, Any]]:
        """The results of a job whose blocks have all genes."""
        names = [*map(str, self.genes)]
        names += map(str, self._profiles.sample_names[self._rows])
        content = "\0".join(names).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(content, digest_size=16)
        empty = []
        sums = []
        combine = None if job.combine is None else _CombineChecked(job.combine)
        check = _CheckBlock(job.function, self._profiles.source)
        checked = replace(job, function=check, combine=combine)
        for rows, block in run_blocks(checked, self._engine):
            empty.append(rows.start + np.flatnonzero(block.empty))
            digest.update(block.checksums.data)
            sums.append(block.sums)
            yield rows, block.result
        without_values = np.concatenate(empty)
        if len(without_values):
            raise EmptySamplesError(self._rows[without_values])
        self.checksum = digest.hexdigest()
        self.standardised = GeneMoments.of_sums(sums).standardised()


@dataclass(frozen=True)
class _OfRows:
    """Calls a function with blocks as arrays or CSR matrices."""

    function: Callable[..., Any]

    def __call__(self, X: Any, rows: slice, *own: NDArray) -> Any:
        return self.function(_by_rows(X), rows, *own)


class _Checked(NamedTuple):
    """The result of a block, and what is known of its samples.

    ``empty`` says which have the same value in every gene; ``checksums`` are of each;
    ``sums`` those of the genes (`GeneMoments.sums`).
    """

    result: Any
    empty: NDArray[np.bool_]
    checksums: NDArray[np.uint8]
    sums: dict[str, NDArray]


@dataclass(frozen=True)
class _CheckBlock:
    """Checks the values of a block with all genes before a function looks at them."""

    function: Callable[..., Any]
    source: str

    def __call__(self, X: Any, rows: slice, *own: NDArray) -> _Checked:
        X = _by_rows(X)
        _refuse_no_numbers(X, self.source)
        if sparse.issparse(X):
            empty = np.diff(X.indptr) == 0
        else:
            empty = X.min(axis=1) == X.max(axis=1)
        moments = GeneMoments()
        moments.add(X)
        result = self.function(X, rows, *own)
        return _Checked(result, empty, _checksums(X), moments.sums())


@dataclass(frozen=True)
class _CombineChecked:
    """Makes one of two checked results."""

    combine: Callable[[Any, Any], Any]

    def __call__(self, first: _Checked, second: _Checked) -> _Checked:
        return _Checked(
            self.combine(first.result, second.result),
            np.concatenate([first.empty, second.empty]),
            np.concatenate([first.checksums, second.checksums]),
            GeneMoments.of_sums([first.sums, second.sums]).sums(),
        )


def _by_rows(X: Any) -> Any:
    return X.tocsr() if sparse.issparse(X) else np.asarray(X)


def _checksums(X: Any) -> NDArray[np.uint8]:
    """A checksum of the places and values of each sample."""
    values = sparse.csr_matrix(X)
    places = np.ascontiguousarray(values.indices, dtype="<i4")
    numbers = np.ascontiguousarray(values.data, dtype="<f8")
    ends: list[int] = np.asarray(values.indptr).tolist()
    texts = []
    for start, stop in itertools.pairwise(ends):
        digest = hashlib.blake2b(places[start:stop].data, digest_size=_ROW_DIGEST)
        digest.update(numbers[start:stop].data)
        texts.append(digest.digest())
    return np.frombuffer(b"".join(texts), np.uint8).reshape(-1, _ROW_DIGEST)


def _refuse_no_numbers(X: Any, source: str) -> None:
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
