"""Options that several commands take, said once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class GenesIn(StrEnum):
    """How a table lies."""

    rows = "rows"
    columns = "columns"


class MatchCase(StrEnum):
    """What to do where most genes match in another case only."""

    check = "check"
    ignore = "ignore"


class FileFormat(StrEnum):
    """What a file is, where its name does not tell."""

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
LayerOption = Annotated[str | None, typer.Option(help="A layer of an AnnData file, not X.")]
GeneColumnOption = Annotated[
    str | None, typer.Option(help="Column with the gene names, instead of the index.")
]
GenesInOption = Annotated[
    GenesIn | None, typer.Option(help="Of a table: whether genes are rows or columns.")
]
AnnotationsOption = Annotated[
    str | None, typer.Option(help="Columns of a table that are no genes, with commas.")
]
SamplesOption = Annotated[
    Path | None, typer.Option(help="A table about the samples: labels, clusters, sources.")
]
FormatOption = Annotated[
    FileFormat | None,
    typer.Option("--format", help="What the file is, where its name does not tell."),
]
MaxMissingOption = Annotated[
    float,
    typer.Option(min=0.0, max=1.0, help="Share of a class's genes or weights that may be missing."),
]
DropClassesOption = Annotated[
    bool, typer.Option("--drop-classes", help="Leave out classes that lack more than that.")
]
MatchCaseOption = Annotated[
    MatchCase,
    typer.Option(help="Refuse or take a file most of whose genes match in another case only."),
]
HomologsOption = Annotated[
    Path | None,
    typer.Option(help="Genes of another species: a table of two columns, theirs and the model's."),
]
DataOption = Annotated[
    Path | None,
    typer.Option("--data", help="Folder of .h5ad sets; else OPTIRANK_DATA, else the cache."),
]


class Device(StrEnum):
    """Where fits take place."""

    cpu = "cpu"
    cuda = "cuda"


DeviceOption = Annotated[
    Device, typer.Option(help="Where to fit: the processor, or an NVIDIA GPU ([gpu] extra).")
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Replace outputs that exist. Inputs never are.")
]
ProcessesOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Processes; all processors where not given."),
]
