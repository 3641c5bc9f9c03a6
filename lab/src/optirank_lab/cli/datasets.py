"""`optirank-lab datasets`: list, describe, fetch and check data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli.command import (
    BAD_INPUT,
    Command,
    echo,
    help_text,
    show_table,
    tell_error,
)
from optirank_lab.cli import options as opt

if TYPE_CHECKING:
    from optirank_lab.data.registry import Entry, LocalSet

_HELP = """Data sets of the paper, public stand-ins for them, and your own folders.

--data or the variable OPTIRANK_DATA names a folder; every .h5ad file in it is a set.

Examples:

  optirank-lab datasets list                          list all data sets
  optirank-lab datasets info nki_er                   describe one
  optirank-lab datasets fetch stand-ins --data sets   download and build the stand-ins
  optirank-lab datasets check --data sets             check whether they can be used
"""

app = typer.Typer(help=help_text(_HELP), no_args_is_help=True, rich_markup_mode="rich")

NameArgument = Annotated[
    str, typer.Argument(help="Name of a data set.", show_default=False)
]


@app.command("list", cls=Command)
def list_(data: opt.Data = None) -> None:
    """List the registered data sets, with their terms of use, and those in the folder.

    Examples:

      optirank-lab datasets list
      OPTIRANK_DATA=sets optirank-lab datasets list
    """
    from optirank_lab.data import registry

    local_sets = [
        registry.describe(path) for path in registry.local_paths(data).values()
    ]
    present = {local.name for local in local_sets}
    titles = {
        registry.PAPER: "The paper's data sets",
        registry.STAND_INS: "Public stand-ins",
        registry.WIDE: "More public sets",
    }
    for group, title in titles.items():
        _show_registered(title, registry.group_of_sets(group), present)
    _show_local(local_sets, registry.data_folder(data))


@app.command(cls=Command)
def info(name: NameArgument, data: opt.Data = None) -> None:
    """Describe a data set: accession, paper, source, terms of use, labels, how to get
    it.

    Examples:

      optirank-lab datasets info nki_er
      optirank-lab datasets info pcawg --data sets
    """
    from optirank_lab.data import registry

    paths = registry.local_paths(data)
    entry = _entry(name, data, known=name in paths)
    lines: list[tuple[str, str]] = []
    if entry is not None:
        name = entry.name
        lines = _card(entry, data)
    if name in paths:
        lines += _local_card(registry.describe(paths[name]), entry is not None)
    else:
        lines.append(("here", f"no; optirank-lab datasets fetch {name}"))
    for key, text in lines:
        if text:
            echo(f"{key + ':':<14}{text}")


@app.command(cls=Command)
def fetch(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a data set, or all of a group: stand-ins or wide.",
        ),
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

    Known checksums are compared. What is there already is kept, so the command can be
    given again after an interruption; `optirank-lab datasets info NAME` says where the
    files come from.

    Examples:

      optirank-lab datasets fetch stand-ins --data sets
      optirank-lab datasets fetch nki_er --data sets --from downloads
    """
    from optirank_lab.data import fetching, registry

    folder = registry.data_folder(data)
    if name in (registry.STAND_INS, registry.WIDE):
        wanted = registry.group_of_sets(name)
        problems = fetching.fetch_all(wanted, folder, given=given, say=tell_error)
        n_built = len(wanted) - len(problems)
        echo(f"{n_built} of {len(wanted)} data sets are in {folder}")
        if problems:
            raise typer.Exit(BAD_INPUT)
        return
    entry = registry.find_entry(name)
    try:
        path = fetching.fetch(entry, folder, given=given, say=echo)
    except fetching.ByHandError as steps:
        tell_error(f"optirank: {steps}")
        raise typer.Exit(BAD_INPUT) from None
    local = registry.describe(path)
    echo(
        f"{path}: {local.n_samples} samples x {local.n_genes} genes, "
        f"{len(local.classes)} classes"
    )


