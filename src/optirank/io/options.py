"""The options of reading a file of expression profiles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from optirank._util.flags import Flag

_READING = "Options for reading"


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of reading, as :func:`optirank.datasets.read_expression` explains them.

    A field with a `Flag` is an option of every command that reads profiles.
    """

    label: str | None = None
    format: Annotated[
        str | None,
        Flag(
            metavar="NAME",
            help=(
                "Format of the file, where its name does not tell: h5ad, zarr, 10x_h5, "
                "10x_mtx, loom, table or parquet."
            ),
            heading=_READING,
        ),
    ] = None
    layer: Annotated[
        str | None,
        Flag(
            metavar="NAME",
            help="Layer of an AnnData or .loom file instead of X.",
            heading=_READING,
        ),
    ] = None
    use_raw: Annotated[
        bool, Flag(help="Read raw of an AnnData file instead of X.", heading=_READING)
    ] = False
    table: Annotated[
        str | None,
        Flag(
            metavar="NAME",
            help="Table of a SpatialData folder, or modality of a .h5mu file.",
            heading=_READING,
        ),
    ] = None
    gene_column: Annotated[
        str | None,
        Flag(
            metavar="COLUMN", help="Gene names, instead of the index.", heading=_READING
        ),
    ] = None
    genes_in: Annotated[
        str | None,
        Flag(
            metavar="rows|columns",
            help="For tables: where the genes are.",
            heading=_READING,
            choices=("rows", "columns"),
        ),
    ] = None
    annotations: Annotated[
        tuple[str, ...],
        Flag(
            metavar="COLUMNS",
            help="Columns of a table that are not genes, comma-separated.",
            heading=_READING,
            typed=str | None,
        ),
    ] = ()
    samples: Annotated[
        str | None,
        Flag(
            metavar="FILE",
            help="Table with columns for the samples: labels, clusters, sources.",
            heading=_READING,
            typed=Path | None,
        ),
    ] = None
    drop_missing: Annotated[
        bool,
        Flag(
            help="Leave out genes of a table with missing values.",
            heading=_READING,
            names=("--drop-missing-genes",),
        ),
    ] = False
    any_scale: Annotated[
        bool,
        Flag(
            help="All columns of a table are genes, also those that look like clinical "
            "data (age, months, IHC %).",
            heading=_READING,
            names=("--all-genes",),
        ),
    ] = False
    invert: Annotated[
        bool,
        Flag(
            help="Of the values of a table, less is more, such as Ct of qPCR.",
            heading=_READING,
        ),
    ] = False
    known_genes: tuple[str, ...] = ()
