"""`optirank predict`: labels for the samples of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli.common import GenesIn, add_row, bar, check_folder, listed, new_table, show, tidy
from optirank.cli.errors import DebugOption

if TYPE_CHECKING:
    from optirank.workflow.predict import FilePrediction


def predict(
    query: Annotated[
        Path,
        typer.Argument(help=".h5ad, .zarr, 10x (.h5 or folder), .csv or .tsv.", show_default=False),
    ],
    model: Annotated[Path, typer.Option("--model", "-m", help="A model file.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Labels: .csv, .parquet, or .h5ad, a copy of the query with them."
        ),
    ] = Path("labels.csv"),
    clusters: Annotated[
        str | None,
        typer.Option(help="Column of clusters: each also gets the label of most of its samples."),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Leave labels of less confidence 'unassigned'."),
    ] = None,
    target_error: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Leave as many unassigned as it takes for this error rate."
        ),
    ] = None,
    max_missing: Annotated[
        float,
        typer.Option(min=0.0, max=1.0, help="Share of a class's genes that may be missing."),
    ] = 0.5,
    missing: Annotated[
        Path | None,
        typer.Option("--missing", help="Write the missing genes and their weights (.csv)."),
    ] = None,
    layer: Annotated[str | None, typer.Option(help="A layer of the query instead of X.")] = None,
    gene_column: Annotated[
        str | None, typer.Option(help="Column of var with the gene names, instead of its index.")
    ] = None,
    genes_in: Annotated[
        GenesIn | None, typer.Option(help="Of a table: are genes in rows or in columns?")
    ] = None,
    annotations: Annotated[
        str | None,
        typer.Option(help="Of a table: columns that hold no expression, separated by commas."),
    ] = None,
    samples: Annotated[
        Path | None, typer.Option(help="A table about the samples, such as their clusters.")
    ] = None,
    block_size: Annotated[
        int | None, typer.Option(min=1, help="Samples read at a time, if not what suits the file.")
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Label the samples of a file with a trained model.

    The file is read in blocks, and of it the genes of the model's panel alone: memory stays flat
    however many samples there are. Genes that are missing, or are spelled in another way, are
    named; when a class lacks too many the command refuses.

    Examples:

      optirank predict query.h5ad --model model.optirank --out labels.csv

      optirank predict query.h5ad -m model.optirank -o labelled.h5ad --clusters leiden

      optirank predict query.h5ad -m model.optirank --threshold 0.8

      optirank predict query.csv -m model.optirank --genes-in columns --annotations donor,batch
    """
    with tidy():
        from optirank.model import load, panel_table
        from optirank.workflow.labels import replacing
        from optirank.workflow.predict import predict_file

        fitted = load(model)
        check_folder(out, missing)
        with bar("predicting") as progress:
            done = predict_file(
                query,
                fitted,
                out,
                clusters=clusters,
                threshold=threshold,
                target_error=target_error,
                max_missing=max_missing,
                layer=layer,
                gene_column=gene_column,
                genes_in=genes_in.value if genes_in else None,
                annotations=listed(annotations),
                samples=samples,
                block_size=block_size,
                progress=progress,
            )
        if missing is not None:
            table = panel_table(fitted)
            with replacing(missing) as temporary:
                table[table["gene"].isin(done.missing)].to_csv(temporary, index=False)
        _report(done)


def _report(done: FilePrediction) -> None:
    """Say what was found; what is to be noted goes to stderr."""
    for note in done.notes:
        typer.echo(f"note: {note}", err=True)
    if done.missing:
        table = new_table(
            "Genes missing", "class", "genes", "missing", "weight lost", "reference lost"
        )
        worst = done.losses.sort_values("n_missing", ascending=False, kind="stable")
        for loss in worst.itertuples():
            lost = (f"{loss.weight_lost:.0%}", f"{loss.reference_lost:.0%}")
            add_row(table, loss.label, loss.n_genes, loss.n_missing, *lost)
        show(table, err=True)
    table = new_table("Labels", "label", "samples", "share")
    for label, count in done.counts.items():
        add_row(table, label, count, f"{count / done.n_samples:.1%}")
    show(table)
    if done.clusters is not None:
        table = new_table("Clusters", "cluster", "samples", "label", "share")
        for row in done.clusters.itertuples():
            add_row(table, row.cluster, row.n_samples, row.label, f"{row.share:.0%}")
        show(table)
    typer.echo(f"{done.out}: {done.n_samples} samples, mean confidence {done.mean_confidence:.3f}")
