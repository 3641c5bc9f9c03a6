"""The model file: a zip of ``model.json`` and arrays, from which nothing can run.

The file holds the fields of `Model`, without its digest, and those of the dataclasses
in it; they check themselves that they fit each other.

The name of a model is that of a file ``NAME.optirank`` without its ending, shipped with
optirank or in the folder ``OPTIRANK_MODELS``. Nothing is downloaded.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import logging
import os
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import optirank
from optirank._util.files import write_bytes
from optirank._util.names import printable, some
from optirank.model.archive import (
    Archive,
    ModelFileError,
    from_plain,
    refuse_if,
    write_archive,
)
from optirank.model.likeness import N_LEVELS
from optirank.model.model import Model

logger = logging.getLogger(__name__)
VARIABLE = "OPTIRANK_MODELS"
SUFFIX = ".optirank"
SHIPPED = Path(str(files("optirank") / "models"))
_FORMAT = "optirank-model"
SCHEMA = 1
_LABELS = tuple[str | bool | int | float, ...]
_LABEL_CHARACTERS = 1 << 22  # of all labels, padded to the longest: 16 MiB


def save(model: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model to a file that :func:`load` gives back.

    The same model gives the same bytes. The file is written under another name and
    renamed, so a reader never sees half of it.

    Parameters
    ----------
    model : a Model, the result of a training, or a fitted PanelClassifier,
        OptirankClassifier, OptirankClassifierCV, RankLogisticRegression or
        AnovaRankLogisticRegression.
    path : the file.
    overwrite : whether a file that exists may be replaced.

    Raises
    ------
    FileExistsError
        Where the file exists and ``overwrite`` is not given.
    TypeError
        For anything that has no weights on ranks, such as SingleCellNetClassifier.
    """
    path = Path(path)
    model = _model_of(model)
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists: name another file, or replace it (overwrite=True)"
        )
    write_bytes(path, to_bytes(model))


def _model_of(thing: Any) -> Model:
    """A model, that of a result such as a training's, or that of an estimator."""
    found = getattr(thing, "model", thing)
    return found if isinstance(found, Model) else Model.from_estimator(thing)


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a file written by :func:`save`, or a shipped one.

    No code of a file's can run.

    Parameters
    ----------
    path : a file, or the name of a model, such as ``"pancreas-human"``: ``optirank
        models`` lists them, with those in the folder that the variable
        ``OPTIRANK_MODELS`` names.

    Raises
    ------
    ModelFileError
        A ValueError that names the file and what is wrong with it.
    FileNotFoundError
        Where there is no such file, nor a model of this name.
    """
    path = find_model(path)
    with open(path, "rb") as file:
        try:
            model = _read(Archive(file))
        except Exception as error:
            # What is wrong with a file may be anything: 400 characters of it
            what = printable(str(error) or type(error).__name__, 400)
            raise ModelFileError(
                f"cannot open the model file {path}: {what}"
            ) from error
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return replace(model, digest=digest)


def as_model(model: Any) -> Model:
    """A model; that of a result, in a file, of a name or of a fitted estimator."""
    if isinstance(model, str | os.PathLike):
        return load(model)
    return _model_of(model)


def model_digest(model: Model) -> str:
    """The SHA-256 of a model's file: the one it was read from, or would be
    written to.
    """
    return model.digest or hashlib.sha256(to_bytes(model)).hexdigest()


def to_bytes(model: Model) -> bytes:
    """The content of a model's file; ValueError for one that could not be opened."""
    kind = model.classes.dtype
    header = {
        "format": _FORMAT,
        "schema": SCHEMA,
        "optirank": optirank.__version__,
        "label_type": "str" if kind.kind == "U" else kind.name,
    }
    stored = replace(model, panels=dict(sorted(model.panels.items())))
    try:
        content = write_archive(header, stored)
        _read(Archive(io.BytesIO(content)))
    except Exception as error:  # as for a damaged file
        raise ValueError(f"this model cannot be saved: {error}") from error
    return content


def _read(archive: Archive) -> Model:
    """The model in an archive."""
    document = archive.document()
    schema = document.pop("schema", None)
    refuse_if(
        document.pop("format", None) != _FORMAT or type(schema) is not int,
        "model.json does not say that it is an optirank model",
    )
    version = document.pop("optirank", None)
    refuse_if(
        schema != SCHEMA,
        f"it has schema version {schema}, written by optirank {version!r}; this is "
        f"optirank {optirank.__version__}, which reads version {SCHEMA}: update "
        "optirank, or train the model again",
    )
    labels = from_plain(_LABELS, document.get("classes"), archive, "classes")
    document["classes"] = _label_array(labels, document.pop("label_type", None))
    # An array has a row per class, and the document has the name of each column
    archive.most_entries = len(labels) * max(N_LEVELS, archive.n_values)
    model = from_plain(Model, document, archive, "model.json")
    refuse_if(
        bool(archive.left),
        f"it holds {min(archive.left, default='')!r}, which does not belong there",
    )
    return model


def _label_array(labels: tuple, type_name: Any) -> NDArray:
    """Labels as an array of the type that a file names."""
    dtype = np.dtype(type_name)
    refuse_if(
        dtype.kind not in "UObiuf" or dtype.name != type_name,
        f"the classes are of unknown type {type_name!r}",
    )
    longest = max((len(label) for label in labels if isinstance(label, str)), default=0)
    refuse_if(
        longest * len(labels) > _LABEL_CHARACTERS,
        f"{len(labels)} labels of up to {longest} characters: together at most "
        f"{_LABEL_CHARACTERS} are allowed",
    )
    try:
        classes = np.array(labels, dtype=dtype)
    except (ValueError, OverflowError):
        classes = np.array([], dtype=dtype)
    refuse_if(
        classes.tolist() != list(labels),
        f"the classes are not all of type {dtype.name!r}",
    )
    return classes


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
