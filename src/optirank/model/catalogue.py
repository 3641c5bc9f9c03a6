"""Models by name: those shipped with optirank, and those in the folder OPTIRANK_MODELS.

A name is that of a file ``NAME.optirank`` without its ending. Nothing is downloaded, and listing
models opens only their documents.
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


def known_models() -> dict[str, Path]:
    """The models that can be called by name, sorted; one of the user's folder wins, with a note."""
    shipped = _in_folder(Path(str(files("optirank") / "models")))
    given = os.environ.get(VARIABLE)
    own = _in_folder(Path(given)) if given else {}
    if given and not Path(given).is_dir():
        logger.warning("note: %s names %s, which is no folder of models", VARIABLE, given)
    if both := sorted(set(own) & set(shipped)):
        logger.warning("note: of %s those in %s are used, not the shipped ones", some(both), given)
    return dict(sorted((shipped | own).items()))


def _in_folder(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in folder.glob(f"*{SUFFIX}")}


def find_model(name: str | os.PathLike[str]) -> Path:
    """The file of a model that is given as a file or by name; a file wins, with a note."""
    path = Path(name)
    bare = path.name == os.fspath(name)
    if path.is_file():
        if bare and path.name in known_models():
            logger.warning(
                "note: the file %s is used, not the model of this name; to use that one, rename "
                "the file",
                path,
            )
        return path
    models = known_models() if bare else {}
    if path.name in models:
        return models[path.name]
    if path.exists() or not bare:
        what = "is a folder, not a model file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"the model file {path} {what}")
    close = difflib.get_close_matches(path.stem, models, n=3, cutoff=0.5)
    told = f"close names are {some(close)}" if close else f"there are {some(models, 20)}"
    raise FileNotFoundError(
        f"{os.fspath(name)!r} is neither a file nor the name of a model; {told} (optirank models)"
    )
