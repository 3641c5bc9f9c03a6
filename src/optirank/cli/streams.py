"""Standard output: readers that leave, ``--quiet``, and results written there with ``-o -``."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TextIO

import typer

from optirank._util.names import printable

STDOUT = Path("-")
_state: dict[str, bool | TextIO | None] = {"quiet": False, "stdout": None}


class _WithoutReader(io.FileIO):
    """A file descriptor that takes what is written to it also after its reader has left."""

    def write(self, content) -> int:
        try:
            return super().write(content)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return len(content)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line that may hold names out of files: control characters are written as escapes."""
    typer.echo(printable(text), err=err)


def outlive_readers() -> None:
    """Go on when the reader of standard output leaves, as in ``optirank ... | head``.

    The work is done to its end, and files are written: the exit code is 0.
    """
    try:
        raw = _WithoutReader(sys.stdout.fileno(), "w", closefd=False)
    except (AttributeError, OSError, ValueError):  # no descriptor, as in some embeddings
        return
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=sys.stdout.encoding,
        errors=sys.stdout.errors,
        line_buffering=sys.stdout.isatty(),
    )


def be_quiet(quiet: bool) -> None:
    """Print errors and warnings only, or everything again."""
    from optirank._util.progress import hide_progress

    _state["quiet"] = quiet
    hide_progress(quiet)


@contextmanager
def standard_output() -> Iterator[None]:
    """Standard output as ``--quiet`` asks for it."""
    with ExitStack() as stack:
        _state["stdout"] = sys.stdout
        if _state["quiet"]:
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.enter_context(redirect_stdout(nowhere))
        yield


@contextmanager
def file_or_stdout(out: Path | None, suffix: str) -> Iterator[Path | None]:
    """The file to write, if any; for ``-`` a temporary one whose content goes to standard output.

    What is printed meanwhile then goes to stderr, so that standard output holds the result alone.
    """
    if out != STDOUT:
        yield out
        return
    stream = _state["stdout"] or sys.stdout
    if suffix not in (".csv", ".tsv", ".txt") and stream.isatty():
        raise ValueError("-o - would write a binary file to the terminal: name a file, or pipe it")
    messages = sys.stdout if _state["quiet"] else sys.stderr
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(messages):
        path = Path(folder) / f"stdout{suffix}"
        yield path
        stream.flush()
        with path.open("rb") as content:
            for block in iter(lambda: content.read(1 << 20), b""):
                stream.buffer.write(block)
        stream.flush()
