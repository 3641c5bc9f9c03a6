"""The synthetic model, the registry of real data sets and the readers of files."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_HOMES = {
    "DataError": "data",
    "ExpressionData": "data",
    "concatenate": "data",
    "load_dataset": "registry",
    "make_unstable_ranks": "synthetic",
    "open_expression": "reading",
    "read_expression": "reading",
}

__all__ = [
    "DataError",
    "ExpressionData",
    "concatenate",
    "load_dataset",
    "make_unstable_ranks",
    "open_expression",
    "read_expression",
]

if TYPE_CHECKING:
    from optirank.datasets.data import DataError, ExpressionData, concatenate
    from optirank.datasets.reading import open_expression, read_expression
    from optirank.datasets.registry import load_dataset
    from optirank.datasets.synthetic import make_unstable_ranks


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"optirank.datasets.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'optirank.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
