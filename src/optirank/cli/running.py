"""What `demo` and `simulate` share: the run with its progress bar, and the table at its end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from optirank.cli.errors import bad_input

if TYPE_CHECKING:
    from rich.console import Console

    from optirank.benchmark.simulation.report import Written
    from optirank.benchmark.simulation.settings import Settings


def default_jobs() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_experiment(settings: Settings, out: Path, jobs: int) -> Written:
    """Run an experiment with a progress bar, write its report and show the table."""
    from rich.console import Console

    from optirank.benchmark.simulation import report, runner, storage
    from optirank.benchmark.style import missing_extra

    console = Console()
    with bad_input():
        storage.Storage(out, settings).open()
    missing = missing_extra()
    if missing:
        console.print(f"No figures and no page will be made: they need {missing}", markup=False)
    with _progress(console) as bar:
        task = bar.add_task("fitting", total=runner.total_work(settings))
        try:
            results = runner.run(
                settings, out, jobs=jobs, progress=lambda work: bar.advance(task, work)
            )
        except KeyboardInterrupt:
            bar.stop()
            console.print(f"Finished parts are kept in {out}: the same command goes on from there.")
            raise
        bar.update(task, description="drawing")
        written = report.write(settings, results, out)
        bar.update(task, description="done", completed=runner.total_work(settings))
    _show_table(console, settings, written)
    if written.missing:
        console.print(
            f"Tables are in {out}. For the figures and the page: {written.missing}, then the same "
            "command again; the fits are kept.",
            markup=False,
        )
    return written


def _progress(console: Console):
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("time"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        speed_estimate_period=600.0,
    )


def _show_table(console: Console, settings: Settings, written: Written) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    repeats = "1 repeat" if settings.repeats == 1 else f"{settings.repeats} repeats"
    title = f"Test balanced accuracy at the default point ({repeats})"
    table = Table(
        title=title, box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, title_justify="left"
    )
    for index, name in enumerate(written.header):
        table.add_column(name, justify="right" if index else "left", no_wrap=True)
    for row in written.rows:
        table.add_row(*row, style="bold" if row[0].startswith("here") else None)
    console.print(table)
