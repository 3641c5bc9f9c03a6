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

from optirank._util.names import counted, some
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
    other_column : the column of other names with more of the genes, and how many.
    """

    genes: tuple[str, ...]
    columns: NDArray[np.intp]
    spelled: Mapping[str, str] = field(default_factory=dict)
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    other_column: tuple[str, int] | None = None

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
        if self.other_column:
            column, n_genes = self.other_column
            notes.append(
                f"the column {column!r} of the data's genes has {n_genes} of the "
                f"{len(self.genes)}: it may be the one to use (gene_column=)"
            )
        return notes


def match_genes(
    wanted: Iterable[str],
    names: Iterable[str],
    other_names: Mapping[str, Iterable[str]] | None = None,
) -> GeneMatch:
    """Find genes by name.

    Parameters
    ----------
    wanted : the genes looked for, all different.
    names : the genes of the data, in their order.
    other_names : other names of the data's genes, by kind: said where they would find
        more.
    """
    genes, names = list(wanted), list(names)
    for name in (*genes, *names):
        if not isinstance(name, str):
            raise TypeError(
                f"gene names are strings, not {type(name).__name__}: {name!r}"
            )
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
    shared = {
        kind: len(as_written.intersection(others))
        for kind, others in (other_names or {}).items()
    }
    best = max(shared.items(), key=lambda entry: entry[1], default=("", 0))
    other_column = best if best[1] > (columns >= 0).sum() else None
    return GeneMatch(tuple(genes), columns, spelled, ambiguous, other_column)


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
