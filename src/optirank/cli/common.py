"""What the commands share: how they end, what they print and where, and remedies
to type.
"""

from __future__ import annotations

import ast
import errno
import io
import logging
import os
import re
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
from optirank._util.flags import flagged_fields
from optirank._util.names import printable, valid_text
from optirank._util.workers import worker_count

if TYPE_CHECKING:
    from optirank.model import Model
    from optirank.workflow import Result
    from optirank.workflow.labels import Labels
    from optirank.workflow.performance import Performance

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130
STDOUT = Path("-")
# A cell of a column of numbers: 12,345, +0.31, ≥ 0.95, 92.1 (88.0 to 95.2), 3 ± 1 %
_NUMBER = re.compile(r"[-+−≥≤<>]? ?\d[\d.,e+-]*( ?%)?( [(±].*)?")
# A parameter as messages name it: use_raw=True, genes_in='rows', n_genes=,
# annotations=['age', 'stage'], mapping={'T cells': 'T'}
_PARAMETER = re.compile(
    r"(?<![\w'\".])(\w+)=('[^']*'|\"[^\"]*\"|\[[^\]]*\]|\{[^}]*\}|[\w.]+|)"
)
_NAMED_ELSEWHERE = {"query": "--for", "mapping": "--map"}
# Options of which a new training has its own
_OUTPUTS = ("--out", "--report", "--dated", "--for")
_NO_RESULT = ("n_jobs", "dask", "force", "dated")  # options that change no result
_state: dict[str, Any] = {
    "debug": False,
    "quiet": False,
    "stdout": None,
    "stderr": None,
    "flags": {},
}


def set_up(*, debug: bool, quiet: bool) -> None:
    """Take over ``--debug`` (errors with a traceback) and ``--quiet``
    (errors alone).
    """
    from optirank._util.progress import hide_progress

    _state.update(debug=debug, quiet=quiet)
    hide_progress(quiet)
    logger = logging.getLogger("optirank")
    logger.handlers = [_ToStderr()]


class _ToStderr(logging.Handler):
    """Prints what readers warn of, with options in place of parameters."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning."""
        echo(in_flags(record.getMessage()), err=True)


def use_flags(flags: dict[str, str]) -> None:
    """Take over how the command that runs spells its parameters."""
    _state.update(flags=flags)


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
        tell_error("optirank: interrupted: no output is written")
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
    typer.echo(printable(in_flags(text)), file=_state["stderr"] or sys.stderr)


def in_flags(text: str) -> str:
    """A message of the product, whose parameters (``use_raw=True``) become options."""
    flags = _flags()

    def spelled(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in flags:
            return found[0]
        words = [f"{flags[name]} {shlex.quote(word)}" for word in _values(value)]
        return " ".join(words) or flags[name]

    return _PARAMETER.sub(spelled, text)


def _values(text: str) -> list[str]:
    """The values to type after an option, from one written in Python; none for True."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return [text] if text else []
    if value is True:
        return []
    if isinstance(value, dict):
        return [f"{key}={of_key}" for key, of_key in value.items()]
    return [",".join(value) if isinstance(value, list) else str(value)]


def _flags() -> dict[str, str]:
    """The option of each parameter, first of all those of the command that runs."""
    from optirank.io.options import ReadOptions
    from optirank.workflow.options import PredictOptions, TrainingOptions

    flags = {
        option.name: option.spelled
        for options in (TrainingOptions, PredictOptions, ReadOptions)
        for option in flagged_fields(options)
    } | _NAMED_ELSEWHERE
    return flags | _state["flags"]


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
    ):
        return  # no descriptor, as in some embeddings
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


def tell(text: str) -> None:
    """Print a note of the product."""
    echo(in_flags(text))


def show_notes(result: Result) -> None:
    """Print warnings and notes to stderr."""
    show_warnings(result)
    for note in result.notes:
        echo(f"note: {in_flags(note)}", err=True)


def show_warnings(result: Result) -> None:
    """Print what needs attention to stderr."""
    for warning in result.warnings:
        echo(f"WARNING: {in_flags(warning)}", err=True)


def end_strictly(labels: Labels, *, strict: bool) -> None:
    """End with an error, after all is written, where strict labels have an alarm."""
    if strict and labels.alarmed:
        tell_error(
            "optirank: --strict: the labels may all be wrong, see the warning; all are "
            "withheld"
        )
        raise typer.Exit(BAD_INPUT)


def write_page(result: Result, report: Path | None, dated: bool) -> None:
    """Write the page of a result where one is asked for, and say where it is."""
    if report is not None:
        from optirank.report.pages import write_report

        write_report(result, report, dated=dated, spell=in_flags)
        echo(f"Report: {report}")


def check_page(report: Path | None, dated: bool) -> None:
    """Raise, before any work, where a page that is asked for cannot be written."""
    if report is not None:
        from optirank.report.pages import check_report

        check_report()
    elif dated:
        raise ValueError("--dated is about the report: name one (--report PAGE.html)")


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

    def plain(cell: str, style: str = "") -> Text:
        return Text(printable(cell), style=style)

    cells = [[str(cell) for cell in row] for row in rows]
    look = {"box": SIMPLE_HEAD, "pad_edge": False, "padding": (0, 0, 0, 1)}
    table = Table(title=plain(title, "table.title"), title_justify="left", **look)
    for place, name in enumerate(columns):
        numbers = _are_numbers([row[place] for row in cells])
        table.add_column(
            plain(name),
            justify="right" if numbers else "left",
            no_wrap=numbers or name in whole,
            overflow="fold",
        )
    for row in cells:
        table.add_row(*map(plain, row))
    Console(highlight=False).print(table)


def _are_numbers(cells: Sequence[str]) -> bool:
    """Whether most of the cells that are filled are numbers."""
    filled = [cell for cell in cells if cell not in ("", "-", "–")]
    return 2 * sum(map(bool, map(_NUMBER.fullmatch, filled))) > len(filled)


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


def renamed(items: Sequence[str] | None) -> dict[str, str]:
    """Names of labels from ``THEIRS=OURS``."""
    names = {}
    for item in items or ():
        theirs, _, ours = item.partition("=")
        if not theirs or not ours:
            raise ValueError(
                f"--map {item!r}: write 'THEIRS=OURS', such as 'cd4 t=t cell'"
            )
        names[theirs] = ours
    return names


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
        texts = [_file_name(str(item)) if recorded else str(item) for item in items]
        if parameter.param_type_name == "argument":
            words += texts
        elif value is True:
            words.append(parameter.opts[0])
        else:
            words += [word for text in texts for word in (parameter.opts[0], text)]
    command = shlex.join(words)
    return valid_text(command) if recorded else command


def _file_name(text: str) -> str:
    """The name of a file without its folder; text that names none as it is."""
    # Old versions of Typer give paths as text
    path = Path(text)
    return (path.name or text) if path.parent.is_dir() else text


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
