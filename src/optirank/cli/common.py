"""What the commands share: how they end, what they print and where, and remedies
to type.
"""

from __future__ import annotations

import errno
import io
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from optirank._util import files
from optirank._util.names import printable, valid_text
from optirank._util.workers import worker_count

if TYPE_CHECKING:
    from optirank.model import Model
    from optirank.workflow.performance import Performance

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130
STDOUT = Path("-")
_TEXT = (  # columns that are not numbers
    *(
        "class",
        "cluster",
        "gene",
        "how",
        "label",
        "labels",
        "licence",
        "organism",
        "platform",
        "role",
        "speaks",
    ),
    *("technology", "values", "verdict", "what", "worst class"),
)
_WHOLE = (
    "name",
    "task",
    "tissue",
    "data",
    "method",
    "classifier",
)  # text that is not wrapped
_INTERVALS = (
    "sensitivity",
    "sensitivity there",
    "PPV",
    "accuracy",
)  # not wrapped either
_OUTPUTS = ("--out", "--report", "--for")  # options of which a new training has its own
_NO_RESULT = ("n_jobs", "dask", "force")  # options that change no result
_state: dict[str, Any] = {
    "debug": False,
    "quiet": False,
    "stdout": None,
    "stderr": None,
}


def set_up(*, debug: bool, quiet: bool) -> None:
    """Take over ``--debug`` (errors with a traceback) and ``--quiet``
    (errors alone).
    """
    from optirank._util.progress import hide_progress

    _state.update(debug=debug, quiet=quiet)
    hide_progress(quiet)


@contextmanager
def tidy() -> Iterator[None]:
    """Turn what goes wrong inside a command into one line and an exit code.

    The code is 2 for wrong values, unusable files and missing extras, 130 for Ctrl-C,
    else 1. Notes of the error (``add_note``), such as commands that go on from there,
    follow below.
    """
    try:
        with ExitStack() as stack:
            _state.update(stdout=sys.stdout, stderr=sys.stderr)
            if _state["quiet"]:
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.enter_context(redirect_stdout(nowhere))
                stack.enter_context(redirect_stderr(nowhere))
            yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        tell_error("optirank: interrupted: files are written whole or not at all")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if _state["debug"]:
            raise
        text, code = str(error), BAD_INPUT
        if isinstance(error, OSError):
            text = _system_error(error)
        elif isinstance(error, MemoryError):
            text = (
                f"there is not enough memory ({text or 'none is left'}): use a machine "
                "with more, fewer samples, or --jobs 1"
            )
        elif not isinstance(error, ValueError | TypeError | ImportError):
            text = f"unexpected failure: {type(error).__name__}: {text or 'no message'}"
            text, code = f"{text} (optirank --debug shows where)", UNEXPECTED
        # Beyond 2000 characters an error is a dump of data
        tell_error(f"optirank: {printable(' '.join(text.split()), 2000)}")
        for remedy in getattr(error, "__notes__", ()):
            tell_error(f"  {remedy}")
        raise typer.Exit(code) from None


def tell_error(text: str) -> None:
    """Print an error, also under ``--quiet``."""
    typer.echo(printable(text), file=_state["stderr"] or sys.stderr)


def _system_error(error: OSError) -> str:
    """What the system says is wrong with which file, and what to do about a
    full disk.
    """
    if error.errno is None:
        return str(error)
    text = str(error.strerror).lower()
    if error.filename is not None:
        text = f"{error.filename}: {text}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        text += " (make room, or name a file on another disk)"
    return text


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
    except (
        AttributeError,
        OSError,
        ValueError,
    ):  # no descriptor, as in some embeddings
        return
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=sys.stdout.encoding,
        errors=sys.stdout.errors,
        line_buffering=sys.stdout.isatty(),
    )


@contextmanager
def file_or_stdout(out: Path, suffix: str) -> Iterator[Path]:
    """The file to write; for ``-`` a temporary one whose content goes to standard
    output.

    What is printed meanwhile then goes to stderr, so that standard output holds the
    result alone.
    """
    if out != STDOUT:
        yield out
        return
    stream = _state["stdout"]
    if suffix != ".csv" and stream.isatty():
        raise ValueError(
            "-o - would write a binary file to the terminal: name a file, or pipe it"
        )
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        path = Path(folder) / f"stdout{suffix}"
        yield path
        stream.flush()
        with path.open("rb") as content:
            shutil.copyfileobj(content, stream.buffer)
        stream.flush()


