"""Which of the matrices of an AnnData has a model's genes: X or raw."""

from __future__ import annotations

from collections.abc import Iterable

_ENOUGH = 0.9  # share of the known genes above which X is used as it is


def raw_note(
    known_genes: Iterable[str], genes: Iterable[str], raw_genes: Iterable[str] | None
) -> str | None:
    """Why raw is to be read instead of X, or None where X is.

    Asked where the user named neither a layer nor ``use_raw``. After scanpy's usual
    steps X has the variable genes alone, often scaled, and raw has all. raw is used if
    X lacks a tenth of the known genes or more, and raw has half of these at least.

    Parameters
    ----------
    known_genes : the genes of the model (of all its panels).
    genes, raw_genes : those of X and of raw; None where there is no raw.
    """
    known = {name.casefold() for name in known_genes}
    if not known or raw_genes is None:
        return None
    in_x = len(known.intersection(str(name).casefold() for name in genes))
    in_raw = len(known.intersection(str(name).casefold() for name in raw_genes))
    lacking = len(known) - in_x
    if in_x > _ENOUGH * len(known) or in_raw - in_x < lacking / 2:
        return None
    return (
        f"raw is read: X has {in_x} of the {len(known)} genes of the model, raw has "
        f"{in_raw}"
    )
