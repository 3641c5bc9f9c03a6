"""How commands end: one clear line and an exit code, with a traceback only under --debug."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from optirank._util.names import printable
from optirank.cli.streams import echo, standard_output

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_MESSAGE = 2000  # characters of an error: more is a dump of data

_state = {"debug": False}


def show_tracebacks(wanted: bool) -> None:
    """Raise errors as they are, as for ``--debug``, or tell them in one line."""
    _state["debug"] = wanted


@contextmanager
def clean_exit() -> Iterator[None]:
    """Turn what goes wrong inside a command into one line and an exit code.

    The code is 2 where a file cannot be read or written, 130 for Ctrl-C, else 1.
    """
    try:
        with standard_output():
            yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        _say("interrupted: files are written whole or not at all")
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:  # such as a full disk
        if _state["debug"]:
            raise
        _say(_system_error(error))
        raise typer.Exit(BAD_INPUT) from None
    except Exception as error:
        if _state["debug"]:
            raise
        text = " ".join(str(error).split()) or "no message"
        _say(f"unexpected failure: {type(error).__name__}: {text} (optirank --debug shows where)")
        raise typer.Exit(UNEXPECTED) from None


@contextmanager
def bad_input() -> Iterator[None]:
    """Turn wrong values, unusable files and missing extras into one line and exit code 2.

    Notes of the error (``add_note``), such as commands that go on from there, follow below.
    """
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        if _state["debug"]:
            raise
        _say(_system_error(error) if isinstance(error, OSError) else str(error))
        for remedy in getattr(error, "__notes__", ()):
            echo(f"  {remedy}", err=True)
        raise typer.Exit(BAD_INPUT) from None


def _system_error(error: OSError) -> str:
    """What the system says is wrong with which file, and what to do about a full disk."""
    if error.errno is None:
        return str(error)
    text = str(error.strerror).lower()
    if error.filename is not None:
        text = f"{error.filename}: {text}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        text += " (make room, or name a file on another disk)"
    return text


def _say(text: str) -> None:
    echo(f"optirank: {printable(' '.join(text.split()), _MESSAGE)}", err=True)
