"""The files of a training: several references, and the genes of a query."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank._util.names import some
from optirank.io.data import DataError, duplicates, readable
from optirank.io.objects import FILE_COLUMN, join
from optirank.io.reading import guess_format, is_table, open_file, read_gene_names
from optirank.io.table_files import find_layout, open_text
from optirank.io.tables import TABLE
from optirank.verbs.gene_lists import read_gene_list

if TYPE_CHECKING:
    from anndata import AnnData


@contextlib.contextmanager
def open_sources(
    files: Sequence[Path],
    labels: Sequence[str],
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
    columns = [*labels] if batch is None else [*labels, batch]
    names = names_of_files(files)
    with contextlib.ExitStack() as stack:
        parts = []
        for path in files:
            options = dict(reading)
            if for_query and not is_table(path, options.get("format")):
                options["genes_in"] = None
            opened = open_file(path, label=columns, **options)
            parts.append(stack.enter_context(opened))
        if len(parts) == 1:
            yield parts, batch
        else:
            yield join(parts, names), batch or FILE_COLUMN


def names_of_files(paths: Sequence[Path]) -> list[str]:
    """Short names of files that differ: without folder and ending where that
    suffices.
    """
    for names in ([path.stem for path in paths], [path.name for path in paths]):
        if len(set(names)) == len(names):
            return names
    names = [str(path) for path in paths]
    if repeated := duplicates(names):
        raise DataError(f"{some(repeated)} is named twice: name each file once")
    return names


def genes_of_queries(
    files: Sequence[Path], genes_in: str | None = None
) -> list[str] | None:
    """The genes that all of some files have, in the order of the first; None
    without files.

    Text of no format that says where its genes are, about which ``genes_in`` says
    nothing either, is a list of genes.
    """
    common: list[str] | None = None
    for file in map(Path, files):
        is_list = False
        if genes_in is None and file.is_file() and guess_format(file) == TABLE.name:
            with readable(file), open_text(file) as lines:
                is_list = not find_layout(file, lines).format
        if is_list:
            names = read_gene_list(file)
        else:
            names = read_gene_names(file, genes_in)
        present = set(names)
        if common is None:
            common = names
        common = [name for name in common if name in present]
    return common
