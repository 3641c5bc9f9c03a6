"""Commands to paste: the current one with other options, and those that help where
genes are missing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from optirank._util.names import valid_text

if TYPE_CHECKING:
    from optirank.model import Model

# Options of which a new training has its own
_OUTPUTS = ("--out", "--report", "--for")
_NO_RESULT = ("n_jobs", "dask", "force", "dated")  # parameters that change no result


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
        items = value if isinstance(value, list | tuple) else [value]
        texts = [_file_name(str(item)) if recorded else str(item) for item in items]
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


@contextmanager
def remedies_for_missing_genes(
    context: typer.Context, fitted: Model, query: Path
) -> Iterator[None]:
    """Add the commands that help to the error of missing genes."""
    from optirank.model import MissingGenesError

    try:
        yield
    except MissingGenesError as error:
        remedies = {}
        if error.match.other_column:
            gene_column = error.match.other_column[0]
            remedies["read the gene names of the query from another column:"] = (
                this_command(context, gene_column=gene_column)
            )
        if error.droppable and "drop_classes" in context.params:
            remedies[
                "leave these classes out, whose samples then get another label:"
            ] = this_command(context, drop_classes=True)
        if error.match.present.any():
            remedies["train a model for the genes that the query has:"] = _training_for(
                query, fitted, context
            )
        for words, command in remedies.items():
            error.add_note(words)
            error.add_note(command)
        if remedies:
            error.args = (f"{error.what} One can:",)
        raise


def _training_for(query: Path, fitted: Model, context: typer.Context) -> str:
    """The command that made a model, for the genes of a query; else one to fill in."""
    words = shlex.split(fitted.card.command)
    files_are_here = all(
        Path(name).is_file() for name in fitted.card.source.split(", ")
    )
    if words[:2] != ["optirank", "train"] or not files_are_here:
        words = ["optirank", "train", "REFERENCE", "--label", "LABEL"]
    kept: list[str] = []
    for word, previous in zip(words, ["", *words], strict=False):
        if word not in _OUTPUTS and previous not in _OUTPUTS:
            kept.append(word)
    genes_in = context.params.get("genes_in")
    if genes_in is not None and "--genes-in" not in kept:
        kept += ["--genes-in", str(genes_in)]
    return shlex.join([*kept, "--for", str(query), "--out", "for_query.optirank"])
