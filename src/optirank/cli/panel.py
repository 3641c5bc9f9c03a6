"""`optirank panel`: the genes that a model needs measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli.common import add_row, check_folder, new_table, show, tidy
from optirank.cli.errors import DebugOption

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 15  # genes on the terminal


def panel(
    model: Annotated[Path, typer.Argument(help="A model file.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the whole panel (.csv).")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw the weights of each class (.png, .svg or .pdf)."),
    ] = None,
    genes: Annotated[
        int, typer.Option(min=1, help="Genes in the figure, the heaviest first.")
    ] = 40,
    debug: DebugOption = False,
) -> None:
    """Say which genes a model needs, what each is for and what it weighs for each class.

    A reference gene is one that others are compared with; the rank of a gene with a weight counts
    for or against a class; a gene can be both. Nothing else has to be measured: a file with these
    genes alone gets the same labels.

    Examples:

      optirank panel model.optirank

      optirank panel model.optirank --out panel.csv --figure panel.png
    """
    with tidy():
        from optirank.model import load, panel_table
        from optirank.workflow.labels import replacing

        check_folder(out, figure)
        fitted = load(model)
        table = panel_table(fitted)
        _show(table)
        if out is not None:
            with replacing(out) as temporary:
                table.to_csv(temporary, index=False)
            typer.echo(f"{out}: {len(table)} genes")
        if figure is not None:
            from optirank.pl import panel_weights, save_figure

            save_figure(panel_weights(fitted, n_genes=genes), figure)
            typer.echo(str(figure))


def _show(table: pd.DataFrame) -> None:
    roles = table["role"].value_counts()
    typer.echo(
        f"{len(table)} genes: {roles.get('reference', 0)} in a reference set, "
        f"{roles.get('weight', 0)} with a weight, {roles.get('both', 0)} both"
    )
    weights = table.filter(like="weight_")
    shown = new_table("The heaviest", "gene", "role", "in references", "weight", "class")
    shown.columns[4].header = "for class"
    for k in range(min(_SHOWN, len(table))):
        heaviest = weights.iloc[k].abs().idxmax()
        weight, label = weights.loc[weights.index[k], heaviest], heaviest[len("weight_") :]
        row = table.iloc[k]
        add_row(shown, row["gene"], row["role"], row["n_reference"], f"{weight:+.3g}", label)
    show(shown)
    if len(table) > _SHOWN:
        typer.echo(f"and {len(table) - _SHOWN} more: --out panel.csv writes them all")
