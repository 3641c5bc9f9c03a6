"""The errors of data, and how what libraries raise becomes one of them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType


class DataError(ValueError):
    """A file or a choice of data that cannot be used; the message says why and
    what to do.
    """


class MissingExtraError(ImportError):
    """An optional dependency that is not installed; the message has the line that
    installs it.
    """


def need(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module, or say which line installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs {module.split('.')[0]}: pip install 'optirank[{extra}]'"
        ) from error


@contextlib.contextmanager
def readable(path: Path | str) -> Iterator[None]:
    """Turn what libraries raise on a damaged file into a DataError with its name and
    remedy.
    """
    try:
        yield
    except ImportError:
        raise
    except DataError as error:
        if str(path) in str(error):
            raise
        raise DataError(f"{path}: {error}") from error
    except MemoryError as error:
        raise DataError(
            f"{path} asks for more memory than there is: it is too large for this "
            "machine, or damaged (copy or fetch it again)"
        ) from error
    except Exception as error:
        text = " ".join(str(error).split())[:300]
        raise DataError(
            f"{path} cannot be read, it may be truncated or damaged: {text} "
            "(copy or fetch it again)"
        ) from error
