"""R's data files (.rda, .RData) without R: its XDR serialisation, versions 2 and 3.

Objects become :class:`RObject`: a value and attributes.
``RObject.find("sce/colData/listData/x")`` follows elements of lists, slots of S4
objects, variables of environments and attributes. :func:`texts` gives a vector or
factor as text, :func:`matrix` an array or a ``dgCMatrix``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, Union

import numpy as np
from scipy.sparse import csc_matrix

from optirank._util.names import some
from optirank.io.data import DataError, readable

_MOST_BYTES = 1 << 31  # of an unpacked file: the largest registered one has 27 million
_MISSING = np.iinfo(np.int32).min  # R's NA of integers, logicals and factors
_OPENERS: dict[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZ": bz2.open,
    b"\xfd7": lzma.open,
}

# What a file holds: an object, or the text of a symbol or string. NULL is None.
Item: TypeAlias = Union["RObject", str, None]


@dataclass
class RObject:
    """An R object and its attributes.

    The value is an array (numbers), a list (strings, lists, pairlists), a dict
    (environments) or None (S4 objects, whose slots are attributes).
    """

    value: np.ndarray | list[Item] | dict[str, Item] | None = None
    attributes: dict[str, Item] = field(default_factory=dict)

    def find(self, path: str) -> Item:
        """The object at a path of names, such as ``eset/assayData/exprs``."""
        item: Item = self
        passed: list[str] = []
        for name in path.split("/"):
            inside = members(item)
            if name not in inside:
                raise DataError(
                    f"the R object {'/'.join(passed) or 'file'} has no {name!r}: "
                    f"there are {some(inside, 20)}"
                )
            item = inside[name]
            passed.append(name)
        return item


class RMatrix(NamedTuple):
    """A matrix with the names of its rows and columns; None where R has no names."""

    values: Any  # an array, or a CSC matrix, which has no types
    row_names: list[str | None] | None
    column_names: list[str | None] | None


def members(item: Item) -> dict[str, Item]:
    """What an object holds by name: attributes, elements of a list, variables."""
    if not isinstance(item, RObject):
        return {}
    inside = dict(item.attributes)
    if isinstance(item.value, dict):
        inside |= item.value
    elif isinstance(item.value, list) and "names" in item.attributes:
        names = [str(name) for name in texts(item.attributes["names"])]
        inside |= dict(zip(names, item.value, strict=False))
    return inside


def read_rdata(path: str | Path) -> RObject:
    """Read the objects of an .rda or .RData file; a DataError says what is wrong."""
    with readable(path):
        with Path(path).open("rb") as file:
            opener = _OPENERS.get(file.read(2), open)
        with opener(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it unpacks to more than {_MOST_BYTES} bytes")
        return _Reader(content).read_file()


def texts(item: Item) -> list[str | None]:
    """The elements of a vector or factor as text, None where missing.

    Whole numbers are written without ``.0``.
    """
    values = item.value if isinstance(item, RObject) else item
    if isinstance(values, list):
        strings = [text for text in values if not isinstance(text, RObject)]
        if len(strings) == len(values):
            return strings
    if not isinstance(item, RObject) or not isinstance(values, np.ndarray):
        kind = type(values).__name__
        raise DataError(f"this R object is no vector of numbers or text but a {kind}")
    if "levels" in item.attributes:
        levels = texts(item.attributes["levels"])
        codes = values.tolist()
        return [None if code == _MISSING else levels[code - 1] for code in codes]
    if values.dtype.kind == "i":
        return [None if value == _MISSING else str(value) for value in values.tolist()]
    return [None if value != value else f"{value:.15g}" for value in values.tolist()]


def matrix(item: Item) -> RMatrix:
    """A matrix (array, or CSC if it is sparse) with its names."""
    slots = item.attributes if isinstance(item, RObject) else {}
    if {"i", "p", "x", "Dim"} <= set(slots):  # a dgCMatrix
        parts = (_array(slots["x"]), _array(slots["i"]), _array(slots["p"]))
        values = csc_matrix(parts, shape=tuple(_array(slots["Dim"]).tolist()))
        names = slots.get("Dimnames")
    elif "dim" in slots and _array(slots["dim"]).size == 2:
        shape = tuple(_array(slots["dim"]).tolist())
        values = _array(item).reshape(shape, order="F")
        names = slots.get("dimnames")
    else:
        raise DataError(f"this R object is no matrix: it has {some(slots)}")
    if not isinstance(names, RObject) or not isinstance(names.value, list):
        return RMatrix(values, None, None)
    row_names, column_names = names.value[:2]
    return RMatrix(
        values,
        None if row_names is None else texts(row_names),
        None if column_names is None else texts(column_names),
    )


def _array(item: Item) -> np.ndarray:
    """The numbers of a vector."""
    if isinstance(item, RObject) and isinstance(item.value, np.ndarray):
        return item.value
    raise DataError("an R object that should be a vector of numbers is none")


class _Kind(IntEnum):
    """The types of R's ``serialize.c`` that are read, by its names."""

    SYMBOL = 1
    PAIRLIST = 2
    FUNCTION = 3
    ENVIRONMENT = 4
    PROMISE = 5
    CALL = 6
    SPECIAL = 7
    BUILTIN = 8
    STRING = 9
    LOGICAL = 10
    INTEGER = 13
    REAL = 14
    COMPLEX = 15
    STRINGS = 16
    DOTS = 17
    LIST = 19
    EXPRESSIONS = 20
    BYTECODE = 21
    EXTERNAL_POINTER = 22
    WEAK_REFERENCE = 23
    RAW = 24
    S4 = 25
    SHORT_FORM = 238  # ALTREP
    PAIRLIST_WITH_ATTRIBUTES = 239  # these two and the next two: in bytecode alone
    CALL_WITH_ATTRIBUTES = 240
    BASE_ENVIRONMENT = 241
    EMPTY_ENVIRONMENT = 242
    REPEATED = 243
    REPEATED_LATER = 244
    BASE_NAMESPACE = 247
    PERSISTENT = 248
    NAMESPACE = 249
    PACKAGE = 250
    MISSING_ARGUMENT = 251
    UNBOUND = 252
    GLOBAL_ENVIRONMENT = 253
    NULL = 254
    REFERENCE = 255


