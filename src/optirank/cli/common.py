"""What the commands share: exit codes, tables on the terminal, checks of outputs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from optirank._util import files
from optirank._util.names import printable
from optirank._util.workers import worker_count
from optirank.cli.errors import bad_input, clean_exit
from optirank.cli.streams import STDOUT

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

_TEXT = (
    *("class", "cluster", "data", "gene", "label", "pair", "role", "rule", "shift", "side", "task"),
    *("tool", "what"),
)
_RULES = 40  # pairs shown


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
    table = Table(title=name, box=SIMPLE_HEAD, pad_edge=False, title_justify="left")
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


def show_rules(pairs: pd.DataFrame) -> None:
    """Print the pairs of genes of a vote as rules, see `optirank.model.votes.pair_table`."""
    table = new_table("Pairs that vote", "rule", "score")
    for row in pairs.head(_RULES).itertuples():
        add_row(table, row.rule, f"{row.score:.3f}")
    show(table)
    if len(pairs) > _RULES:
        typer.echo(
            f"and {len(pairs) - _RULES} more: optirank panel --out panel.csv writes them all"
        )


def listed(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def this_command(context: typer.Context, **changed: object) -> str:
    """The current command line with some options changed."""
    values = context.params | changed
    words = ["optirank", str(context.info_name)]
    for parameter in context.command.params:
        value = values.get(parameter.name)
        if value is None or value is False or value == parameter.default:
            continue
        if parameter.param_type_name == "argument":
            words.append(str(value))
        else:
            words += [parameter.opts[0], *([] if value is True else [str(value)])]
    return shlex.join(words)
