"""What `demo` and `simulate` share: the run with its progress bar, and the table at its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from optirank._util.progress import progress_bar
from optirank.cli.errors import bad_input

if TYPE_CHECKING:
    from rich.console import Console

    from optirank.benchmark.simulation.report import Written
    from optirank.benchmark.simulation.settings import Settings


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
    with progress_bar("fitting", runner.total_work(settings)) as bar:
        try:
            results = runner.run(settings, out, jobs=jobs, progress=bar.advance)
        except KeyboardInterrupt:
            console.print(f"Finished parts are kept in {out}: the same command goes on from there.")
            raise
        bar.update(bar.done, text="drawing")
        written = report.write(settings, results, out)
    _show_table(console, settings, written)
    if written.missing:
        console.print(
            f"Tables are in {out}. For the figures and the page: {written.missing}, then the same "
            "command again; the fits are kept.",
            markup=False,
        )
    return written


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
