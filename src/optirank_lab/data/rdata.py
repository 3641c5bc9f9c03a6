"""R's data files (.rda, .RData) without R: its XDR serialisation, versions 2 and 3.

Objects become :class:`RObject`: a value and attributes. ``RObject.find("sce/colData/listData/x")``
follows elements of lists, slots of S4 objects, variables of environments and attributes;
:func:`texts` gives a vector or factor as text, :func:`matrix` an array or a ``dgCMatrix``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix

from optirank._util.names import some
from optirank.io.data import DataError, readable

_MOST_BYTES = 1 << 31  # of an unpacked file: the largest one here has 27 million
_MISSING = np.iinfo(np.int32).min  # R's NA of integers, logicals and factors
_OPENERS = {b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open}
_NUMBERS = {10: ">i4", 13: ">i4", 14: ">f8", 15: ">c16", 24: "u1"}
_CONSTANTS = (
    254,
    253,
    252,
    251,
    247,
    242,
    241,
)  # NULL, and environments that every R has


@dataclass
class RObject:
    """An R object: a list, a dict (environment), an array, or None (S4), and its attributes."""

    value: Any = None
    attributes: dict[str, Any] = field(default_factory=dict)

    def find(self, path: str) -> Any:
        """The object at a path of names, such as ``eset/assayData/exprs``."""
        found, gone = self, []
        for step in path.split("/"):
            there = members(found)
            if step not in there:
                raise DataError(
                    f"the R object {'/'.join(gone) or 'file'} has no {step!r}: there are "
                    f"{some(there, 20)}"
                )
            found = there[step]
            gone.append(step)
        return found


def members(node: Any) -> dict[str, Any]:
    """What an object holds by name: attributes and slots, elements of lists, variables."""
    if not isinstance(node, RObject):
        return {}
    inside = dict(node.attributes)
    if isinstance(node.value, dict):
        inside |= node.value
    elif isinstance(node.value, list) and "names" in node.attributes:
        inside |= dict(zip(texts(node.attributes["names"]), node.value, strict=False))
    return inside


def read_rdata(path: str | Path) -> RObject:
    """Read the objects of an .rda or .RData file; a DataError says what is wrong with it."""
    with readable(path):
        with Path(path).open("rb") as file:
            opener = _OPENERS.get(file.read(2), open)
        with opener(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it unpacks to more than {_MOST_BYTES} bytes")
        return _Reader(content).read_file()


def texts(node: Any) -> list[str | None]:
    """The elements of a vector or factor as text, None where missing; whole numbers without .0."""
    values = node.value if isinstance(node, RObject) else node
    if isinstance(values, list) and all(isinstance(one, str | None) for one in values):
        return values
    if not isinstance(values, np.ndarray):
        kind = type(values).__name__
        raise DataError(f"this R object is no vector of numbers or text but a {kind}")
    if isinstance(node, RObject) and "levels" in node.attributes:
        levels = texts(node.attributes["levels"])
        return [
            None if code == _MISSING else levels[code - 1] for code in values.tolist()
        ]
    if values.dtype.kind == "i":
        return [None if value == _MISSING else str(value) for value in values.tolist()]
    return [None if value != value else f"{value:.15g}" for value in values.tolist()]


def matrix(
    node: RObject,
) -> tuple[Any, list[str | None] | None, list[str | None] | None]:
    """A matrix (array, or CSC if it is sparse) with the names of its rows and columns, if any."""
    slots = node.attributes if isinstance(node, RObject) else {}
    if {"i", "p", "x", "Dim"} <= set(slots):  # a dgCMatrix
        shape = tuple(slots["Dim"].value.tolist())
        parts = (slots["x"].value, slots["i"].value, slots["p"].value)
        found, names = csc_matrix(parts, shape=shape), slots.get("Dimnames")
    elif (
        "dim" in slots
        and isinstance(node.value, np.ndarray)
        and len(slots["dim"].value) == 2
    ):
        found = node.value.reshape(tuple(slots["dim"].value.tolist()), order="F")
        names = slots.get("dimnames")
    else:
        raise DataError(f"this R object is no matrix: it has {some(slots)}")
    rows, columns = (names.value if isinstance(names, RObject) else [None, None])[:2]
    return found, *(None if one is None else texts(one) for one in (rows, columns))


class _Reader:
    """Reads items from the bytes of a file; see R's `serialize.c`."""

    def __init__(self, content: bytes) -> None:
        self._file, self._size = io.BytesIO(content), len(content)
        self._references: list[Any] = []

    def read_file(self) -> RObject:
        """The objects of a file by name."""
        magic = self._take(7)
        if magic not in (b"RDX2\nX\n", b"RDX3\nX\n"):
            raise ValueError(
                f"it begins with {magic!r}, not with RDX2 or RDX3 in XDR form"
            )
        if self._ints(3)[0] == 3:
            self._take(self._int())  # the name of the encoding
        return RObject(members(self._item()))

    def _take(self, count: int) -> bytes:
        if not 0 <= count <= self._size - self._file.tell():
            raise EOFError(
                f"{count} bytes are wanted at {self._file.tell()} of {self._size}"
            )
        return self._file.read(count)

    def _ints(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f">{count}i", self._take(4 * count))

    def _int(self) -> int:
        return self._ints(1)[0]

    def _length(self) -> int:
        length = self._int()
        if length == -1:
            high, low = self._ints(2)
            length = (high << 32) + (low & 0xFFFFFFFF)
        if not 0 <= length <= self._size:
            raise ValueError(f"a vector says it has {length} elements")
        return length

    def _item(self) -> Any:
        flags = self._int()
        kind, has_attributes, has_tag = flags & 255, flags & 512, flags & 1024
        if kind in _CONSTANTS:
            return None
        if kind == 255:
            return self._references[((flags >> 8) or self._int()) - 1]
        if kind in (2, 5, 6, 17):
            return self._pairs(has_attributes, has_tag)
        if kind == 9:
            length = self._int()
            return (
                None if length == -1 else self._take(length).decode("utf-8", "replace")
            )
        if kind == 1:
            return self._refer(self._item())
        if kind == 4:
            return self._environment()
        if kind in (248, 249, 250):
            self._int()
            return self._refer(
                "::".join(str(self._item()) for _ in range(self._length()))
            )
        if kind == 238:
            return self._compact()
        if kind == 3:  # a function: its attributes, environment, arguments and body
            for _ in range(4 if has_attributes else 3):
                self._item()
            return None
        if kind in _NUMBERS:
            count, dtype = self._length(), np.dtype(_NUMBERS[kind])
            values = np.frombuffer(self._take(count * dtype.itemsize), dtype)
            found = RObject(values.astype(dtype.newbyteorder("=")))
        elif kind in (16, 19, 20):
            found = RObject([self._item() for _ in range(self._length())])
        elif kind == 25:
            found = RObject()
        else:
            raise ValueError(
                f"it holds an object of R's type {kind}, which is not read"
            )
        if has_attributes:
            found.attributes = members(self._item())
        return found

    def _refer(self, one: Any) -> Any:
        self._references.append(one)
        return one

    def _pairs(self, has_attributes: int, has_tag: int) -> RObject:
        """A pairlist, as a list with names; its attributes are left out."""
        names, values = [], []
        while True:
            if has_attributes:
                self._item()
            names.append((self._item() if has_tag else None) or "")
            values.append(self._item())
            at = self._file.tell()
            flags = self._int()
            if flags & 255 not in (2, 6):
                self._file.seek(at)
                self._item()  # NULL, the end
                return RObject(values, {"names": RObject(names)})
            has_attributes, has_tag = flags & 512, flags & 1024

    def _environment(self) -> RObject:
        found = RObject({})
        self._refer(found)
        self._int()
        self._item()  # the enclosing environment
        frame, table = self._item(), self._item()
        for chain in (frame, *(table.value if isinstance(table, RObject) else ())):
            if isinstance(chain, RObject):
                found.value |= dict(
                    zip(texts(chain.attributes["names"]), chain.value, strict=True)
                )
        found.attributes = members(self._item())
        return found

    def _compact(self) -> RObject:
        """R's short forms (ALTREP): sequences, numbers to be written as text, wrapped vectors."""
        about, state, attributes = self._item(), self._item(), self._item()
        name = about.value[0]
        if name in ("compact_intseq", "compact_realseq"):
            count, start, step = state.value.tolist()
            if not (0 <= 8 * count <= _MOST_BYTES and np.isfinite([start, step]).all()):
                raise ValueError(
                    f"a sequence says it has {count:g} elements from {start:g}"
                )
            values = start + step * np.arange(int(count))
            found = RObject(values.astype(np.int64 if "int" in name else np.float64))
        elif name == "deferred_string":
            found = RObject(texts(state.value[0]))
        elif str(name).startswith("wrap_"):
            inner = state.value[0]
            found = RObject(inner.value, dict(inner.attributes))
        else:
            raise ValueError(
                f"it holds a vector in R's short form {name!r}, which is not read"
            )
        found.attributes |= members(attributes)
        return found
