"""The synthetic model, the generated example and the readers of files."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_HOMES = {
    "DataError": "optirank.io.data",
    "make_unstable_ranks": "optirank.datasets.synthetic",
    "open_expression": "optirank.io.reading",
    "read_expression": "optirank.io.reading",
}

__all__ = [
    "DataError",
    "make_unstable_ranks",
    "open_expression",
    "read_expression",
]

if TYPE_CHECKING:
    from optirank.datasets.synthetic import make_unstable_ranks
    from optirank.io.data import DataError
    from optirank.io.reading import open_expression, read_expression


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'optirank.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
