"""The synthetic model, the generated example and the reader of files.

The reader is imported on first use: ``make_unstable_ranks`` needs no anndata or pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from optirank.datasets.synthetic import make_unstable_ranks

if TYPE_CHECKING:
    from optirank.data.conversion import read_expression
    from optirank.data.errors import DataError

__all__ = ["DataError", "make_unstable_ranks", "read_expression"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'optirank.datasets' has no attribute {name!r}")
    home = "errors" if name == "DataError" else "conversion"
    return getattr(importlib.import_module(f"optirank.data.{home}"), name)


def __dir__() -> list[str]:
    return __all__