_HAS_ATTRIBUTES = 512
_HAS_TAG = 1024
_NUMBERS = {
    _Kind.LOGICAL: np.dtype(">i4"),
    _Kind.INTEGER: np.dtype(">i4"),
    _Kind.REAL: np.dtype(">f8"),
    _Kind.COMPLEX: np.dtype(">c16"),
    _Kind.RAW: np.dtype("u1"),
}
_LISTS = {_Kind.STRINGS, _Kind.LIST, _Kind.EXPRESSIONS}
_CHAINS = {_Kind.PAIRLIST, _Kind.PROMISE, _Kind.CALL, _Kind.DOTS}
_WITH_ATTRIBUTES = {_Kind.PAIRLIST_WITH_ATTRIBUTES, _Kind.CALL_WITH_ATTRIBUTES}
_CODE_CHAINS = {_Kind.PAIRLIST, _Kind.CALL, _Kind.REPEATED_LATER, *_WITH_ATTRIBUTES}
_PRIMITIVES = {_Kind.SPECIAL, _Kind.BUILTIN}
_POINTERS = {_Kind.EXTERNAL_POINTER, _Kind.WEAK_REFERENCE}
_CODE = {_Kind.FUNCTION, _Kind.BYTECODE, *_PRIMITIVES, *_POINTERS}
_NAMESPACES = {_Kind.PERSISTENT, _Kind.NAMESPACE, _Kind.PACKAGE}
_CONSTANTS = {  # NULL, and environments that every R has
    _Kind.BASE_ENVIRONMENT,
    _Kind.EMPTY_ENVIRONMENT,
    _Kind.BASE_NAMESPACE,
    _Kind.MISSING_ARGUMENT,
    _Kind.UNBOUND,
    _Kind.GLOBAL_ENVIRONMENT,
    _Kind.NULL,
}


