"""`optirank panel`: the genes that a model needs, and training for a smaller panel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.progress import progress_bar
from optirank._util.workers import worker_count
from optirank.cli.common import (
    add_row,
    check_outputs,
    listed,
    new_table,
    show,
    show_rules,
    tidy,
)
from optirank.cli.errors import DebugOption, QuietOption
from optirank.cli.options import (
    AnnotationsOption,
    Device,
    DeviceOption,
    ForceOption,
    FormatOption,
    GeneColumnOption,
    GenesInOption,
    LayerOption,
    ModelArgument,
    SamplesOption,
)
from optirank.cli.streams import file_or_stdout

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 15  # genes on the terminal


def panel(
    model: ModelArgument,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the panel (.csv); - for standard output."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw the weights of each class (.png, .svg or .pdf)."),
    ] = None,
    genes: Annotated[
        int, typer.Option(min=1, help="Genes in the figure, largest weights first.")
    ] = 40,
    max_genes: Annotated[
        int | None,
        typer.Option(min=2, help="Train again for a panel of at most this many genes."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="With --max-genes: labelled data to train on.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="With --max-genes: file of the new model.")
    ] = None,
    curve: Annotated[
        Path | None,
        typer.Option(help="With --max-genes: draw accuracy against panel size (.png, .svg, .pdf)."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column with the class labels; default: as in training.")
    ] = None,
    batch: Annotated[
        str | None, typer.Option(help="Column with the source; default: as in training.")
    ] = None,
    query: Annotated[
        list[Path] | None,
        typer.Option("--for", help="With --max-genes: query to be labelled; use only its genes."),
    ] = None,
    budget: Annotated[str, typer.Option(help="Time allowed for training: 90s, 10m, 1h.")] = "10m",
    device: DeviceOption = Device.cpu,
    layer: LayerOption = None,
    gene_column: GeneColumnOption = None,
    genes_in: GenesInOption = None,
    annotations: AnnotationsOption = None,
    samples: SamplesOption = None,
    file_format: FormatOption = None,
    force: ForceOption = False,
    debug: DebugOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the genes that a model needs, what each is for, and its weight for each class.

    Other genes are compared with the reference genes. The rank of a gene with a weight counts for
    or against a class. A gene can be both. No other gene has to be measured: a file with only these
    genes gets the same labels. With --max-genes, a new model with at most that many genes is
    trained. Its classes share one reference set, and a table shows the accuracy of other sizes.
    The pairs of a k-TSP model are shown as rules.

    Examples:

      optirank panel model.optirank

      optirank panel model.optirank --out panel.csv --figure panel.png

      optirank panel model.optirank --max-genes 50 --data reference.h5ad --save small.optirank
    """
    with tidy():
        from optirank._util.files import replacing
        from optirank.model import load, panel_table
        from optirank.model.linear import linear_parts
        from optirank.solver.device.backend import check_device

        check_device(device.value)
        outputs = {"the panel": out, "the figure": figure, "the new model": save}
        outputs["the curve"] = curve
        check_outputs(outputs, [model, data, samples, *(query or ())], force)
        fitted = load(model)
        with file_or_stdout(out, ".csv") as target:
            if max_genes is None:
                given = {"data": data, "save": save, "label": label, "batch": batch, "for": query}
                _check_unused(given | {"curve": curve, "device": device is not Device.cpu})
            else:
                reading = {"layer": layer, "gene_column": gene_column, "samples": samples}
                reading["genes_in"] = genes_in.value if genes_in else None
                reading["annotations"] = listed(annotations)
                reading["format"] = file_format.value if file_format else None
                chosen = {"label": label, "batch": batch, "query": query}
                chosen["device"] = device.value
                fitted = _retrain(fitted, max_genes, data, save, curve, budget, chosen, reading)
            table = panel_table(fitted)
            if linear_parts(fitted).votes:
                _show_pairs(fitted)
            else:
                _show(table, fitted)
            if target is not None:
                with replacing(target) as temporary:
                    table.to_csv(temporary, index=False)
                typer.echo(f"{out}: {table['gene'].nunique()} genes")
            if figure is not None:
                from optirank.pl import panel_weights, save_figure

                save_figure(panel_weights(fitted, n_genes=genes), figure)
                typer.echo(str(figure))


