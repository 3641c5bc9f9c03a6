"""How a command runs: its switches, its errors in one line, the files that it writes,
and what it prints.
"""

from __future__ import annotations

import errno
import inspect
import os
import re
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from optirank._util.files import check_outputs
from optirank._util.words import in_percent, printable, valid_text, with_interval
from optirank._util.work import progress_bar, using_threads

if TYPE_CHECKING:
    import pandas as pd

    from optirank.verbs.options import Result
    from optirank.verbs.performance import Performance

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130
_LONGEST_ERROR = 2000  # characters; a longer one is a dump of data
_SWITCHES = {"--quiet": "quiet", "-q": "quiet", "--debug": "debug"}
# Words of a command that change no result, and those whose value does not either
_UNRECORDED = ("--force", "-f")
_VALUE_UNRECORDED = ("--n-jobs", "-j", "--dask")
STDOUT = Path("-")
# A cell of a column of numbers: 12,345, +0.31, ≥ 0.95, 92.1 (88.0 to 95.2), 3 ± 1 %
_NUMBER = re.compile(r"[-+−≥≤<>]? ?\d[\d.,e+-]*( ?%)?( [(±].*)?")
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


def program(name: str, version: str, help: str) -> typer.Typer:
    """A program without commands yet: its help, and its switches."""
    app = typer.Typer(
        help=help_text(help),
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode="rich",
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
    of_quiet = typer.Option(False, "--quiet", "-q", help="Print errors only.")
    of_debug = typer.Option(False, "--debug", help="Show the traceback of an error.")

    @app.callback()
    def switches(
        context: typer.Context,
        version: bool = of_version,
        quiet: bool = of_quiet,
        debug: bool = of_debug,
    ) -> None:
        context.meta.update(quiet=quiet, debug=debug)

    return app


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
        Path(word).name if os.path.isdir(Path(word).parent) else word
        for word, previous in zip(words, ["", *words], strict=False)
        if word not in (*_UNRECORDED, *_VALUE_UNRECORDED)
        and previous not in _VALUE_UNRECORDED
    ]
    return valid_text(shlex.join(["optirank", str(context.info_name), *kept]))


def echo(text: str, *, err: bool = False, styled: bool = False) -> None:
    """Print a line, unless errors alone are asked for.

    It may hold names out of files: control characters are written as escapes, but for
    a text that is ``styled`` with some. A reader that leaves early, as in
    ``optirank ... | head``, does not end the command.
    """
    try:
        if not is_on("quiet"):
            typer.echo(text if styled else printable(text), err=err)
    except BrokenPipeError:
        _silence_stdout()


def tell_error(text: str) -> None:
    """Print an error, also under ``--quiet``."""
    typer.echo(printable(f"optirank: {text}"), err=True)


