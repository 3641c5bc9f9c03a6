"""The `optirank` command: its switches, its commands and its exit codes."""

from __future__ import annotations

import typer

from optirank import __version__
from optirank.cli import models, predict, train
from optirank.cli.command import Command, help_text

__all__ = ["app", "main", "program"]

_HELP = """Label expression profiles by the ranks of a small panel of genes.

Exit codes: 0 success; 1 unexpected failure; 2 a wrong option or input, or a file that
cannot be read or written; 130 interrupted.

Labels without training, by a model that comes with optirank:

  optirank models
  optirank predict cells.h5ad --model pancreas-human -o labels.csv

From labelled profiles to labels for new ones, with a generated pair:

  optirank example pair
  optirank train pair/reference.h5ad --label cell_type -o model.optirank
  optirank predict pair/query.h5ad --model model.optirank -o labels.csv
  optirank evaluate pair/query.h5ad --model model.optirank --label cell_type
  optirank design pair/reference.h5ad --label cell_type -o panel.csv
"""


def program(name: str, version: str, help: str) -> typer.Typer:
    """A program without commands yet: its help, and its switches."""
    app = typer.Typer(
        help=help_text(help),
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"{name} {version}")
            raise typer.Exit

    of_version = typer.Option(
        False,
        "--version",
        callback=show_version,
        is_eager=True,
        help="Show the version.",
    )
    of_quiet = typer.Option(False, "--quiet", "-q", help="Print errors only.")
    of_debug = typer.Option(False, "--debug", help="Show the traceback of an error.")

    @app.callback()
    def switches(
        context: typer.Context,
        version: bool = of_version,
        quiet: bool = of_quiet,
        debug: bool = of_debug,
    ) -> None:
        context.meta.update(quiet=quiet, debug=debug)

    return app


app = program("optirank", __version__, _HELP)
for _command in (
    *(train.train, predict.predict, predict.evaluate, train.design),
    *(models.models, models.inspect, models.export, models.example, models.demo),
):
    app.command(cls=Command)(_command)


def main() -> None:
    """Run the command line."""
    app(prog_name="optirank")
