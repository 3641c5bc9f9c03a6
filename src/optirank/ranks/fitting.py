"""Orders of samples in the form that is fastest to fit on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optirank.ranks.orders import SampleOrders

DENSE_ABOVE = 0.11  # share of non-zeros above which dense orders are faster (bench_sparse.py)


def order_for_fitting(X, n_jobs: int | None = None) -> SampleOrders:
    """Orders of the samples; sparse data with many non-zeros become dense orders."""
    from optirank.ranks.orders import SparseOrders, order_samples  # numba loads with a fit

    orders = order_samples(X, n_jobs or 1)
    if isinstance(orders, SparseOrders) and orders.density > DENSE_ABOVE:
        return orders.to_dense()
    return orders
