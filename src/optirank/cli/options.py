"""Options that several commands share, each written once, and values made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

GENES, CARD, READING, OUTPUT, RUN = "Genes", "Card", "Reading", "Output", "Computing"


def option(
    metavar: str | None, help: str, panel: str | None, *names: str, **settings: Any
) -> Any:
    """An option in a panel of the help; ``names`` unless they are the parameter's."""
    return typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=panel, **settings
    )


_MODEL = "A model file, or the name of a model (optirank models)."
_FORMATS = ".h5ad, .zarr, .h5mu, 10x (.h5 or folder), .csv, .tsv or .parquet"
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help=f"{_FORMATS}; several are used together, each held out in turn.",
    ),
]
Queries = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE", help=f"{_FORMATS}; several are labelled one by one."
    ),
]
Query = Annotated[Path, typer.Argument(metavar="FILE", help=f"{_FORMATS}.")]
ModelName = Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL)]
Model = Annotated[str, option("MODEL", _MODEL, None, "--model", "-m")]
Labels = Annotated[
    str,
    option(
        "COLUMN",
        "Class labels; several columns: coarse to fine.",
        None,
        "--label",
        "-l",
    ),
]
Truth = Annotated[str, option("COLUMN", "True classes.", None, "--label", "-l")]
Mapping = Annotated[
    list[str] | None,
    option("THEIRS=OURS", "Another name for a label; can be repeated.", None, "--map"),
]

# Of predict and evaluate
Adapt = Annotated[
    bool,
    option(
        None,
        "Learn from the query; a label then depends on its other samples.",
        None,
        "--adapt/--no-adapt",
    ),
]
TargetError = Annotated[
    float | None,
    option(
        "SHARE",
        "Withhold labels so that at most this share of those given is wrong.",
        None,
    ),
]
Threshold = Annotated[
    float | None,
    option("SHARE", "Withhold labels of a lower confidence.", None),
]

# Of train and design
Batch = Annotated[
    str | None,
    option("COLUMN", "Source (data set, donor); each is held out in turn.", None),
]
ForQuery = Annotated[
    list[Path] | None,
    option("FILE", "Use only genes of this query, or of this list.", GENES, "--query"),
]
Include = Annotated[
    list[str] | None,
    option("GENES", "Names or patterns that must be in; a file is the panel.", GENES),
]
Exclude = Annotated[
    list[str] | None,
    option("GENES", "Names, patterns or a file; columns that are no genes.", GENES),
]
Name = Annotated[str, option("TEXT", "Name of the model.", CARD)]
Description = Annotated[str, option("TEXT", "Its intended use.", CARD)]

# Of every command that reads profiles
Layer = Annotated[str | None, option("NAME", "Layer to read, or raw.", READING)]
Table = Annotated[
    str | None, option("NAME", "Table of a SpatialData, modality of a .h5mu.", READING)
]
GeneColumn = Annotated[
    str | None, option("COLUMN", "Gene names, instead of the index.", READING)
]
GenesIn = Annotated[
    str | None, option("rows|columns", "Where a table has its genes.", READING)
]
Samples = Annotated[
    Path | None, option("FILE", "Table of the samples: labels, sources.", READING)
]
Invert = Annotated[
    bool, option(None, "Less is more, as in Ct of qPCR.", READING, "--invert")
]

Report = Annotated[Path | None, option("PAGE.html", "Write a report.", OUTPUT)]
Force = Annotated[
    bool, option(None, "Replace outputs that exist.", OUTPUT, "--force", "-f")
]
Dask = Annotated[
    str | None,
    option("ADDRESS", "A dask scheduler whose workers can read the files.", RUN),
]
Threads = Annotated[
    int,
    option(
        "N",
        "Threads; default: all processors.",
        RUN,
        "--n-jobs",
        "-j",
        show_default=False,
    ),
]


def listed(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def how_to_read(
    layer: str | None,
    table: str | None,
    gene_column: str | None,
    genes_in: str | None,
    samples: Path | None,
    invert: bool,
) -> dict[str, Any]:
    """The options of reading, as `optirank.data.opening` takes them."""
    return {
        "layer": layer,
        "table": table,
        "gene_column": gene_column,
        "genes_in": genes_in,
        "samples": samples,
        "invert": invert,
    }


def renamed(items: Sequence[str] | None) -> dict[str, str]:
    """Names of labels from ``THEIRS=OURS``."""
    pairs = [item.partition("=") for item in items or ()]
    for theirs, equals, ours in pairs:
        if not theirs or not ours:
            raise ValueError(
                f"--map '{theirs}{equals}{ours}': write 'THEIRS=OURS', such as "
                "'cd4 t=t cell'"
            )
    return {theirs: ours for theirs, _, ours in pairs}
