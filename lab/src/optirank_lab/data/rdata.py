"""Vectors, factors and matrices of R's data files (.rda, .RData), found by name.

The library `rdata` parses the files. `find` follows a path of names such as
``sce/colData/listData/x`` through elements of lists, slots of S4 objects, variables of
environments and attributes. `texts` gives a vector or factor as text, `matrix` an array
or a ``dgCMatrix``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rdata.missing import R_INT_NA
from rdata.parser import RObject, RObjectType, parse_file
from scipy.sparse import csc_matrix

from optirank._util.words import some
from optirank.data.profiles import DataError, readable

_NUMBERS = {RObjectType.LGL, RObjectType.INT, RObjectType.REAL}
_EXTENSION = ".rda"  # what the library is told, however the file is called


class RMatrix(NamedTuple):
    """A matrix with the names of its rows and columns; None where R has no names."""

    values: Any  # an array, or a CSC matrix, which has no types
    row_names: list[str | None] | None
    column_names: list[str | None] | None


def read_rdata(path: str | Path) -> dict[str, RObject]:
    """The objects of a file by name; a DataError says what is wrong."""
    with readable(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # attributes of code, which is not used
        warnings.filterwarnings("error", message="Unknown file type")
        return _pairs(parse_file(path, extension=_EXTENSION).object)


def find(objects: Mapping[str, RObject], path: str) -> RObject:
    """The object at a path of names, such as ``eset/assayData/exprs``."""
    passed: list[str] = []
    inside = objects
    for name in path.split("/"):
        if name not in inside:
            raise DataError(
                f"the R object {'/'.join(passed) or 'file'} has no {name!r}: there are "
                f"{some(inside, 20)}"
            )
        item = inside[name]
        passed.append(name)
        inside = members(item)
    return item


def members(item: RObject) -> dict[str, RObject]:
    """What an object holds by name: attributes, elements of a list, variables."""
    item = _referred(item)
    inside = _pairs(item.attributes)
    if item.info.type is RObjectType.ENV:
        for chain in (item.value.frame, *(item.value.hash_table.value or ())):
            inside |= _pairs(chain)
    elif item.info.type is RObjectType.VEC and "names" in inside:
        names = [str(name) for name in texts(inside["names"])]
        inside |= dict(zip(names, item.value, strict=False))
    return inside | _pairs(item)


def texts(item: RObject) -> list[str | None]:
    """The elements of a vector or factor as text, None where missing.

    Whole numbers are written without ``.0``.
    """
    item = _referred(item)
    if item.info.type is RObjectType.STR:
        return [_text(element) for element in item.value]
    values = numbers(item)
    levels = _pairs(item.attributes).get("levels")
    if levels is not None:
        names = texts(levels)
        return [
            None if code == R_INT_NA else names[code - 1] for code in values.tolist()
        ]
    if values.dtype.kind == "i":
        return [None if value == R_INT_NA else str(value) for value in values.tolist()]
    return [None if value != value else f"{value:.15g}" for value in values.tolist()]


def numbers(item: RObject) -> np.ndarray:
    """A vector of numbers; logical values are 0 and 1, missing ones `R_INT_NA`."""
    item = _referred(item)
    kind = item.info.type
    if kind not in _NUMBERS:
        raise DataError(
            f"this R object is no vector of numbers or text but a {kind.name}"
        )
    values = item.value.astype(np.int32) if kind is RObjectType.LGL else item.value
    return np.ma.filled(values, R_INT_NA) if np.ma.isMaskedArray(values) else values


def matrix(item: RObject) -> RMatrix:
    """A matrix (array, or CSC if it is sparse) with its names."""
    item = _referred(item)
    slots = _pairs(item.attributes)
    if {"i", "p", "x", "Dim"} <= set(slots):  # a dgCMatrix
        parts = tuple(numbers(slots[name]) for name in ("x", "i", "p"))
        values = csc_matrix(parts, shape=tuple(numbers(slots["Dim"]).tolist()))
        names = slots.get("Dimnames")
    elif "dim" in slots and numbers(slots["dim"]).size == 2:
        shape = tuple(numbers(slots["dim"]).tolist())
        values = numbers(item).reshape(shape, order="F")
        names = slots.get("dimnames")
    else:
        raise DataError(f"this R object is no matrix: it has {some(slots)}")
    if names is None or names.info.type is not RObjectType.VEC:
        return RMatrix(values, None, None)
    row_names, column_names = (
        None if part.value is None else texts(part) for part in names.value[:2]
    )
    return RMatrix(values, row_names, column_names)


def _pairs(chain: RObject | None) -> dict[str, RObject]:
    """The elements of a pairlist by their tags."""
    elements: dict[str, RObject] = {}
    while chain is not None and chain.info.type is RObjectType.LIST:
        value, rest = chain.value
        elements[_text(chain.tag) or ""] = _referred(value)
        chain = rest
    return elements


def _text(item: RObject | None) -> str | None:
    """The text of a string or symbol; None where it is missing."""
    if item is None:
        return None
    item = _referred(item)
    if isinstance(item.value, RObject):  # a symbol, whose name is a string
        item = item.value
    return None if item.value is None else item.value.decode("utf-8", "replace")


def _referred(item: RObject) -> RObject:
    """The object itself, where a file says that it is one that came before."""
    return item if item.referenced_object is None else item.referenced_object
