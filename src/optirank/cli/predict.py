"""`optirank predict`: labels for the samples of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank._util.progress import progress_bar
from optirank.cli.common import (
    add_row,
    check_outputs,
    new_table,
    remedies_for_missing_genes,
    show,
    tidy,
)
from optirank.cli.options import (
    OUTPUT,
    AdaptOption,
    AnnotationsOption,
    DropMissingOption,
    FileArgument,
    ForceOption,
    GeneColumnOption,
    GenesInOption,
    HomologsOption,
    LayerOption,
    ModelOption,
    SamplesOption,
    TargetErrorOption,
    option,
    reading_options,
)
from optirank.cli.streams import echo, file_or_stdout

if TYPE_CHECKING:
    from optirank.workflow.labels import Labelled

_MISSING = "Options for missing genes"


def predict(
    context: typer.Context,
    query: FileArgument,
    model: ModelOption,
    out: Annotated[
        Path,
        option(
            "FILE",
            "Labels: .csv (- for stdout), .parquet, or .h5ad (the query with labels).",
            OUTPUT,
            "--out",
            "-o",
        ),
    ] = Path("labels.csv"),
    clusters: Annotated[
        str | None, option("COLUMN", "Clusters: each also gets its majority label.", None)
    ] = None,
    adapt: AdaptOption = False,
    target_error: TargetErrorOption = None,
    threshold: Annotated[
        float | None, option("SHARE", "Withhold labels of a lower confidence.", None, min=0, max=1)
    ] = None,
    unknown_rate: Annotated[
        float | None,
        option(
            "SHARE",
            "Withhold labels of samples that look like no class; the share of held-out samples "
            "that may lose their label, such as 0.01.",
            None,
            min=0,
            max=1,
        ),
    ] = None,
    max_missing: Annotated[
        float,
        option("SHARE", "Share of a class's genes that may be missing.", _MISSING, min=0, max=1),
    ] = 0.5,
    drop_classes: Annotated[
        bool,
        option(None, "Leave out classes that lack more than that.", _MISSING, "--drop-classes"),
    ] = False,
    force: ForceOption = False,
    layer: LayerOption = None,
    gene_column: GeneColumnOption = None,
    genes_in: GenesInOption = None,
    annotations: AnnotationsOption = None,
    samples: SamplesOption = None,
    drop_missing: DropMissingOption = False,
    homologs: HomologsOption = None,
) -> None:
    """Label the samples of a file with a trained model.

    Only the genes of the model's panel are read, in blocks of samples. Genes that are missing or
    spelled differently are named. If a class lacks too many genes, the command stops and says what
    can be done. Labels that are withheld are called 'unassigned'.

    Examples:

      optirank predict query.h5ad --model model.optirank -o labels.csv
      optirank predict query.h5ad -m model.optirank -o labelled.h5ad --clusters leiden
      optirank predict query.h5ad -m model.optirank --target-error 0.05
      optirank predict query.csv -m model.optirank --genes-in columns --annotations donor,batch
    """
    with tidy():
        from optirank.model import load
        from optirank.workflow.predict import PredictOptions, predict_file

        check_outputs({"the labels": out}, [query, model, samples, homologs], force)
        options = PredictOptions(
            clusters=clusters,
            threshold=threshold,
            target_error=target_error,
            adapt=adapt,
            unknown_rate=unknown_rate,
            max_missing=max_missing,
            drop_classes=drop_classes,
            homologs=homologs,
        )
        reading = reading_options(layer, gene_column, genes_in, annotations, samples, drop_missing)
        fitted = load(model)
        with file_or_stdout(out, ".csv") as target:
            with (
                remedies_for_missing_genes(context, fitted, query),
                progress_bar("predicting", lines=True) as bar,
            ):
                done = predict_file(query, fitted, target, options, progress=bar.update, **reading)
            show_labels(done)
            sure = f"mean confidence {done.confidence.mean():.3f}"
            echo(f"{out}: {len(done.codes)} samples, {sure}, {done.withheld.sum()} labels withheld")


def show_notes(done: Labelled) -> None:
    """Print notes and what is lost by missing genes to stderr."""
    for note in done.notes:
        echo(f"note: {note}", err=True)
    if not done.missing:
        return
    table = new_table("Genes missing", "class", "genes", "missing", "weight lost")
    for loss in done.losses.sort_values("weight_lost", ascending=False).itertuples():
        add_row(table, loss.label, loss.n_genes, loss.n_missing, f"{loss.weight_lost:.0%}")
    show(table, err=True)


def show_labels(done: Labelled) -> None:
    """Print how often each label was given, and the labels of clusters."""
    show_notes(done)
    table = new_table("Labels", "label", "samples", "share")
    for label, count in done.counts().items():
        add_row(table, label, count, f"{count / len(done.codes):.1%}")
    show(table)
    if done.clusters is not None:
        table = new_table("Clusters", "cluster", "samples", "label", "share")
        for row in done.clusters.table.itertuples():
            add_row(table, row.cluster, row.n_samples, row.label, f"{row.share:.0%}")
        show(table)
