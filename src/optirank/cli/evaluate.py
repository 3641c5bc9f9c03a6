"""`optirank evaluate`: a model on labelled samples of another cohort."""

from __future__ import annotations

from typing import Annotated

import typer

from optirank._util.progress import progress_bar
from optirank.cli.common import (
    add_row,
    check_outputs,
    new_table,
    remedies_for_missing_genes,
    show,
    show_performance,
    tidy,
)
from optirank.cli.options import (
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
    ReportOption,
    SamplesOption,
    TargetErrorOption,
    option,
    reading_options,
)
from optirank.cli.predict import show_notes
from optirank.cli.streams import echo


def evaluate(
    context: typer.Context,
    query: FileArgument,
    model: ModelOption,
    label: Annotated[str, option("COLUMN", "True classes.", None, "--label", "-l")],
    prevalence: Annotated[
        list[str] | None,
        option(
            "CLASS=SHARE",
            "Share of a class where the model will be used, for PPV and NPV; default: as in the "
            "query. Repeatable.",
            None,
        ),
    ] = None,
    adapt: AdaptOption = False,
    target_error: TargetErrorOption = None,
    report: ReportOption = None,
    force: ForceOption = False,
    layer: LayerOption = None,
    gene_column: GeneColumnOption = None,
    genes_in: GenesInOption = None,
    annotations: AnnotationsOption = None,
    samples: SamplesOption = None,
    drop_missing: DropMissingOption = False,
    homologs: HomologsOption = None,
) -> None:
    """Compare the labels of a model with the true classes of samples.

    Prints the balanced accuracy with a 95 % interval, and for each class sensitivity, specificity,
    PPV and NPV with intervals. The report has the confusion of classes, ROC and precision-recall
    curves, calibration, and what withholding labels would give.

    Examples:

      optirank evaluate query.h5ad --model model.optirank --label cell_type --report page.html
      optirank evaluate cohort.csv -m er.optirank --label er --genes-in columns --report er.html
      optirank evaluate cohort.h5ad -m er.optirank --label er --prevalence 'ER positive=0.7'
    """
    with tidy():
        from optirank.model import load
        from optirank.workflow.evaluate import evaluate_file
        from optirank.workflow.predict import PredictOptions
        from optirank.workflow.report import check_report, write_report

        check_outputs({"the report": report}, [query, model, samples, homologs], force)
        if report is not None:
            check_report()
        options = PredictOptions(target_error=target_error, adapt=adapt, homologs=homologs)
        reading = reading_options(layer, gene_column, genes_in, annotations, samples, drop_missing)
        fitted = load(model)
        with (
            remedies_for_missing_genes(context, fitted, query),
            progress_bar("predicting", lines=True) as bar,
        ):
            done = evaluate_file(
                query,
                fitted,
                label,
                options,
                prevalence=parse_prevalence(prevalence),
                progress=bar.update,
                **reading,
            )
        show_notes(done.labelled)
        show_performance(done.performance, f"Labels against {label}")
        table = new_table("Withholding", "error asked for", "labels given", "error")
        for row in done.performance.withholding.itertuples():
            error = "" if row.error != row.error else f"{row.error:.1%}"
            add_row(table, f"{row.target_error:.0%}", f"{row.given:.1%}", error)
        show(table)
        found = done.performance
        echo(
            f"Balanced accuracy {found.headline()}, {found.n_right} of {found.n_given} labels "
            f"right, {found.n_withheld} withheld, mean AUC {found.auc:.3f}"
        )
        if report is not None:
            write_report(done, report)
            echo(f"Report: {report}")


def parse_prevalence(items: list[str] | None) -> dict[str, float] | None:
    """Shares of classes from ``CLASS=SHARE``."""
    if not items:
        return None
    shares = {}
    for item in items:
        name, _, share = item.rpartition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            name = ""
        if not name:
            raise ValueError(f"--prevalence {item!r}: use CLASS=SHARE, as 'ER positive=0.7'")
    return shares
