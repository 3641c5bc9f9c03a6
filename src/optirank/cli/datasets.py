"""`optirank datasets`: list, describe, fetch and check data sets; a generated example."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli.common import tidy
from optirank.cli.errors import BAD_INPUT, DebugOption, QuietOption
from optirank.cli.options import DataOption, ForceOption
from optirank.cli.streams import echo

if TYPE_CHECKING:
    from rich.table import Table

    from optirank.datasets.registry import Entry

_HELP = """Data sets of the paper and in your own folders.

--data or the variable OPTIRANK_DATA names a folder; every .h5ad file in it is a data set.

Examples:

  optirank datasets list                       list all data sets

  optirank datasets info baron                 describe one, and where to get it

  optirank datasets fetch baron --data sets    download it into a folder

  optirank datasets check --data sets          check whether they can be used

  optirank datasets example pair               write a generated pair
"""

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)

NameArgument = Annotated[str, typer.Argument(help="Name of a data set.", show_default=False)]


@app.command("list")
def list_(data: DataOption = None, debug: DebugOption = False) -> None:
    """List the data sets of the paper and those in the folder.

    Examples:

      optirank datasets list

      OPTIRANK_DATA=sets optirank datasets list
    """
    with tidy():
        from optirank.datasets.catalogue import data_folder, local_sets
        from optirank.datasets.registry import registry

        here = local_sets(data)
        names = {found.name for found in here}
        table = _table("The paper's data sets", "name", "organism", "technology", "samples", "how")
        for entry in registry().values():
            count = str(entry.n_samples or "")
            how = "here" if entry.name in names else entry.way
            table.add_row(entry.name, entry.organism, entry.technology, count, how)
        _print(table)
        if not here:
            typer.echo(f"No data sets in {data_folder(data)}.")
            return
        title = f"In {data_folder(data)}"
        table = _table(title, "name", "platform", "samples", "genes", "classes")
        for found in here:
            counts = [str(n) for n in (found.n_samples, found.n_genes, len(found.classes))]
            table.add_row(found.name, found.platform, *counts)
        _print(table)
        for found in here:
            if found.problem:
                echo(f"{found.name} cannot be used: {found.problem}")


@app.command()
def info(name: NameArgument, data: DataOption = None, debug: DebugOption = False) -> None:
    """Describe a data set: accession, source, licence, labels, how to get it.

    Examples:

      optirank datasets info pcawg

      optirank datasets info baron_h1 --data sets
    """
    with tidy():
        from optirank.datasets import catalogue, fetching

        folder = catalogue.data_folder(data)
        paths = catalogue.local_paths(data)
        lines: list[tuple[str, str]] = []
        if name not in paths:
            entry = _entry(name, data)
            lines += [("name", entry.name), ("title", entry.title), ("accession", entry.accession)]
            lines += [("organism", entry.organism), ("technology", entry.technology)]
            lines += [("samples", str(entry.n_samples or "see source")), ("labels", entry.labels)]
            lines += [("source", entry.source), ("licence", entry.licence), ("note", entry.note)]
            lines += [("file", f"{file.url} ({_hash(file.sha256)})") for file in entry.files]
            if entry.by_hand:
                lines += [("by hand", fetching.instructions(entry, folder))]
            name = entry.name
        if name in paths:
            found = catalogue.describe(paths[name])
            classes = ", ".join(f"{label} {count}" for label, count in found.classes.items())
            lines += [("here", str(found.path)), ("platform", found.platform)]
            lines += [("size", f"{found.n_samples} samples x {found.n_genes} genes")]
            lines += [("classes", classes), ("problem", found.problem)]
            lines += [(key, found.source.get(key, "")) for key in ("accession", "licence", "note")]
        else:
            lines += [("here", f"no; optirank datasets fetch {name}")]
        for key, text in lines:
            if text:
                echo(f"{key + ':':<12}{text}")


@app.command()
def fetch(
    name: NameArgument,
    data: DataOption = None,
    label: Annotated[
        str | None, typer.Option(help="Column with the labels, if not the expected one.")
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Fetch a data set of the paper and write it as .h5ad into the folder.

    Files that are already in FOLDER/NAME are used, so files that cannot be fetched can be put there
    by hand; `optirank datasets info NAME` says where to get them.

    Examples:

      optirank datasets fetch baron

      optirank datasets fetch met500 --data sets
    """
    with tidy():
        from optirank._util.progress import DownloadBar
        from optirank.datasets.catalogue import data_folder, describe
        from optirank.datasets.fetching import ByHandError
        from optirank.datasets.fetching import fetch as fetch_files
        from optirank.datasets.registry import find_entry

        entry = find_entry(name)
        try:
            path = fetch_files(
                entry, data_folder(data), label=label, say=typer.echo, progressbar=DownloadBar()
            )
        except ByHandError as steps:
            typer.echo(f"optirank: {steps}", err=True)
            raise typer.Exit(BAD_INPUT) from None
        found = describe(path)
        typer.echo(
            f"{path}: {found.n_samples} samples x {found.n_genes} genes, "
            f"{len(found.classes)} classes"
        )


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="A data set; default: all.")] = None,
    data: DataOption = None,
    label: Annotated[str, typer.Option(help="Column with the labels.")] = "cell_type",
    debug: DebugOption = False,
) -> None:
    """Read data sets and say whether they can be used; exit code 2 if one cannot.

    Examples:

      optirank datasets check baron_h1 --data sets

      optirank datasets check --data sets
    """
    with tidy():
        from optirank.datasets import catalogue, checking

        if name is None:
            paths = list(catalogue.local_paths(data).values())
        else:
            paths = [catalogue.find_path(name, data)]
        if not paths:
            raise ValueError(f"no data sets in {catalogue.data_folder(data)}: name one with --data")
        columns = ("name", "samples", "genes", "classes", "values", "verdict")
        table = _table("Data sets", *columns)
        results = [checking.check(path, label=label) for path in paths]
        for found in results:
            counts = [str(n) for n in (found.n_samples, found.n_genes, found.n_classes)]
            verdict = "ok" if found.ok else "unusable"
            table.add_row(found.path.stem, *counts, found.values, verdict)
        _print(table)
        for found in results:
            for text in (*found.errors, *found.notes):
                echo(f"{found.path.stem}: {text}")
        if not all(found.ok for found in results):
            raise typer.Exit(BAD_INPUT)


