"""Matrices of samples by genes: as plain arrays, what kind of values they hold, and
looks at their samples block by block. Shares of right labels, with their errors.

Sparse matrices are those with ``tocsr``: SciPy, which knows, takes long to load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


_Z = 1.959964  # standard deviations of a 95 % interval
_LINEAR_ABOVE = 50.0  # which no logarithms of expression values reach
TOTAL = 1e4  # counts per sample before logarithms, as is usual for cells
_ROWS = 200  # samples that are looked at: values of one file are of one kind
_NEAR = 0.01  # far from 0 and 1 for any gene that was not standardised
STANDARDISED = (
    "genes have mean 0 and standard deviation 1: these values were standardised per "
    "gene (z-scores, StandardScaler, scanpy's pp.scale), and the order of genes within "
    "a sample, which is all that ranks see, means little then; give counts, linear "
    "values or logarithms instead"
)


def as_dense(X: Any) -> np.ndarray:
    """A matrix, sparse or dense, as an array in C order; an array that is one
    stays itself.
    """
    values = X.toarray() if hasattr(X, "toarray") else X
    return np.ascontiguousarray(values)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a @ b`` of finite numbers, without a warning of an invalid value.

    BLAS fills its vector registers beyond the end of a small float32 matrix. What lies
    there can raise the flag, now and then, though no number of the result comes from
    it.
    """
    with np.errstate(invalid="ignore"):
        return a @ b


def value_scale(X: Any) -> str:
    """What the values are: "counts", "linear" or "log".

    Whole numbers of at least 0 are counts; otherwise values beyond 50 either way are on
    a linear scale. At most 200 samples are looked at, spread evenly.
    """
    X = X if hasattr(X, "dtype") else np.asarray(X)
    X = X.tocsr() if hasattr(X, "tocsr") else X
    if X.shape[0] > _ROWS:
        X = X[np.linspace(0, X.shape[0] - 1, _ROWS).astype(np.intp)]
    values = X.data if hasattr(X, "tocsr") else np.ravel(X)
    if values.dtype.kind == "f":
        values = values[np.isfinite(values)]
    if not values.size or (values.min() >= 0 and np.all(values == np.floor(values))):
        return "counts"
    return "linear" if np.abs(values).max() > _LINEAR_ABOVE else "log"


def inverted(values: np.ndarray) -> np.ndarray:
    """Values of which less is more, such as Ct of qPCR, the other way round.

    The highest value becomes 0, and infinite ones, of genes that were not detected, are
    0 below all others, which become at least 1.
    """
    undetected = np.isposinf(values)
    detected = values[np.isfinite(values)]
    if not detected.size:
        return np.where(undetected, 0.0, values)
    highest = detected.max() + float(undetected.any())
    return np.where(undetected, 0.0, highest - values)


def per_ten_thousand(X: Any, scale: str) -> Any:
    """Values per 10,000 of the sample's total, as counts of cells are often given.

    Logarithms are first undone (``exp(x) - 1``; negative ones are 0). Zeros stay zeros,
    so a sparse matrix stays as sparse as it is.
    """
    if hasattr(X, "tocsr"):
        X = X.tocsr().astype(np.float64)
        X.data = _linear(X.data, scale)
        X.data *= np.repeat(_factors(X), np.diff(X.indptr))
        return X
    values = _linear(np.asarray(X, dtype=np.float64), scale)
    return values * _factors(values)[:, None]


def looks_standardised(X: Any) -> bool:
    """Whether the values were standardised per gene, see `GeneMoments.result`."""
    moments = GeneMoments()
    moments.add(X)
    return moments.result()


class GeneMoments:
    """Accumulates means and variances of genes: whether values were standardised."""

    def __init__(self) -> None:
        self._n_samples = 0
        self._lowest = 0.0
        self._sums: Any = 0.0
        self._squares: Any = 0.0

    def add(self, block: Any, rows: slice | None = None) -> None:
        """Count a block: an array or a sparse matrix of samples by genes."""
        is_sparse = hasattr(block, "tocsr")
        stored = block.data if is_sparse else block
        self._n_samples += block.shape[0]
        if not stored.size:
            return
        if is_sparse:
            squared = block.multiply(block)
        else:
            squared = np.square(block, dtype=np.float64)
        self._lowest = min(self._lowest, float(stored.min()))
        self._sums = self._sums + np.ravel(block.sum(axis=0, dtype=np.float64))
        self._squares = self._squares + np.ravel(squared.sum(axis=0))

    def merge(self, other: GeneMoments) -> None:
        """Count the samples of another one."""
        self._n_samples += other._n_samples
        self._lowest = min(self._lowest, other._lowest)
        self._sums = self._sums + other._sums
        self._squares = self._squares + other._squares

    def result(self) -> bool:
        """Whether genes have mean 0 and standard deviation 1.

        Most genes that vary must have a mean within 0.01 of 0, and a standard deviation
        within 0.01 of 1 (that of a sample or of a population); not all, because values
        are often clipped afterwards.
        """
        n_samples = self._n_samples
        if n_samples < 2 or self._lowest >= 0:
            return False
        mean = self._sums / n_samples
        variance = self._squares / n_samples - mean**2
        varies = variance > 0
        deviation = np.sqrt(variance[varies])
        unit = np.abs(deviation - 1.0) < _NEAR
        unit |= np.abs(deviation * np.sqrt(n_samples / (n_samples - 1)) - 1.0) < _NEAR
        standard = unit & (np.abs(mean[varies]) < _NEAR)
        return bool(standard.sum() > varies.sum() / 2)


