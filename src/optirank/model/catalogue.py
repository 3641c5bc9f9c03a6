"""Models by name: those shipped with optirank, and those in the folder OPTIRANK_MODELS.

A name is that of a file ``NAME.optirank`` without its ending. Nothing is downloaded,
and listing models opens only their documents.
"""

from __future__ import annotations

import difflib
import logging
import os
from importlib.resources import files
from pathlib import Path

from optirank._util.names import some

logger = logging.getLogger(__name__)
VARIABLE = "OPTIRANK_MODELS"
SUFFIX = ".optirank"
SHIPPED = Path(str(files("optirank") / "models"))


def known_models() -> dict[str, Path]:
    """The models that can be called by name, sorted; one of the user's folder wins."""
    folders = [SHIPPED]
    if given := os.environ.get(VARIABLE):
        folders.append(Path(given))
        if not folders[-1].is_dir():
            logger.warning(
                "note: %s names %s, which is no folder of models", VARIABLE, given
            )
    paths = {
        path.stem: path for folder in folders for path in folder.glob(f"*{SUFFIX}")
    }
    return dict(sorted(paths.items()))


def find_model(name: str | os.PathLike[str]) -> Path:
    """The file of a model that is given as a file or by name; a file wins,
    with a note.
    """
    path = Path(name)
    bare = path.name == os.fspath(name)
    if path.is_file():
        if bare and path.name in known_models():
            logger.warning(
                "note: the file %s is used, not the model of this name", path
            )
        return path
    models = known_models() if bare else {}
    if path.name in models:
        known = models[path.name]
        if known.parent != SHIPPED and (SHIPPED / known.name).is_file():
            logger.warning(
                "note: %s is used, not the shipped model of this name", known
            )
        return known
    if path.exists() or not bare:
        what = "is a folder, not a model file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"the model file {path} {what}")
    close = difflib.get_close_matches(path.stem, models, n=3, cutoff=0.5)
    hint = f"there are {some(models, 20)}"
    if close:
        hint = f"close names are {some(close)}"
    raise FileNotFoundError(
        f"{os.fspath(name)!r} is neither a file nor the name of a model; {hint} "
        "(optirank models)"
    )
