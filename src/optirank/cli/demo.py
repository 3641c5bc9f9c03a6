"""`optirank example` and `optirank demo`: data to try the commands on, and a
demonstration.
"""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from optirank.cli import options as opt
from optirank.cli.command import echo


def example(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to write the pair.")
    ],
    force: opt.Force = False,
) -> None:
    """Write a small generated pair: a labelled reference, a query of another platform.

    Both contain counts of blood cells with known marker genes, as .h5ad and as .csv
    with genes in columns. The query also contains its true labels, for comparison.

    Examples:

      optirank example pair
    """
    from optirank.datasets.example import write_example

    for path in write_example(folder, force=force):
        echo(str(path))


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

      optirank demo -o results
    """
    reference, query, model, labels = (
        str(out / name)
        for name in ("reference.h5ad", "query.h5ad", "model.optirank", "labels.csv")
    )
    commands = {
        "example": [str(out)],
        "train": [reference, "--label", "cell_type", "--query", query, "-o", model],
        "predict": [query, "--model", model, "-o", labels],
        "evaluate": [query, "--model", model, "--label", "cell_type"],
    }
    if find_spec("jinja2") and find_spec("matplotlib"):
        for name in ("train", "predict", "evaluate"):
            commands[name] += ["--report", str(out / f"{name}.html")]
    root: Any = context.find_root().command
    for name, words in commands.items():
        words.append("--force")
        echo(f"\n$ optirank {shlex.join([name, *words])}")
        code = root.commands[name].main(
            words, prog_name=name, standalone_mode=False, parent=context.parent
        )
        if code:
            raise typer.Exit(code)
