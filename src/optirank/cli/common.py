"""How commands run and what they print: help with options in groups, errors in one
line, options in place of parameters, and readers that leave early.
"""

from __future__ import annotations

import ast
import errno
import inspect
import io
import logging
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import typer
from typer.core import TyperCommand

from optirank._util.names import printable

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130
# A parameter as messages name it: use_raw=True, genes_in='rows', n_genes=,
# annotations=['age', 'stage'], mapping={'T cells': 'T'}
_PARAMETER = re.compile(
    r"(?<![\w'\".])(\w+)=('[^']*'|\"[^\"]*\"|\[[^\]]*\]|\{[^}]*\}|[\w.]+|)"
)
_running: ContextVar[Any] = ContextVar("running", default=None)  # context of a command


def is_on(name: str) -> bool:
    """Whether an option before the command is given: ``debug`` or ``quiet``."""
    context = _running.get()
    return context is not None and bool(context.find_root().params.get(name))


def with_examples(help: str) -> str:
    """A help text whose indented paragraphs, the examples, keep their lines."""
    return re.sub(r"\n\n(?=  )", "\n\n\b\n", inspect.cleandoc(help))


class GroupedCommand(TyperCommand):
    """A command with help under headings, and errors in one line."""

    def __init__(self, *args: Any, help: str | None = None, **settings: Any) -> None:
        super().__init__(*args, help=with_examples(help or ""), **settings)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments by their names."""
        arguments = [
            _argument_name(parameter)
            for parameter in self.get_params(ctx)
            if parameter.param_type_name == "argument"
        ]
        return ["[OPTIONS]", *arguments]

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with tidy(ctx):
            return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options by the heading they were given."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            heading = getattr(parameter, "rich_help_panel", None) or "Options"
            if parameter.param_type_name == "argument":
                heading, record = "Arguments", (_argument_name(parameter), record[1])
            groups.setdefault(heading, []).append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _argument_name(argument: Any) -> str:
    """An argument as help names it, whatever the version of Typer."""
    return str(argument.metavar or argument.name.upper())


def program(name: str, version: str, help: str) -> typer.Typer:
    """A program without commands yet: its help, and the options before a command."""
    app = typer.Typer(
        help=with_examples(help),
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"{name} {version}")
            raise typer.Exit

    of_version = typer.Option(
        False,
        "--version",
        callback=show_version,
        is_eager=True,
        help="Show the version.",
    )
    of_debug = typer.Option(False, "--debug", help="Show the traceback of an error.")
    of_quiet = typer.Option(False, "--quiet", "-q", help="Print errors only.")

    @app.callback()
    def options(
        version: bool = of_version, debug: bool = of_debug, quiet: bool = of_quiet
    ) -> None:
        """Read the options given before the command."""

    return app


class _ToStderr(logging.Handler):
    """Prints what readers warn of, with options in place of parameters."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning."""
        tell(record.getMessage(), err=True)


@contextmanager
def tidy(context: Any = None) -> Iterator[None]:
    """Turn what goes wrong inside a command into one line and an exit code.

    The code is 2 for wrong values, unusable files and missing extras, 130 for Ctrl-C,
    else 1. Notes of the error (``add_note``), such as commands that go on from there,
    follow below. ``context`` is that of the command.
    """
    from optirank._util.work import hide_progress

    outer = _running.set(context)
    logging.getLogger("optirank").handlers = [_ToStderr()]
    hide_progress(is_on("quiet"))
    try:
        with warnings.catch_warnings():
            if is_on("quiet"):
                warnings.simplefilter("ignore")
            yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        tell_error("optirank: interrupted: no output is written")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if is_on("debug"):
            raise
        text, code = _in_words(error)
        # Beyond 2000 characters an error is a dump of data
        tell_error(f"optirank: {printable(' '.join(text.split()), 2000)}")
        for remedy in getattr(error, "__notes__", ()):
            tell_error(f"  {remedy}")
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
            "with more, fewer samples, or --jobs 1"
        )
    elif not isinstance(error, OSError | ValueError | TypeError | ImportError):
        text = f"unexpected failure: {type(error).__name__}: {text or 'no message'}"
        return f"{text} (optirank --debug shows where)", UNEXPECTED
    return text, BAD_INPUT


def echo(text: str, *, err: bool = False) -> None:
    """Print a line, unless errors alone are asked for; it may hold names out of files:
    control characters are written as escapes.
    """
    if not is_on("quiet"):
        typer.echo(printable(text), err=err)


def tell(text: str, *, err: bool = False) -> None:
    """Print a note of the product."""
    echo(in_flags(text), err=err)


def tell_error(text: str) -> None:
    """Print an error, also under ``--quiet``."""
    typer.echo(printable(in_flags(text)), err=True)


def in_flags(text: str) -> str:
    """A message of the product, whose parameters (``use_raw=True``) become options:
    those of the command that runs, or of the first command that has them.
    """
    context = _running.get()
    flags = _all_flags()
    if context is not None:
        flags = flags | _flags_of([context.command])

    def spelled(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in flags:
            return found[0]
        words = [f"{flags[name]} {shlex.quote(word)}" for word in _values(value)]
        return " ".join(words) or flags[name]

    return _PARAMETER.sub(spelled, text)


@cache
def _all_flags() -> dict[str, str]:
    """The option of each parameter, of the first command that has it."""
    from optirank.cli import app

    group: Any = typer.main.get_command(app)
    return _flags_of([*reversed(group.commands.values())])


def _flags_of(commands: Sequence[Any]) -> dict[str, str]:
    """The option of each parameter, of the last command that has it."""
    return {
        str(parameter.name): parameter.opts[0]
        for command in commands
        for parameter in command.params
        if parameter.param_type_name == "option"
    }


def _values(text: str) -> list[str]:
    """The values to type after an option, from one written in Python; none for True."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    if value is True or value == "":
        return []
    if isinstance(value, dict):
        return [f"{key}={of_key}" for key, of_key in value.items()]
    return [",".join(value) if isinstance(value, list) else str(value)]


class _WithoutReader(io.FileIO):
    """A file descriptor that takes what is written to it also after its reader
    has left.
    """

    def write(self, content) -> int:
        try:
            return super().write(content)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return len(content)


def outlive_readers() -> None:
    """Go on when the reader of standard output leaves, as in ``optirank ... | head``.

    The work is done to its end, and files are written: the exit code is 0.
    """
    try:
        raw = _WithoutReader(sys.stdout.fileno(), "w", closefd=False)
    except (AttributeError, OSError, ValueError):
        return  # no descriptor, as in some embeddings
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=sys.stdout.encoding,
        errors=sys.stdout.errors,
        line_buffering=sys.stdout.isatty(),
    )
