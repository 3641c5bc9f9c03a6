"""`optirank panel`: the genes that a model needs, and smaller models out of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optirank.cli.common import add_row, check_outputs, new_table, show, tidy
from optirank.cli.options import OUTPUT, ForceOption, ModelArgument, option
from optirank.cli.streams import echo, file_or_stdout

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 15  # genes on the terminal


def panel(
    model: ModelArgument,
    genes: Annotated[int | None, option("N", "Take the panel of N genes.", None, min=2)] = None,
    out: Annotated[
        Path | None,
        option(
            "FILE",
            "Write a model (.optirank), or the genes with their weights (.csv; - for stdout).",
            OUTPUT,
            "--out",
            "-o",
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """List the genes that a model needs, and the smaller panels in it with their accuracy.

    No other gene has to be measured: a file with only these genes gets the same labels. The genes
    of a panel are ranked among themselves. The .csv has all that is needed to label samples in
    another program: genes, weights, intercepts, and the mean ranks that stand in for missing genes.

    Examples:

      optirank panel model.optirank
      optirank panel model.optirank --genes 30 -o small.optirank
      optirank panel model.optirank -o genes.csv
    """
    with tidy():
        from optirank import save
        from optirank._util.files import replacing
        from optirank.cli.train import show_sizes
        from optirank.model import load, panel_table
        from optirank.workflow.explain import exported, size_table, smaller_model

        check_outputs({"the panel": out}, [model], force)
        fitted = load(model)
        if genes is not None:
            fitted = smaller_model(fitted, genes)
        with file_or_stdout(out, ".csv") as target:
            _show(panel_table(fitted))
            sizes = size_table(fitted)
            if len(sizes) > 1:
                show_sizes(sizes)
            if target is not None and target.suffix == ".csv":
                table = exported(fitted)
                with replacing(target) as temporary:
                    table.to_csv(temporary, index=False)
                echo(f"{out}: {len(panel_table(fitted))} genes")
            elif target is not None:
                save(fitted, target, overwrite=True)
                echo(f"{out}: a model of {len(panel_table(fitted))} genes")


def _show(table: pd.DataFrame) -> None:
    weights = table.filter(regex="^weight_")
    names = [name.removeprefix("weight_") for name in weights.columns]
    roles = ["role"] if "role" in table else []
    shown = new_table(f"{len(table)} genes, the largest weights", "gene", *roles, "weight", "class")
    for (_, row), values in zip(table.head(_SHOWN).iterrows(), weights.to_numpy(), strict=False):
        k = int(abs(values).argmax())
        cells: list[Any] = [row["gene"], *(row[name] for name in roles)]
        add_row(shown, *cells, f"{values[k]:+.3g}", names[k])
    show(shown)
    if len(table) > _SHOWN:
        echo(f"and {len(table) - _SHOWN} more: -o genes.csv writes them all")