def _check_unused(options: dict[str, object]) -> None:
    for name, value in options.items():
        if value:
            raise ValueError(f"--{name} is for --max-genes")


def _retrain(
    fitted: Any,
    max_genes: int,
    data: Path | None,
    save: Path | None,
    curve: Path | None,
    budget: str,
    chosen: dict[str, Any],
    reading: dict[str, Any],
) -> Any:
    """Train a model of a smaller panel, write it and say how it does beside the old one."""
    from optirank.cli.train import genes_of, parse_time
    from optirank.datasets.reading import is_table
    from optirank.model import save as save_model
    from optirank.workflow.shrinking import shrink

    if data is None or save is None:
        raise ValueError("--max-genes trains again: name the data (--data) and the file (--save)")
    query = chosen.pop("query")
    available = genes_of(query, reading["genes_in"])
    if query and not is_table(data, reading["format"]):
        reading["genes_in"] = None  # it is said of the tables to be labelled
    with progress_bar("training") as bar:
        result = shrink(
            fitted,
            data,
            max_genes,
            available=available,
            budget=parse_time(budget),
            n_jobs=worker_count(-1),
            say=lambda line: typer.echo(line, err=True),
            progress=bar.update,
            **chosen,
            **reading,
        )
    save_model(result.model, save)
    sizes = new_table("Panels on held-out samples", "genes", "balanced accuracy", "")
    for row in result.curve().itertuples():
        known = row.standard_error == row.standard_error  # not with a single fold
        error = f" ± {100 * row.standard_error:.1f}" if known else ""
        accuracy = f"{100 * row.score:.1f}{error} %"
        add_row(sizes, f"{row.n_genes:.0f}", accuracy, "chosen" if row.selected else "")
    show(sizes)
    if curve is not None:
        from optirank.pl import save_figure
        from optirank.workflow.figures import selection_path

        save_figure(selection_path(result.result).axes[0], curve)
        typer.echo(str(curve))
    before = result.accuracy_before
    typer.echo(
        f"{save}: {result.n_genes} genes instead of {result.n_genes_before}, balanced accuracy "
        f"{result.accuracy:.3f} ± {result.standard_error:.3f} on held-out samples"
        + ("" if before is None else f" (it was {before:.3f})")
    )
    return result.model


def _show_pairs(fitted: Any) -> None:
    from optirank.model.linear import linear_model
    from optirank.model.votes import pair_table

    pairs, genes = pair_table(fitted), int(linear_model(fitted).genes_.sum())
    typer.echo(f"{genes} genes in {len(pairs)} pairs")
    show_rules(pairs)


def _show(table: pd.DataFrame, fitted: Any) -> None:
    from optirank.model.linear import linear_parts
    from optirank.model.panel import side_names

    parts = linear_parts(fitted)
    sides = side_names(parts) or [""]
    rows = [(str(label), side) for label in parts.problem_classes for side in sides]
    roles = table["role"].value_counts()
    typer.echo(
        f"{len(table)} genes: {roles.get('reference', 0)} in a reference set, "
        f"{roles.get('weight', 0)} with a weight, {roles.get('both', 0)} both"
    )
    weights = table.iloc[:, -len(rows) :].to_numpy()
    columns = ("gene", "role", "in references", "weight", "class", "side")[: 5 + (len(sides) > 1)]
    shown = new_table("Largest weights", *columns)
    for k, row in table.head(_SHOWN).iterrows():
        heaviest = abs(weights[k]).argmax()
        cells = (row["gene"], row["role"], row["n_reference"], f"{weights[k, heaviest]:+.3g}")
        add_row(shown, *(*cells, *rows[heaviest])[: len(columns)])
    show(shown)
    if len(table) > _SHOWN:
        typer.echo(f"and {len(table) - _SHOWN} more: --out panel.csv writes them all")
