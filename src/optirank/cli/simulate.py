"""`optirank simulate`: the synthetic experiment of the paper, with its sweeps."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from optirank.cli.common import tidy
from optirank.cli.options import Device, DeviceOption, ProcessesOption


class GridName(StrEnum):
    """The grids of hyper-parameters."""

    extended = "extended"
    paper = "paper"


def simulate(
    repeats: Annotated[int, typer.Option(min=1, help="Number of data sets per point.")] = 4,
    sweeps: Annotated[
        str, typer.Option(help="none, all, or some of d,dp,tau, comma-separated.")
    ] = "all",
    grid: Annotated[
        GridName, typer.Option(help="The paper's penalties, or extended by 1e-6 and 1e-5.")
    ] = GridName.extended,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the results; a rerun resumes there.")
    ] = Path("optirank-simulation"),
    jobs: ProcessesOption = None,
    device: DeviceOption = Device.cpu,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the data.")] = 0,
) -> None:
    """Run the paper's synthetic experiment: lr, rank-lr, optirank and an oracle.

    Writes tables (CSV, Markdown, LaTeX), figures (PNG, SVG) and one page, report.html, into the
    folder given by --out. Finished fits are kept after Ctrl-C, and the same command resumes.

    Examples:

      optirank simulate                            4 repeats, all sweeps

      optirank simulate --sweeps none --repeats 10 only the paper's table

      optirank simulate --sweeps d,tau --jobs 8 --out results
    """
    with tidy():
        from optirank.benchmark.synthetic import GRIDS, Settings, parse_sweeps
        from optirank.cli.running import run_experiment
        from optirank.solver.device.backend import check_device

        settings = Settings(
            repeats=repeats, sweeps=parse_sweeps(sweeps), grid=GRIDS[grid.value], seed=seed
        )
        check_device(device.value)
        run_experiment(settings, out, jobs, device.value)
