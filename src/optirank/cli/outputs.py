"""What a command gives: files, ``-`` for standard output, notes, and tables on the
terminal.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank._util.files import check_outputs
from optirank._util.words import in_percent, printable, with_interval
from optirank.cli.command import echo, write

if TYPE_CHECKING:
    import pandas as pd

    from optirank.verbs.options import Result
    from optirank.verbs.performance import Performance

STDOUT = Path("-")


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
    inputs : what is read: files, and names that may be of files.
    force : whether files that exist may be replaced.
    suffix : what is written where the first output is ``-``.
    """
    if files.get("the report") is not None:
        from optirank.report import check_report

        check_report()
    named = {what: path for what, path in files.items() if path != STDOUT}
    check_outputs(named, inputs, force=force)
    first = next(iter(files.values()))
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
    write(printed.get().rstrip("\n"))


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
