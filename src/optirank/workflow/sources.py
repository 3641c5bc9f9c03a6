"""Files that are read: references, queries to be labelled later, lists of genes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank._util.names import some
from optirank.io.data import DataError, annotations_of, check_column, readable
from optirank.io.objects import FILE_COLUMN, join
from optirank.io.reading import is_table, open_file, read_gene_names
from optirank.io.table_files import open_text

if TYPE_CHECKING:
    from anndata import AnnData

_HEADINGS = ("gene", "genes", "symbol")


@contextlib.contextmanager
def open_sources(
    files: Sequence[Path],
    label: str | Sequence[str],
    batch: str | None = None,
    *,
    for_query: bool = False,
    **reading: Any,
) -> Iterator[tuple[list[AnnData], str | None]]:
    """Open the reference files of a training; columns that must be there are looked for
    first.

    Gives the profiles and the column of the sources: of several files, the file where
    no other column is named. ``for_query`` says that ``genes_in`` may be about the
    query's table.
    """
    labels = [label] if isinstance(label, str) else [*label]
    columns = labels if batch is None else [*labels, batch]
    with contextlib.ExitStack() as stack:
        parts = []
        for path in map(Path, files):
            options = dict(reading)
            if for_query and not is_table(path, options.get("format")):
                options["genes_in"] = None
            options = with_annotations(options, columns)
            part = stack.enter_context(open_file(path, **options))
            for column in columns:
                check_column(
                    annotations_of(part), column, str(options.get("samples") or path)
                )
            parts.append(part)
        if len(parts) == 1:
            yield parts, batch
        else:
            yield join(parts), batch or FILE_COLUMN


def with_annotations(
    reading: Mapping[str, Any], columns: Sequence[str]
) -> dict[str, Any]:
    """Options of reading under which some columns of a table of samples are
    no genes.
    """
    options = dict(reading)
    if options.get("genes_in") == "columns" and options.get("samples") is None:
        named = [*(options.get("annotations") or ()), *columns]
        options["annotations"] = list(dict.fromkeys(named))
    return options


def genes_of_queries(
    files: Sequence[Path], genes_in: str | None = None
) -> list[str] | None:
    """The genes that all of some files have, in the order of the first; None
    without files.
    """
    common: list[str] | None = None
    for file in map(Path, files):
        names = read_gene_names(file, genes_in)
        known = set(names)
        common = names if common is None else [name for name in common if name in known]
    return common


def gene_names_in(items: Sequence[str]) -> list[str]:
    """Names and patterns: each item is a file of them, or some separated by commas."""
    names: list[str] = []
    for item in items:
        if Path(item).is_file():
            names += _names_of_file(Path(item))
        else:
            names += [name.strip() for name in item.split(",") if name.strip()]
    return names


def _names_of_file(path: Path) -> list[str]:
    """The first column of a file, without a heading such as "gene" and lines with #."""
    with readable(path), open_text(path) as file:
        lines = file.read().splitlines()
    fields = [line.replace("\t", ",").split(",")[0].strip() for line in lines]
    names = [field.strip('"') for field in fields if not field.startswith("#")]
    names = [name for name in names if name]
    if names and names[0].lower() in _HEADINGS:
        names = names[1:]
    if not names:
        raise DataError(f"{path} names no gene: write one per line")
    return names


def names_of_files(paths: Sequence[Path]) -> list[str]:
    """Short names of files that differ: without folder and ending where that
    suffices.
    """
    for names in ([path.stem for path in paths], [path.name for path in paths]):
        if len(set(names)) == len(names):
            return names
    names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise DataError(f"{some(repeated)} is named twice: name each file once")
    return names
