"""The `optirank` command itself: its options, its commands and its exit codes."""

from __future__ import annotations

from typing import Annotated

import typer

from optirank import __version__
from optirank.cli import benchmark, datasets, demo, inspect, panel, predict, simulate, train
from optirank.cli.errors import DebugOption, QuietOption
from optirank.cli.streams import outlive_readers

_HELP = """Classify expression profiles by ranks relative to a learned reference set of genes.

Exit codes: 0 success; 1 unexpected failure; 2 a wrong option or input, or a file that cannot be
read or written; 130 interrupted.

From labelled profiles to labels for new ones, with a generated pair:

  optirank datasets example pair

  optirank train pair/reference.h5ad --label cell_type --out model.optirank

  optirank predict pair/query.h5ad --model model.optirank --out labels.csv

  optirank panel model.optirank      list the genes to measure

  optirank inspect model.optirank    describe the model

More:

  optirank demo                      a demonstration in a minute

  optirank simulate --repeats 4      the paper's synthetic experiment

  optirank benchmark --help          the paper's evaluation on real data

  optirank train --help              the options of a command
"""

app = typer.Typer(
    help=_HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("panel")(panel.panel)
app.command("inspect")(inspect.inspect)
app.add_typer(datasets.app, name="datasets")
app.command("demo")(demo.demo)
app.command("simulate")(simulate.simulate)
app.add_typer(benchmark.app, name="benchmark")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"optirank {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: DebugOption = False,
    quiet: QuietOption = False,
) -> None:
    """Read the options given before the command."""


def main() -> None:
    """Run the command line."""
    outlive_readers()
    app(prog_name="optirank")
