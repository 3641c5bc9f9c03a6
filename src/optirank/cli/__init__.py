"""The `optirank` command itself: its options, its commands and its exit codes, and the
two that show it, `example` and `demo`.
"""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from optirank import __version__
from optirank._util.files import check_outputs
from optirank._util.work import remember_interrupts
from optirank.cli import design, models, predict, train
from optirank.cli import options as opt
from optirank.cli.common import GroupedCommand, echo, outlive_readers, program

__all__ = ["app", "main"]

_HELP = """Label expression profiles by the ranks of a small panel of genes.

Exit codes: 0 success; 1 unexpected failure; 2 a wrong option or input, or a file that
cannot be read or written; 130 interrupted.

Labels without training, by a model that comes with optirank, on generated cells:

  optirank models                      # what there is
  optirank example pair             # a generated reference and query
  optirank predict pair/islets.h5ad --model pancreas-human -o labels.csv

From labelled profiles to labels for new ones, with a generated pair:

  optirank train pair/reference.h5ad --label cell_type -o model.optirank
  optirank predict pair/query.h5ad --model model.optirank -o labels.csv
  optirank evaluate pair/query.h5ad --model model.optirank --label cell_type
  optirank design pair/reference.h5ad --label cell_type --n-genes 50 -o panel.csv
  optirank export model.optirank       # a page that labels in a browser
  optirank inspect model.optirank      # what the model is

More:

  optirank demo                        # a demonstration in a minute
  optirank train --help                # the options of a command
"""


def example(
    folder: Annotated[
        Path, typer.Argument(help="Where to write the pair.", show_default=False)
    ],
    force: opt.Force = False,
) -> None:
    """Write a small generated pair: a labelled reference, a query of another platform.

    Both contain counts of blood cells with known marker genes, as .h5ad (if anndata is
    installed) and as .csv with genes in columns. The query also contains its true
    labels, for comparison. islets.h5ad are cells drawn from the model pancreas-human,
    to try that model on.

    Examples:

      optirank example pair
      optirank example pair --force
    """
    from optirank.datasets.example import write_example
    from optirank.io.reading import write_h5ad
    from optirank.model.file import SHIPPED, load
    from optirank.verbs.cards import make_cells

    islets = folder / "islets.h5ad"
    if folder.is_dir():
        check_outputs({f"the cells ({islets.name})": islets}, (), force=force)
    for path in write_example(folder, force=force):
        echo(str(path))
    cells = make_cells(load(SHIPPED / "pancreas-human.optirank"))
    note = {"note": "generated from the model pancreas-human"}
    echo(str(write_h5ad(cells, islets, note)))


def demo(
    context: typer.Context,
    out: Annotated[
        Path,
        opt.option("FOLDER", "Where to write the results.", opt.OUTPUT, "--out", "-o"),
    ] = Path("optirank-demo"),
) -> None:
    """Train on generated cells, label cells of another platform, and show how well.

    A reference and a query are generated; the platform of the query changes the level
    of every gene. A panel is trained on the reference and labels the query. Each
    command is printed as one would type it.

    Examples:

      optirank demo
      optirank demo -o results
    """
    with_pages = all(find_spec(name) for name in ("jinja2", "matplotlib"))
    root: Any = context.find_root().command
    for name, *words in _demo_commands(out, with_pages):
        echo(f"\n$ optirank {shlex.join([name, *words])}")
        code = root.commands[name].main(
            words, prog_name=name, standalone_mode=False, parent=context.parent
        )
        if code:
            raise typer.Exit(code)
    if not with_pages:
        echo("\nNo reports: they need pip install 'optirank[report]'")


def _demo_commands(out: Path, with_pages: bool) -> list[list[str]]:
    """The commands of the demonstration, in order."""

    def page(name: str) -> list[str]:
        return ["--report", str(out / name)] if with_pages else []

    reference, query, model, labels = (
        str(out / name)
        for name in ("reference.h5ad", "query.h5ad", "model.optirank", "labels.csv")
    )
    label = ["--label", "cell_type"]
    given = ["--model", model]
    commands = [
        ["example", str(out)],
        [
            "train",
            reference,
            *label,
            "--query",
            query,
            "-o",
            model,
            *page("training.html"),
        ],
        ["predict", query, *given, "-o", labels, *page("labels.html")],
        ["evaluate", query, *given, *label, *page("evaluation.html")],
    ]
    return [[*words, "--force"] for words in commands]


app = program("optirank", __version__, _HELP)
for _command in (
    *(models.models, train.train, predict.predict, predict.evaluate),
    *(design.design, models.inspect),
    *(models.export, example, demo),
):
    app.command(cls=GroupedCommand)(_command)


def main() -> None:
    """Run the command line."""
    outlive_readers()
    remember_interrupts()
    app(prog_name="optirank")
