"""Names of genes: where those of a model are among those of data.

A name is looked for as it is written. Names that are not there are looked for without
the version of an Ensembl identifier (``ENSG00000141510.12``), then without regard to
case. Whatever was found in another spelling is listed. Nothing is guessed: a gene that
several names could stand for counts as missing and is listed. Other names, such as
those of another species, are the user's to translate.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optirank._util.words import counted, some
from optirank.data.errors import DataError

_ENSEMBL = re.compile(r"^(ENS[A-Z]*[GTPER][0-9]{6,})\.[0-9]+(.*)$", re.IGNORECASE)
_FEW = 5  # genes in another case differ between annotations, and are only reported


@dataclass(frozen=True)
class GeneMatch:
    """Where the genes that were looked for are in new data.

    Attributes
    ----------
    genes : the names that were looked for.
    columns : the position of each, -1 where it is missing.
    spelled : genes found in another spelling: another version of their Ensembl
        identifier, or another case.
    ambiguous : genes for which there are several names; they count as missing.
    """

    genes: tuple[str, ...]
    columns: NDArray[np.intp]
    spelled: Mapping[str, str] = field(default_factory=dict)
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which of the genes were found."""
        return self.columns >= 0

    @property
    def missing(self) -> tuple[str, ...]:
        """The genes that were not found, the ambiguous ones among them."""
        return tuple(np.array(self.genes, dtype=object)[~self.present].tolist())

    @property
    def by_case(self) -> dict[str, str]:
        """The genes found in another case."""
        return {
            gene: name
            for gene, name in self.spelled.items()
            if _without_version(gene) != _without_version(name)
        }

    def spelling_notes(self) -> list[str]:
        """Sentences about genes that were found in another spelling."""
        several = {gene: " and ".join(names) for gene, names in self.ambiguous.items()}
        by_case = self.by_case
        kinds = {
            "matched without the version of their Ensembl identifier": {
                gene: name for gene, name in self.spelled.items() if gene not in by_case
            },
            "matched in another case": by_case,
            "missing because several columns match": several,
        }
        return [
            f"{counted(len(spelled), 'gene is', 'genes are')} {what}: {_pairs(spelled)}"
            for what, spelled in kinds.items()
            if spelled
        ]

    def notes(self) -> list[str]:
        """Sentences about all genes; none when every gene was found as written."""
        notes = self.spelling_notes()
        missing = self.missing
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            notes.append(
                f"{len(missing)} of {len(self.genes)} genes {verb} missing: "
                f"{some(missing)}"
            )
        return notes


def match_genes(wanted: Iterable[str], names: Iterable[str]) -> GeneMatch:
    """Find genes, all different, by name among those of data, in their order."""
    genes, names = list(wanted), list(names)
    wrong = [name for name in (*genes, *names) if not isinstance(name, str)]
    if wrong:
        kind = type(wrong[0]).__name__
        raise TypeError(f"gene names are strings, not {kind}: {wrong[0]!r}")
    columns = np.full(len(genes), -1, dtype=np.intp)
    spelled: dict[str, str] = {}
    ambiguous: dict[str, tuple[str, ...]] = {}
    as_written = set(genes)
    for spelling in (str, _without_version, without_case):
        if (columns < 0).sum() == len(ambiguous):
            break
        n_wanted = Counter(map(spelling, genes))
        places: defaultdict[str, list[int]] = defaultdict(list)
        for column, name in enumerate(names):
            # A name that is wanted is itself, and not another spelling of a gene
            if (name in as_written) == (spelling is str):
                places[spelling(name)].append(column)
        for position, gene in enumerate(genes):
            candidates = places.get(spelling(gene), [])
            if columns[position] >= 0 or gene in ambiguous or not candidates:
                continue
            if len(candidates) > 1 or n_wanted[spelling(gene)] > 1:
                ambiguous[gene] = tuple(names[column] for column in candidates)
                continue
            columns[position] = candidates[0]
            if names[candidates[0]] != gene:
                spelled[gene] = names[candidates[0]]
    return GeneMatch(tuple(genes), columns, spelled, ambiguous)


def check_case(match: GeneMatch) -> None:
    """Refuse a match most of which rests on names in another case.

    Symbols of mouse genes are those of human genes in another case (Cd4, CD4), and
    genes of the same name need not be the same gene, nor behave alike.
    """
    by_case = match.by_case
    n_found = int(match.present.sum())
    if len(by_case) <= _FEW or 2 * len(by_case) <= n_found:
        return
    raise DataError(
        f"{len(by_case)} of the {n_found} genes that were found match in another case "
        f"only: {_pairs(by_case)}. Another species? Mouse symbols are written Cd4, "
        "human ones CD4: translate the names first (docs: Names of genes)"
    )


def _without_version(name: str) -> str:
    return _ENSEMBL.sub(r"\1\2", name)


def without_case(name: str) -> str:
    """A name of a gene without the version of its identifier, and without case."""
    return _without_version(name).casefold()


def _pairs(spelled: Mapping[str, str]) -> str:
    return some(f"{ours} as {theirs}" for ours, theirs in spelled.items())
