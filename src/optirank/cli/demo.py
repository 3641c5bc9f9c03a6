"""`optirank demo`: the default point of the synthetic experiment, in under a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from optirank.cli.common import tidy
from optirank.cli.errors import DebugOption, QuietOption
from optirank.cli.options import ProcessesOption


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the results; a rerun resumes there.")
    ] = Path("optirank-demo"),
    repeats: Annotated[int, typer.Option(min=1, help="Number of data sets.")] = 1,
    jobs: ProcessesOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the data.")] = 0,
    debug: DebugOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show in a minute what a learned reference set is good for.

    40 of 50 genes shift together by a random amount per sample, which disturbs the ranks of the
    informative genes. Four classifiers are tuned by cross-validation and tested. A report shows
    their scores and a figure.

    Examples:

      optirank demo

      optirank demo --repeats 4 --out longer
    """
    with tidy():
        from optirank.benchmark.synthetic import Settings
        from optirank.cli.running import run_experiment

        settings = Settings(repeats=repeats, sweeps=(), seed=seed)
        written = run_experiment(settings, out, jobs)
        if written.page:
            typer.echo(f"Figure: {out / 'figures' / 'means-1.png'}")
