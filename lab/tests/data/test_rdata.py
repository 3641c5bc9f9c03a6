"""R's data files are read without R: vectors, factors, lists, S4 objects,
environments.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import struct

import numpy as np
import pytest

from optirank.datasets import DataError
from optirank_lab.data.rdata import find, matrix, read_rdata, texts

INT, REAL, STR, LIST, S4, PAIRS = 13, 14, 16, 19, 25, 2


def ints(*values: int) -> bytes:
    return struct.pack(f">{len(values)}i", *values)


def char(text: str | None) -> bytes:
    return ints(9, -1) if text is None else ints(9, len(text.encode())) + text.encode()


def symbol(name: str) -> bytes:
    return ints(1) + char(name)


def pairs(**items: bytes) -> bytes:
    return b"".join(
        ints(PAIRS | 1024) + symbol(k) + v for k, v in items.items()
    ) + ints(254)


def vector(values, **attributes: bytes) -> bytes:
    flag = 512 if attributes else 0
    if isinstance(values[0], str | None):
        body = ints(STR | flag, len(values)) + b"".join(map(char, values))
    elif isinstance(values[0], bytes):
        body = ints(LIST | flag, len(values)) + b"".join(values)
    elif isinstance(values[0], int):
        body = ints(INT | flag, len(values), *values)
    else:
        body = ints(REAL | flag, len(values)) + np.array(values, ">f8").tobytes()
    return body + (pairs(**attributes) if attributes else b"")


def rfile(**objects: bytes) -> bytes:
    return b"RDX2\nX\n" + ints(2, 0x30603, 0x20300) + pairs(**objects)


def sequence() -> bytes:
    """1:4 in R's short form."""
    about = ints(PAIRS) + symbol("compact_intseq") + ints(254)
    return ints(238) + about + vector([4.0, 1.0, 1.0]) + ints(254)


CONTENT = rfile(
    number=vector([1.0, float("nan"), 2.5]),
    factor=vector([2, 1, -(2**31)], levels=vector(["low", "high"])),
    dense=vector([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], dim=vector([2, 3])),
    frame=vector(
        [vector(["a", None]), vector([1, 2])],
        names=vector(["text", "n"]),
        **{"row.names": vector(["r1", "r2"])},
    ),
    sparse=ints(S4 | 512) + pairs(
        i=vector([0, 1]), p=vector([0, 1, 1, 2]), x=vector([5.0, 7.0]), Dim=vector([2, 3]),
        Dimnames=vector([vector(["g1", "g2"]), vector(["a", "b", "c"])]),
    ),
    space=ints(4, 0, 242) + pairs(exprs=vector([9.0])) + ints(254, 254),
    short=sequence(),
)  # fmt: skip


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_what_r_writes_is_read(pack, tmp_path):
    path = tmp_path / "data.rda"
    path.write_bytes(pack(CONTENT))
    found = read_rdata(path)
    assert texts(find(found, "number")) == ["1", None, "2.5"]
    assert texts(find(found, "factor")) == ["high", "low", None]
    np.testing.assert_array_equal(
        matrix(find(found, "dense"))[0], [[1, 3, 5], [2, 4, 6]]
    )
    assert texts(find(found, "frame/text")) == ["a", None]
    assert texts(find(found, "frame/row.names")) == ["r1", "r2"]
    X, rows, columns = matrix(find(found, "sparse"))
    np.testing.assert_array_equal(X.toarray(), [[5, 0, 0], [0, 0, 7]])
    assert (rows, columns) == (["g1", "g2"], ["a", "b", "c"])
    assert texts(find(found, "space/exprs")) == ["9"]
    assert texts(find(found, "short")) == ["1", "2", "3", "4"]
    with pytest.raises(DataError, match=r"frame has no 'other': there are .*text, n"):
        find(found, "frame/other")
    with pytest.raises(DataError, match="no matrix"):
        matrix(find(found, "frame"))


def test_damaged_files_are_refused_and_allocate_nothing(tmp_path):
    path, rng, refused = tmp_path / "bad.rda", random.Random(0), 0
    for _ in range(400):
        content = bytearray(CONTENT)
        at = rng.randrange(len(content))
        content[at : at + 4] = rng.choice(
            [b"\xff\xff\xff\x7f", b"\0\0\0\0", bytes([7] * 4), b""]
        )
        path.write_bytes(content)
        try:
            read_rdata(path)
        except DataError:
            refused += 1
    assert refused > 100
    for content in (
        b"",
        b"RDX2\nA\n1",
        gzip.compress(CONTENT)[:-20],
        ints(PAIRS | 512) * 9999,
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.rda"):
            read_rdata(path)
