"""The `optirank-lab` command: `datasets`, `simulate` and `benchmark`."""

from __future__ import annotations

from optirank.cli.command import Command, program
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

app = program("optirank-lab", __version__, _HELP)
app.add_typer(datasets.app, name="datasets")
app.command(cls=Command)(simulate.simulate)
app.add_typer(benchmark.app, name="benchmark")


def main() -> None:
    """Run the command line."""
    app(prog_name="optirank-lab")
