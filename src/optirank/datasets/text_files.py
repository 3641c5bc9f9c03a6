"""Text files of others, plain or gzipped: opened so that binary content never reaches a parser."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO

from optirank.datasets.errors import DataError

_BLOCK = 1 << 18
_EXPANSION = 1032  # the most bytes that one byte of a gzip file can stand for


def open_text(path: Path) -> IO[str]:
    """Open a text file (UTF-8), unpacking ``.gz``; a NUL byte in it is a DataError.

    Parsers written in C take a NUL for the end of the text, or fail on it.
    """
    file: IO[bytes] = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115
    stream = io.BufferedReader(_WithoutNul(file, path), _BLOCK)
    return io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")


def most_bytes(path: Path) -> int:
    """The most bytes of text that a file can hold."""
    size = path.stat().st_size
    return size * _EXPANSION if path.suffix == ".gz" else size


class _WithoutNul(io.RawIOBase):
    """The bytes of a file, up to the first block with a NUL."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path = file, path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        block = self._file.read(len(buffer))
        if b"\0" in block:
            raise DataError(
                f"{self._path} holds NUL bytes, so it is no text: it may be damaged (fetch it "
                "again) or of another format"
            )
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        self._file.close()
        super().close()
