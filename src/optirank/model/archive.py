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
from typing import IO

import numpy as np
from numpy.typing import NDArray

_FILE_BYTES = 1 << 28  # a model of 20 classes and 1000 genes takes less than 1 MiB
_JSON_BYTES = 1 << 24  # of its document: the names of half a million genes
_JSON_VALUES = 1 << 21  # an empty list of two characters takes 60 bytes of memory
_HEADER_BYTES = 1 << 12  # NumPy writes 128 for an array of plain numbers
_DOCUMENT = "model.json"


class ModelFileError(ValueError):
    """A model file that cannot be opened; the message names the file and what
    is wrong.
    """


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

    def document(self) -> dict[str, object]:
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
