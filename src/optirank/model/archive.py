"""The zip of a model file: a JSON document and arrays, read without trust.

A model file may come from someone else. Nothing in it can run: there is no pickle, and
only plain values are built. Sizes are checked before memory is allocated: those of the
file and its members, the number of values in the JSON text, and of each array.

What a file may hold is said once, by the type hints of dataclasses, which check their
values themselves. An array of one dimension is a list in the document. One of two is a
member of the zip, and the document has its name.
"""

from __future__ import annotations

import io
import json
import math
import types
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import IO, Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

_FILE_BYTES = 1 << 28  # a model of 20 classes and 1000 genes takes less than 1 MiB
_JSON_BYTES = 1 << 24  # of its document: the names of half a million genes
_JSON_VALUES = 1 << 21  # an empty list of two characters takes 60 bytes of memory
_HEADER_BYTES = 1 << 12  # NumPy writes 128 for an array of plain numbers
_MAX_ENTRIES = 1 << 24  # of an array: 128 MiB of weights
_DOCUMENT = "model.json"
# Of a list in JSON that is an array, by the kind of its type
_ITEMS: dict[str, set[type]] = {"O": {str}, "i": {int}, "f": {int, float}}


class ModelFileError(ValueError):
    """A model file that cannot be opened; the message names the file and what
    is wrong.
    """


def refuse_if(wrong: bool | np.bool_, what: str) -> None:
    """A ModelFileError that says what is wrong with a file."""
    if wrong:
        raise ModelFileError(what)


def write_archive(header: Mapping[str, object], value: object) -> bytes:
    """A compressed zip of a dataclass; the same one gives the same bytes.

    ``header`` has more entries of the document.
    """
    arrays: dict[str, NDArray] = {}
    document = {**header, **to_plain(value, arrays)}
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


@cache
def _stored_fields(kind: type) -> dict[str, Any]:
    """The fields of a dataclass that a file holds, and their types."""
    hints = get_type_hints(kind)
    stored = [part.name for part in fields(kind) if part.metadata.get("stored", True)]
    return {name: hints[name] for name in stored}


def to_plain(value: Any, arrays: dict[str, NDArray], *path: str) -> Any:
    """A value as JSON can hold it: tuples are lists, NaN is null.

    Fields of None are left out. Arrays of two dimensions are put among ``arrays``, by
    their path.
    """
    if is_dataclass(value):
        entries = {name: getattr(value, name) for name in _stored_fields(type(value))}
        value = {name: item for name, item in entries.items() if item is not None}
    if isinstance(value, Mapping):
        plain = {}
        for key, item in value.items():
            plain[str(key)] = to_plain(item, arrays, *path, str(key))
        return plain
    if isinstance(value, np.ndarray) and value.ndim > 1:
        name = "/".join(path)
        arrays[name] = value
        return name
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [to_plain(item, arrays) for item in value]
    if isinstance(value, float) and value != value:
        return None
    return value


class Archive:
    """An open model file, which gives out its document and its arrays.

    ``left`` are the arrays that nobody asked for yet, ``n_values`` is the number of
    values in the document, and ``most_entries`` what an array may have.
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
        self.n_values = self.most_entries = 0
        refuse_if(
            _DOCUMENT not in names or len(self.left) + 1 != len(names),
            f"it lacks {_DOCUMENT}, or holds members of the same name",
        )

    def document(self) -> dict[str, Any]:
        """The document, an object of plain values."""
        text = self._read(_DOCUMENT, _JSON_BYTES)
        self.n_values = text.count(b",") + text.count(b"[") + text.count(b"{")
        refuse_if(
            self.n_values > _JSON_VALUES,
            f"{_DOCUMENT} has more than the {_JSON_VALUES} values allowed",
        )
        try:
            document = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{_DOCUMENT} is not JSON ({error})") from error
        refuse_if(not isinstance(document, dict), f"{_DOCUMENT} is not an object")
        return document

    def take(self, name: str, dtype: np.dtype) -> NDArray:
        """The array of this name and dtype, once."""
        refuse_if(name not in self.left, f"it lacks the array {name!r}")
        self.left.discard(name)
        limit = min(self.most_entries, _MAX_ENTRIES) * dtype.itemsize + _HEADER_BYTES
        content = io.BytesIO(self._read(f"{name}.npy", limit))
        try:
            np.lib.format.read_magic(content)
            header = np.lib.format.read_array_header_1_0(content, _HEADER_BYTES)
        except ValueError as error:
            raise ModelFileError(
                f"array {name!r} has a damaged header ({error})"
            ) from error
        shape, by_columns, kind = header
        refuse_if(kind != dtype, f"array {name!r} is of {kind}, expected {dtype}")
        refuse_if(by_columns, f"array {name!r} is stored by columns, not by rows")
        values = content.read()
        refuse_if(
            len(values) != math.prod(shape) * dtype.itemsize,
            f"array {name!r} is not as long as its shape {shape} says",
        )
        return np.frombuffer(values, dtype).reshape(shape).copy()

    def _read(self, name: str, limit: int) -> bytes:
        """A member's bytes, ``limit`` at most."""
        info = self._zip.getinfo(name)
        refuse_if(
            info.file_size > limit,
            f"{name} has {info.file_size} bytes, more than {limit}",
        )
        refuse_if(
            info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
            f"{name} is compressed in a way whose size cannot be bounded",
        )
        try:
            with self._zip.open(info) as member:
                return member.read(limit)
        except Exception as error:  # zipfile has a dozen ways to say it
            raise ModelFileError(f"{name} is damaged ({error})") from error


