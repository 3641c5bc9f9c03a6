"""Which matrix of an AnnData is read: of which table, of a layer, or of raw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optirank._util.names import some
from optirank.io.data import DataError

_ENOUGH = 0.9  # share of the known genes above which X is used as it is


def choose_table(tables: Any, name: str | None, source: object, what: str) -> str:
    """The name of the table to read: the one asked for, or the only one."""
    names = [str(key) for key in tables]
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise DataError(
            f"{source} has {len(names)} {what}, {some(names)}: name one of them "
            "(table=)"
        )
    if name not in names:
        raise DataError(f"{source} has no table {name!r}: there are {some(names)}")
    return name


def choose_matrix(
    adata: Any,
    source: object,
    *,
    layer: str | None,
    use_raw: bool,
    gene_column: str | None,
    known_genes: Sequence[str],
) -> tuple[Any, Any, list[str]]:
    """The matrix to read, what has its genes (the AnnData, or its raw), and notes.

    ``adata`` is an AnnData, or has its X, layers, raw and var_names.
    """
    raw = adata.raw
    if use_raw and layer is not None:
        raise DataError(f"{source}: use_raw=True and layer={layer!r}: give one of them")
    if use_raw:
        if raw is None:
            raise DataError(
                f"{source} has no raw (use_raw=True): use X (use_raw=False) or a layer"
            )
        return raw.X, raw, []
    if layer is not None:
        return layer_of(adata.layers, layer, source), adata, []
    if raw is not None and gene_column is None:
        note = raw_note(known_genes, adata.var_names, raw.var_names)
        if note is not None:
            return raw.X, raw, [note]
    if adata.X is None:
        raise DataError(
            f"{source} has no X: name one of its layers (layer=), there are "
            f"{some(adata.layers)}"
        )
    return adata.X, adata, []


def layer_of(layers: Mapping[str, Any], layer: str, source: object) -> Any:
    """A layer; the error of one that is not there lists all."""
    if layer not in layers:
        raise DataError(f"{source} has no layer {layer!r}: there are {some(layers)}")
    return layers[layer]


def raw_note(
    known_genes: Iterable[str], genes: Iterable[str], raw_genes: Iterable[str]
) -> str | None:
    """Why raw is to be read instead of X, or None where X is.

    Asked where the user named neither a layer nor ``use_raw``. After scanpy's usual
    steps X has the variable genes alone, often scaled, and raw has all. raw is used if
    X lacks a tenth of the known genes or more, and raw has half of these at least.

    Parameters
    ----------
    known_genes : the genes of the model (of all its panels).
    genes, raw_genes : those of X and of raw.
    """
    known = {name.casefold() for name in known_genes}
    if not known:
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
