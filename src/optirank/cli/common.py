"""What the commands share: tables, checks of outputs, and remedies that can be typed."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from optirank._util import files
from optirank._util.names import printable
from optirank._util.workers import worker_count
from optirank.cli.errors import bad_input, clean_exit
from optirank.cli.streams import STDOUT

if TYPE_CHECKING:
    from rich.table import Table

    from optirank.workflow.performance import Performance

_TEXT = (  # columns that are not numbers
    *("class", "cluster", "data", "gene", "label", "name", "role", "rule", "shift", "speaks"),
    *("task", "tool", "what"),
)


@contextmanager
def tidy() -> Iterator[None]:
    """On bad input or a missing extra, print one line and exit with code 2."""
    with clean_exit(), bad_input():
        yield


def check_outputs(
    outputs: dict[str, Path | None], inputs: Iterable[str | Path | None], force: bool
) -> None:
    """Refuse outputs that cannot or may not be written; ``-`` is standard output."""
    named = {what: path for what, path in outputs.items() if path != STDOUT}
    files.check_outputs(named, inputs, force=force)


def workers(jobs: int | None) -> int:
    """The number of workers given by --jobs; all processors by default."""
    most = worker_count(-1)
    if jobs is not None and jobs > most:
        typer.echo(f"note: --jobs {jobs}: only {most} processors are available", err=True)
    return min(jobs or most, most)


def new_table(title: str, *columns: str) -> Table:
    """An empty table; columns are numbers unless their name says otherwise."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    name = Text(printable(title), style="table.title")
    look = {"box": SIMPLE_HEAD, "pad_edge": False, "padding": (0, 0, 0, 1)}
    table = Table(title=name, title_justify="left", **look)
    for column in columns:
        table.add_column(Text(printable(column)), justify="left" if column in _TEXT else "right")
    return table


def add_row(table: Table, *cells: object) -> None:
    """Add a row; markup is shown as text, and control characters are escaped."""
    from rich.text import Text

    table.add_row(*(Text(printable(str(cell))) for cell in cells))


def show(table: Table, *, err: bool = False) -> None:
    """Print a table."""
    from rich.console import Console

    Console(stderr=err, highlight=False).print(table)


def show_performance(performance: Performance, title: str) -> None:
    """Print how each class does, with 95 % intervals."""
    columns = {"sensitivity": "sensitivity", "specificity": "specificity", "ppv": "PPV"}
    columns["npv"] = "NPV"
    table = new_table(f"{title}, % (95 % intervals)", "class", "samples", *columns.values())
    for name, row in performance.per_class.iterrows():
        cells = []
        for measure in columns:
            ends = [100 * row[f"{measure}{end}"] for end in ("", "_low", "_high")]
            known = ends[0] == ends[0]
            cells.append(f"{ends[0]:.1f} ({ends[1]:.0f}-{ends[2]:.0f})" if known else "-")
        add_row(table, name, f"{row['n']:.0f}", *cells)
    show(table)


def listed(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def this_command(context: typer.Context, *, names: bool = False, **changed: object) -> str:
    """The current command line with some options changed; of files ``names`` alone."""
    values = context.params | changed
    words = ["optirank", str(context.info_name)]
    for parameter in context.command.params:
        value = values.get(parameter.name)
        if value is None or value is False or value == parameter.default:
            continue
        several = value if isinstance(value, list | tuple) else [value]
        several = [one.name if names and isinstance(one, Path) else one for one in several]
        if parameter.param_type_name == "argument":
            words += map(str, several)
        elif value is True:
            words.append(parameter.opts[0])
        else:
            words += [word for one in several for word in (parameter.opts[0], str(one))]
    return shlex.join(words)


@contextmanager
def remedies_for_missing_genes(context: typer.Context, fitted: Any, query: Path) -> Iterator[None]:
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
            notes.append("leave these classes out, whose samples then get another label:")
            notes.append(this_command(context, drop_classes=True))
        if error.match.present.sum() > 1:
            summary = getattr(fitted, "training_summary_", {})
            words = [str(summary.get("source") or "REFERENCE"), "--label"]
            words += [str(summary.get("label") or "LABEL"), "--for", str(query)]
            notes.append("train a model for the genes that the query has:")
            notes.append(shlex.join(["optirank", "train", *words, "-o", "for_query.optirank"]))
        if error.enough is not None and "max_missing" in context.params:
            limit = math.ceil(100 * error.enough) / 100
            notes.append("label all the same, with little to go by for these classes:")
            notes.append(this_command(context, max_missing=limit))
        for note in notes:
            error.add_note(note)
        if notes:
            error.args = (f"{error.what} One can:",)
        raise
