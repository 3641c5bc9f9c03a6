"""The options of reading a file of expression profiles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of reading, as :func:`optirank.datasets.read_expression` explains them.

    ``reading`` in `optirank.cli.options` spells them for the command line.
    """

    label: str | None = None
    format: str | None = None
    layer: str | None = None
    use_raw: bool = False
    table: str | None = None
    gene_column: str | None = None
    genes_in: str | None = None
    annotations: tuple[str, ...] = ()
    samples: str | None = None
    drop_missing: bool = False
    any_scale: bool = False
    invert: bool = False
    known_genes: tuple[str, ...] = ()
