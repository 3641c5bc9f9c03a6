"""`optirank datasets`: list, describe, fetch and check data sets; a generated example."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli import options as opt
from optirank.cli.common import (
    BAD_INPUT,
    check_outputs,
    echo,
    show_table,
    tell_error,
    tidy,
)

if TYPE_CHECKING:
    from optirank_lab.data.registry import Entry

_HELP = """Data sets of the paper, public stand-ins for them, and your own folders.

--data or the variable OPTIRANK_DATA names a folder; every .h5ad file in it is a data set.

Examples:

  optirank datasets list                              list all data sets
  optirank datasets info nki_er                       describe one, and where to get it
  optirank datasets fetch stand-ins --data sets       download and build the stand-ins
  optirank datasets check --data sets                 check whether they can be used
  optirank datasets example pair                      write a generated pair
"""

app = typer.Typer(
    cls=opt.PlainGroup, help=_HELP, no_args_is_help=True, rich_markup_mode=None
)

NameArgument = Annotated[
    str, typer.Argument(help="Name of a data set.", show_default=False)
]


@app.command("list", cls=opt.GroupedCommand)
def list_(data: opt.Data = None) -> None:
    """List the registered data sets and those in the folder.

    Examples:

      optirank datasets list
      OPTIRANK_DATA=sets optirank datasets list
    """
    with tidy():
        from optirank_lab.data.registry import (
            data_folder,
            describe,
            local_paths,
            registry,
        )

        here = [describe(path) for path in local_paths(data).values()]
        names = {found.name for found in here}
        columns = ("name", "organism", "technology", "samples", "genes", "how")
        for title, stand_in in (
            ("The paper's data sets", False),
            ("Public stand-ins", True),
        ):
            rows = [
                (
                    *(entry.name, entry.organism, entry.technology),
                    *(entry.n_samples or "", entry.n_genes or ""),
                    "here" if entry.name in names else entry.way,
                )
                for entry in registry().values()
                if entry.stand_in == stand_in
            ]
            show_table(title, columns, rows)
        if not here:
            echo(f"No data sets in {data_folder(data)}.")
            return
        rows = [
            (one.name, one.platform, one.n_samples, one.n_genes, len(one.classes))
            for one in here
        ]
        columns = ("name", "platform", "samples", "genes", "classes")
        show_table(f"In {data_folder(data)}", columns, rows)
        for found in here:
            if found.errors:
                echo(f"{found.name} cannot be used: {found.errors[0]}")


@app.command(cls=opt.GroupedCommand)
def info(name: NameArgument, data: opt.Data = None) -> None:
    """Describe a data set: accession, paper, source, licence, labels, how to get it.

    Examples:

      optirank datasets info nki_er
      optirank datasets info pcawg --data sets
    """
    with tidy():
        from optirank_lab.data import registry

        paths = registry.local_paths(data)
        lines: list[tuple[str, str]] = []
        entry = _entry(name, data, known=name in paths)
        if entry is not None:
            name, lines = entry.name, _card(entry, data)
        if name in paths:
            found = registry.describe(paths[name])
            classes = ", ".join(
                f"{label} {count}" for label, count in found.classes.items()
            )
            lines += [("here", str(found.path)), ("platform", found.platform)]
            lines += [("size", f"{found.n_samples} samples x {found.n_genes} genes")]
            lines += [("classes", classes), ("problem", "; ".join(found.errors))]
            if entry is None:
                keys = ("accession", "licence", "note")
                lines += [(key, found.source.get(key, "")) for key in keys]
        else:
            lines += [("here", f"no; optirank datasets fetch {name}")]
        for key, text in lines:
            if text:
                echo(f"{key + ':':<12}{text}")


@app.command(cls=opt.GroupedCommand)
def fetch(
    name: Annotated[
        str, typer.Argument(help="Name of a data set, or stand-ins for all of those.")
    ],
    data: opt.Data = None,
    given: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Folder with raw files, taken instead of downloads."
        ),
    ] = None,
) -> None:
    """Fetch the raw files of a data set and write it as .h5ad into the folder.

    Known checksums are compared. What is there already is kept, so the command can be given again
    after an interruption; `optirank datasets info NAME` says where the files come from.

    Examples:

      optirank datasets fetch stand-ins --data sets
      optirank datasets fetch nki_er --data sets --from downloads
    """
    with tidy():
        from optirank_lab.data import building
        from optirank_lab.data.registry import (
            STAND_INS,
            data_folder,
            describe,
            find_entry,
            stand_ins,
        )

        folder = data_folder(data)
        if name == STAND_INS:
            wanted = stand_ins()
            lacking = building.fetch_all(wanted, folder, given=given, say=tell_error)
            echo(
                f"{len(wanted) - len(lacking)} of {len(wanted)} data sets are in {folder}"
            )
            if lacking:
                raise typer.Exit(BAD_INPUT)
            return
        try:
            path = building.fetch(find_entry(name), folder, given=given, say=echo)
        except building.ByHandError as steps:
            tell_error(f"optirank: {steps}")
            raise typer.Exit(BAD_INPUT) from None
        found = describe(path)
        echo(
            f"{path}: {found.n_samples} samples x {found.n_genes} genes, "
            f"{len(found.classes)} classes"
        )


@app.command(cls=opt.GroupedCommand)
def check(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A data set; default: all.")
    ] = None,
    data: opt.Data = None,
    label: Annotated[str, typer.Option(help="Column with the labels.")] = "cell_type",
) -> None:
    """Read data sets and say whether they can be used; exit code 2 if one cannot.

    Examples:

      optirank datasets check baron_h1 --data sets
      optirank datasets check --data sets
    """
    with tidy():
        from optirank_lab.data import registry

        if name is None:
            paths = list(registry.local_paths(data).values())
        else:
            paths = [registry.find_path(name, data)]
        if not paths:
            raise ValueError(
                f"no data sets in {registry.data_folder(data)}: name one with --data"
            )
        results = [registry.describe(path, values=True, label=label) for path in paths]
        rows = [
            (
                *(
                    found.name,
                    found.n_samples,
                    found.n_genes,
                    len(found.classes),
                    found.values,
                ),
                "unusable" if found.errors else "ok",
            )
            for found in results
        ]
        columns = ("name", "samples", "genes", "classes", "values", "verdict")
        show_table("Data sets", columns, rows)
        for found in results:
            for text in (*found.errors, *found.notes):
                echo(f"{found.name}: {text}")
        if any(found.errors for found in results):
            raise typer.Exit(BAD_INPUT)


@app.command(cls=opt.GroupedCommand)
def example(
    folder: Annotated[
        Path, typer.Argument(help="Where to write the pair.", show_default=False)
    ],
    force: opt.Force = False,
) -> None:
    """Write a small generated pair: a labelled reference on one platform, a query on another.

    Both contain counts of blood cells with known marker genes, as .h5ad (if anndata is installed)
    and as .csv with genes in columns. The query also contains its true labels, for comparison.
    islets.h5ad are cells drawn from the model pancreas-human, to try that model on.

    Examples:

      optirank datasets example pair
      optirank datasets example pair --force
    """
    with tidy():
        from optirank.datasets.example import write_example
        from optirank.workflow.cells import write_cells

        if folder.is_dir():
            paths = [folder / f"islets{kind}" for kind in (".h5ad", ".csv")]
            check_outputs(
                {f"the cells ({path.name})": path for path in paths}, (), force
            )
        for path in write_example(folder, force=force):
            echo(str(path))
        echo(str(write_cells("pancreas-human", folder, "islets")))


def _entry(name: str, data: Path | None, known: bool) -> Entry | None:
    """The registered set of this name; None where there is none but the name is ``known``."""
    from optirank._util.names import some
    from optirank.io.data import DataError
    from optirank_lab.data import registry

    try:
        return registry.find_entry(name)
    except DataError as error:
        if known:
            return None
        here = some(registry.local_paths(data), 20)
        raise DataError(
            f"{error}; in {registry.data_folder(data)} there are {here}"
        ) from None


def _card(entry: Entry, data: Path | None) -> list[tuple[str, str]]:
    """What the registry knows of a set, as keys and texts."""
    from optirank_lab.data import building, registry

    size = f"{entry.n_samples or 'see source'}"
    size += f" x {entry.n_genes} genes" if entry.n_genes else ""
    labels = entry.labels or ", ".join(
        dict.fromkeys(entry.read.get("labels", {}).values())
    )
    lines = [
        ("name", entry.name),
        ("title", entry.title),
        ("accession", entry.accession),
    ]
    lines += [("paper", entry.paper), ("organism", entry.organism)]
    lines += [("technology", entry.technology), ("samples", size), ("labels", labels)]
    lines += [
        ("source", entry.source),
        ("licence", entry.licence),
        ("note", entry.note),
    ]
    if not entry.stand_in:
        lines += [
            ("archive", f"the authors name {registry.AUTHORS_ARCHIVE} for their data")
        ]
    if entry.untried and entry.files:
        lines += [
            (
                "not tried",
                "these addresses, or what is read from them, were never tried",
            )
        ]
    lines += [
        (
            "file",
            f"{file.url} ({f'sha256 {file.sha256}' if file.sha256 else 'no sha256 known'})",
        )
        for file in entry.files
    ]
    if entry.by_hand:
        steps = building.instructions(entry, registry.data_folder(data))
        lines += [("by hand", steps)]
    return lines
