"""Finding a model's genes among the genes of new data, and saying how each was found.

A name is looked for as it is written. Names that are not there are looked for without the version
of an Ensembl identifier (``ENSG00000141510.12``), then without regard to case. Whatever was found
in another spelling is listed. Nothing is guessed: a gene that several columns could stand for, be
it a symbol that is there twice or two spellings of it, counts as missing and is listed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optirank._util.names import some

_FEW = 5  # genes in another case that are only reported: a few differ between annotations
_ENSEMBL = re.compile(r"(ENS[A-Z]*[GTPER][0-9]{6,})\.[0-9]+(.*)", re.IGNORECASE)


@dataclass(frozen=True)
class GeneMatch:
    """Where a model's genes are in new data."""

    genes: tuple[str, ...]
    """The genes that were looked for."""
    columns: NDArray[np.intp]
    """The column of each, -1 where it is missing."""
    by_version: dict[str, str] = field(default_factory=dict)
    """Genes found under another version of their Ensembl identifier: as here -> as there."""
    by_case: dict[str, str] = field(default_factory=dict)
    """Genes found in another case."""
    ambiguous: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Genes that cannot be told from others without guessing, with the columns in question; they
    count as missing."""
    other_column: tuple[str, int] | None = None
    """A column of the data with other names, in which more of the genes are, and how many."""

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which of the genes were found."""
        return self.columns >= 0

    @property
    def missing(self) -> tuple[str, ...]:
        """The genes that were not found, the ambiguous ones among them."""
        return tuple(
            gene for gene, column in zip(self.genes, self.columns, strict=True) if column < 0
        )

    def notes(self) -> list[str]:
        """What there is to say, a sentence each; none when every gene was found as written."""
        several = {gene: " and ".join(names) for gene, names in self.ambiguous.items()}
        how = {
            "were matched without the version of their Ensembl identifier": self.by_version,
            "were matched in another case": self.by_case,
            "match several columns and count as missing": several,
        }
        notes = [f"{len(one)} genes {what}: {_pairs(one)}" for what, one in how.items() if one]
        if self.missing:
            notes.append(
                f"{len(self.missing)} of {len(self.genes)} genes are missing: {some(self.missing)}"
            )
        if self.other_column:
            column, n = self.other_column
            notes.append(
                f"the column {column!r} of the data's genes has {n} of the {len(self.genes)}: it "
                "may be the one to use (gene_column=, --gene-column)"
            )
        return notes


def match_genes(
    wanted: Iterable[str], given: Iterable[str], known: Iterable[str] = ()
) -> GeneMatch:
    """Find genes by name.

    Parameters
    ----------
    wanted : the genes looked for: a model's panel, all different.
    given : the genes of the new data, in the order of its columns.
    known : further genes of the model's training data. A column that is one of them is itself, and
        not another spelling of a gene looked for.
    """
    wanted, given = _names(wanted, "the model"), _names(given, "the data")
    counts = Counter(given)
    at = {name: column for column, name in enumerate(given)}
    columns = np.full(len(wanted), -1, dtype=np.intp)
    ambiguous: dict[str, tuple[str, ...]] = {}
    for j, gene in enumerate(wanted):
        if counts[gene] == 1:
            columns[j] = at[gene]
        elif counts[gene] > 1:
            ambiguous[gene] = (gene,) * counts[gene]

    found: tuple[dict[str, str], dict[str, str]] = ({}, {})
    taken = set(wanted) | set(known)
    if (columns < 0).sum() > len(ambiguous):
        free = [name for name in given if name not in taken]
        for spelled, key in zip(found, (_without_version, _folded), strict=True):
            _match_loosely(wanted, columns, free, key, at, spelled, ambiguous)
    return GeneMatch(tuple(wanted), columns, *found, ambiguous)


def check_case(match: GeneMatch) -> None:
    """Refuse a match most of which rests on names in another case.

    Symbols of mouse genes are those of human genes in another case (Cd4, CD4), and what is called
    alike need not be the same gene, nor behave alike.
    """
    n, found = len(match.by_case), int(match.present.sum())
    if n <= _FEW or 2 * n <= found:
        return
    raise ValueError(
        f"{n} of the {found} genes that were found match in another case only: "
        f"{_pairs(match.by_case)}. This may be "
        "another species (mouse symbols are written Cd4, human ones CD4). Please give a table of "
        "homologs (homologs=, --homologs mouse or a file), or say that case does not matter "
        "(homologs='case', --homologs case)."
    )


def better_column(match: GeneMatch, columns: Mapping[str, Iterable[str]]) -> tuple[str, int] | None:
    """Of other names that the data have for their genes, those that find more, and how many."""
    wanted = set(match.genes)
    found = {name: len(wanted.intersection(names)) for name, names in columns.items()}
    best = max(found, key=found.__getitem__, default=None)
    if best is None or found[best] <= match.present.sum():
        return None
    return best, found[best]


def _match_loosely(
    wanted: list[str],
    columns: NDArray[np.intp],
    free: list[str],
    key: Callable[[str], str],
    at: dict[str, int],
    spelled: dict[str, str],
    ambiguous: dict[str, tuple[str, ...]],
) -> None:
    """Match the genes that are still missing by a key of their names, where it is unique."""
    ours = Counter(map(key, wanted))
    theirs: defaultdict[str, list[str]] = defaultdict(list)
    for name in free:
        theirs[key(name)].append(name)
    for j, gene in enumerate(wanted):
        if columns[j] >= 0 or gene in ambiguous:
            continue
        candidates = theirs.get(key(gene), [])
        if len(candidates) == 1 and ours[key(gene)] == 1:
            columns[j] = at[candidates[0]]
            spelled[gene] = candidates[0]
        elif candidates:
            ambiguous[gene] = tuple(candidates)


def _without_version(name: str) -> str:
    found = _ENSEMBL.fullmatch(name)
    return found.group(1) + found.group(2) if found else name


def _folded(name: str) -> str:
    return _without_version(name).casefold()


def _names(names: Iterable[str], whose: str) -> list[str]:
    names = list(np.asarray(names, dtype=object)) if hasattr(names, "__array__") else list(names)
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise TypeError(
            f"the gene names of {whose} are not all strings: {wrong!r} is of type "
            f"{type(wrong).__name__}; give names as strings"
        )
    return names


def _pairs(spelled: dict[str, str]) -> str:
    return some(f"{ours} as {theirs}" for ours, theirs in spelled.items())
