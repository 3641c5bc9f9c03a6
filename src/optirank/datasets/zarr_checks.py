"""What is checked of a zarr folder before its arrays are read: sizes against what is stored.

An array says in a text file how long it is and how long its pieces are; pieces that are not there
are filled. A false length would fill the memory, or have millions of pieces looked for.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from optirank.datasets.errors import DataError

_SMALL = 1 << 26  # bytes that any array may have
_EXPANSION = 1 << 14  # compressors other than deflate reach more than a thousand
_PIECES = 1000  # pieces of an array that may all be absent
_BLOSC = 16  # bytes of the header of a piece


def check_zarr_group(group: Any, path: Path) -> None:
    """Refuse a group with an array that says it is larger than what is stored of it."""
    for key in group:
        member = group[key]
        if hasattr(member, "keys"):
            check_zarr_group(member, path)
        else:
            check_zarr_array(member, path)


def check_zarr_array(array: Any, path: Path) -> None:
    """Refuse a vector that says it is larger than what is stored of it.

    Matrices pass: their shapes must be those of the annotations, and they are read in parts.
    """
    if len(array.shape) != 1:
        return
    folder = path / str(array.path)
    pieces = [one for one in folder.rglob("*") if one.is_file()]
    pieces = [one for one in pieces if not one.name.startswith(".z") and one.name != "zarr.json"]
    stored = sum(one.stat().st_size for one in pieces)
    width = max(1, array.dtype.itemsize)
    cells = math.prod(array.chunks)
    most = max(_SMALL, _EXPANSION * stored)
    n_pieces = -(-array.shape[0] // max(1, cells))
    if array.shape[0] * width > most or cells * width > most:
        what = f"says it has {array.shape[0]} values in pieces of {cells}"
    elif n_pieces > max(_PIECES, 10 * len(pieces)):
        what = f"says it has {n_pieces} pieces and has {len(pieces)}"
    elif broken := _broken_piece(folder, pieces):
        what = f"has a piece that is damaged or truncated ({broken})"
    else:
        return
    raise DataError(
        f"{path} cannot be read, {array.path} {what}: it may be damaged or incomplete (copy "
        "or fetch it again)"
    )


def _broken_piece(folder: Path, pieces: list[Path]) -> str | None:
    """The first piece, compressed by Blosc, whose header does not fit its file."""
    try:
        about = json.loads((folder / ".zarray").read_text())
        blosc = about["compressor"]["id"] == "blosc"
    except (OSError, ValueError, TypeError, KeyError):
        return None
    for piece in pieces if blosc and len(pieces) <= _PIECES else ():
        size = piece.stat().st_size
        with piece.open("rb") as file:
            head = file.read(_BLOSC)
        inside, whole = (int.from_bytes(head[k : k + 4], "little") for k in (4, 12))
        if len(head) < _BLOSC or whole != size or inside > max(_SMALL, _EXPANSION * size):
            return piece.name
    return None