def _silence_stdout() -> None:
    """Let what is still written to standard output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def outputs(
    files: Mapping[str, Path | None],
    inputs: Iterable[Any],
    *,
    force: bool,
    suffix: str = ".csv",
) -> Iterator[Any]:
    """Refuse, before any work, outputs that cannot or may not be written, and give the
    name to write the first one to.

    Parameters
    ----------
    files : the outputs, by what they are called in messages; None where not asked for.
        The first alone may be ``-``, standard output.
    inputs : what is read: files, and names that may be of files.
    force : whether files that exist may be replaced.
    suffix : what is written where the first output is ``-``.
    """
    first, *others = files.values()
    if STDOUT in others:
        raise ValueError(
            f"- is standard output, and takes {next(iter(files))} alone: name a file "
            "for what else is to be written"
        )
    if files.get("the report") is not None:
        from optirank.report import check_report

        check_report()
    check_outputs(
        {what: path for what, path in files.items() if path != STDOUT},
        inputs,
        force=force,
    )
    if first != STDOUT:
        yield first
        return
    stream = sys.stdout
    if suffix != ".csv" and stream.isatty():
        raise ValueError(
            "-o - would write a binary file to the terminal: name a file, or pipe it"
        )
    # What is printed meanwhile goes to stderr: standard output holds the result alone
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        path = Path(folder) / f"stdout{suffix}"
        yield path
        with path.open("rb") as content:
            shutil.copyfileobj(content, stream.buffer)
        stream.flush()


@contextmanager
def at_work(
    description: str, n_jobs: int, dask: str | None = None
) -> Iterator[Callable[..., None]]:
    """Use threads, the workers of a cluster where one is named, and show a bar; gives
    the function that moves it.
    """
    from optirank.data.cluster import on_cluster

    with (
        on_cluster(dask) if dask else nullcontext(),
        using_threads(n_jobs),
        progress_bar(description, shown=not is_on("quiet")) as update,
    ):
        yield update


def conclude(
    result: Result, report: Path | None, files: Mapping[str, Path | None]
) -> None:
    """Print warnings and notes, write the page where one is asked for, and say where
    the files are.
    """
    for warning in result.warnings:
        echo(f"WARNING: {warning}", err=True)
    for note in result.notes:
        echo(f"note: {note}", err=True)
    if report is not None:
        from optirank.report import write_page

        write_page(result, report)
    for what, path in {**files, "Report": report}.items():
        if path is not None:
            echo(f"{what + ':':<7} {path}")


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    whole: Sequence[str] = (),
) -> None:
    """Print a table; markup is shown as text, and control characters are escaped.

    Numbers stand on the right and are never wrapped; of texts, ``whole`` names the
    columns that are not wrapped either.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[printable(str(cell)) for cell in row] for row in rows]
    table = Table(
        title=Text(printable(title), style="table.title"),
        title_justify="left",
        box=SIMPLE_HEAD,
        show_header=any(columns),
        pad_edge=False,
        padding=(0, 0, 0, 1),
    )
    for place, name in enumerate(columns):
        filled = [row[place] for row in cells if row[place] not in ("", "-", "–")]
        # Most of the cells that are filled
        numbers = 2 * sum(map(bool, map(_NUMBER.fullmatch, filled))) > len(filled)
        table.add_column(
            Text(printable(name)),
            justify="right" if numbers else "left",
            no_wrap=numbers or name in whole,
            overflow="fold",
        )
    for row in cells:
        table.add_row(*map(Text, row))
    console = Console(highlight=False)
    with console.capture() as printed:
        console.print(table)
    echo(printed.get().rstrip("\n"), styled=True)


def show_performance(performance: Performance, title: str) -> None:
    """Print how each class that has samples does, so that it fits in 80 columns."""
    from optirank.verbs.performance import MEASURES

    rows = []
    has_samples = performance.confusion.sum(axis=1) > 0
    table = performance.per_class[has_samples].rename_axis("class").reset_index()
    for row in table.to_dict("records"):
        cells = {"class": row["class"], "samples": f"{row['n']:.0f}"}
        if performance.n_withheld:
            cells["withheld"] = f"{row['withheld']:.0f}"
        for measure, heading in MEASURES.items():
            cells[heading] = in_percent(row[measure])
            if measure in ("sensitivity", "ppv"):
                low, high = row[f"{measure}_low"], row[f"{measure}_high"]
                cells[heading] = with_interval(row[measure], low, high)
        rows.append(cells)
    title = f"{title}, % (95 % intervals)"
    show_table(title, list(rows[0]), [list(cells.values()) for cells in rows])


def show_sizes(curve: pd.DataFrame) -> None:
    """Print the accuracy of each size of the panel."""
    rows = [
        (
            point["n_genes"],
            f"{in_percent(point['balanced_accuracy'])} ± "
            f"{in_percent(point['standard_error'])}",
            "chosen" if point["chosen"] else "",
        )
        for point in curve.sort_values("n_genes").to_dict("records")
    ]
    columns = ("genes", "balanced accuracy, %", "")
    show_table("Panels on held-out samples", columns, rows)