@app.command(cls=Command)
def check(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A data set; default: all.")
    ] = None,
    data: opt.Data = None,
    label: Annotated[str, typer.Option(help="Column with the labels.")] = "cell_type",
) -> None:
    """Read data sets and say whether they can be used; exit code 2 if one cannot.

    Examples:

      optirank-lab datasets check baron_h1 --data sets
      optirank-lab datasets check --data sets
    """
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
            local.name,
            local.n_samples,
            local.n_genes,
            len(local.classes),
            local.values,
            "unusable" if local.errors else "ok",
        )
        for local in results
    ]
    columns = ("name", "samples", "genes", "classes", "values", "verdict")
    show_table("Data sets", columns, rows, whole=("name",))
    for local in results:
        for text in (*local.errors, *local.notes):
            echo(f"{local.name}: {text}")
    if any(local.errors for local in results):
        raise typer.Exit(BAD_INPUT)


def _show_registered(title: str, entries: list[Entry], present: set[str]) -> None:
    """Print a table of registered sets; ``present`` are the names of the local ones."""
    rows = [
        (
            entry.name,
            entry.organism,
            entry.technology,
            entry.n_samples or "",
            entry.n_genes or "",
            entry.licence,
            "here" if entry.name in present else entry.way,
        )
        for entry in entries
    ]
    columns = ("name", "organism", "technology", "samples", "genes", "licence", "how")
    show_table(title, columns, rows, whole=("name",))


def _show_local(local_sets: list[LocalSet], folder: Path) -> None:
    """Print a table of the sets in a folder, and what is wrong with them."""
    if not local_sets:
        echo(f"No data sets in {folder}.")
        return
    rows = [
        (
            local.name,
            local.platform,
            local.n_samples,
            local.n_genes,
            len(local.classes),
            local.source.get("licence", "").partition(" (")[0],
        )
        for local in local_sets
    ]
    columns = ("name", "platform", "samples", "genes", "classes", "licence")
    show_table(f"In {folder}", columns, rows, whole=("name",))
    for local in local_sets:
        if local.errors:
            echo(f"{local.name} cannot be used: {local.errors[0]}")


def _entry(name: str, data: Path | None, known: bool) -> Entry | None:
    """The registered set of this name; None where the name is ``known`` otherwise."""
    from optirank._util.words import some
    from optirank.data.profiles import DataError
    from optirank_lab.data import registry

    try:
        return registry.find_entry(name)
    except DataError as error:
        if known:
            return None
        local_names = some(registry.local_paths(data), 20)
        raise DataError(
            f"{error}; in {registry.data_folder(data)} there are {local_names}"
        ) from None


def _card(entry: Entry, data: Path | None) -> list[tuple[str, str]]:
    """What the registry knows of a set, as keys and texts."""
    from optirank_lab.data import fetching, registry

    size = f"{entry.n_samples or 'see source'}"
    if entry.n_genes:
        size += f" x {entry.n_genes} genes"
    label_names = dict.fromkeys(entry.read.labels.values())
    lines = [
        ("name", entry.name),
        ("title", entry.title),
        ("accession", entry.accession),
        ("paper", entry.paper),
        ("organism", entry.organism),
        ("technology", entry.technology),
        ("samples", size),
        ("labels", entry.labels or ", ".join(label_names)),
        ("source", entry.source),
        ("terms of use", entry.terms),
        ("note", entry.note),
    ]
    if not entry.public:
        archive = f"the authors name {registry.AUTHORS_ARCHIVE} for their data"
        lines.append(("archive", archive))
    if entry.untried and entry.files:
        untried = "these addresses, or what is read from them, were never tried"
        lines.append(("not tried", untried))
    for file in entry.files:
        checksum = f"sha256 {file.sha256}" if file.sha256 else "no sha256 known"
        lines.append(("file", f"{file.url} ({checksum})"))
    if entry.by_hand:
        steps = fetching.instructions(entry, registry.data_folder(data))
        lines.append(("by hand", steps))
    return lines


def _local_card(local: LocalSet, registered: bool) -> list[tuple[str, str]]:
    """What a file of the folder holds, as keys and texts.

    What it says of its source is left out for ``registered`` sets, as that is known.
    """
    counts = [f"{label} {count}" for label, count in local.classes.items()]
    lines = [
        ("here", str(local.path)),
        ("platform", local.platform),
        ("size", f"{local.n_samples} samples x {local.n_genes} genes"),
        ("classes", ", ".join(counts)),
        ("problem", "; ".join(local.errors)),
    ]
    if not registered:
        lines += [
            ("accession", local.source.get("accession", "")),
            ("terms of use", local.source.get("licence", "")),
            ("note", local.source.get("note", "")),
        ]
    return lines
