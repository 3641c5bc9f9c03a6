"""Random changes of bytes and of JSON values, the same for the same seed."""

from __future__ import annotations

import random

_NUMBERS = (b"\xff\xff\xff\x7f", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\1\0\0\0")
_TEXTS = (
    b"\0",
    b"\x1b",
    b"-1",
    b"1e400",
    b"nan",
    b"99999999999",
    b"{",
    b"[",
    b'"',
    b"\n",
    b"\xff",
)
_VALUES = (
    None, True, 0, -1, 1e308, 10**30, "", "\x1b[31m", "x" * 3000, [], {}, [[]], [None],
    {"dict": [[1, 2]]}, {"tuple": [0]}, {"float": "nan"}, {"array": {"dtype": "str9999",
    "values": ["a", "b"]}}, {"dtype": "int64", "values": [1, 2, 3]},
)  # fmt: skip


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The bytes with one to eight changes: of a byte, a bit, a number, a text,
    or a cut.
    """
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at, kind = rng.randrange(max(1, len(changed))), rng.random()
        if kind < 0.45:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif kind < 0.65:
            changed[at : at + 1] = bytes(
                [(changed[at] if changed else 0) ^ 1 << rng.randrange(8)]
            )
        elif kind < 0.8:
            changed[at : at + 4] = rng.choice(_NUMBERS)
        elif kind < 0.92:
            changed[at:at] = rng.choice(_TEXTS)
        elif kind < 0.97:
            del changed[at : at + rng.randrange(1, 64)]
        else:
            del changed[at:]
    return bytes(changed)


def with_other_value(document: object, rng: random.Random) -> object:
    """The document with one of its values, at any depth, replaced by, or made,
    another.
    """
    if not isinstance(document, dict | list) or not document or rng.random() < 0.15:
        return rng.choice(_VALUES)
    keys = list(document) if isinstance(document, dict) else range(len(document))
    key = rng.choice(keys)
    changed = document.copy()
    if rng.random() < 0.05:
        del changed[key]
    else:
        changed[key] = with_other_value(document[key], rng)
    return changed
