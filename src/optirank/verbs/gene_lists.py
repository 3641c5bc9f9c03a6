"""Which genes may be chosen and which must be: names, patterns, lists that people
write, and the genes of a query.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.words import counted, note, some
from optirank.data.genes import match_genes
from optirank.data.opening import check_path, file_kind, open_profiles
from optirank.data.profiles import DataError, readable
from optirank.data.tables import open_text, read_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.verbs.options import Genes

_HEADINGS = ("gene", "genes", "symbol")
_IS_PATTERN = re.compile(r"[*?\[]")


def genes_of_items(items: Genes) -> tuple[list[str], list[str]]:
    """The genes of files that items name; and names and patterns, which are separated
    by commas.
    """
    listed: list[str] = []
    named: list[str] = []
    if isinstance(items, str | os.PathLike):
        items = [items]
    for item in map(str, items):
        if os.path.isfile(item):
            listed += read_gene_list(Path(item))
        else:
            named += [name.strip() for name in item.split(",") if name.strip()]
    return listed, named


def read_gene_list(path: Path) -> list[str]:
    """The first column of a file, without a heading such as "gene" and lines with #."""
    with readable(path), open_text(path) as file:
        lines = file.read().splitlines()
    fields = [re.split("[\t,;]", line)[0].strip().strip('"') for line in lines]
    names = [field for field in fields if field and not field.startswith("#")]
    if names and names[0].lower() in _HEADINGS:
        names = names[1:]
    if not names:
        raise DataError(f"{path} names no gene: write one per line")
    return names


def find_genes(
    names: Sequence[str], wanted: Iterable[str]
) -> tuple[NDArray[np.intp], list[str]]:
    """Rising positions of the genes that are wanted among names, and what none is.

    Patterns such as ``MT-*`` fit in any case. Names are looked for as they are written,
    without the version of an Ensembl id, and in another case.
    """
    wanted = dict.fromkeys(wanted)
    is_wanted = np.zeros(len(names), dtype=bool)
    missing = []
    patterns = [text for text in wanted if _IS_PATTERN.search(text)]
    for pattern in patterns:
        fits = [fnmatch.fnmatchcase(n.casefold(), pattern.casefold()) for n in names]
        is_wanted |= np.array(fits, dtype=bool)
        if not any(fits):
            missing.append(pattern)
    match = match_genes((name for name in wanted if name not in patterns), names)
    match.note_spelling()
    is_wanted[match.columns[match.present]] = True
    return np.flatnonzero(is_wanted), [*missing, *match.missing]


def refuse_missing(missing: Sequence[str], names: Sequence[str], source: str) -> None:
    """Refuse genes that are wanted and not there, with names that are written alike."""
    if not missing:
        return
    by_case = {name.casefold(): name for name in names}
    hints = []
    for gene in missing[:30]:
        close = difflib.get_close_matches(gene.casefold(), by_case, n=3, cutoff=0.7)
        alike = ", ".join(by_case[name] for name in close)
        hints.append(f"{gene} (close: {alike})" if close else gene)
    raise DataError(
        f"{source} lacks {len(missing)} of the genes asked for, or they are excluded, "
        f"or missing in the query: {some(hints, 30)}; correct them, or take them out"
    )


def excluded_genes(names: Sequence[str], items: Genes) -> NDArray[np.bool_]:
    """Mask of the genes that are excluded, with a note."""
    listed, named = genes_of_items(items)
    positions, missing = find_genes(names, [*listed, *named])
    excluded = np.isin(np.arange(len(names)), positions)
    if len(positions):
        what = counted(len(positions), "gene", "genes")
        note(f"{what} excluded: {some((names[k] for k in positions), 5)}")
    if missing:
        note(f"no gene is excluded by {some(missing)}: none has such a name")
    return excluded


def shared_genes(
    names: Sequence[str], source: str, others: Sequence[str], whose: str
) -> NDArray[np.bool_]:
    """Mask of the genes that are among others; ``whose`` says what these are."""
    match = match_genes(names, others)
    n_shared = int(match.present.sum())
    if n_shared < 2:
        raise DataError(
            f"{source} shares {n_shared} genes with those that {whose}: it has genes "
            f"such as {some(names, 3)}, those are {some(others, 3)}"
        )
    note(f"{n_shared} of {len(names)} genes are used: those that {whose}")
    match.note_spelling()
    return match.present


def genes_of_queries(files: Sequence[Path]) -> list[str]:
    """The genes that all of some files have, in the order of the first.

    Of a table, which may be a list of genes, they are all names in it: of its lines,
    its columns and in its columns of text.
    """
    sets = []
    for file in map(check_path, files):
        if file_kind(file) == "table":
            sets.append(read_table(file).names())
        else:
            with open_profiles(file) as profiles:
                sets.append(profiles.genes.tolist())
    common = set.intersection(*map(set, sets))
    return [name for name in sets[0] if name in common]
