"""Tables on the terminal: how classes do, and how many genes a panel has."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from optirank._util.names import printable
from optirank.cli.common import echo, is_on

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.performance import Performance

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
        numbers = _are_numbers([row[place] for row in cells])
        table.add_column(
            Text(printable(name)),
            justify="right" if numbers else "left",
            no_wrap=numbers or name in whole,
            overflow="fold",
        )
    for row in cells:
        table.add_row(*map(Text, row))
    Console(highlight=False, quiet=is_on("quiet")).print(table)


def _are_numbers(cells: Sequence[str]) -> bool:
    """Whether most of the cells that are filled are numbers."""
    filled = [cell for cell in cells if cell not in ("", "-", "–")]
    return 2 * sum(map(bool, map(_NUMBER.fullmatch, filled))) > len(filled)


def show_performance(performance: Performance, title: str) -> None:
    """Print how each class that has samples does, so that it fits in 80 columns."""
    from optirank._util.metrics import in_percent, with_interval
    from optirank.workflow.performance import MEASURES

    title = f"{title}, % (95 % intervals)"
    if performance.n_withheld:
        title += "; of all: sensitivity where a label withheld is not found"
    rows = []
    has_samples = performance.confusion.sum(axis=1) > 0
    table = performance.per_class[has_samples].rename_axis("class").reset_index()
    for row in table.to_dict("records"):
        cells = {"class": row["class"], "samples": f"{row['n']:.0f}"}
        if performance.n_withheld:
            n_samples = row["n"] + row["withheld"]
            given = f"{row['n']:.0f} of {n_samples:.0f}"
            of_all = in_percent(row["sensitivity_of_all"])
            cells = {"class": row["class"], "given": given}
            cells |= {"sensitivity": "", "of all": of_all}  # in this order
        for measure, heading in MEASURES.items():
            cells[heading] = in_percent(row[measure])
            if measure in ("sensitivity", "ppv"):
                low, high = row[f"{measure}_low"], row[f"{measure}_high"]
                cells[heading] = with_interval(row[measure], low, high)
        rows.append(cells)
    show_table(title, list(rows[0]), [list(cells.values()) for cells in rows])


def show_sizes(curve: pd.DataFrame, *, auto: bool = False) -> None:
    """Print the accuracy of each size of the panel, and how one was chosen."""
    from optirank._util.metrics import in_percent

    if len(curve) < 2:
        return
    rows = []
    for point in curve.sort_values("n_genes").to_dict("records"):
        accuracy = ""
        if math.isfinite(point["balanced_accuracy"]):
            accuracy = in_percent(point["balanced_accuracy"])
            if math.isfinite(point["standard_error"]):
                accuracy += f" ± {in_percent(point['standard_error'])}"
            accuracy += " %"
        rows.append((point["n_genes"], accuracy, "chosen" if point["chosen"] else ""))
    show_table("Panels on held-out samples", ("genes", "balanced accuracy", ""), rows)
    if auto:
        echo(
            "chosen: the smallest within one standard error of the best, of at least "
            "100 genes where there is one"
        )
