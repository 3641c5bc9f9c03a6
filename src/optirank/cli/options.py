"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class GenesIn(StrEnum):
    """Orientation of a table."""

    rows = "rows"
    columns = "columns"


class MatchCase(StrEnum):
    """What to do if most genes match only in another case."""

    check = "check"
    ignore = "ignore"


class FileFormat(StrEnum):
    """Format of a file whose name does not show it."""

    h5ad = "h5ad"
    zarr = "zarr"
    tenx_h5 = "10x_h5"
    tenx_mtx = "10x_mtx"
    table = "table"


FileArgument = Annotated[
    Path,
    typer.Argument(help=".h5ad, .zarr, 10x (.h5 or folder), .csv or .tsv.", show_default=False),
]
ModelArgument = Annotated[Path, typer.Argument(help="A model file.", show_default=False)]
LayerOption = Annotated[
    str | None, typer.Option(help="Layer of an AnnData file to use instead of X.")
]
GeneColumnOption = Annotated[
    str | None, typer.Option(help="Column with the gene names, instead of the index.")
]
GenesInOption = Annotated[
    GenesIn | None, typer.Option(help="For tables: whether genes are rows or columns.")
]
AnnotationsOption = Annotated[
    str | None, typer.Option(help="Columns of a table that are not genes, comma-separated.")
]
SamplesOption = Annotated[
    Path | None, typer.Option(help="Table with columns for the samples: labels, clusters, sources.")
]
FormatOption = Annotated[
    FileFormat | None,
    typer.Option("--format", help="Format of the file, if its name does not show it."),
]
MaxMissingOption = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="Share of a class's genes or weights that may be missing."),
]
DropClassesOption = Annotated[
    bool,
    typer.Option("--drop-classes", help="Leave out classes that lack more than --max-missing."),
]
MatchCaseOption = Annotated[
    MatchCase,
    typer.Option(help="Refuse (check) or accept (ignore) genes that match only in another case."),
]
HomologsOption = Annotated[
    Path | None,
    typer.Option(help="Table for another species: its genes, and the genes of the model."),
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of .h5ad files; default: OPTIRANK_DATA, else the cache."),
]


class Device(StrEnum):
    """Device to fit on."""

    cpu = "cpu"
    cuda = "cuda"


DeviceOption = Annotated[
    Device, typer.Option(help="Device to fit on: CPU, or NVIDIA GPU ([gpu] extra).")
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Replace existing outputs (never inputs).")
]
ProcessesOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Processes; default: all processors."),
]
