"""Options that several commands share, and help with options in groups."""

from __future__ import annotations

from enum import StrEnum
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

READING = "Options for reading"
OUTPUT = "Options for output"


class _PlainHelp:
    """Help whose examples can be pasted."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the help: text is wrapped, indented lines are left as they are."""
        for paragraph in cleandoc(self.help or "").split("\n\n"):
            formatter.write_paragraph()
            if paragraph.startswith(" "):
                formatter.write("".join(f"  {line}\n" for line in paragraph.splitlines()))
            else:
                with formatter.indentation():
                    formatter.write_text(" ".join(paragraph.split()))


class GroupedCommand(_PlainHelp, TyperCommand):
    """A command whose help has options under headings."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments by their names."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        return ["[OPTIONS]", *(str(one.metavar or one.human_readable_name) for one in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options by the heading they were given."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                heading = getattr(parameter, "rich_help_panel", None) or "Options"
                if parameter.param_type_name == "argument":
                    heading = "Arguments"
                    record = (str(parameter.metavar or parameter.human_readable_name), record[1])
                groups.setdefault(heading, []).append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class PlainGroup(_PlainHelp, TyperGroup):
    """A group of commands."""


class GenesIn(StrEnum):
    """Orientation of a table."""

    rows = "rows"
    columns = "columns"


class Device(StrEnum):
    """Device to fit on."""

    cpu = "cpu"
    cuda = "cuda"


FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help=".h5ad, .zarr, 10x (.h5 or folder), .csv or .tsv.", show_default=False
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)
]
ModelOption = Annotated[
    Path,
    typer.Option("--model", "-m", metavar="MODEL", help="A model file.", show_default=False),
]
LayerOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Layer of an AnnData file instead of X.", rich_help_panel=READING
    ),
]
GeneColumnOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Gene names, instead of the index.", rich_help_panel=READING
    ),
]
GenesInOption = Annotated[
    GenesIn | None,
    typer.Option(
        metavar="rows|columns", help="For tables: where the genes are.", rich_help_panel=READING
    ),
]
AnnotationsOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns of a table that are not genes, comma-separated.",
        rich_help_panel=READING,
    ),
]
SamplesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Table with columns for the samples: labels, clusters, sources.",
        rich_help_panel=READING,
    ),
]
HomologsOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|case",
        help="Genes of another species: a table of two columns; case: names that differ only in "
        "case are the same gene.",
        rich_help_panel=READING,
    ),
]
TargetErrorOption = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="Withhold labels so that at most this share of those given is wrong, judged by "
        "held-out samples; default: as the model was trained; 1 withholds none.",
    ),
]
AdaptOption = Annotated[
    bool,
    typer.Option(
        "--adapt",
        help="Shift the classes to their shares in the query; a label then depends on the other "
        "samples.",
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PAGE.html", help="Write a report, one HTML page.", rich_help_panel=OUTPUT
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force", "-f", help="Replace existing outputs (never inputs).", rich_help_panel=OUTPUT
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FOLDER",
        help="Folder of .h5ad files; default: OPTIRANK_DATA, else the cache.",
    ),
]
DeviceOption = Annotated[
    Device, typer.Option(help="Device to fit on: CPU, or NVIDIA GPU ([gpu] extra).")
]
ProcessesOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes; default: all processors."),
]


def reading_options(
    layer: str | None = None,
    gene_column: str | None = None,
    genes_in: GenesIn | None = None,
    annotations: str | None = None,
    samples: Path | None = None,
) -> dict[str, Any]:
    """The options above as `optirank.datasets.open_expression` takes them."""
    names = [name.strip() for name in (annotations or "").split(",") if name.strip()]
    return {
        "layer": layer,
        "gene_column": gene_column,
        "genes_in": genes_in.value if genes_in else None,
        "annotations": names,
        "samples": samples,
    }