@app.command()
def example(
    folder: Annotated[Path, typer.Argument(help="Where to write the pair.", show_default=False)],
    reference: Annotated[int, typer.Option(min=10, help="Cells in the reference.")] = 500,
    query: Annotated[int, typer.Option(min=10, help="Cells in the query.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data.")] = 0,
    force: ForceOption = False,
    debug: DebugOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a small generated pair: a labelled reference on one platform, a query on another.

    Both contain counts of blood cells with known marker genes, as .h5ad (if anndata is installed)
    and as .csv with genes in columns. The query also contains its true labels, for comparison.

    Examples:

      optirank datasets example pair

      optirank datasets example pair --reference 2000 --seed 1
    """
    with tidy():
        from optirank.datasets.example import write_example

        for path in write_example(folder, reference, query, seed, force=force):
            typer.echo(str(path))


def _entry(name: str, data: Path | None) -> Entry:
    from optirank._util.names import some
    from optirank.datasets import catalogue, registry
    from optirank.datasets.errors import DataError

    try:
        return registry.find_entry(name)
    except DataError as error:
        here = some(catalogue.local_paths(data), 20)
        raise DataError(f"{error}; in {catalogue.data_folder(data)} there are {here}") from None


def _hash(sha256: str | None) -> str:
    return f"sha256 {sha256}" if sha256 else "no hash known"


def _table(title: str, *columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, title_justify="left")
    for column in columns:
        number = column in ("samples", "genes", "classes")
        table.add_column(column, justify="right" if number else "left", no_wrap=column == "name")
    return table


def _print(table: Table) -> None:
    from rich.console import Console

    Console().print(table)