class _Reader:
    """Reads items from the bytes of a file; see R's ``serialize.c``."""

    def __init__(self, content: bytes) -> None:
        self._file = io.BytesIO(content)
        self._size = len(content)
        self._references: list[Item] = []

    def read_file(self) -> RObject:
        """The objects of a file by name."""
        magic = self._take(7)
        if magic not in (b"RDX2\nX\n", b"RDX3\nX\n"):
            raise ValueError(
                f"it begins with {magic!r}, not with RDX2 or RDX3 in XDR form"
            )
        version, _, _ = self._ints(3)
        if version == 3:
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
        if length == -1:  # a long vector: two words
            high, low = self._ints(2)
            length = (high << 32) + (low & 0xFFFFFFFF)
        if not 0 <= length <= self._size:
            raise ValueError(f"a vector says it has {length} elements")
        return length

    def _item(self) -> Item:
        flags = self._int()
        kind = flags & 255
        if kind in _CONSTANTS:
            return None
        if kind == _Kind.REFERENCE:
            return self._references[((flags >> 8) or self._int()) - 1]
        if kind in _CHAINS:
            return self._pairlist(flags)
        if kind in _CODE:
            return self._code(flags)
        if kind in _NUMBERS or kind in _LISTS or kind == _Kind.S4:
            return self._vector(flags)
        return self._special(kind)

    def _special(self, kind: int) -> Item:
        """An item without the usual flags."""
        if kind == _Kind.STRING:
            length = self._int()
            if length == -1:
                return None
            return self._take(length).decode("utf-8", "replace")
        if kind == _Kind.SYMBOL:
            return self._refer(self._item())
        if kind == _Kind.ENVIRONMENT:
            return self._environment()
        if kind in _NAMESPACES:
            self._int()
            names = [str(self._item()) for _ in range(self._length())]
            return self._refer("::".join(names))
        if kind == _Kind.SHORT_FORM:
            return self._short_form()
        raise ValueError(f"it holds an object of R's type {kind}, which is not read")

    def _refer(self, item: Item) -> Item:
        """Keep an item that later ones refer to by its number."""
        self._references.append(item)
        return item

    def _vector(self, flags: int) -> RObject:
        """A vector of numbers, strings or objects, or an S4 object."""
        kind = _Kind(flags & 255)
        vector = RObject()
        if kind in _NUMBERS:
            dtype = _NUMBERS[kind]
            content = self._take(self._length() * dtype.itemsize)
            vector.value = np.frombuffer(content, dtype).astype(dtype.newbyteorder("="))
        elif kind in _LISTS:
            vector.value = [self._item() for _ in range(self._length())]
        if flags & _HAS_ATTRIBUTES:
            vector.attributes = members(self._item())
        return vector

    def _code(self, flags: int) -> None:
        """Skip functions and pointers; what is inside may be referred to later."""
        kind = flags & 255
        has_attributes = bool(flags & _HAS_ATTRIBUTES)
        if kind == _Kind.FUNCTION:
            # its attributes, environment, arguments and body
            for _ in range(3 + has_attributes):
                self._item()
            return
        if kind in _POINTERS:
            self._refer(None)
        if kind == _Kind.EXTERNAL_POINTER:
            self._item()  # what it protects
            self._item()  # its tag
        elif kind in _PRIMITIVES:
            self._take(self._int())  # its name
        elif kind == _Kind.BYTECODE:
            self._int()  # the number of parts that are repeated
            self._code_block()
        if has_attributes:
            self._item()

    def _code_block(self) -> None:
        self._item()  # the instructions
        for _ in range(self._length()):
            kind = self._int()
            if kind == _Kind.BYTECODE:
                self._code_block()
            else:
                self._code_constant(kind)

    def _code_constant(self, kind: int) -> None:
        if kind == _Kind.REPEATED:
            self._int()  # the number of the part
            return
        if kind not in _CODE_CHAINS:
            self._item()
            return
        if kind == _Kind.REPEATED_LATER:
            self._int()  # the number of the part
            kind = self._int()
        if kind in _WITH_ATTRIBUTES:
            self._item()
        self._item()  # the tag
        self._code_constant(self._int())
        self._code_constant(self._int())

    def _pairlist(self, flags: int) -> RObject:
        """A pairlist, as a list with names; its attributes are left out."""
        names: list[Item] = []
        values: list[Item] = []
        while True:
            if flags & _HAS_ATTRIBUTES:
                self._item()
            tag = self._item() if flags & _HAS_TAG else None
            names.append(tag or "")
            values.append(self._item())
            position = self._file.tell()
            flags = self._int()
            if flags & 255 not in (_Kind.PAIRLIST, _Kind.CALL):
                self._file.seek(position)
                self._item()  # NULL, the end
                return RObject(values, {"names": RObject(names)})

    def _environment(self) -> RObject:
        variables: dict[str, Item] = {}
        environment = RObject(variables)
        self._refer(environment)
        self._int()
        self._item()  # the enclosing environment
        frame = self._item()
        table = self._item()
        chains = [frame]
        if isinstance(table, RObject) and isinstance(table.value, list):
            chains += table.value
        for chain in chains:
            if isinstance(chain, RObject):
                names = [str(name) for name in texts(chain.attributes["names"])]
                variables |= dict(zip(names, _elements(chain), strict=True))
        environment.attributes = members(self._item())
        return environment

    def _short_form(self) -> RObject:
        """R's short forms: sequences, numbers as text, wrapped vectors."""
        about = self._item()
        state = self._item()
        attributes = self._item()
        name = str(_elements(about)[0])
        if name in ("compact_intseq", "compact_realseq"):
            count, start, step = _array(state).tolist()
            if not (0 <= 8 * count <= _MOST_BYTES and np.isfinite([start, step]).all()):
                raise ValueError(
                    f"a sequence says it has {count:g} elements from {start:g}"
                )
            values = start + step * np.arange(int(count))
            dtype = np.int64 if name == "compact_intseq" else np.float64
            vector = RObject(values.astype(dtype))
        elif name == "deferred_string":
            vector = RObject(list(texts(_elements(state)[0])))
        elif name.startswith("wrap_"):
            inner = _elements(state)[0]
            if not isinstance(inner, RObject):
                raise ValueError("a wrapped vector is none")
            vector = RObject(inner.value, dict(inner.attributes))
        else:
            raise ValueError(
                f"it holds a vector in R's short form {name!r}, which is not read"
            )
        vector.attributes |= members(attributes)
        return vector


def _elements(item: Item) -> list[Item]:
    """The elements of a list."""
    if isinstance(item, RObject) and isinstance(item.value, list):
        return item.value
    raise ValueError("an R object that should be a list is none")
