"""How a command runs: its switches, its errors in one line, and what it prints."""

from __future__ import annotations

import errno
import inspect
import os
import shlex
import sys
import warnings
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from optirank._util.words import printable, valid_text

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_LONGEST_ERROR = 2000  # characters; a longer one is a dump of data
_SWITCHES = {"--quiet": "quiet", "-q": "quiet", "--debug": "debug"}
# Words of a command that change no result, and those whose value does not either
_UNRECORDED = ("--force", "-f")
_VALUE_UNRECORDED = ("--n-jobs", "-j", "--dask")
_running: ContextVar[Any] = ContextVar("running", default=None)  # context of a command


def is_on(switch: str) -> bool:
    """Whether ``quiet`` or ``debug`` is given, before or after the command."""
    context = _running.get()
    return context is not None and bool(context.meta.get(switch))


def help_text(docstring: str) -> str:
    """A docstring as help: the lines of a paragraph are joined, save those of examples,
    which are indented.
    """
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    return "\n\n".join(
        text if text.startswith(" ") else text.replace("\n", " ") for text in paragraphs
    )


class Command(TyperCommand):
    """A command that takes the switches too, and whose errors are one line each."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:
        super().__init__(*args, help=help_text(help or ""), **settings)

    def get_help_option(self, ctx: Any) -> Any:
        """The option --help, which help itself does not list."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.hidden = True
        return option

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line, and keep them for `recorded_command`."""
        ctx.meta.update({_SWITCHES[word]: True for word in args if word in _SWITCHES})
        words = [word for word in args if word not in _SWITCHES]
        ctx.meta["words"] = words
        return super().parse_args(ctx, [*words])

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what goes wrong becomes one line and an exit code.

        The code is 2 for wrong values, unusable files and missing extras, 130 for
        Ctrl-C, else 1.
        """
        outer = _running.set(ctx)
        try:
            with warnings.catch_warnings():
                if is_on("quiet"):
                    warnings.simplefilter("ignore")
                return super().invoke(ctx)
        except BrokenPipeError:
            _silence_stdout()
        except KeyboardInterrupt:
            tell_error("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except typer.Exit:
            raise
        except Exception as error:
            if is_on("debug"):
                raise
            text, code = _in_words(error)
            tell_error(printable(" ".join(text.split()), _LONGEST_ERROR))
            raise typer.Exit(code) from None
        finally:
            _running.reset(outer)


def _in_words(error: Exception) -> tuple[str, int]:
    """What went wrong, and the exit code."""
    text = str(error)
    if isinstance(error, OSError) and error.errno is not None:
        text = str(error.strerror).lower()
        if error.filename is not None:
            text = f"{error.filename}: {text}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text += " (make room, or name a file on another disk)"
    elif isinstance(error, MemoryError):
        text = (
            f"there is not enough memory ({text or 'none is left'}): use a machine "
            "with more, fewer samples, or --n-jobs 1"
        )
    elif not isinstance(error, OSError | ValueError | TypeError | ImportError):
        text = f"unexpected failure: {type(error).__name__}: {text or 'no message'}"
        return f"{text} (optirank --debug shows where)", UNEXPECTED
    return text, BAD_INPUT


def recorded_command() -> str:
    """The command that runs, as a model's card keeps it: files without their folders,
    and no option that changes no result.
    """
    context = _running.get()
    words = context.meta["words"]
    kept = [
        Path(word).name if Path(word).parent.is_dir() else word
        for word, previous in zip(words, ["", *words], strict=False)
        if word not in (*_UNRECORDED, *_VALUE_UNRECORDED)
        and previous not in _VALUE_UNRECORDED
    ]
    return valid_text(shlex.join(["optirank", str(context.info_name), *kept]))


def echo(text: str, *, err: bool = False) -> None:
    """Print a line, unless errors alone are asked for.

    It may hold names out of files: control characters are written as escapes. A reader
    that leaves early, as in ``optirank ... | head``, does not end the command.
    """
    write(printable(text), err=err)


def write(text: str, *, err: bool = False) -> None:
    """Print a text as it is, see `echo`."""
    try:
        if not is_on("quiet"):
            typer.echo(text, err=err)
    except BrokenPipeError:
        _silence_stdout()


def tell_error(text: str) -> None:
    """Print an error, also under ``--quiet``."""
    typer.echo(printable(f"optirank: {text}"), err=True)


def _silence_stdout() -> None:
    """Let what is still written to standard output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
