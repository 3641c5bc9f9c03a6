"""What a command gives: files, claimed before any work, ``-`` for standard output, the
page of its result, its notes, and tables on the terminal.
"""

from __future__ import annotations

import math
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from optirank._util.files import claimed_outputs
from optirank._util.names import in_percent, printable, with_interval
from optirank.cli.common import echo, in_flags, is_on, tell
from optirank.cli.options import items_of

if TYPE_CHECKING:
    import pandas as pd

    from optirank.verbs.options import Result
    from optirank.verbs.performance import Performance

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
    first = next(iter(named.values()))
    files = {what: path for what, path in named.items() if path != STDOUT}
    files["the report"] = report
    inputs = [path for name in _READ for path in items_of(given.get(name))]
    writing = _to_stdout(suffix) if first == STDOUT else nullcontext(first)
    with claimed_outputs(files, inputs, force=given["force"]), writing as path:
        yield path


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

        write_report(result, report, spell=in_flags)
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


# A cell of a column of numbers: 12,345, +0.31, ≥ 0.95, 92.1 (88.0 to 95.2), 3 ± 1 %
_NUMBER = re.compile(r"[-+−≥≤<>]? ?\d[\d.,e+-]*( ?%)?( [(±].*)?")


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
    Console(highlight=False, quiet=is_on("quiet")).print(table)


def show_performance(performance: Performance, title: str) -> None:
    """Print how each class that has samples does, so that it fits in 80 columns."""
    from optirank.verbs.performance import MEASURES

    title = f"{title}, % (95 % intervals)"
    if performance.n_withheld:
        title += "; of all: sensitivity where a label withheld is not found"
    rows = []
    has_samples = performance.confusion.sum(axis=1) > 0
    table = performance.per_class[has_samples].rename_axis("class").reset_index()
    for row in table.to_dict("records"):
        cells = {"class": row["class"], "samples": f"{row['n']:.0f}"}
        if performance.n_withheld:
            cells = {
                "class": row["class"],
                "given": f"{row['n']:.0f} of {row['n'] + row['withheld']:.0f}",
                "sensitivity": "",
                "of all": in_percent(row["sensitivity_of_all"]),
            }
        for measure, heading in MEASURES.items():
            cells[heading] = in_percent(row[measure])
            if measure in ("sensitivity", "ppv"):
                low, high = row[f"{measure}_low"], row[f"{measure}_high"]
                cells[heading] = with_interval(row[measure], low, high)
        rows.append(cells)
    show_table(title, list(rows[0]), [list(cells.values()) for cells in rows])


def show_sizes(curve: pd.DataFrame, *, auto: bool = False) -> None:
    """Print the accuracy of each size of the panel, and how one was chosen."""
    if len(curve) < 2:
        return
    rows = []
    for point in curve.sort_values("n_genes").to_dict("records"):
        accuracy, error = point["balanced_accuracy"], point["standard_error"]
        spread = f" ± {in_percent(error)}" if math.isfinite(error) else ""
        text = f"{in_percent(accuracy)}{spread} %" if math.isfinite(accuracy) else ""
        rows.append((point["n_genes"], text, "chosen" if point["chosen"] else ""))
    show_table("Panels on held-out samples", ("genes", "balanced accuracy", ""), rows)
    if auto:
        echo(
            "chosen: the smallest within one standard error of the best, of at least "
            "100 genes where there is one"
        )