def from_plain(kind: Any, value: Any, archive: Archive, where: str) -> Any:
    """A value of a type from what :func:`to_plain` gave; ValueError for anything else.

    ``where`` names the value in the message.
    """
    if isinstance(value, np.ndarray):  # made beforehand: JSON has none
        return value
    if get_origin(kind) in (Union, types.UnionType):
        choices = [choice for choice in get_args(kind) if choice is not type(None)]
        kind = type(value) if type(value) in get_args(kind) else choices[0]
    parts = _parts(kind, value, where)
    if parts is None:
        is_array = get_origin(kind) not in (None, tuple, dict, Mapping)
        if is_array and isinstance(value, str | list):
            return _array(get_args(kind), value, archive, where)
        return _scalar(kind, value, where)
    made = {}
    for key, kind_of_part, part in parts:
        made[key] = from_plain(kind_of_part, part, archive, f"{where}: {key}")
    if get_origin(kind) is not None:
        return tuple(made.values()) if get_origin(kind) is tuple else made
    try:
        return kind(**made)
    except TypeError as error:
        raise ValueError(f"{where} lacks an entry: {error}") from error


def _parts(kind: Any, value: Any, where: str) -> list[tuple[Any, Any, Any]] | None:
    """The keys of a dataclass, a dictionary or a tuple, with types and values; None
    of what has none.
    """
    arguments = get_args(kind)
    origin = get_origin(kind)
    if is_dataclass(kind):
        refuse_if(not isinstance(value, dict), f"{where} is not a dictionary")
        hints = _stored_fields(kind)
        for name in value:
            refuse_if(
                name not in hints, f"{where} has {name!r}, which does not belong there"
            )
        return [(name, hints[name], item) for name, item in value.items()]
    if origin in (dict, Mapping) and isinstance(value, dict):
        return [(arguments[0](key), arguments[1], value[key]) for key in value]
    if origin is tuple and isinstance(value, list):
        several = arguments[-1] is ...
        kinds = arguments[:1] * len(value) if several else arguments
        if len(kinds) == len(value):
            return list(zip(range(len(value)), kinds, value, strict=True))
    return None


def _scalar(kind: Any, value: Any, where: str) -> Any:
    """A number, a text or None."""
    if kind is float and value is None:
        return float("nan")
    if kind is float and type(value) in (int, float):
        return float(value)
    if kind in (str, int, bool, type(None)) and type(value) is kind:
        return value
    expected = kind.__name__ if get_origin(kind) is None else "of the right type"
    raise ValueError(f"{where} is of type {type(value).__name__}, not {expected}")


def _array(
    arguments: tuple[Any, ...], value: str | list, archive: Archive, where: str
) -> NDArray:
    """An array of finite numbers or of texts: a list, or the member that is named.

    ``arguments`` are those of the type hint, whose form NumPy 2.5 changed.
    """
    of_dtype = get_args(arguments[-1]) or arguments
    dtype = np.dtype(of_dtype[0])
    if isinstance(value, str):
        refuse_if(dtype.kind != "f", f"{where} is a text, not a list")
        array = archive.take(value, dtype)
    else:
        wrong = [item for item in value if type(item) not in _ITEMS[dtype.kind]]
        refuse_if(bool(wrong), f"{where} has {wrong[:1]}, of the wrong type")
        array = np.array(value, dtype)
    refuse_if(
        dtype.kind == "f" and not np.isfinite(array).all(),
        f"{where} has NaN or infinite values",
    )
    return array