def echo(text: str, *, err: bool = False) -> None:
    """Print a line that may hold names out of files: control characters are written as
    escapes.
    """
    typer.echo(printable(text), err=err)


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    err: bool = False,
) -> None:
    """Print a table; markup is shown as text, and control characters are escaped."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def plain(cell: object, style: str = "") -> Text:
        return Text(printable(str(cell)), style=style)

    look = {"box": SIMPLE_HEAD, "pad_edge": False, "padding": (0, 0, 0, 1)}
    table = Table(title=plain(title, "table.title"), title_justify="left", **look)
    for name in columns:
        left = name in _TEXT or name in _WHOLE
        whole = name in _WHOLE or name in _INTERVALS
        look = {
            "justify": "left" if left else "right",
            "no_wrap": whole,
            "overflow": "fold",
        }
        table.add_column(plain(name), **look)
    for row in rows:
        table.add_row(*map(plain, row))
    Console(stderr=err, highlight=False).print(table)


def show_performance(performance: Performance, title: str) -> None:
    """Print how each class that has samples does, so that it fits in 80 columns."""
    from optirank._util.metrics import in_percent, with_interval
    from optirank.workflow.performance import MEASURES

    there = performance.confusion.sum(axis=1) > 0
    has_withheld = performance.n_withheld > 0
    rows = []
    for row in performance.per_class[there].reset_index().to_dict("records"):
        cells = []
        for measure in MEASURES:
            share = row[measure]
            if share != share:
                cells.append("-")
            elif measure in ("sensitivity", "ppv"):
                low, high = row[f"{measure}_low"], row[f"{measure}_high"]
                cells.append(with_interval(share, low, high))
            else:
                cells.append(in_percent(share))
        n_given = f"{row['n']:.0f}"
        if has_withheld:
            cells.insert(1, in_percent(row["sensitivity_of_all"]))
            n_given += f" of {row['n'] + row['withheld']:.0f}"
        rows.append((row["class"], n_given, *cells))
    columns = ["class", "samples", *MEASURES.values()]
    title = f"{title}, % (95 % intervals)"
    if has_withheld:
        columns[1:3] = ["given", columns[2], "of all"]
        title += "; of all: sensitivity where a label withheld is not found"
    show_table(title, columns, rows)


@contextmanager
def claimed_outputs(
    outputs: dict[str, Path | None], inputs: Iterable[str | Path | None], force: bool
) -> Iterator[None]:
    """Refuse outputs that cannot or may not be written, and claim them for this
    command.

    ``-`` is standard output.
    """
    named = {what: path for what, path in outputs.items() if path != STDOUT}
    with files.claimed_outputs(named, inputs, force=force):
        yield


def workers(jobs: int | None) -> int:
    """The number of workers given by --jobs; all processors by default."""
    most = worker_count(-1)
    if jobs is not None and jobs > most:
        echo(f"note: --jobs {jobs}: only {most} processors are available", err=True)
    return min(jobs or most, most)


def listed(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def this_command(
    context: typer.Context, *, recorded: bool = False, **changed: object
) -> str:
    """The current command line with some options changed.

    ``recorded`` is for a model's card: files by their names alone, and no option that
    changes no result.
    """
    values = context.params | changed
    words = ["optirank", str(context.info_name)]
    for parameter in context.command.params:
        value = values.get(str(parameter.name))
        if value is None or value is False or value == parameter.default:
            continue
        if recorded and parameter.name in _NO_RESULT:
            continue
        items = value if isinstance(value, list | tuple) else [value]
        texts = [
            item.name if recorded and isinstance(item, Path) else str(item)
            for item in items
        ]
        if parameter.param_type_name == "argument":
            words += texts
        elif value is True:
            words.append(parameter.opts[0])
        else:
            words += [word for text in texts for word in (parameter.opts[0], text)]
    command = shlex.join(words)
    return valid_text(command) if recorded else command


@contextmanager
def remedies_for_missing_genes(
    context: typer.Context, fitted: Model, query: Path
) -> Iterator[None]:
    """Add the commands that help to the error of missing genes."""
    from optirank.model import MissingGenesError

    try:
        yield
    except MissingGenesError as error:
        notes: list[str] = []
        if error.match.other_column:
            notes.append("read the gene names of the query from another column:")
            notes.append(this_command(context, gene_column=error.match.other_column[0]))
        if error.droppable and "drop_classes" in context.params:
            notes.append(
                "leave these classes out, whose samples then get another label:"
            )
            notes.append(this_command(context, drop_classes=True))
        if error.match.present.any():
            notes.append("train a model for the genes that the query has:")
            notes.append(_training_for(query, fitted, context))
        for note in notes:
            error.add_note(note)
        if notes:
            error.args = (f"{error.what} One can:",)
        raise


def _training_for(query: Path, fitted: Model, context: typer.Context) -> str:
    """The command that made a model, for the genes of a query; else one to fill in."""
    words = shlex.split(fitted.card.command)
    files_are_here = all(
        Path(name).is_file() for name in fitted.card.source.split(", ")
    )
    if words[:2] != ["optirank", "train"] or not files_are_here:
        words = ["optirank", "train", "REFERENCE", "--label", "LABEL"]
    kept: list[str] = []
    for word, previous in zip(words, ["", *words], strict=False):
        if word not in _OUTPUTS and previous not in _OUTPUTS:
            kept.append(word)
    genes_in = context.params.get("genes_in")
    if genes_in is not None and "--genes-in" not in kept:
        kept += ["--genes-in", str(genes_in)]
    return shlex.join([*kept, "--for", str(query), "--out", "for_query.optirank"])
