"""The synthetic model, the generated example and the readers of files.

Readers are imported on first use: ``make_unstable_ranks`` needs no anndata or pandas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optirank.datasets.synthetic import make_unstable_ranks

if TYPE_CHECKING:
    from optirank.io.data import DataError
    from optirank.io.reading import open_expression, read_expression

__all__ = [
    "DataError",
    "make_unstable_ranks",
    "open_expression",
    "read_expression",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'optirank.datasets' has no attribute {name!r}")
    from optirank.io import reading

    return getattr(reading, name)


def __dir__() -> list[str]:
    return __all__
