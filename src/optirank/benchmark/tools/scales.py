"""Values on the scale that a tool's guide asks for, from counts, linear values or logarithms.

Like `harness`, it needs NumPy and SciPy alone.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

_MANY_ZEROS = 0.05  # share of exact zeros above which logarithms are those of 1 + value


def linear(part) -> sp.csr_matrix:
    """Values that can be added up: counts and intensities, or 2^x of logarithms.

    Negative intensities become 0. Logarithms that are nowhere negative and often exactly 0 are
    taken as log2(1 + value), as is usual for cells: there it is 2^x - 1, and 0 stays 0.
    """
    X = sp.csr_matrix(part.X, dtype=np.float64, copy=True)
    X.eliminate_zeros()
    if part.kind != "log":
        np.maximum(X.data, 0.0, out=X.data)
        return X
    zeros = 1.0 - X.nnz / max(1.0, float(X.shape[0]) * X.shape[1])
    if zeros > _MANY_ZEROS and X.data.min(initial=0.0) >= 0.0:
        X.data = np.exp2(X.data) - 1.0
        return X
    return sp.csr_matrix(np.exp2(X.toarray()))


def log1p_scaled(part, target: float | None = 1e4) -> sp.csr_matrix:
    """log(1 + v), where v are the linear values scaled to the sum ``target`` per sample.

    None stands for the mean of the sums. A sample without any value stays 0.
    """
    X = linear(part)
    total = np.asarray(X.sum(axis=1), dtype=float).ravel()
    wanted = total.mean() if target is None else target
    factor = np.divide(wanted, total, out=np.zeros_like(total), where=total > 0)
    X = sp.csr_matrix(sp.diags(factor) @ X)
    X.data = np.log1p(X.data)
    return X
