"""The commands of the laboratory: `datasets`, `demo`, `simulate` and `benchmark`."""

from __future__ import annotations

import typer

from optirank.cli.options import GroupedCommand
from optirank_lab.cli import benchmark, datasets, simulate


def add_commands(app: typer.Typer) -> None:
    """Add these commands to the `optirank` command, which finds them by an
    entry point.
    """
    app.add_typer(datasets.app, name="datasets")
    app.command(cls=GroupedCommand)(simulate.demo)
    app.command(cls=GroupedCommand)(simulate.simulate)
    app.add_typer(benchmark.app, name="benchmark")
