"""Options that several commands share, and help with options in groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from optirank._util.flags import Flag, FlaggedField, flagged_fields
from optirank.cli.common import listed, use_flags
from optirank.io.options import ReadOptions

F = TypeVar("F", bound=Callable[..., None])
OUTPUT = "Options for output"
_alone: dict[str, Flag] = {}  # options that may stand without a value, by name


def _with_values(words: Sequence[str]) -> list[str]:
    """The words of a command line, options that stand alone with what they mean."""
    spelled: list[str] = []
    for word, following in zip(words, [*words[1:], ""], strict=False):  # no words: none
        flag = _alone.get(word)
        if flag is not None and following not in flag.choices:
            word = f"{word}={flag.alone}"
        spelled.append(word)
    return spelled


class _PlainHelp:
    """Help whose examples can be pasted."""

    help: str | None

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the help: text is wrapped, indented lines are left as they are."""
        for paragraph in inspect.cleandoc(self.help or "").split("\n\n"):
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
            parameter
            for parameter in self.get_params(ctx)
            if parameter.param_type_name == "argument"
        ]
        return [
            "[OPTIONS]",
            *(str(argument.metavar or argument.name.upper()) for argument in arguments),
        ]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        return super().parse_args(ctx, _with_values(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; messages name its options."""
        use_flags(
            {
                str(parameter.name): parameter.opts[0]
                for parameter in self.params
                if parameter.param_type_name == "option"
            }
        )
        return super().invoke(ctx)

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
    """An option under a heading of the help; ``names`` where they are not the
    parameter's.
    """
    return typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=panel, **settings
    )


def one_of(*words: str) -> Any:
    """The type of an option that is one of some words."""
    return StrEnum("Words", {word: word for word in words})


_FORMATS = ".h5ad, .zarr, 10x (.h5 or folder), .csv or .tsv"
File = Annotated[Path, typer.Argument(metavar="FILE", help=f"{_FORMATS}.")]
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help=f"{_FORMATS}; several are used together, each held out in turn.",
    ),
]
Queries = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help=f"{_FORMATS}; several are labelled one after the other."
    ),
]
_MODEL = "A model file, or the name of a model (optirank models)."
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help=_MODEL)]
Model = Annotated[Path, option("MODEL", _MODEL, None, "--model", "-m")]
Report = Annotated[
    Path | None, option("PAGE.html", "Write a report, one page.", OUTPUT)
]
Dated = Annotated[bool, option(None, "Show the date on the report.", OUTPUT, "--dated")]
_DASK = (
    "A dask scheduler, such as tcp://host:8786, whose workers can read the same files."
)
Dask = Annotated[str | None, option("ADDRESS", _DASK, None, "--dask")]
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


def with_options(*classes: type, without: Sequence[str] = ()) -> Callable[[F], F]:
    """Give a command the options that dataclasses declare (`Flag`), in place of
    **options.

    ``without`` names fields that this command does not have.
    """

    def decorate(command: F) -> F:
        signature = inspect.signature(command, eval_str=True)
        own = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        declared = [
            _parameter(option)
            for options in classes
            for option in flagged_fields(options)
            if option.name not in without
        ]
        merged = signature.replace(parameters=[*own, *declared])
        command.__signature__ = merged  # type: ignore[attr-defined]
        return command

    return decorate


def _parameter(option_field: FlaggedField) -> inspect.Parameter:
    """A field of a dataclass of options as a parameter that Typer understands."""
    flag = option_field.flag
    settings: dict[str, Any] = {}
    if flag.lowest is not None:
        settings["min"] = flag.lowest
    if flag.highest is not None:
        settings["max"] = flag.highest
    if flag.alone is not None:
        _alone[option_field.spelled] = flag
    typed = option_field.type
    default = option_field.default
    if flag.choices:
        typed = one_of(*flag.choices) | None
    typer_option = option(
        flag.metavar,
        flag.help,
        flag.heading,
        option_field.spelled,
        *flag.names[1:],
        **settings,
    )
    return inspect.Parameter(
        option_field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=Annotated[typed, typer_option],
    )


def reading_options(context: typer.Context) -> dict[str, Any]:
    """The options of reading as `optirank.datasets.open_expression` takes them."""
    given = context.params
    values = {
        option.name: given[option.name]
        for option in flagged_fields(ReadOptions)
        if option.name in given
    }
    values["annotations"] = listed(values.get("annotations"))
    if values.get("genes_in") is not None:
        values["genes_in"] = str(values["genes_in"])
    return values
