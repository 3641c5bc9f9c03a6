"""Options that several commands share, and what was given of them."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from optirank._util.names import valid_text

Options = TypeVar("Options")
GENES = "Options for the genes"
CARD = "Options for the model's card"
OUTPUT = "Options for output"
_NO_RESULT = ("n_jobs", "dask", "force")  # parameters that change no result
_READING = "Options for reading"


def option(
    metavar: str | None, help: str, panel: str | None, *names: str, **settings: Any
) -> Any:
    """An option under a heading of the help; ``names`` where they are not the
    parameter's.
    """
    return typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=panel, **settings
    )


FORMATS = ".h5ad, .zarr, 10x (.h5 or folder), .csv or .tsv"
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help=f"{FORMATS}; several are used together, each held out in turn.",
    ),
]
_MODEL = "A model file, or the name of a model (optirank models)."
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help=_MODEL)]
Model = Annotated[Path, option("MODEL", _MODEL, None, "--model", "-m")]
Labels = Annotated[
    str,
    option(
        "COLUMN",
        "Class labels; several columns, coarse to fine, comma-separated.",
        None,
        "--label",
        "-l",
    ),
]
Report = Annotated[
    Path | None, option("PAGE.html", "Write a report, one page.", OUTPUT)
]
Dask = Annotated[
    str | None,
    option(
        "ADDRESS",
        "A dask scheduler, such as tcp://host:8786, whose workers can read the same "
        "files.",
        None,
        "--dask",
    ),
]
Force = Annotated[
    bool,
    option(None, "Replace existing outputs (never inputs).", OUTPUT, "--force", "-f"),
]

# Of a training and of a design alike
Batch = Annotated[
    str | None,
    option("COLUMN", "Source (data set, donor); each is held out in turn.", None),
]
Threads = Annotated[
    int | None,
    option("N", "Threads; default: all processors.", None, "--n-jobs", "-j", min=1),
]
Query = Annotated[
    list[Path] | None,
    option(
        "QUERY",
        "To be labelled later: use only its genes; a list of genes will do. "
        "Repeatable.",
        GENES,
    ),
]
Include = Annotated[
    list[str] | None,
    option(
        "GENES", "Genes that must be in the panel: names, patterns or a file.", GENES
    ),
]
Name = Annotated[str | None, option("TEXT", "Name of the model.", CARD)]
Description = Annotated[
    str | None,
    option("TEXT", "Its intended use, kept in the model.", CARD),
]


def labelling(
    *,
    clusters: Annotated[
        str | None,
        option("COLUMN", "Clusters: each also gets its majority label.", None),
    ] = None,
    adapt: Annotated[
        bool,
        option(
            None,
            "Learn from the query; labels then depend on its other samples.",
            None,
            "--adapt/--no-adapt",
        ),
    ] = False,
    target_error: Annotated[
        float | None,
        option(
            "SHARE",
            "Withhold labels so that at most this share of those given is wrong, "
            "judged by held-out samples (with 80 % confidence) and by the query's own "
            "confidences; default: as the model was trained; 1 withholds none.",
            None,
            min=0.0,
            max=1.0,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        option(
            "SHARE", "Withhold labels of a lower confidence.", None, min=0.0, max=1.0
        ),
    ] = None,
) -> None:
    """The options of every command that labels samples."""


def reading(
    *,
    layer: Annotated[
        str | None,
        option(
            "NAME", "Layer of an AnnData file instead of X; raw: its raw.", _READING
        ),
    ] = None,
    table: Annotated[
        str | None,
        option(
            "NAME",
            "Table of a SpatialData folder, or modality of a .h5mu file.",
            _READING,
        ),
    ] = None,
    gene_column: Annotated[
        str | None, option("COLUMN", "Gene names, instead of the index.", _READING)
    ] = None,
    genes_in: Annotated[
        str | None,
        option("rows|columns", "For tables: where the genes are.", _READING),
    ] = None,
    samples: Annotated[
        Path | None,
        option(
            "FILE",
            "Table with columns for the samples: labels, clusters, sources.",
            _READING,
        ),
    ] = None,
    invert: Annotated[
        bool,
        option(
            None,
            "Of the values of a table, less is more, such as Ct of qPCR.",
            _READING,
            "--invert",
        ),
    ] = False,
) -> None:
    """The options of every command that reads profiles."""


def with_options(
    *groups: Callable[..., None], without: Sequence[str] = ()
) -> Callable[..., Callable[..., None]]:
    """Give a command the options of groups such as `reading`, in place of
    ``**options``, save those named in ``without``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        functions = [
            inspect.signature(one, eval_str=True) for one in (command, *groups)
        ]
        parameters = [
            parameter
            for function in functions
            for parameter in function.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
            and parameter.name not in without
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorate


def among(options: type[Options], context: typer.Context, **changed: object) -> Options:
    """A dataclass of options of the product, filled with what a command was given."""
    given = context.params | changed
    names = [field.name for field in fields(options)]  # type: ignore[arg-type]
    return options(
        **{name: given[name] for name in names if given.get(name) is not None}
    )


def reading_options(context: typer.Context) -> dict[str, Any]:
    """Those options that were given that `optirank.datasets.open_expression` takes."""
    given = {
        name: context.params[name] for name in inspect.signature(reading).parameters
    }
    if given["layer"] == "raw":
        given |= {"layer": None, "use_raw": True}
    return {name: value for name, value in given.items() if value is not None}


def listed(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def renamed(items: Sequence[str] | None) -> dict[str, str]:
    """Names of labels from ``THEIRS=OURS``."""
    names = {}
    for item in items or ():
        theirs, _, ours = item.partition("=")
        if not theirs or not ours:
            raise ValueError(
                f"--map {item!r}: write 'THEIRS=OURS', such as 'cd4 t=t cell'"
            )
        names[theirs] = ours
    return names


def reference_options(context: typer.Context) -> dict[str, Any]:
    """What a training or a design was given, in the product's words: columns of labels,
    the genes of the query, and the threads.
    """
    from optirank.verbs.sources import genes_of_queries

    given = context.params
    options = {
        "label": listed(given["label"]),
        "n_jobs": given["n_jobs"] or -1,
        "query_genes": genes_of_queries(given["query"] or (), given["genes_in"]),
    }
    for name in ("include", "exclude", "gene_list"):
        if given.get(name):
            options[name] = items_of(given[name])
    return options


def items_of(value: Any) -> list[Any]:
    """What was given of an option, once or several times."""
    if value is None:
        return []
    return [*value] if isinstance(value, list | tuple) else [value]


def this_command(
    context: typer.Context, *, recorded: bool = False, **changed: object
) -> str:
    """The current command line with some options changed.

    ``recorded`` is for a model's card: files by their names alone, and no option that
    changes no result.
    """
    values = context.params | changed
    words = ["optirank", str(context.info_name)]
    for parameter in context.command.params:
        value = values.get(str(parameter.name))
        if value is None or value is False or value == parameter.default:
            continue
        if recorded and parameter.name in _NO_RESULT:
            continue
        texts = [str(item) for item in items_of(value)]
        if recorded:
            texts = [_file_name(text) for text in texts]
        if parameter.param_type_name == "argument":
            words += texts
        elif value is True:
            words.append(parameter.opts[0])
        else:
            words += [word for text in texts for word in (parameter.opts[0], text)]
    command = shlex.join(words)
    return valid_text(command) if recorded else command


def _file_name(text: str) -> str:
    """The name of a file without its folder; text that names none as it is."""
    # Old versions of Typer give paths as text
    path = Path(text)
    return (path.name or text) if path.parent.is_dir() else text
