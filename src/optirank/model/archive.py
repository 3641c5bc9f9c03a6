"""The zip inside and out: bytes of named members, arrays of known shape, and limits on both.

A model file comes from someone else. Nothing is taken on trust: how many members there are, what
they are called, how large they say they are and how large they turn out to be, what type and shape
an array's header claims. All this is checked before memory is allocated. The limits: a member is at
most ``EXPANSION`` times as large as it is in the file (or 1 MiB), and an array has exactly the type
and shape that follow from the model's numbers of genes and classes.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from typing import IO, TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_DATE = (1980, 1, 1, 0, 0, 0)
_DIRECTORY = 1 << 16  # bytes of a zip's list of members
_HEADER = 1 << 12  # bytes of an array's header
_SMALL = 1 << 20  # bytes of a member that may be compressed to nothing
EXPANSION = 64  # bytes of a larger member for each byte that it takes in the file
_MAGIC = b"\x93NUMPY\x01\x00"  # the version that NumPy writes for arrays of plain numbers
_DESCRIPTION = re.compile(
    rb"\{'descr': '([<>|=][a-zA-Z][0-9]{0,9})', 'fortran_order': (False|True), "
    rb"'shape': \(((?:[0-9]{1,18}, ?)*(?:[0-9]{1,18})?)\), \} *\n"
)
_END = struct.Struct("<4s4H2LH")  # a zip's last 22 bytes
_BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, struct.error,
    ValueError, OverflowError, TypeError, KeyError, IndexError,
)  # fmt: skip


class ModelFileError(ValueError):
    """A model file that cannot be opened; the message names the file and what is wrong."""


def write_zip(members: Mapping[str, bytes]) -> bytes:
    """A compressed zip of these members; the same ones give the same bytes.

    A member that would be compressed beyond what is read again is stored as it is.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, _DATE)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            if len(content) > _SMALL and len(content) > EXPANSION * len(zlib.compress(content)):
                info.compress_type = zipfile.ZIP_STORED
            archive.writestr(info, content)
    return buffer.getvalue()


def write_arrays(arrays: Mapping[str, NDArray]) -> bytes:
    """An ``.npz`` of these arrays, compressed."""
    members = {}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    return write_zip(members)


