"""Plain values as JSON and back: parameters, labels, training summaries.

JSON knows neither tuples, dictionaries with keys other than strings, arrays nor NaN, so these are
written as an object with one key that says what they are. Reading builds plain values only.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

MAX_STRING = 10_000  # characters of one label or gene name
MAX_CHARACTERS = 1 << 22  # of all arrays of strings, padded to their longest: 16 MiB
_NUMBERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "float32", "float64")
_STRING = re.compile(r"str([0-9]{1,5})")


def encode(value: Any) -> Any:
    """The value as something JSON can hold; TypeError where that cannot be done."""
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
        return {"array": encode_array(np.asarray(value))}
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored: {value!r}")


def decode(value: Any) -> Any:
    """What :func:`encode` was given; ValueError for anything it does not write."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1:
        raise ValueError(f"an object with keys {sorted(value)[:5]} where a value should be")
    ((kind, content),) = value.items()
    if kind == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if kind == "tuple" and isinstance(content, list):
        return tuple(decode(item) for item in content)
    if kind == "dict" and isinstance(content, list):
        return _decode_dict(content)
    if kind == "array":
        return decode_array(content)
    raise ValueError(f"a value of unknown kind {kind!r}")


def _decode_dict(pairs: list) -> dict:
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ValueError("a dictionary that is not a list of pairs")
    try:
        return {decode(key): decode(item) for key, item in pairs}
    except TypeError as error:  # a key that is a list
        raise ValueError("a dictionary with a key that cannot be one") from error


def check_sizes(document: Any) -> None:
    """Refuse arrays of strings that would take far more memory than their text.

    An array of n strings has room for n times its declared length, whatever the strings are.
    """
    total, stack = 0, [document]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            dtype, strings = value.get("dtype"), value.get("values")
            text = _STRING.fullmatch(dtype) if isinstance(dtype, str) else None
            if text and isinstance(strings, list):
                total += int(text.group(1)) * len(strings)
                if total > MAX_CHARACTERS:
                    raise ValueError(
                        f"arrays of strings with room for {total} characters, more than the "
                        f"{MAX_CHARACTERS} allowed"
                    )
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(one for one in value if isinstance(one, dict | list))


def encode_array(array: np.ndarray) -> dict:
    """A one-dimensional array of booleans, numbers or strings, with its dtype."""
    if array.ndim != 1:
        raise TypeError(f"an array of {array.ndim} dimensions cannot be stored: 1 is needed")
    values = array.tolist()
    if array.dtype.kind == "U":
        return {"dtype": f"str{array.dtype.itemsize // 4}", "values": values}
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in values):
        return {"dtype": "object", "values": [str(value) for value in values]}
    if array.dtype.name in _NUMBERS + _FLOATS:
        return {"dtype": array.dtype.name, "values": values}
    raise TypeError(
        f"an array of dtype {array.dtype} cannot be stored: strings, booleans or numbers are needed"
    )


def decode_array(content: Any) -> np.ndarray:
    """The array written by :func:`encode_array`."""
    if not isinstance(content, dict) or set(content) != {"dtype", "values"}:
        raise ValueError("an array without dtype and values")
    dtype, values = content["dtype"], content["values"]
    if not isinstance(dtype, str) or not isinstance(values, list):
        raise ValueError("an array whose dtype or values are of the wrong type")
    text = _STRING.fullmatch(dtype)
    if text or dtype == "object":
        check_strings(values, "an array of strings")
        if not text:
            return np.array(values, dtype=object)
        length = int(text.group(1))
        if length > MAX_STRING or max(map(len, values), default=0) > length:
            raise ValueError(f"strings that are no {dtype}")
        return np.array(values, dtype=f"U{max(length, 1)}")
    of_type = bool if dtype == "bool" else int if dtype in _NUMBERS else float
    if dtype not in _NUMBERS + _FLOATS:
        raise ValueError(f"an array of unknown dtype {dtype!r}")
    if not all(type(value) is of_type for value in values):
        raise ValueError(f"an array of {dtype} with values of another type")
    with np.errstate(over="ignore"):
        return np.array(values, dtype=dtype)


def check_strings(values: Any, what: str) -> None:
    """Refuse anything but a list of strings of a sane length."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{what} that is not a list of strings")
    longest = max(map(len, values), default=0)
    if longest > MAX_STRING:
        raise ValueError(f"{what} with one of {longest} characters, more than {MAX_STRING}")
