"""The zip of a model file: a JSON document and arrays, read without trust.

A model file may come from someone else. Nothing in it can run: there is no pickle, and
only plain values are built. Sizes are checked before memory is allocated: those of the
file and its members, the number of values in the JSON text, and of each array, whose
type and shape the reader knows beforehand.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

_FILE_BYTES = 1 << 28  # a model of 20 classes and 1000 genes takes less than 1 MiB
_JSON_BYTES = 1 << 24  # of its document: the names of half a million genes
_JSON_VALUES = 1 << 21  # an empty list of two characters takes 60 bytes of memory
_HEADER_BYTES = 1 << 12  # NumPy writes 128 for an array of plain numbers
_ENTRIES = 1 << 24  # of an array: 128 MiB of weights
_DOCUMENT = "model.json"


def refuse_if(wrong: bool | np.bool_, what: str) -> None:
    """A ValueError that says what is wrong with a file."""
    if wrong:
        raise ValueError(what)


def write_archive(
    document: Mapping[str, object], arrays: Mapping[str, NDArray]
) -> bytes:
    """A compressed zip of a document and arrays; the same ones give the same bytes."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    members = {_DOCUMENT: text.encode("ascii")}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in members.items():
            info = zipfile.ZipInfo(name)  # of 1980: the same model gives the same bytes
            info.external_attr = 0o644 << 16
            archive.writestr(info, member, zipfile.ZIP_DEFLATED)
    return content.getvalue()


class Archive:
    """An open model file, which gives out its document and its arrays, each once.

    ``left`` are the names of those that nobody asked for yet.
    """

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, io.SEEK_END)
        refuse_if(size > _FILE_BYTES, f"it has {size} bytes, more than {_FILE_BYTES}")
        self._zip = zipfile.ZipFile(file)
        self.left = self._zip.namelist()
        refuse_if(
            len(set(self.left)) < len(self.left), "it holds members of the same name"
        )

    def document(self) -> dict[str, Any]:
        """The document, plain values by name."""
        text = self._take(_DOCUMENT, _JSON_BYTES)
        n_values = text.count(b",") + text.count(b"[") + text.count(b"{")
        refuse_if(
            n_values > _JSON_VALUES,
            f"{_DOCUMENT} has {n_values} values, more than {_JSON_VALUES}",
        )
        document = json.loads(text)
        refuse_if(not isinstance(document, dict), f"{_DOCUMENT} is not an object")
        return document

    def array(
        self, name: str, dtype: type[np.generic], shape: tuple[int, ...]
    ) -> NDArray:
        """The array of this name, of finite numbers of this type and shape."""
        n_entries = math.prod(shape)
        refuse_if(n_entries > _ENTRIES, f"array {name!r} has {n_entries} entries")
        n_bytes = n_entries * np.dtype(dtype).itemsize
        content = io.BytesIO(self._take(f"{name}.npy", n_bytes + _HEADER_BYTES))
        np.lib.format.read_magic(content)
        header = np.lib.format.read_array_header_1_0(content, _HEADER_BYTES)
        refuse_if(
            header != (shape, False, np.dtype(dtype)),
            f"array {name!r} has shape, order by columns and type {header}, expected "
            f"{(shape, False, np.dtype(dtype))}",
        )
        values = content.read()
        refuse_if(len(values) != n_bytes, f"array {name!r} is not as long as it says")
        array = np.frombuffer(values, dtype).reshape(shape).copy()
        refuse_if(
            not np.isfinite(array).all(), f"array {name!r} has NaN or infinite values"
        )
        return array

    def _take(self, name: str, limit: int) -> bytes:
        """A member's bytes, ``limit`` at most."""
        refuse_if(name not in self.left, f"it lacks {name}")
        self.left.remove(name)
        info = self._zip.getinfo(name)
        refuse_if(
            info.file_size > limit,
            f"{name} has {info.file_size} bytes, more than {limit}",
        )
        refuse_if(
            info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
            f"{name} is compressed in a way whose size cannot be bounded",
        )
        with self._zip.open(info) as member:
            return member.read(limit)
