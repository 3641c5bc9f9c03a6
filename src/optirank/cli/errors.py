"""How commands end: one clear line and an exit code, with a traceback only under --debug."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130

_state = {"debug": False}


def _set_debug(wanted: bool) -> bool:
    _state["debug"] = _state["debug"] or wanted
    return wanted


DebugOption = Annotated[
    bool, typer.Option("--debug", callback=_set_debug, help="Show the traceback of an error.")
]


@contextmanager
def clean_exit() -> Iterator[None]:
    """Turn what goes wrong inside a command into one line and exit code 1, or 130 for Ctrl-C."""
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        _say("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # the reader of our output has left, as in `optirank ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise typer.Exit(UNEXPECTED) from None
    except Exception as error:
        if _state["debug"]:
            raise
        text = " ".join(str(error).split()) or "no message"
        _say(f"unexpected failure: {type(error).__name__}: {text} (--debug shows where)")
        raise typer.Exit(UNEXPECTED) from None


@contextmanager
def bad_input() -> Iterator[None]:
    """Turn wrong values, unusable files and missing extras into one line and exit code 2.

    Notes of the error (``add_note``), such as commands that go on from there, follow below.
    """
    try:
        yield
    except BrokenPipeError:  # no input's fault; see clean_exit
        raise
    except (ValueError, TypeError, OSError, ImportError) as error:
        if _state["debug"]:
            raise
        text = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {str(error.strerror).lower()}"
        _say(" ".join(text.split()))
        for remedy in getattr(error, "__notes__", ()):
            typer.echo(f"  {remedy}", err=True)
        raise typer.Exit(BAD_INPUT) from None


def _say(text: str) -> None:
    typer.echo(f"optirank: {text}", err=True)
