"""What goes wrong with data: unusable files and missing extras, told with their remedy."""

from __future__ import annotations

import importlib
from types import ModuleType


class DataError(ValueError):
    """A file or a choice of data that cannot be used; the message says why and what to do."""


class MissingExtraError(ImportError):
    """An optional dependency that is not installed; the message has the line that installs it."""


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say which line installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs {module.split('.')[0]}: pip install 'optirank[{extra}]'"
        ) from error
