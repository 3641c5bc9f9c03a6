"""What `benchmark`, `simulate` and `demo` share: the run with its bar, the synthetic experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from optirank.cli.common import show, workers
from optirank.cli.errors import UNEXPECTED

if TYPE_CHECKING:
    from optirank.benchmark.reporting.synthetic_report import Written
    from optirank.benchmark.running.plan import Plan
    from optirank.benchmark.running.runner import Work
    from optirank.benchmark.running.storage import Storage, Unit, WholeUnit
    from optirank.benchmark.synthetic import Settings


def compute(
    plan: Plan, work: Work, storage: Storage, jobs: int | None, dask: str | None = None
) -> dict[str, str]:
    """Run the units of a plan with a bar; return what failed, by task."""
    from optirank._util.progress import progress_bar
    from optirank.benchmark.running import runner

    done = 0
    with progress_bar("fitting", sum(unit.weight for unit in plan.units), lines=True) as bar:

        def advance(unit: Unit | WholeUnit, stored: bool) -> None:
            nonlocal done
            done += 1
            text = f"{done} of {len(plan.units)} units, {unit.design}"
            bar.advance(unit.weight, stored=stored, text=text)

        options = {"jobs": workers(jobs), "dask": dask}
        try:
            return runner.run(
                plan, work, storage, **options, progress=advance, warn=_warn, tell_gap=_tell_gap
            )
        except KeyboardInterrupt:
            typer.echo(
                f"Finished units are kept in {storage.folder}: the same command continues.",
                err=True,
            )
            raise


def _warn(task: str, reason: str) -> None:
    typer.echo(f"optirank: {task} failed: {reason}", err=True)


def _tell_gap(unit: WholeUnit, reason: str) -> None:
    typer.echo(f"note: {unit.design}: {unit.classifier} has no result: {reason}", err=True)


def run_experiment(settings: Settings, out: Path, jobs: int | None, device: str = "cpu") -> Written:
    """Run a synthetic experiment, write its report and show the table."""
    from optirank.benchmark.reporting import synthetic_report
    from optirank.benchmark.reporting.style import missing_extra
    from optirank.benchmark.reporting.synthetic_table import gather
    from optirank.benchmark.running.runner import Work
    from optirank.benchmark.running.storage import Storage
    from optirank.benchmark.synthetic import SyntheticTasks

    storage = Storage(out, "synthetic")
    storage.check(settings.grid, settings.seed)
    if missing := missing_extra():
        typer.echo(f"No figures and no page will be made: they need {missing}")
    with storage.open(settings.grid, settings.seed):
        work = Work(SyntheticTasks.of(settings), settings.grid, device=device)
        if compute(settings.plan(), work, storage, jobs):
            raise typer.Exit(UNEXPECTED)
        run = storage.log_lines()[-1]
        written = synthetic_report.write(settings, *gather(settings, storage), out, run)
    _show_table(settings, written)
    if written.missing:
        typer.echo(
            f"Tables are in {out}. For the figures and the page: {written.missing}, then the same "
            "command again; the fits are kept."
        )
    return written


def _show_table(settings: Settings, written: Written) -> None:
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
    show(table)