class Archive:
    """An open zip whose members have the names expected and no others.

    ``bounded`` says whether members may be only ``EXPANSION`` times as large as in the file.
    """

    def __init__(self, file: IO[bytes], what: str, *, bounded: bool = True) -> None:
        self.what, self._bounded = what, bounded
        self._size = _check_end(file, what)
        try:
            self._zip = zipfile.ZipFile(file)
        except _BROKEN as error:
            raise ModelFileError(f"{what} is a damaged zip ({error})") from error
        if sum(member.compress_size for member in self._zip.infolist()) > self._size:
            raise ModelFileError(f"{what} has members that are larger than itself")
        names = self._zip.namelist()
        self.names = set(names)
        if len(self.names) < len(names):
            raise ModelFileError(f"{what} holds members of the same name")

    def check_names(self, needed: set[str], optional: frozenset[str] = frozenset()) -> None:
        """Refuse missing and additional members."""
        if missing := needed - self.names:
            raise ModelFileError(f"{self.what} lacks {sorted(missing)[0]}")
        if extra := self.names - needed - optional:
            raise ModelFileError(f"{self.what} holds {min(extra)!r}, which does not belong there")

    def read(self, name: str, limit: int) -> bytes:
        """A member's bytes, ``limit`` at most."""
        info = self._zip.getinfo(name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(f"{name} is compressed in a way that models are not")
        if info.file_size > limit:
            raise ModelFileError(
                f"{name} says it has {info.file_size} bytes, more than the {limit} allowed"
            )
        if self._bounded and info.file_size > max(_SMALL, EXPANSION * info.compress_size):
            raise ModelFileError(
                f"{name} says it has {info.file_size} bytes in {info.compress_size} compressed "
                f"ones, more than the {EXPANSION} for each that are allowed"
            )
        try:
            with self._zip.open(info) as member:
                content = member.read(info.file_size + 1)
        except _BROKEN as error:
            raise ModelFileError(f"{name} is damaged ({error})") from error
        if len(content) != info.file_size:
            raise ModelFileError(f"{name} is not as long as the file says")
        return content


class Arrays:
    """The arrays of an ``.npz``, given out only in the type and shape asked for."""

    def __init__(self, content: bytes) -> None:
        # Arrays may be all zeros: their sizes are bounded by the shapes that are asked for
        self._archive = Archive(io.BytesIO(content), "arrays.npz", bounded=False)
        self._left = {name.removesuffix(".npy") for name in self._archive.names}

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str, dtypes: tuple[str, ...], shape: tuple[int, ...]) -> NDArray:
        """The array of this name, which must have one of these dtypes and this shape."""
        member = f"{name}.npy"
        if member not in self._archive.names:
            raise ModelFileError(f"arrays.npz lacks the array {name!r}")
        self._left.discard(name)
        size = math.prod(shape)
        largest = max(np.dtype(dtype).itemsize for dtype in dtypes)
        content = self._archive.read(member, size * largest + _HEADER)
        dtype, fortran, found_shape, start = _header(content, name)
        if dtype.hasobject:
            raise ModelFileError(f"array {name!r} holds Python objects, which are never read")
        if dtype.name not in dtypes:
            raise ModelFileError(f"array {name!r} is of {dtype}, not {' or '.join(dtypes)}")
        if found_shape != shape:
            raise ModelFileError(f"array {name!r} has shape {found_shape}, expected {shape}")
        if len(content) - start != size * dtype.itemsize:
            raise ModelFileError(f"array {name!r} is damaged (it is not as long as its shape says)")
        flat = np.frombuffer(content, dtype, offset=start)
        array = flat.reshape(shape, order="F" if fortran else "C")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"array {name!r} has NaN or infinite values")
        if array.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
            raise ModelFileError(f"array {name!r} has booleans that are neither true nor false")
        return np.array(array, dtype=dtype.newbyteorder("="), order="C")

    def check_all_taken(self) -> None:
        """Refuse arrays that nothing asked for."""
        if self._left:
            raise ModelFileError(f"arrays.npz holds {min(self._left)!r}, which is not known")


def _header(content: bytes, name: str) -> tuple[np.dtype, bool, tuple[int, ...], int]:
    """The dtype, order and shape that an array claims, and where its values begin.

    Only what NumPy writes for plain arrays is understood; nothing of the text is evaluated.
    """
    start = len(_MAGIC) + 2
    found = None
    if content.startswith(_MAGIC) and len(content) >= start:
        start += int.from_bytes(content[start - 2 : start], "little")
        found = _DESCRIPTION.fullmatch(content[len(_MAGIC) + 2 : start])
    if found is None or start > len(content):
        raise ModelFileError(f"array {name!r} has a damaged header")
    description, order, numbers = (part.decode() for part in found.groups())
    try:
        dtype = np.dtype(description)
    except TypeError as error:
        raise ModelFileError(f"array {name!r} has a damaged header ({error})") from error
    shape = tuple(int(number) for number in numbers.split(",") if number.strip())
    return dtype, order == "True", shape, start


def _check_end(file: IO[bytes], what: str) -> int:
    """Refuse what is no zip, or one whose list of members is too long; return the size in bytes."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 20 - _END.size))
    tail = file.read()
    signature, *_, directory, _, comment = _END.unpack(tail[-_END.size :].rjust(_END.size, b"\0"))
    if signature != b"PK\5\6" or comment:
        raise ModelFileError(f"{what} is not a zip, or was cut off")
    if directory > _DIRECTORY or tail[: -_END.size].startswith(b"PK\6\7"):
        raise ModelFileError(f"{what} holds more members than a model has")
    file.seek(0)
    return size
