"""The files that a command writes: claimed before any work, ``-`` for standard output,
and the page of its result.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from optirank._util.files import claimed_outputs
from optirank.cli.common import BAD_INPUT, echo, in_flags, tell, tell_error

if TYPE_CHECKING:
    from optirank.workflow import Result
    from optirank.workflow.labels import Labels

STDOUT = Path("-")
# Parameters that name files to read; some may be words instead
_READ = (
    *("files", "file", "query", "model", "samples", "test", "gene_list"),
    *("tree", "ontology", "homologs", "include", "exclude"),
)


@contextmanager
def outputs(
    context: typer.Context, named: Mapping[str, Path | None], suffix: str = ".csv"
) -> Iterator[Any]:
    """Claim the outputs of a command, and give the name to write the first one to.

    Outputs that cannot or may not be written, such as inputs, are refused before any
    work, as is a page where what it needs is not installed. For ``-`` the name is that
    of a temporary file, whose content goes to standard output.

    Parameters
    ----------
    context : of the command, whose other files are inputs.
    named : the outputs, by what they are called in messages; None where not asked for.
        The report is one of them without being named.
    suffix : what is written where the first output is ``-``.
    """
    given = context.params
    report = given.get("report")
    if report is not None:
        from optirank.report import check_report

        check_report(report)
    elif given.get("dated"):
        raise ValueError("--dated is about the report: name one (--report PAGE.html)")
    first = next(iter(named.values()))
    files = {what: path for what, path in named.items() if path != STDOUT}
    files["the report"] = report
    with claimed_outputs(files, _inputs(given), force=given["force"]):
        if first != STDOUT:
            yield first
            return
        with _to_stdout(suffix) as path:
            yield path


def _inputs(given: Mapping[str, Any]) -> list[str | Path]:
    """The files that a command reads."""
    inputs: list[str | Path] = []
    for name in _READ:
        value = given.get(name) or []
        inputs += value if isinstance(value, list | tuple) else [value]
    return inputs


@contextmanager
def _to_stdout(suffix: str) -> Iterator[Path]:
    """A temporary file whose content goes to standard output.

    What is printed meanwhile goes to stderr, so that standard output holds the result
    alone.
    """
    stream = sys.stdout
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


def write_page(result: Result, context: typer.Context) -> None:
    """Write the page of a result where one is asked for, and say where it is."""
    report = context.params["report"]
    if report is not None:
        from optirank.report import write_report

        dated = context.params["dated"]
        write_report(result, report, dated=dated, spell=in_flags)
        echo(f"Report: {report}")


def show_warnings(result: Result) -> None:
    """Print what needs attention to stderr."""
    for warning in result.warnings:
        tell(f"WARNING: {warning}", err=True)


def show_notes(result: Result) -> None:
    """Print warnings and notes to stderr."""
    show_warnings(result)
    for note in result.notes:
        tell(f"note: {note}", err=True)


def end_strictly(labels: Labels, *, strict: bool) -> None:
    """End with an error, after all is written, where strict labels have an alarm."""
    if strict and labels.alarmed:
        tell_error(
            "optirank: --strict: the labels may all be wrong, see the warning; all are "
            "withheld"
        )
        raise typer.Exit(BAD_INPUT)
