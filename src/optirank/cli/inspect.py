"""`optirank inspect`: what a model is, and why a sample got its label."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli.common import add_row, new_table, show, tidy
from optirank.cli.options import (
    GeneColumnOption,
    GenesInOption,
    ModelArgument,
    option,
    reading_options,
)
from optirank.cli.streams import echo

if TYPE_CHECKING:
    from optirank.workflow.explain import Explanation

_SHOWN = 15  # genes of an explanation


def inspect(
    model: ModelArgument,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Samples, for --explain.")
    ] = None,
    explain: Annotated[
        str | None, option("SAMPLE", "Show why this sample of FILE gets its label.", None)
    ] = None,
    label: Annotated[
        str | None, option("CLASS", "Class to explain; default: the label.", None, "--class")
    ] = None,
    gene_column: GeneColumnOption = None,
    genes_in: GenesInOption = None,
) -> None:
    """Describe a model; with --explain, show why a sample gets its label.

    A gene contributes its weight times how far its rank in this sample is from its mean rank in
    training. The contributions and the intercept sum to the score of the class.

    Examples:

      optirank inspect model.optirank
      optirank inspect model.optirank query.h5ad --explain cell_17
      optirank inspect model.optirank query.h5ad --explain cell_17 --class "t cell"
    """
    with tidy():
        from optirank.model import load
        from optirank.workflow.explain import explain_sample, model_card

        if (file is None) != (explain is None):
            raise ValueError("name the file and the sample: inspect MODEL FILE --explain SAMPLE")
        fitted = load(model)
        if file is not None:
            reading = reading_options(None, gene_column, genes_in)
            _show_explanation(explain_sample(file, fitted, explain, **reading), label)
            return
        card = model_card(fitted, model)
        for name, text in card.lines:
            echo(f"{name + ':':<14}{text}")
        table = new_table("Classes", *card.classes.columns)
        for row in card.classes.itertuples(index=False):
            add_row(table, *row)
        show(table)


def _show_explanation(found: Explanation, label: str | None) -> None:
    for note in found.notes:
        echo(f"note: {note}", err=True)
    echo(f"{found.sample}: {found.label}, confidence {found.confidence:.3f}")
    table = new_table("Scores", "class", "score", "probability")
    for row in found.scores.itertuples(index=False):
        add_row(table, row[0], f"{row[1]:+.3f}", f"{row[2]:.3f}")
    show(table)
    name, lines = found.of_class(label)
    columns = ("value", "rank", "mean rank", "weight", "contribution", "speaks")
    table = new_table(f"The score of {name}", "gene", *columns)
    for row in lines.head(_SHOWN + 1).itertuples():
        if row.weight != row.weight:  # the intercept
            add_row(table, row.gene, "", "", "", "", f"{row.contribution:+.4f}", "")
            continue
        value = "missing" if row.missing else f"{row.value:g}"
        ranks = (f"{row.relative_rank:.3f}", f"{row.mean_rank:.3f}")
        sizes = (f"{row.weight:+.3g}", f"{row.contribution:+.4f}")
        add_row(table, row.gene, value, *ranks, *sizes, row.speaks_for)
    rest = lines.iloc[_SHOWN + 1 :]
    if len(rest):
        total = f"{rest['contribution'].sum():+.4f}"
        add_row(table, f"{len(rest)} more", "", "", "", "", total, "")
    show(table)
