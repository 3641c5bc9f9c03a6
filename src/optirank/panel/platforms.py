"""Simulated platforms: what another laboratory or technology does to the same samples.

Held-out samples of the training set come from its own platform, so a score on them
cannot tell a setting that works on other platforms from one that does not. Probes,
primers and gene lengths give every gene its own factor, the same in all samples. This
is the largest difference between platforms, and the one that ranks within a sample do
not remove. A simulated platform draws such factors: their logarithms are normal with
mean 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from optirank._util.matrices import value_scale

VIEW_STRENGTHS = (0.5, 0.5, 1.0, 1.0)
"""Strengths of the platforms on which ``selection="transfer"`` scores held-out samples:
up to the full spread of the genes, which factors between real platforms reach."""


def simulate_platforms(
    X: Any, strengths: Sequence[float], seed: int = 1, *, spread: float | None = None
) -> list[Any]:
    """Copies of the samples as other platforms might measure them, sparse ones in CSR
    form.

    ``strengths`` are standard deviations of the genes' log factors, relative to the
    ``spread`` of their log values (`log_spread`; other samples may tell it). The same
    seed gives the same platforms for any samples, up to the spread. Zeros of
    non-negative data stay zeros: what was not detected has no value to scale.
    """
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    X = X.astype(np.result_type(X.dtype, np.float32), copy=False)
    scale = value_scale(X)
    spread = log_spread(X) if spread is None else spread
    copies = []
    children = np.random.SeedSequence(seed).spawn(len(strengths))
    for own, child in zip(strengths, children, strict=True):
        factors = np.random.default_rng(child).normal(0.0, own * spread, X.shape[1])
        copies.append(_with_factors(X, factors.astype(X.dtype), scale))
    return copies


def log_spread(X: Any) -> float:
    """How far the genes' log values lie apart: the unit of the factors' strength.

    The logarithm is ``sign(x) log(1 + |x|)`` on linear scales; logarithms are taken as
    they are. With zeros among non-negative values it is the standard deviation over the
    genes of their means, since single values say more about what was detected than
    about how much. Otherwise it is that of all values: in ratios to a common reference
    the means of all genes are nearly equal, and their factors on another platform are
    not.
    """
    zeros = _has_zeros(X)
    if value_scale(X) != "log":
        X = _changed(X, lambda values: np.sign(values) * np.log1p(np.abs(values)))
    if zeros or sparse.issparse(X):
        return float(np.std(np.asarray(X.mean(axis=0))))
    return float(np.std(X))


def _with_factors(X: Any, factors: NDArray, scale: str) -> Any:
    """The samples with their genes multiplied by ``exp(factors)``."""
    zeros, shift = _has_zeros(X), factors[X.indices] if sparse.issparse(X) else factors

    def change(values: NDArray) -> NDArray:
        if scale != "log":
            return values * np.exp(shift)
        if not zeros:
            return values + shift
        lowest = np.min(values, initial=1.0, where=values > 0)
        # What is expressed stays above zero: at least a hundredth of the least positive
        # value
        return np.where(values > 0, np.maximum(values + shift, 0.01 * lowest), values)

    return _changed(X, change)


def _changed(X: Any, change: Any) -> Any:
    """A copy with its values changed; of a sparse matrix those that are stored."""
    if not sparse.issparse(X):
        return change(X)
    X = X.copy()
    X.data = change(X.data)
    return X


def _has_zeros(X: Any) -> bool:
    """Whether the values are at least 0, and some are 0."""
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if not values.size or values.min() < 0:
        return False
    return values.size < np.prod(X.shape) or bool((values == 0).any())
