"""`optirank example` and `optirank demo`: generated data, and a first look."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from optirank._util.files import check_outputs
from optirank.cli import options as opt
from optirank.cli.common import echo


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
    from optirank.workflow.cells import write_cells

    cells = folder / "islets.h5ad"
    if folder.is_dir():
        check_outputs({f"the cells ({cells.name})": cells}, (), force=force)
    for path in write_example(folder, force=force):
        echo(str(path))
    echo(str(write_cells("pancreas-human", folder, cells.stem)))


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
    program: Any = context.find_root().command
    for name, *words in _demo_commands(out, with_pages):
        echo(f"\n$ optirank {shlex.join([name, *words])}")
        code = program.commands[name].main(
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
            "--for",
            query,
            "-o",
            model,
            *page("training.html"),
        ],
        ["predict", query, *given, "-o", labels, *page("labels.html")],
        ["evaluate", query, *given, *label, *page("evaluation.html")],
    ]
    return [[*words, "--force"] for words in commands]
