"""The zip of a model file: a JSON document and arrays of known shape, read without
trust.

A model file may come from someone else. Nothing in it can run: there is no pickle, and
only plain values are built. Sizes are checked before memory is allocated: those of the
file and its members, the number of values in the JSON text, and the type and shape of
each array, which follow from the model's numbers of genes and classes.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_FILE_BYTES = 1 << 28  # a model of 20 classes and 1000 genes takes less than 1 MiB
_JSON_BYTES = 1 << 24  # of its document: the names of half a million genes
_JSON_VALUES = 1 << 21  # an empty list of two characters takes 60 bytes of memory
_STRING_CHARACTERS = 1 << 22  # of one array of strings, padded to its longest: 16 MiB
_HEADER_BYTES = 1 << 12  # NumPy writes 128 for an array of plain numbers
_DOCUMENT = "model.json"
T = TypeVar("T")


Document = dict[str, Any]


class ModelFileError(ValueError):
    """A model file that cannot be opened; the message names the file and what
    is wrong.
    """


def write_archive(document: dict, arrays: Mapping[str, NDArray]) -> bytes:
    """A compressed zip of a document and arrays; the same ones give the same bytes."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > _JSON_BYTES:
        raise ValueError(
            f"the model's names and notes take {len(text)} bytes, more than the "
            f"{_JSON_BYTES} of a model file: shorten the notes of its card"
        )
    members = {_DOCUMENT: text}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(
            buffer, np.ascontiguousarray(array), (1, 0), allow_pickle=False
        )
        members[f"{name}.npy"] = buffer.getvalue()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in members.items():
            info = zipfile.ZipInfo(name)  # of 1980: the same model gives the same bytes
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member)
    return content.getvalue()


class Archive:
    """An open model file, which gives out its document, and arrays in the shape
    asked for.
    """

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, io.SEEK_END)
        if size > _FILE_BYTES:
            raise ModelFileError(
                f"it has {size} bytes, more than the {_FILE_BYTES} of a model"
            )
        try:
            self._zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise ModelFileError("it is not a zip, or was cut off") from error
        names = self._zip.namelist()
        self.left = {name.removesuffix(".npy") for name in names if name != _DOCUMENT}
        if _DOCUMENT not in names or len(self.left) + 1 != len(names):
            raise ModelFileError(
                f"it lacks {_DOCUMENT}, or holds members of the same name"
            )

    def document(self) -> dict:
        """The document, an object of plain values."""
        text = self._read(_DOCUMENT, _JSON_BYTES)
        if text.count(b",") + text.count(b"[") + text.count(b"{") > _JSON_VALUES:
            raise ModelFileError(
                f"{_DOCUMENT} has more than the {_JSON_VALUES} values allowed"
            )
        try:
            document = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{_DOCUMENT} is not JSON ({error})") from error
        if not isinstance(document, dict):
            raise ModelFileError(f"{_DOCUMENT} is not an object")
        return document

    def __contains__(self, name: str) -> bool:
        return name in self.left

    def take(self, name: str, dtype: str, *shape: int) -> NDArray:
        """The array of this name, which must have this dtype and shape, and
        finite values.
        """
        if name not in self.left:
            raise ModelFileError(f"it lacks the array {name!r}")
        self.left.discard(name)
        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        content = io.BytesIO(self._read(f"{name}.npy", n_bytes + _HEADER_BYTES))
        try:
            np.lib.format.read_magic(content)
            header = np.lib.format.read_array_header_1_0(content, _HEADER_BYTES)
        except ValueError as error:
            raise ModelFileError(
                f"array {name!r} has a damaged header ({error})"
            ) from error
        if header != (shape, False, np.dtype(dtype)):
            stored_shape, _, kind = header
            raise ModelFileError(
                f"array {name!r} is of {kind} and shape {stored_shape}, expected "
                f"{dtype} and {shape}"
            )
        values = content.read()
        if len(values) != n_bytes:
            raise ModelFileError(f"array {name!r} is not as long as its shape says")
        array = np.frombuffer(values, dtype).reshape(shape).copy()
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"array {name!r} has NaN or infinite values")
        return array

    def _read(self, name: str, limit: int) -> bytes:
        """A member's bytes, ``limit`` at most."""
        if name not in self._zip.namelist():
            raise ModelFileError(f"it lacks {name}")
        info = self._zip.getinfo(name)
        if info.file_size > limit:
            raise ModelFileError(
                f"{name} has {info.file_size} bytes, more than {limit}"
            )
        try:
            with self._zip.open(info) as member:
                content = member.read(limit + 1)
        except Exception as error:  # zipfile has a dozen ways to say it
            raise ModelFileError(f"{name} is damaged ({error})") from error
        if len(content) != info.file_size:
            raise ModelFileError(f"{name} is not as long as the file says")
        return content


