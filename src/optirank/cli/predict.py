"""`optirank predict` and `optirank evaluate`: labels for samples, and labels against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank._util.progress import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import (
    check_outputs,
    echo,
    file_or_stdout,
    remedies_for_missing_genes,
    show_performance,
    show_table,
    tidy,
)
from optirank.cli.options import option, share

if TYPE_CHECKING:
    from optirank.workflow.labels import Labelled

_MISSING = "Options for missing genes"
_OUT = "Labels: .csv (- for stdout), .parquet, or .h5ad (the query with labels)."


def predict(
    context: typer.Context,
    query: opt.File,
    model: opt.Model,
    out: Annotated[Path, option("FILE", _OUT, opt.OUTPUT, "--out", "-o")] = Path(
        "labels.csv"
    ),
    clusters: Annotated[
        str | None,
        option("COLUMN", "Clusters: each also gets its majority label.", None),
    ] = None,
    adapt: opt.Adapt = False,
    target_error: opt.TargetError = None,
    threshold: Annotated[
        float | None, share("Withhold labels of a lower confidence.")
    ] = None,
    unknown_rate: Annotated[
        float | None,
        share(
            "Withhold labels of samples that look like no class; the share of held-out samples "
            "that may lose their label, such as 0.01."
        ),
    ] = None,
    max_missing: opt.MaxMissing = 0.5,
    drop_classes: Annotated[
        bool,
        option(
            None,
            "Leave out classes that lack more than that.",
            _MISSING,
            "--drop-classes",
        ),
    ] = False,
    report: opt.Report = None,
    force: opt.Force = False,
    layer: opt.Layer = None,
    gene_column: opt.GeneColumn = None,
    genes_in: opt.GenesIn = None,
    annotations: opt.Annotations = None,
    samples: opt.Samples = None,
    drop_missing: opt.DropMissing = False,
    homologs: opt.Homologs = None,
) -> None:
    """Label the samples of a file with a trained model.

    Only the genes of the model's panel are read, in blocks of samples. Genes that are missing or
    spelled differently are named. If a class lacks too many genes, the command stops and says what
    can be done. Labels that are withheld are called 'unassigned'. The report shows how many samples
    got each label, how confident the labels are, and which genes are missing.

    Examples:

      optirank predict query.h5ad --model model.optirank -o labels.csv --report labels.html
      optirank predict query.h5ad -m model.optirank -o labelled.h5ad --clusters leiden
      optirank predict query.h5ad -m model.optirank --target-error 0.05
      optirank predict query.csv -m model.optirank --genes-in columns --annotations donor,batch
    """
    with tidy():
        from optirank.model import load
        from optirank.workflow.predict import PredictOptions, predict_file

        outputs = {"the labels": out, "the report": report}
        check_outputs(outputs, [query, model, samples, homologs], force)
        if report is not None:
            from optirank.report.pages import check_report, write_report

            check_report()
        options = PredictOptions.among(context.params)
        reading, fitted = opt.reading_options(context), load(model)
        with file_or_stdout(out, ".csv") as target:
            with (
                remedies_for_missing_genes(context, fitted, query),
                progress_bar("predicting", lines=True) as bar,
            ):
                done = predict_file(
                    query, fitted, target, options, progress=bar.update, **reading
                )
            _show_notes(done)
            n = len(done.codes)
            rows = [
                (label, count, f"{count / n:.1%}")
                for label, count in done.counts().items()
            ]
            show_table("Labels", ("label", "samples", "share"), rows)
            if done.clusters is not None:
                lines = done.clusters.table.itertuples()
                rows = [
                    (one.cluster, one.n_samples, one.label, f"{one.share:.0%}")
                    for one in lines
                ]
                show_table("Clusters", ("cluster", "samples", "label", "share"), rows)
            sure = f"mean confidence {done.confidence.mean():.3f}"
            echo(
                f"{out}: {n} sample{'s' * (n != 1)}, {sure}, {done.withheld.sum()} labels withheld"
            )
            if report is not None:
                echo(f"Report: {write_report(done, report)}")


def evaluate(
    context: typer.Context,
    query: opt.File,
    model: opt.Model,
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
    adapt: opt.Adapt = False,
    target_error: opt.TargetError = None,
    max_missing: opt.MaxMissing = 0.5,
    report: opt.Report = None,
    force: opt.Force = False,
    layer: opt.Layer = None,
    gene_column: opt.GeneColumn = None,
    genes_in: opt.GenesIn = None,
    annotations: opt.Annotations = None,
    samples: opt.Samples = None,
    drop_missing: opt.DropMissing = False,
    homologs: opt.Homologs = None,
) -> None:
    """Compare the labels of a model with the true classes of samples.

    Prints the balanced accuracy with a 95 % interval, and for each class sensitivity, specificity,
    PPV and NPV. The report has the intervals of all of them, the confusion of classes, ROC and
    precision-recall curves, calibration, and what withholding labels would give.

    Examples:

      optirank evaluate query.h5ad --model model.optirank --label cell_type --report page.html
      optirank evaluate cohort.csv -m er.optirank --label er --genes-in columns --report er.html
      optirank evaluate cohort.h5ad -m er.optirank --label er --prevalence 'ER positive=0.7'
    """
    with tidy():
        from optirank.io.reading import open_expression
        from optirank.model import load
        from optirank.report.pages import check_report, write_report
        from optirank.workflow.evaluate import evaluate_profiles
        from optirank.workflow.predict import PredictOptions

        check_outputs({"the report": report}, [query, model, samples, homologs], force)
        if report is not None:
            check_report()
        options = PredictOptions.among(context.params)
        reading, fitted, shares = (
            opt.reading_options(context),
            load(model),
            _shares(prevalence),
        )
        with (
            remedies_for_missing_genes(context, fitted, query),
            open_expression(query, label=label, **reading) as opened,
            progress_bar("predicting", lines=True) as bar,
        ):
            told = {"prevalence": shares, "progress": bar.update}
            done = evaluate_profiles(opened, fitted, label, options, **told)
        _show_notes(done.labelled)
        found = done.performance
        show_performance(found, f"Labels against {label}")
        rows = [
            (f"{one.target_error:.0%}", f"{one.given:.1%}", _percent(one.error))
            for one in found.withholding.itertuples()
        ]
        show_table("Withholding", ("error asked for", "labels given", "error"), rows)
        echo(
            f"Balanced accuracy {found.headline()}, {found.n_right} of {found.n_given} labels "
            f"right, {found.n_withheld} withheld"
            + ("" if found.auc != found.auc else f", mean AUC {found.auc:.3f}")
        )
        if report is not None:
            write_report(done, report)
            echo(f"Report: {report}")


def _show_notes(done: Labelled) -> None:
    """Print notes and what is lost by missing genes to stderr."""
    for note in done.notes:
        echo(f"note: {note}", err=True)
    if done.missing:
        losses = done.losses.sort_values("weight_lost", ascending=False).itertuples()
        rows = [
            (one.label, one.n_genes, one.n_missing, f"{one.weight_lost:.0%}")
            for one in losses
        ]
        show_table(
            "Genes missing",
            ("class", "genes", "missing", "weight lost"),
            rows,
            err=True,
        )


def _percent(share: float) -> str:
    return "" if share != share else f"{share:.1%}"


def _shares(items: list[str] | None) -> dict[str, float] | None:
    """Shares of classes from ``CLASS=SHARE``."""
    shares = {}
    for item in items or ():
        name, _, share = item.rpartition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            name = ""
        if not name:
            raise ValueError(
                f"--prevalence {item!r}: use CLASS=SHARE, as 'ER positive=0.7'"
            )
    return shares or None
