"""Options that several commands share, and help with options in groups."""

from __future__ import annotations

from enum import StrEnum
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from optirank.cli.common import listed

READING = "Options for reading"
OUTPUT = "Options for output"


class _PlainHelp:
    """Help whose examples can be pasted."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the help: text is wrapped, indented lines are left as they are."""
        for paragraph in cleandoc(self.help or "").split("\n\n"):
            formatter.write_paragraph()
            if paragraph.startswith(" "):
                formatter.write(
                    "".join(f"  {line}\n" for line in paragraph.splitlines())
                )
            else:
                with formatter.indentation():
                    formatter.write_text(" ".join(paragraph.split()))


class GroupedCommand(_PlainHelp, TyperCommand):
    """A command whose help has options under headings."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The arguments by their names."""
        arguments = [
            one for one in self.get_params(ctx) if one.param_type_name == "argument"
        ]
        return [
            "[OPTIONS]",
            *(str(one.metavar or one.name.upper()) for one in arguments),
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options by the heading they were given."""
        groups: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                heading = getattr(parameter, "rich_help_panel", None) or "Options"
                if parameter.param_type_name == "argument":
                    heading = "Arguments"
                    record = (
                        str(parameter.metavar or parameter.name.upper()),
                        record[1],
                    )
                groups.setdefault(heading, []).append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class PlainGroup(_PlainHelp, TyperGroup):
    """A group of commands."""


def option(
    metavar: str | None, help: str, panel: str | None, *names: str, **settings: Any
) -> Any:
    """An option under a heading of the help; ``names`` where they are not the parameter's."""
    return typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=panel, **settings
    )


def one_of(*words: str) -> type[StrEnum]:
    """The type of an option that is one of some words."""
    return StrEnum("Words", {word: word for word in words})


def share(help: str, panel: str | None = None) -> Any:
    """An option that is a share between 0 and 1."""
    return option("SHARE", help, panel, min=0.0, max=1.0)


_FORMATS = ".h5ad, .zarr, 10x (.h5 or folder), .csv or .tsv"
File = Annotated[Path, typer.Argument(metavar="FILE", help=f"{_FORMATS}.")]
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help=f"{_FORMATS}; several are used together, each held out in turn.",
    ),
]
_MODEL = "A model file, or the name of a model (optirank models)."
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help=_MODEL)]
Model = Annotated[Path, option("MODEL", _MODEL, None, "--model", "-m")]
Layer = Annotated[
    str | None, option("NAME", "Layer of an AnnData file instead of X.", READING)
]
GeneColumn = Annotated[
    str | None, option("COLUMN", "Gene names, instead of the index.", READING)
]
GenesIn = Annotated[
    one_of("rows", "columns") | None,
    option("rows|columns", "For tables: where the genes are.", READING),
]
Annotations = Annotated[
    str | None,
    option(
        "COLUMNS", "Columns of a table that are not genes, comma-separated.", READING
    ),
]
Samples = Annotated[
    Path | None,
    option(
        "FILE",
        "Table with columns for the samples: labels, clusters, sources.",
        READING,
    ),
]
_DROP = "Leave out genes of a table with missing values."
DropMissing = Annotated[bool, option(None, _DROP, READING, "--drop-missing-genes")]
Homologs = Annotated[
    str | None,
    option(
        "mouse|case|FILE",
        "Genes of another species: a table of two columns, or case (names that differ only in case "
        "are the same gene); mouse and human names are recognised.",
        READING,
    ),
]
DropClasses = Annotated[
    bool,
    option(
        None,
        "Leave out classes that cannot be told because their genes are missing.",
        "Options for missing genes",
        "--drop-classes",
    ),
]
Threshold = Annotated[float | None, share("Withhold labels of a lower confidence.")]
UnknownRate = Annotated[
    float | None,
    share(
        "Withhold labels of samples that look like no class; the share of held-out samples "
        "that may lose their label, such as 0.01."
    ),
]
TargetError = Annotated[
    float | None,
    share(
        "Withhold labels so that at most this share of those given is wrong, judged by "
        "held-out samples (with 80 % confidence) and by the query's own confidences; "
        "default: as the model was trained; 1 withholds none."
    ),
]
_ADAPT = "Learn from the query; labels then depend on its other samples."
Adapt = Annotated[bool, option(None, _ADAPT, None, "--adapt")]
Report = Annotated[
    Path | None, option("PAGE.html", "Write a report, one page.", OUTPUT)
]
Force = Annotated[
    bool,
    option(None, "Replace existing outputs (never inputs).", OUTPUT, "--force", "-f"),
]
_DATA = "Folder of .h5ad files; default: OPTIRANK_DATA, else the cache."
Data = Annotated[Path | None, option("FOLDER", _DATA, None, "--data")]
ResultsFolder = Annotated[
    Path, option("FOLDER", "Results; a rerun resumes there.", OUTPUT, "--out", "-o")
]
Device = Annotated[
    one_of("cpu", "cuda"),
    option("cpu|cuda", "Device to fit on: CPU, or NVIDIA GPU ([gpu] extra).", None),
]
Processes = Annotated[
    int | None,
    option("N", "Processes; default: all processors.", None, "--jobs", "-j", min=1),
]


def reading_options(context: typer.Context) -> dict[str, Any]:
    """The options above as `optirank.datasets.open_expression` takes them."""
    given = context.params
    return {
        "layer": given.get("layer"),
        "gene_column": given["gene_column"],
        "genes_in": given["genes_in"] and str(given["genes_in"]),
        "annotations": listed(given.get("annotations")),
        "samples": given.get("samples"),
        "drop_missing": given.get("drop_missing", False),
    }
