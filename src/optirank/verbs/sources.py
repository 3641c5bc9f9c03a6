"""The files of a training: several references, and the genes of a query."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank._util.words import some
from optirank.data.errors import DataError, readable
from optirank.data.opening import check_path, file_kind, open_profiles
from optirank.data.profiles import FILE_COLUMN, duplicates, join_profiles
from optirank.data.tables import read_table

if TYPE_CHECKING:
    from optirank.data.profiles import Profiles


@contextlib.contextmanager
def open_sources(
    files: Sequence[Path],
    labels: Sequence[str],
    batch: str | None = None,
    **reading: Any,
) -> Iterator[tuple[list[Profiles], str | None]]:
    """Open the reference files of a training; columns that must be there are looked for
    first.

    Gives the profiles and the column of the sources: of several files, the file where
    no other column is named.
    """
    columns = [*labels] if batch is None else [*labels, batch]
    names = names_of_files(files)
    with contextlib.ExitStack() as stack:
        parts = [
            stack.enter_context(open_profiles(path, label=columns, **reading))
            for path in files
        ]
        if len(parts) == 1:
            yield parts, batch
        else:
            yield join_profiles(parts, names), batch or FILE_COLUMN


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


def genes_of_queries(files: Sequence[Path]) -> list[str] | None:
    """The genes that all of some files have, in the order of the first; None
    without files.

    Of a table, which may be a list of genes, they are all names in it: of its lines,
    its columns and in its columns of text.
    """
    sets = []
    for file in map(check_path, files):
        if file_kind(file) == "table":
            with readable(file):
                sets.append(read_table(file).names())
        else:
            with open_profiles(file) as profiles:
                sets.append(profiles.genes.tolist())
    if not sets:
        return None
    common = set.intersection(*map(set, sets))
    return [name for name in sets[0] if name in common]
