"""`optirank predict`: labels for the samples of a file."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.progress import progress_bar
from optirank.cli.common import (
    add_row,
    check_outputs,
    listed,
    new_table,
    show,
    this_command,
    tidy,
)
from optirank.cli.errors import DebugOption, QuietOption
from optirank.cli.options import (
    AnnotationsOption,
    DropClassesOption,
    FileArgument,
    ForceOption,
    FormatOption,
    GeneColumnOption,
    GenesInOption,
    HomologsOption,
    LayerOption,
    MatchCase,
    MatchCaseOption,
    MaxMissingOption,
    SamplesOption,
)
from optirank.cli.streams import echo, file_or_stdout

if TYPE_CHECKING:
    from optirank.workflow.predict import FilePrediction


def predict(
    context: typer.Context,
    query: FileArgument,
    model: Annotated[Path, typer.Option("--model", "-m", help="A model file.", show_default=False)],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="Labels: .csv (- for stdout), .parquet, or .h5ad (the query with labels).",
        ),
    ] = Path("labels.csv"),
    clusters: Annotated[
        str | None,
        typer.Option(
            help="Column with clusters: each also gets the majority label of its samples."
        ),
    ] = None,
    min_share: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="A cluster in which no label reaches this share is called 'heterogeneous'.",
        ),
    ] = 0.5,
    threshold: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Leave samples with a lower confidence 'unassigned'."),
    ] = None,
    target_error: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Leave samples unassigned to reach this error rate."),
    ] = None,
    prior: Annotated[
        str,
        typer.Option(
            metavar="balanced|training|FILE",
            help="Class frequencies that the probabilities assume; FILE has one line class,share "
            "per class. Values other than balanced may change labels.",
        ),
    ] = "balanced",
    adapt: Annotated[
        bool,
        typer.Option(
            "--adapt",
            help="Shift the scores of each class to fit the query. A label then depends on the "
            "other samples.",
        ),
    ] = False,
    unknown_rate: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Leave samples that look like no class 'unassigned'. The value is the share of "
            "held-out training samples that may lose their label, such as 0.01.",
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            help="Draw the query's scores with the boundaries before and after adapting (.png)."
        ),
    ] = None,
    max_missing: MaxMissingOption = 0.5,
    drop_classes: DropClassesOption = False,
    match_case: MatchCaseOption = MatchCase.check,
    homologs: HomologsOption = None,
    missing: Annotated[
        Path | None,
        typer.Option("--missing", help="Write the missing genes and their weights (.csv)."),
    ] = None,
    layer: LayerOption = None,
    gene_column: GeneColumnOption = None,
    genes_in: GenesInOption = None,
    annotations: AnnotationsOption = None,
    samples: SamplesOption = None,
    block_size: Annotated[
        int | None,
        typer.Option(min=1, help="Samples read at a time; default: chosen for the file."),
    ] = None,
    file_format: FormatOption = None,
    force: ForceOption = False,
    debug: DebugOption = False,
    quiet: QuietOption = False,
) -> None:
    """Label the samples of a file with a trained model.

    The file is read in blocks, and only the genes of the model's panel are read, so memory does not
    grow with the number of samples. Genes that are missing or spelled differently are named. If a
    class lacks too many genes, the command stops and suggests what to do.

    Examples:

      optirank predict query.h5ad --model model.optirank --out labels.csv

      optirank predict query.h5ad -m model.optirank -o labelled.h5ad --clusters leiden

      optirank predict query.h5ad -m model.optirank --threshold 0.8

      optirank predict query.h5ad -m model.optirank --adapt

      optirank predict query.csv -m model.optirank --genes-in columns --annotations donor,batch
    """
    with tidy():
        from optirank._util.files import replacing
        from optirank.model import load, panel_table
        from optirank.workflow.predict import predict_file

        inputs = [query, model, samples, prior, homologs]
        check_outputs(
            {"the labels": out, "the missing genes": missing, "the figure": figure}, inputs, force
        )
        fitted = load(model)
        with file_or_stdout(out, ".csv") as target:
            with _ways_out(context, fitted, query), progress_bar("predicting") as bar:
                done = predict_file(
                    query,
                    fitted,
                    target,
                    clusters=clusters,
                    min_share=min_share,
                    threshold=threshold,
                    target_error=target_error,
                    prior=prior,
                    adapt=adapt,
                    unknown_rate=unknown_rate,
                    figure=figure,
                    max_missing=max_missing,
                    drop_classes=drop_classes,
                    match_case=match_case.value,
                    homologs=homologs,
                    layer=layer,
                    gene_column=gene_column,
                    genes_in=genes_in.value if genes_in else None,
                    annotations=listed(annotations),
                    samples=samples,
                    format=file_format.value if file_format else None,
                    block_size=block_size,
                    progress=bar.update,
                )
            if missing is not None:
                table = panel_table(fitted)
                with replacing(missing) as temporary:
                    table[table["gene"].isin(done.missing)].to_csv(temporary, index=False)
            _report(done, out)


@contextmanager
def _ways_out(context: typer.Context, fitted: Any, query: Path) -> Iterator[None]:
    """Add the commands that help to the error of missing genes."""
    from optirank.model import MissingGenesError
    from optirank.workflow.retraining import retraining

    try:
        yield
    except MissingGenesError as error:
        if error.match.elsewhere:
            error.add_note("read the gene names of the query from another column:")
            error.add_note(this_command(context, gene_column=error.match.elsewhere[0]))
        if error.droppable:
            error.add_note("leave these classes out, whose samples then get another label:")
            error.add_note(this_command(context, drop_classes=True))
        if error.match.present.sum() > 1:
            genes_in = context.params.get("genes_in")
            words, found = retraining(fitted, context.params["model"], query, genes_in)
            here = "" if found else f" ({words[0]} is the data set that the model was trained on)"
            error.add_note(f"train a model for the genes that the query has{here}:")
            error.add_note(shlex.join(["optirank", "train", *words]))
        if error.enough is not None:
            limit = math.ceil(100 * error.enough) / 100
            error.add_note("label all the same, with little to go by for these classes:")
            error.add_note(this_command(context, max_missing=limit))
        if hasattr(error, "__notes__"):
            error.args = (f"{error.what} One can:",)
        raise


def _report(done: FilePrediction, out: Path) -> None:
    """Print the results; notes go to stderr."""
    for note in done.notes:
        echo(f"note: {note}", err=True)
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
    sure = f", mean confidence {done.mean_confidence:.3f}" if done.n_samples else ""
    typer.echo(f"{out}: {done.n_samples} samples{sure}")
