"""Typed values as JSON holds them, and back with every type checked.

What a file may hold is said once, by the type hints of dataclasses and typed
dictionaries. A file from somebody else can give values of these types and no others.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import (
    Any,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np

T = TypeVar("T")
_type_hints = cache(get_type_hints)


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
    if get_origin(kind) in (Union, types.UnionType):
        wanted = _chosen(get_args(kind), value)
    parts = _parts(wanted, value, where)
    if parts is None:
        return _single(wanted, value, where)
    built: dict[Any, Any] = {}
    for key, (part, item) in parts.items():
        built[key] = from_plain(part, item, f"{where}: {key}")
    container: Any = get_origin(wanted)
    if container is not None:
        return container(built.values() if container is tuple else built)
    try:
        return wanted(**built)
    except TypeError as error:
        raise ValueError(f"{where} lacks an entry: {error}") from error


def _chosen(choices: tuple[Any, ...], value: object) -> Any:
    """The type of a union that a value is read as: its own where it is there."""
    if type(value) in choices:
        return type(value)
    return next(choice for choice in choices if choice is not type(None))


def _parts(
    kind: Any, value: object, where: str
) -> Mapping[Any, tuple[Any, object]] | None:
    """The parts of a value by key, each with its type; None for a single value."""
    arguments = get_args(kind)
    if is_dataclass(kind) or is_typeddict(kind):
        if not isinstance(value, dict):
            raise ValueError(f"{where} is not a dictionary")
        hints = _type_hints(kind)
        strange = sorted(set(value) - set(hints))
        if strange:
            raise ValueError(f"{where} has {strange[0]!r}, which does not belong there")
        needed = getattr(kind, "__required_keys__", set())  # a dataclass has defaults
        if lacking := sorted(needed - set(value)):
            raise ValueError(f"{where} lacks an entry: {lacking[0]}")
        return {name: (hints[name], item) for name, item in value.items()}
    if get_origin(kind) is dict and isinstance(value, dict):
        return {key: (arguments[1], item) for key, item in value.items()}
    if get_origin(kind) is tuple and isinstance(value, list):
        if arguments[-1] is ...:
            arguments = arguments[:1] * len(value)
        if len(arguments) == len(value):
            return dict(enumerate(zip(arguments, value, strict=True)))
    return None


def _single(kind: Any, value: Any, where: str) -> Any:
    """A number, a text, None, or an array of numbers."""
    if kind is float and value is None:
        return float("nan")
    if kind is float and type(value) in (int, float):
        return float(value)
    if kind in (str, int, bool, type(None)) and type(value) is kind:
        return value
    is_array = get_origin(kind) is np.ndarray and isinstance(value, list)
    if is_array and all(type(item) in (int, float) for item in value):
        return np.array(value, dtype=float)
    expected = kind.__name__ if get_origin(kind) is None else "a list of the right type"
    raise ValueError(f"{where} is of type {type(value).__name__}, not {expected}")
