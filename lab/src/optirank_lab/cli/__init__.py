"""The `optirank-lab` command: `datasets`, `simulate` and `benchmark`."""

from __future__ import annotations

from typing import Annotated

import typer

from optirank.cli.common import outlive_readers, set_up
from optirank.cli.options import GroupedCommand, PlainGroup
from optirank_lab import __version__
from optirank_lab.cli import benchmark, datasets, simulate

_HELP = """The laboratory of optirank: experiments of the paper, comparisons, data sets.

Exit codes: 0 success; 1 unexpected failure; 2 a wrong option or input, or a file that
cannot be read or written; 130 interrupted.

Examples:

  optirank-lab simulate --repeats 4        # the paper's synthetic experiment
  optirank-lab datasets --help             # data sets: list, fetch, check
  optirank-lab benchmark --help            # the comparisons on real data
"""

app = typer.Typer(
    cls=PlainGroup,
    help=_HELP,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(datasets.app, name="datasets")
app.command(cls=GroupedCommand)(simulate.simulate)
app.add_typer(benchmark.app, name="benchmark")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"optirank-lab {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print errors only.")
    ] = False,
) -> None:
    """Read the options given before the command."""
    set_up(debug=debug, quiet=quiet)


def main() -> None:
    """Run the command line."""
    outlive_readers()
    app(prog_name="optirank-lab")
