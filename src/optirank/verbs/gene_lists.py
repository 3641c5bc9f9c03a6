"""Which genes may be chosen and which must be: names, patterns, lists that people
write.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.names import counted, some
from optirank._util.notes import note
from optirank.io.data import DataError
from optirank.io.genes import match_genes

if TYPE_CHECKING:
    from numpy.typing import NDArray


_HEADINGS = ("gene", "genes", "symbol")


def genes_of_items(items: Sequence[str]) -> tuple[list[str], list[str]]:
    """The genes of files that items name; and names and patterns, which are separated
    by commas.
    """
    listed: list[str] = []
    patterns: list[str] = []
    for item in items:
        if Path(item).is_file():
            listed += read_gene_list(Path(item))
        else:
            patterns += [name.strip() for name in item.split(",") if name.strip()]
    return listed, patterns


def read_gene_list(path: Path) -> list[str]:
    """The first column of a file, without a heading such as "gene" and lines with #."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    fields = [re.split("[\t,;]", line)[0].strip().strip('"') for line in lines]
    names = [field for field in fields if field and not field.startswith("#")]
    if names and names[0].lower() in _HEADINGS:
        names = names[1:]
    if not names:
        raise DataError(f"{path} names no gene: write one per line")
    return names


def matching_names(names: Sequence[str], pattern: str) -> NDArray[np.bool_]:
    """Mask of the names that are equal to a word or fit a pattern such as ``MT-*``, in
    any case.
    """
    wanted = str(pattern).casefold()
    fits = [fnmatch.fnmatchcase(name.casefold(), wanted) for name in names]
    return np.array(fits, dtype=bool)


def excluded_genes(names: Sequence[str], items: Sequence[str]) -> NDArray[np.bool_]:
    """Mask of the names that are listed in files or fit a pattern, with a note."""
    mask = np.zeros(len(names), dtype=bool)
    listed, patterns = genes_of_items(items)
    lacking = []
    for pattern in [*listed, *patterns]:
        hits = matching_names(names, pattern)
        mask |= hits
        if not hits.any():
            lacking.append(pattern)
    if mask.any():
        fitting = [names[k] for k in np.flatnonzero(mask).tolist()]
        note(f"{counted(len(fitting), 'gene', 'genes')} excluded: {some(fitting, 5)}")
    if lacking:
        note(
            f"no gene is excluded by {some(lacking, quoted=True)}: none has such a name"
        )
    return mask


def with_close_names(name: str, names: Sequence[str]) -> str:
    """A name that is missing, with names that are written like it."""
    by_case = {text.casefold(): text for text in names}
    close = difflib.get_close_matches(name.casefold(), by_case, n=3, cutoff=0.7)
    if not close:
        return name
    return f"{name} (close: {', '.join(by_case[text] for text in close)})"


def find_listed_genes(
    wanted: Sequence[str], names: Sequence[str], source: str, *, skip: bool = False
) -> NDArray[np.intp]:
    """Positions of the genes of a list among ``names``, in the order of the list.

    A name is looked for as it is written, without the version of an Ensembl id, and in
    another case. Genes that occur twice are refused, and so are those that are not
    there, unless they are to be skipped and two are left.
    """
    wanted = [str(name).strip() for name in wanted]
    repeated = [name for name, n in Counter(wanted).items() if n > 1]
    if repeated:
        what = counted(len(repeated), "gene is", "genes are")
        raise DataError(
            f"{what} in the list more than once: {some(repeated, 30)}; name each once"
        )
    match = match_genes(wanted, names)
    for text in match.spelling_notes():
        note(text)
    present = match.columns[match.present]
    if match.missing and skip and len(present) > 1:
        note(
            f"{len(match.missing)} of the {len(wanted)} genes of the list are not in "
            f"{source}: {some(match.missing, 30)}"
        )
    elif match.missing:
        hints = some([with_close_names(name, names) for name in match.missing], 30)
        raise DataError(
            f"{source} lacks {len(match.missing)} of the {len(wanted)} genes of the "
            f"list: {hints}; correct them, or take them out"
        )
    return present


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
    for text in match.spelling_notes():
        note(text)
    return match.present


def included_genes(
    names: Sequence[str], patterns: Sequence[str], source: str
) -> NDArray[np.intp]:
    """Rising positions of the genes that must be in the panel."""
    included = np.zeros(len(names), dtype=bool)
    missing = []
    for pattern in patterns:
        hits = matching_names(names, pattern)
        included |= hits
        if not hits.any():
            missing.append(with_close_names(pattern, names))
    if missing:
        raise DataError(
            f"{source} lacks {len(missing)} of the genes that must be in the panel, or "
            f"they are excluded, or missing in the query: {some(missing, 30)}; correct "
            "them, or require fewer (include=)"
        )
    positions = np.flatnonzero(included)
    if len(positions):
        what = counted(len(positions), "gene is", "genes are")
        note(f"{what} in the panel as asked: {some([names[k] for k in positions])}")
    return positions