def member(document: Document, key: str, kind: type[T]) -> T:
    """An entry of the document, of the type it should have."""
    value = document.get(key)
    if type(value) is not kind:
        raise ModelFileError(f"model.json has no {key} of the right type")
    return value


def read_classes(classes: Any) -> NDArray:
    """Labels, checked to be two or more different ones."""
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ModelFileError("the classes are not two or more labels")
    if len(np.unique(classes)) < len(classes) or (classes != classes).any():
        raise ModelFileError("the classes are not distinct labels")
    return classes


def encode(value: Any) -> Any:
    """A plain value as JSON can hold it; TypeError where that cannot be done.

    JSON knows neither tuples, dictionaries with keys other than strings, arrays nor
    NaN: these are written as an object with one key that says what they are.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        strings = array.dtype.kind in "UO" and all(
            isinstance(item, str) for item in array.flat
        )
        kind = (
            {"U": "str", "O": "object"}[array.dtype.kind]
            if strings
            else array.dtype.name
        )
        if strings or array.dtype.kind in "biuf":
            values = [encode(item) for item in array.ravel().tolist()]
            return {"array": [kind, list(array.shape), values]}
    raise TypeError(
        f"a value of type {type(value).__name__} cannot be stored: {value!r}"
    )


def decode(value: Any) -> Any:
    """What :func:`encode` was given; ValueError for anything it does not write."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    (kind, content), *more = value.items() or [("", None)]
    if more:
        raise ValueError(
            f"an object with keys {sorted(value)[:5]} where a value should be"
        )
    if kind == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if kind == "tuple" and isinstance(content, list):
        return tuple(decode(item) for item in content)
    if kind == "dict" and isinstance(content, list):
        try:
            return {decode(key): decode(item) for key, item in content}
        except TypeError as error:
            raise ValueError(
                "a dictionary that is not a list of keys and values"
            ) from error
    if kind == "array" and isinstance(content, list) and len(content) == 3:
        return _decode_array(*content)
    raise ValueError(f"a value of unknown kind {kind!r}")


def _decode_array(dtype: Any, shape: Any, values: Any) -> NDArray:
    strings = dtype in ("str", "object")
    plain = isinstance(dtype, str) and (strings or np.dtype(dtype).kind in "biuf")
    if not plain or not isinstance(values, list):
        raise ValueError(f"an array of unknown dtype {dtype!r}")
    if strings:
        longest = max((len(text) for text in values), default=0)
        if not all(isinstance(item, str) for item in values):
            raise ValueError("an array of strings with values of another type")
        if longest * len(values) > _STRING_CHARACTERS:
            raise ValueError(
                f"{len(values)} strings of up to {longest} characters: together at "
                f"most {_STRING_CHARACTERS} are allowed"
            )
        return np.array(values, dtype=dtype).reshape(shape)
    kind = {"b": bool, "f": float}.get(np.dtype(dtype).kind, int)
    values = [decode(item) for item in values]
    if not all(type(item) is kind for item in values):
        raise ValueError(f"an array of {dtype} with values of another type")
    with np.errstate(over="ignore"):
        return np.array(values, dtype=dtype).reshape(shape)
