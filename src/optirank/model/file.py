"""The model file: a zip of ``model.json`` and ``arrays.npz``, from which nothing can run.

``model.json`` holds the schema version, the version of optirank that wrote it, the class, its
parameters, the labels, the names of the training data's genes and what is remembered of the
training; ``arrays.npz`` the weights, for the genes of the panel alone. A file of an older schema
keeps opening: each version has its reader, and old readers stay.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import IO, Any

import optirank
from optirank._util.files import write_bytes
from optirank._util.names import printable
from optirank.model.archive import Archive, Arrays, ModelFileError, write_arrays, write_zip
from optirank.model.forms import FORMS, MAX_ENTRIES, form_of, register
from optirank.model.pairs_form import PAIRS
from optirank.model.search_form import SEARCH
from optirank.model.values import check_sizes
from optirank.model.values_form import VALUES

SCHEMA = 2
_FORMAT = "optirank-model"
_JSON_BYTES = 1 << 24
_JSON_LISTS = 1 << 20  # lists and objects, which take ten times the memory of their text
_JSON_VALUES = 1 << 21
_ARRAYS_BYTES = 4 * 8 * MAX_ENTRIES
_MESSAGE = 400  # characters of what is wrong with a file
_WRONG = (ValueError, OverflowError, RecursionError, TypeError, MemoryError)

register(SEARCH)
register(VALUES)
register(PAIRS)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file that :func:`load` gives back.

    The file is written under another name and renamed, so a reader never sees half of it.

    Parameters
    ----------
    model : OptirankClassifier, OptirankClassifierCV, RankLogisticRegression,
        AnovaRankLogisticRegression, ElasticNetLogisticRegression or TopScoringPairsClassifier,
        fitted.
    path : the file; one that is there is replaced.

    Raises
    ------
    TypeError
        For a model that has no form in a file, such as SingleCellNetClassifier.
    """
    from sklearn.utils.validation import check_is_fitted

    form = form_of(model)
    check_is_fitted(model)
    document, arrays = form.describe(model)
    document = {
        "format": _FORMAT,
        "schema": SCHEMA,
        "optirank": optirank.__version__,
        "class": form.name,
    } | document
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > _JSON_BYTES:
        raise ValueError(
            f"the model's names and history take {len(text)} bytes, more than the {_JSON_BYTES} of "
            "a model file: set model.path_ = [] to leave the history out"
        )
    content = write_zip({"model.json": text, "arrays.npz": write_arrays(arrays)})
    try:
        _read(io.BytesIO(content))  # what could not be opened is not written
    except ValueError as error:
        raise ValueError(f"this model cannot be saved: {error}") from error
    write_bytes(Path(path), content)


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file written by :func:`save`; no code of the file's can run.

    Returns
    -------
    The fitted estimator, of the class that was saved. Its predictions equal those of the saved
    one bit for bit.

    Raises
    ------
    ModelFileError
        A ValueError that names the file and what is wrong with it.
    """
    with open(path, "rb") as file:
        try:
            model = _read(file)
        except _WRONG as error:
            raise _refusal(path, error) from error
    model._file = Path(path).name  # for its card
    return model


def read_versions(path: str | os.PathLike[str]) -> tuple[str, int]:
    """The version of optirank that wrote a model file, and that of its schema."""
    with open(path, "rb") as file:
        try:
            document = _document(Archive(file, "the file"))
        except _WRONG as error:
            raise _refusal(path, error) from error
    return str(document.get("optirank")), document["schema"]


def _refusal(path: str | os.PathLike[str], error: Exception) -> ModelFileError:
    """The error that names the file, with what is wrong in printable characters and cut."""
    what = printable(str(error), _MESSAGE)
    return ModelFileError(f"cannot open the model file {os.fspath(path)}: {what}")


def _read(file: IO[bytes]) -> Any:
    archive = Archive(file, "the file")
    document = _document(archive)
    return _READERS[document["schema"]](document, archive)


def _document(archive: Archive) -> dict:
    """The document of a model file, of a schema that is known."""
    archive.check_names({"model.json", "arrays.npz"})
    document = _parse(archive.read("model.json", _JSON_BYTES))
    check_sizes(document)
    schema = document.get("schema")
    if document.get("format") != _FORMAT or type(schema) is not int or schema < 1:
        raise ModelFileError("model.json does not say that it is an optirank model")
    if schema not in _READERS:
        raise ModelFileError(
            f"it has schema version {schema}, written by optirank {document.get('optirank')!r}; "
            f"this is optirank {optirank.__version__}, which reads versions up to {SCHEMA}: update "
            "optirank to open it"
        )
    return document


def _read_model(document: dict, archive: Archive) -> Any:
    form = FORMS.get(document["class"]) if isinstance(document.get("class"), str) else None
    if form is None:
        raise ModelFileError(
            f"it holds a model of class {document.get('class')!r}, which is not known: known are "
            f"{', '.join(sorted(FORMS))}"
        )
    arrays = Arrays(archive.read("arrays.npz", _ARRAYS_BYTES))
    model = form.rebuild(form.load_class(), document, arrays)
    arrays.check_all_taken()
    return model


_READERS = {1: _read_model, SCHEMA: _read_model}  # 1 differs in its calibration alone


def _parse(text: bytes) -> dict:
    def refuse(constant: str) -> None:
        raise ModelFileError(f"model.json has the number {constant}")

    lists = text.count(b"[") + text.count(b"{")
    if lists > _JSON_LISTS or lists + text.count(b",") > _JSON_VALUES:
        raise ModelFileError(
            f"model.json has more than the {_JSON_LISTS} lists or {_JSON_VALUES} values allowed"
        )
    try:
        document = json.loads(text.decode("utf-8"), parse_constant=refuse)
    except RecursionError as error:
        raise ModelFileError("model.json is nested too deeply") from error
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"model.json is not JSON ({error})") from error
    if not isinstance(document, dict):
        raise ModelFileError("model.json is not an object")
    return document


def as_model(model: Any) -> Any:
    """The model itself, or the one in a file."""
    return load(model) if isinstance(model, str | os.PathLike) else model
