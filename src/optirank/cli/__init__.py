"""The `optirank` command: what it says of itself, and its commands."""

from __future__ import annotations

from optirank import __version__
from optirank.cli import models, predict, train
from optirank.cli.command import Command, program

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


app = program("optirank", __version__, _HELP)
for _command in (
    *(train.train, predict.predict, predict.evaluate, train.design),
    *(models.models, models.inspect, models.export, models.example, models.demo),
):
    app.command(cls=Command)(_command)


def main() -> None:
    """Run the command line."""
    app(prog_name="optirank")
