"""`optirank-lab simulate`: the paper's synthetic experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli.command import UNEXPECTED
from optirank_lab.cli import options as opt
from optirank_lab.cli.benchmark import compute, show_means

if TYPE_CHECKING:
    from optirank_lab.benchmark.report import Written
    from optirank_lab.benchmark.synthetic import Settings

if TYPE_CHECKING:
    _Grid = str
else:
    _Grid = opt.one_of("extended", "paper")


def simulate(
    repeats: Annotated[
        int, typer.Option(min=1, help="Number of data sets per point.")
    ] = 4,
    sweeps: Annotated[
        str, typer.Option(help="none, all, or some of d,dp,tau, comma-separated.")
    ] = "all",
    grid: Annotated[
        _Grid, typer.Option(help="The paper's penalties, or extended by 1e-6 and 1e-5.")
    ] = "extended",
    out: opt.ResultsFolder = Path("optirank-simulation"),
    jobs: opt.Processes = None,
    device: opt.Device = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the data.")] = 0,
) -> None:
    """Run the paper's synthetic experiment: lr, rank-lr, optirank and an oracle.

    Writes tables (CSV, Markdown, LaTeX), figures (PNG, SVG) and one page, report.html,
    into the folder given by --out. Finished fits are kept after Ctrl-C, and the same
    command resumes.

    Examples:

      optirank-lab simulate                            4 repeats, all sweeps
      optirank-lab simulate --sweeps none --repeats 10 only the paper's table
      optirank-lab simulate --sweeps d,tau --jobs 8 --out results
    """
    from optirank_lab.benchmark.synthetic import GRIDS, Settings, parse_sweeps
    from optirank_lab.device.backend import check_device

    settings = Settings(
        repeats=repeats,
        sweeps=parse_sweeps(sweeps),
        grid=GRIDS[str(grid)],
        seed=seed,
    )
    check_device(device)
    run_experiment(settings, out, jobs, device)


def run_experiment(
    settings: Settings, out: Path, jobs: int | None, device: str = "cpu"
) -> Written:
    """Run a synthetic experiment, write its report and show the table."""
    from optirank_lab.benchmark import report
    from optirank_lab.benchmark.engine import Work
    from optirank_lab.benchmark.results import Storage, collect

    storage = Storage(out, "synthetic")
    storage.check(settings.grid, settings.seed)
    with storage.open(settings.grid, settings.seed):
        work = Work(settings, settings.grid, device)
        if compute(settings.plan(), work, storage, jobs):
            raise typer.Exit(UNEXPECTED)
        written = report.write(collect(storage), out, settings)
    show_means(written)
    return written
