"""Which genes of the data may be used: those asked for, available, not excluded; the reference."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.names import some
from optirank.datasets.errors import DataError
from optirank.model.genes import match_genes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WILD = "*?["


def usable_genes(
    names: NDArray,
    source: str,
    genes: Sequence[str] | None,
    exclude: Sequence[str],
    available: Sequence[str] | None,
) -> tuple[NDArray, list[str]]:
    """Positions of the genes to use, in the order asked for, and notes."""
    positions, notes = _chosen(names, source, genes, exclude)
    if available is not None:
        positions, told = _available(names, source, positions, available)
        notes += told
    return positions, notes


def _chosen(
    names: NDArray, source: str, genes: Sequence[str] | None, exclude: Sequence[str]
) -> tuple[NDArray, list[str]]:
    notes: list[str] = []
    where = {str(name): k for k, name in enumerate(names)}
    kept = list(where)
    if genes is not None:
        wanted = list(dict.fromkeys(genes))
        kept = [gene for gene in wanted if gene in where]
        if len(kept) < 2:
            raise DataError(
                f"{source} has {len(kept)} of the {len(wanted)} genes asked for, too few: it "
                f"has genes such as {some(list(where), 3)}, asked for were {some(wanted, 3)}"
            )
        if len(kept) < len(wanted):
            lost = [gene for gene in wanted if gene not in where]
            notes.append(f"{len(lost)} of {len(wanted)} genes asked for are missing: {some(lost)}")
    out: set[str] = set()
    for pattern in exclude:
        hits = matching(kept, pattern)
        out.update(hits)
        told = f"{len(hits)} genes excluded by {pattern!r}: {some(hits, 5)}"
        notes.append(told if hits else f"no gene is excluded by {pattern!r}: none has such a name")
    if out:
        n_before = len(kept)
        kept = [name for name in kept if name not in out]
        if len(kept) < 2:
            raise DataError(f"{source}: the genes excluded leave {len(kept)} of {n_before}")
    if len(kept) < 2:
        raise DataError(f"{source} has {len(kept)} gene: ranks need at least 2")
    return np.array([where[name] for name in kept], dtype=np.intp), notes


def _available(
    names: NDArray, source: str, positions: NDArray, available: Sequence[str]
) -> tuple[NDArray, list[str]]:
    """The genes that prediction would find among those available; notes."""
    here = names[positions]
    match = match_genes(here, available)
    n = int(match.present.sum())
    if n < 2:
        raise DataError(
            f"{source} shares {n} genes with the data to be labelled: it has genes such as "
            f"{some(here, 3)}, those have {some(available, 3)}"
        )
    spelled = replace(match, genes=(), columns=match.columns[:0])
    notes = [
        f"{n} of {len(here)} genes are used: those that the data to be labelled have",
        *spelled.notes(),
    ]
    return positions[np.flatnonzero(match.present)], notes


def matching(names: Sequence[str], pattern: str) -> list[str]:
    """Names equal to a word, or that fit a pattern such as ``MT-*``; case does not count."""
    wanted = pattern.casefold()
    if any(sign in pattern for sign in _WILD):
        return [name for name in names if fnmatch.fnmatchcase(name.casefold(), wanted)]
    return [name for name in names if name.casefold() == wanted]


def fixed_reference(
    names: Sequence[str], source: str, include: Sequence[str], max_genes: int | None
) -> tuple[NDArray | None, list[str]]:
    """Positions of the reference set that the user fixed; notes."""
    if not include:
        return None, []
    notes: list[str] = []
    found: set[str] = set()
    lost = []
    for pattern in include:
        hits = matching(names, pattern)
        found.update(hits)
        if not hits:
            lost.append(pattern)
    if not found:
        raise DataError(
            f"{source} has none of the reference genes asked for ({some(include, 5)}): it has "
            f"genes such as {some(names, 3)}"
        )
    if lost:
        notes.append(f"{len(lost)} reference genes asked for are missing: {some(lost)}")
    if max_genes is not None and len(found) >= max_genes:
        raise DataError(
            f"{len(found)} reference genes leave no gene to weigh among at most {max_genes}: "
            "allow more genes, or name fewer"
        )
    notes.append(f"the reference set is fixed to {len(found)} genes: {some(sorted(found))}")
    return np.array([k for k, name in enumerate(names) if name in found]), notes


def reference_candidates(
    names: Sequence[str],
    source: str,
    reference_from: Sequence[str],
    not_in_reference: Sequence[str],
) -> tuple[NDArray | None, list[str]]:
    """Positions of the genes that may be in the reference set, None for all; notes."""
    if not reference_from and not not_in_reference:
        return None, []
    notes: list[str] = []
    allowed = set(names)
    if reference_from:
        hits = {pattern: matching(names, pattern) for pattern in reference_from}
        allowed = {name for found in hits.values() for name in found}
        if not allowed:
            raise DataError(
                f"{source} has none of the genes that the reference set may be chosen from "
                f"({some(reference_from, 5)}): it has genes such as {some(names, 3)}"
            )
        if lost := [pattern for pattern, found in hits.items() if not found]:
            notes.append(f"{len(lost)} genes for the reference set are missing: {some(lost)}")
    for pattern in not_in_reference:
        hit = matching(names, pattern)
        allowed -= set(hit)
        told = f"{len(hit)} genes are kept out of the reference set by {pattern!r}: {some(hit, 5)}"
        notes.append(told if hit else f"no gene has a name such as {pattern!r}: none is kept out")
    if not allowed:
        raise DataError(f"{source}: no gene is left that may be in the reference set")
    notes.append(f"the reference set is chosen from {len(allowed)} of {len(names)} genes")
    return np.array([k for k, name in enumerate(names) if name in allowed]), notes


def refuse_both(source: str, include: Sequence[str], exclude: Sequence[str]) -> None:
    """Refuse genes that are to be in the reference set and not to be used."""
    both = [gene for gene in include if any(matching([gene], pattern) for pattern in exclude)]
    if both:
        raise DataError(f"{source}: {some(both)} would be both included and excluded")
