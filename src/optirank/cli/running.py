"""What `benchmark`, `simulate` and `demo` share: the run with its bar, the table of means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from optirank.cli.common import add_row, new_table, show, workers
from optirank.cli.errors import UNEXPECTED

if TYPE_CHECKING:
    from optirank.benchmark.engine import Plan, Work
    from optirank.benchmark.report import Written
    from optirank.benchmark.results import Storage, Unit
    from optirank.benchmark.synthetic import Settings


def compute(
    plan: Plan, work: Work, storage: Storage, jobs: int | None, dask: str | None = None
) -> dict[str, str]:
    """Run the units of a plan with a bar; return what failed, by task."""
    from optirank._util.progress import progress_bar
    from optirank.benchmark import engine

    done = 0
    with progress_bar("fitting", sum(unit.weight for unit in plan.units), lines=True) as bar:

        def advance(unit: Unit, stored: bool) -> None:
            nonlocal done
            done += 1
            text = f"{done} of {len(plan.units)} units, {unit.design}"
            bar.advance(unit.weight, stored=stored, text=text)

        def warn(unit: Unit, reason: str) -> None:
            typer.echo(f"{unit.design}: {unit.classifier} has no result: {reason}", err=True)

        options = {"jobs": workers(jobs), "dask": dask, "progress": advance, "warn": warn}
        try:
            return engine.run(plan, work, storage, **options)
        except KeyboardInterrupt:
            typer.echo(
                f"Finished units are kept in {storage.folder}: the same command continues.",
                err=True,
            )
            raise


def run_experiment(settings: Settings, out: Path, jobs: int | None, device: str = "cpu") -> Written:
    """Run a synthetic experiment, write its report and show the table."""
    from optirank.benchmark import report
    from optirank.benchmark.engine import Work
    from optirank.benchmark.results import Storage, collect

    storage = Storage(out, "synthetic")
    storage.check(settings.grid, settings.seed)
    with storage.open(settings.grid, settings.seed):
        work = Work(settings, settings.grid, device)
        if compute(settings.plan(), work, storage, jobs):
            raise typer.Exit(UNEXPECTED)
        written = report.write(collect(storage), out, settings)
    show_means(written)
    return written


def show_means(written: Written) -> None:
    """Print the table of means of each group, and where the report is."""
    from optirank.benchmark.report import standings_text

    for group in written.groups:
        text = standings_text(group)
        kept = [name for name in text.columns if name not in ("median", "worst", "rank")]
        table = new_table(f"{group.name}: balanced accuracy (%)", *kept)
        table.columns[0].justify = "left"
        table.columns[0].no_wrap = True
        for row in text[kept].itertuples(index=False):
            add_row(table, *row)
        show(table)
    if written.missing:
        typer.echo(f"No figures and no page: they need {written.missing}")
    if written.page:
        typer.echo(f"Report: {written.page}")
