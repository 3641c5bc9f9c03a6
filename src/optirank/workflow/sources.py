"""The files of a training: references, queries to be labelled later, lists of genes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank.io.data import DataError, check_column
from optirank.io.joined import FILE_COLUMN, JoinedProfiles
from optirank.io.reading import is_table, open_expression, read_gene_names

if TYPE_CHECKING:
    from optirank.io.data import Profiles


@contextlib.contextmanager
def open_sources(
    files: Sequence[Path],
    label: str,
    batch: str | None = None,
    *,
    for_query: bool = False,
    **reading: Any,
) -> Iterator[tuple[Profiles, str | None]]:
    """Open the reference files of a training; columns that must be there are looked for first.

    Gives the profiles and the column of the sources: of several files, the file where no other
    column is named. ``for_query`` says that ``genes_in`` may be about the query's table.
    """
    with contextlib.ExitStack() as stack:
        opened = []
        for path in map(Path, files):
            options = dict(reading)
            if for_query and not is_table(path, options.get("format")):
                options["genes_in"] = None
            if options.get("genes_in") == "columns" and options.get("samples") is None:
                needed = [label, *([batch] if batch else [])]
                options["annotations"] = [
                    *dict.fromkeys([*options["annotations"], *needed])
                ]
            one = stack.enter_context(open_expression(path, **options))
            for column in (label, batch):
                if column is not None:
                    check_column(one.obs, column, str(options.get("samples") or path))
            opened.append(one)
        if len(opened) == 1:
            yield opened[0], batch
        else:
            yield JoinedProfiles(opened), batch or FILE_COLUMN


def genes_of_queries(
    files: Sequence[Path], genes_in: str | None = None
) -> list[str] | None:
    """The genes that all of some files have, in the order of the first; None without files."""
    common: list[str] | None = None
    for file in map(Path, files):
        there = read_gene_names(file, genes_in)
        known = set(there)
        common = there if common is None else [name for name in common if name in known]
    return common


def gene_names_in(items: Sequence[str]) -> list[str]:
    """Names and patterns: each item is a file of them, or some separated by commas.

    Of a file the first column counts; a heading such as "gene" and lines that begin with # do not.
    """
    found: list[str] = []
    for item in items:
        if not Path(item).is_file():
            found += [name.strip() for name in item.split(",") if name.strip()]
            continue
        lines = Path(item).read_text(encoding="utf-8-sig").splitlines()
        names = [
            line.replace("\t", ",").split(",")[0].strip().strip('"') for line in lines
        ]
        names = [name for name in names if name and not name.startswith("#")]
        names = (
            names[1:]
            if names and names[0].lower() in ("gene", "genes", "symbol")
            else names
        )
        if not names:
            raise DataError(f"{item} names no gene: write one per line")
        found += names
    return found
