"""The synthetic model, the generated example and the error of data.

The error is imported on first use: ``make_unstable_ranks`` needs no pandas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optirank.datasets.synthetic import make_unstable_ranks

if TYPE_CHECKING:
    from optirank.data.profiles import DataError

__all__ = ["DataError", "make_unstable_ranks"]


def __getattr__(name: str) -> object:
    if name != "DataError":
        raise AttributeError(f"module 'optirank.datasets' has no attribute {name!r}")
    from optirank.data.profiles import DataError

    return DataError


def __dir__() -> list[str]:
    return __all__
