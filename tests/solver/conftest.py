"""The solver's tests run with one BLAS thread, as the estimators run it."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def one_blas_thread():
    """Threads that wait for each other make products of small matrices many
    times slower.
    """
    with threadpool_limits(1):
        yield