def _linear(values: np.ndarray, scale: str) -> np.ndarray:
    """Values on a linear scale, at least 0."""
    positive = np.maximum(values, 0.0)
    return np.expm1(positive) if scale == "log" else positive


def _factors(X: Any) -> np.ndarray:
    """What brings the sum of each sample to the common total."""
    totals = np.ravel(X.sum(axis=1))
    return TOTAL / np.where(totals > 0, totals, 1.0)


Progress = Callable[[int, int], None]  # called with what is done, and of how much


class Look(Protocol):
    """What looks at the samples of a pass (`optirank.data.passes.run_pass`).

    It may have two attributes: ``genes``, positions of the genes that it wants, in this
    order (without one it gets all genes of the pass); and ``blocks_per_task``, how many
    blocks are looked at together on a cluster (without one a single one: sums that
    depend on the order of the blocks then have the same bits there).
    """

    def add(self, block: Any, rows: slice) -> None:
        """Look at the samples of a block, an array or a CSR matrix, whose places among
        all samples of the pass are ``rows``.
        """

    def merge(self, other: Self) -> None:
        """Take what another one has seen of the samples that follow."""

    def result(self) -> Any:
        """What was looked for."""


class PerSample:
    """What a function gives for the samples of a block: an array with one entry, or
    row, per sample.

    Parameters
    ----------
    of_block : the function.
    genes : see `Look`.
    every : every so many-th sample is looked at, the first among them.
    """

    def __init__(
        self,
        of_block: Callable[[Any], NDArray],
        genes: NDArray | None = None,
        every: int = 1,
    ) -> None:
        self.genes = genes
        self._of_block = of_block
        self._every = every
        self._parts: list[NDArray] = []

    def add(self, block: Any, rows: slice) -> None:
        """Keep the entries of the samples of a block whose turn it is."""
        if self._every > 1:
            block = block[-rows.start % self._every :: self._every]
        if block.shape[0]:
            self._parts.append(self._of_block(block))

    def merge(self, other: Self) -> None:
        """Add the entries of the samples that follow."""
        self._parts += other._parts

    def result(self) -> NDArray:
        """The entries of all samples, in order."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0] if self._parts else np.zeros(0)


def balanced_accuracy(
    truth: NDArray, labels: NDArray, classes: NDArray | None = None
) -> float:
    """Mean over the classes that are there of the share that got its label.

    NaN where there are no samples, or none of one of the ``classes``, where these are
    given. scikit-learn's ``balanced_accuracy_score`` warns where labels are given that
    ``truth`` lacks, which is usual for the small parts of a cross-validation.
    """
    present = np.unique(truth)
    if not len(present) or (classes is not None and len(present) < len(classes)):
        return float("nan")
    return float(np.mean([(labels[truth == name] == name).mean() for name in present]))


def standard_error(scores: NDArray) -> NDArray:
    """Standard error of the mean over folds (last axis), 0 with a single fold."""
    n_folds = scores.shape[-1]
    if n_folds < 2:
        return np.zeros(scores.shape[:-1])
    return scores.std(axis=-1, ddof=1) / np.sqrt(n_folds)


def balanced(right: ArrayLike, sizes: ArrayLike) -> tuple[float, tuple[float, float]]:
    """Mean sensitivity and its 95 % interval."""
    right, sizes = np.asarray(right), np.asarray(sizes)
    there = sizes > 0
    if not there.any():
        return float("nan"), (float("nan"), float("nan"))
    r, n = right[there], sizes[there]
    mean = float((r / n).mean())
    half = _Z * error_of_counts(r, n)
    return mean, (max(0.0, mean - half), min(1.0, mean + half))


def error_of_counts(right: NDArray, sizes: NDArray) -> float:
    """The standard error of the mean sensitivity.

    The variance of a class of r right labels among n samples is ``p (1 - p) / n`` with
    ``p = (r + 1) / (n + 2)``, so that a class without an error is not certain.
    """
    p = (right + 1) / (sizes + 2)
    return float(np.sqrt((p * (1 - p) / sizes).sum())) / max(1, len(sizes))


def wilson(share: ArrayLike, n: ArrayLike) -> tuple[NDArray, NDArray]:
    """Wilson's 95 % interval of a share of n samples; NaN where n is 0."""
    share, n = np.asarray(share, dtype=float), np.asarray(n, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = (
            _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
        )
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def row_correlations(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    """The correlation of each row of a with the same row of b; 0 where one is
    constant.
    """
    a = a - a.mean(axis=1, keepdims=True)
    b = b - b.mean(axis=1, keepdims=True)
    size = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    product = (a * b).sum(axis=1)
    return np.divide(product, size, out=np.zeros(len(a)), where=size > 0)
