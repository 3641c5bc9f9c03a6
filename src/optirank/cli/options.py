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


def option(metavar: str | None, help: str, panel: str | None, *names: str, **settings: Any) -> Any:
    """An option under a heading of the help; ``names`` where they are not the parameter's."""
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, **settings)


_FORMATS = ".h5ad, .zarr, 10x (.h5 or folder), .csv or .tsv"
FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help=f"{_FORMATS}.")]
FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help=f"{_FORMATS}; several are used together, each held out in turn."
    ),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")]
ModelOption = Annotated[Path, option("MODEL", "A model file.", None, "--model", "-m")]
LabelOption = Annotated[str, option("COLUMN", "Class labels.", None, "--label", "-l")]
LayerOption = Annotated[
    str | None, option("NAME", "Layer of an AnnData file instead of X.", READING)
]
GeneColumnOption = Annotated[
    str | None, option("COLUMN", "Gene names, instead of the index.", READING)
]
GenesInOption = Annotated[
    GenesIn | None, option("rows|columns", "For tables: where the genes are.", READING)
]
AnnotationsOption = Annotated[
    str | None,
    option("COLUMNS", "Columns of a table that are not genes, comma-separated.", READING),
]
SamplesOption = Annotated[
    Path | None,
    option("FILE", "Table with columns for the samples: labels, clusters, sources.", READING),
]
DropMissingOption = Annotated[
    bool,
    option(
        None, "Leave out genes of a table with missing values.", READING, "--drop-missing-genes"
    ),
]
HomologsOption = Annotated[
    str | None,
    option(
        "mouse|case|FILE",
        "Genes of another species: mouse (to or from human), a table of two columns, or case "
        "(names that differ only in case are the same gene).",
        READING,
    ),
]
TargetErrorOption = Annotated[
    float | None,
    option(
        "SHARE",
        "Withhold labels so that at most this share of those given is wrong, judged by held-out "
        "samples; default: as the model was trained; 1 withholds none.",
        None,
        min=0.0,
        max=1.0,
    ),
]
AdaptOption = Annotated[
    bool,
    option(
        None,
        "Shift the classes to their shares in the query; labels then depend on the other samples.",
        None,
        "--adapt",
    ),
]
ReportOption = Annotated[Path | None, option("PAGE.html", "Write a report, one page.", OUTPUT)]
ForceOption = Annotated[
    bool, option(None, "Replace existing outputs (never inputs).", OUTPUT, "--force", "-f")
]
DataOption = Annotated[
    Path | None,
    option(
        "FOLDER", "Folder of .h5ad files; default: OPTIRANK_DATA, else the cache.", None, "--data"
    ),
]
DeviceOption = Annotated[
    Device, option("cpu|cuda", "Device to fit on: CPU, or NVIDIA GPU ([gpu] extra).", None)
]
ProcessesOption = Annotated[
    int | None, option("N", "Processes; default: all processors.", None, "--jobs", "-j", min=1)
]


def reading_options(
    layer: str | None = None,
    gene_column: str | None = None,
    genes_in: GenesIn | None = None,
    annotations: str | None = None,
    samples: Path | None = None,
    drop_missing: bool = False,
) -> dict[str, Any]:
    """The options above as `optirank.datasets.open_expression` takes them."""
    names = [name.strip() for name in (annotations or "").split(",") if name.strip()]
    return {
        "layer": layer,
        "gene_column": gene_column,
        "genes_in": genes_in.value if genes_in else None,
        "annotations": names,
        "samples": samples,
        "drop_missing": drop_missing,
    }
