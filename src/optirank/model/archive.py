"""The zip of a model file: a JSON document and arrays of known shape, read without
trust.

A model file may come from someone else. Nothing in it can run: there is no pickle, and
only plain values are built. Sizes are checked before memory is allocated: those of the
file and its members, the number of values in the JSON text, and the type and shape of
each array, which follow from the model's numbers of genes and classes.

What the document may hold is said once, by the type hints of dataclasses and typed
dictionaries: a file from somebody else can give values of these types and no others.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import types
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import (
    IO,
    Any,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
_type_hints = cache(get_type_hints)

_FILE_BYTES = 1 << 28  # a model of 20 classes and 1000 genes takes less than 1 MiB
_JSON_BYTES = 1 << 24  # of its document: the names of half a million genes
_JSON_VALUES = 1 << 21  # an empty list of two characters takes 60 bytes of memory
_HEADER_BYTES = 1 << 12  # NumPy writes 128 for an array of plain numbers
_DOCUMENT = "model.json"


class ModelFileError(ValueError):
    """A model file that cannot be opened; the message names the file and what
    is wrong.
    """


def refuse_if(wrong: bool | np.bool_, what: str) -> None:
    """A ModelFileError that says what is wrong with a file."""
    if wrong:
        raise ModelFileError(what)


def write_archive(document: object, arrays: Mapping[str, NDArray]) -> bytes:
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

    ``left`` are the arrays that nobody asked for yet.
    """

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, io.SEEK_END)
        refuse_if(
            size > _FILE_BYTES,
            f"it has {size} bytes, more than the {_FILE_BYTES} of a model",
        )
        try:
            self._zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise ModelFileError("it is not a zip, or was cut off") from error
        names = self._zip.namelist()
        self.left = {name.removesuffix(".npy") for name in names if name != _DOCUMENT}
        refuse_if(
            _DOCUMENT not in names or len(self.left) + 1 != len(names),
            f"it lacks {_DOCUMENT}, or holds members of the same name",
        )

    def document(self) -> dict[str, object]:
        """The document, an object of plain values."""
        text = self._read(_DOCUMENT, _JSON_BYTES)
        refuse_if(
            text.count(b",") + text.count(b"[") + text.count(b"{") > _JSON_VALUES,
            f"{_DOCUMENT} has more than the {_JSON_VALUES} values allowed",
        )
        try:
            document = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{_DOCUMENT} is not JSON ({error})") from error
        refuse_if(not isinstance(document, dict), f"{_DOCUMENT} is not an object")
        return document

    def take(self, name: str, dtype: str, *shape: int) -> NDArray:
        """The array of this name, which must have this dtype and shape, and
        finite values.
        """
        refuse_if(name not in self.left, f"it lacks the array {name!r}")
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
        refuse_if(
            len(values) != n_bytes, f"array {name!r} is not as long as its shape says"
        )
        array = np.frombuffer(values, dtype).reshape(shape).copy()
        refuse_if(
            array.dtype.kind == "f" and not np.isfinite(array).all(),
            f"array {name!r} has NaN or infinite values",
        )
        return array

    def _read(self, name: str, limit: int) -> bytes:
        """A member's bytes, ``limit`` at most."""
        refuse_if(name not in self._zip.namelist(), f"it lacks {name}")
        info = self._zip.getinfo(name)
        refuse_if(
            info.file_size > limit,
            f"{name} has {info.file_size} bytes, more than {limit}",
        )
        try:
            with self._zip.open(info) as member:
                content = member.read(limit + 1)
        except Exception as error:  # zipfile has a dozen ways to say it
            raise ModelFileError(f"{name} is damaged ({error})") from error
        refuse_if(
            len(content) != info.file_size, f"{name} is not as long as the file says"
        )
        return content


def to_plain(value: object) -> object:
    """A value as JSON can hold it: tuples and arrays are lists, NaN is null."""
    if is_dataclass(value):
        return {
            part.name: to_plain(getattr(value, part.name)) for part in fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and value != value:
        return None
    return value


def from_plain(kind: type[T], value: object, where: str) -> T:
    """A value of a type from what :func:`to_plain` gave; ValueError for anything else.

    ``where`` names the value in the message.
    """
    wanted: Any = kind
    arguments = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        others = [choice for choice in arguments if choice is not type(None)]
        wanted = type(value) if type(value) in arguments else others[0]
        arguments = get_args(wanted)
    make = wanted
    origin = get_origin(wanted)
    if is_dataclass(wanted) or is_typeddict(wanted):
        hints = _type_hints(wanted)
        entries = _checked_entries(wanted, value, where)
        typed = [(name, hints[name], item) for name, item in entries.items()]
    elif origin is dict and isinstance(value, dict):
        typed = [(key, arguments[1], item) for key, item in value.items()]
    elif origin is tuple and isinstance(value, list) and arguments[-1] is ...:
        typed = [(place, arguments[0], item) for place, item in enumerate(value)]
    elif origin is tuple and isinstance(value, list) and len(value) == len(arguments):
        typed = list(zip(itertools.count(), arguments, value, strict=False))
    else:
        return _single(wanted, value, where)
    items = {}
    for key, kind_of_item, item in typed:
        items[key] = from_plain(kind_of_item, item, f"{where}: {key}")
    if origin is not None:
        return make(items.values() if origin is tuple else items)
    try:
        return make(**items)
    except TypeError as error:
        raise ValueError(f"{where} lacks an entry: {error}") from error


def _checked_entries(kind: Any, value: object, where: str) -> dict[str, object]:
    """The entries of a dataclass or typed dictionary, none of another name."""
    if not isinstance(value, dict):
        raise ValueError(f"{where} is not a dictionary")
    strange = sorted(set(value) - set(_type_hints(kind)))
    if strange:
        raise ValueError(f"{where} has {strange[0]!r}, which does not belong there")
    needed = getattr(kind, "__required_keys__", frozenset())  # of a dataclass none
    lacking = sorted(needed - set(value))
    if lacking:
        raise ValueError(f"{where} lacks an entry: {lacking[0]}")
    return value


def _single(kind: Any, value: Any, where: str) -> Any:
    """A number, a text, None, or an array of numbers."""
    if kind is float and value is None:
        return float("nan")
    if kind is float and type(value) in (int, float):
        return float(value)
    if kind in (str, int, bool, type(None)) and type(value) is kind:
        return value
    is_array = _is_array_type(kind) and isinstance(value, list)
    if is_array and all(type(item) in (int, float) for item in value):
        return np.array(value, dtype=float)
    expected = kind.__name__ if get_origin(kind) is None else "a list of the right type"
    raise ValueError(f"{where} is of type {type(value).__name__}, not {expected}")


def _is_array_type(kind: Any) -> bool:
    """Whether a type is an array of NumPy, also where its NDArray is an alias of Python
    3.12 and newer, as from NumPy 2.5 on.
    """
    origin = get_origin(kind)
    return np.ndarray in (origin, get_origin(getattr(origin, "__value__", None)))
