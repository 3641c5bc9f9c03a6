"""The `optirank` command itself: its options, its commands and its exit codes."""

from __future__ import annotations

from optirank import __version__
from optirank._util.work import remember_interrupts
from optirank.cli import demo, design, models, predict, train
from optirank.cli.common import GroupedCommand, outlive_readers, program

__all__ = ["app", "main"]

_HELP = """Label expression profiles by the ranks of a small panel of genes.

Exit codes: 0 success; 1 unexpected failure; 2 a wrong option or input, or a file that
cannot be read or written; 130 interrupted.

Labels without training, by a model that comes with optirank, on generated cells:

  optirank models                      # what there is
  optirank example pair             # a generated reference and query
  optirank predict pair/islets.h5ad --model pancreas-human -o labels.csv

From labelled profiles to labels for new ones, with a generated pair:

  optirank labels pair/reference.h5ad pair/query.h5ad --label cell_type
  optirank train pair/reference.h5ad --label cell_type -o model.optirank
  optirank predict pair/query.h5ad --model model.optirank -o labels.csv
  optirank evaluate pair/query.h5ad --model model.optirank --label cell_type
  optirank panel model.optirank        # the genes to measure
  optirank design pair/reference.h5ad --label cell_type --genes 50 -o panel.csv
  optirank export model.optirank       # a page that labels in a browser
  optirank inspect model.optirank      # what the model is

More:

  optirank demo                        # a demonstration in a minute
  optirank train --help                # the options of a command
"""

app = program("optirank", __version__, _HELP)
for _command in (
    *(models.models, train.train, predict.predict, predict.evaluate),
    *(design.design, train.labels, models.panel, models.inspect),
    *(models.export, demo.example, demo.demo),
):
    app.command(cls=GroupedCommand)(_command)


def main() -> None:
    """Run the command line."""
    outlive_readers()
    remember_interrupts()
    app(prog_name="optirank")
