"""`optirank evaluate`: labels of a model against the true classes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from optirank._util.flags import among
from optirank._util.progress import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import (
    claimed_outputs,
    echo,
    remedies_for_missing_genes,
    show_performance,
    show_table,
    tidy,
)
from optirank.cli.options import option
from optirank.cli.predict import show_notes
from optirank.io.options import ReadOptions
from optirank.workflow.options import PredictOptions


@opt.with_options(PredictOptions, ReadOptions, without=["clusters"])
def evaluate(
    context: typer.Context,
    query: opt.File,
    model: opt.Model,
    label: Annotated[str, option("COLUMN", "True classes.", None, "--label", "-l")],
    mapping: Annotated[
        list[str] | None,
        option(
            "THEIRS=OURS",
            "A class of that column, and the model's name for it. Repeatable.",
            None,
            "--map",
        ),
    ] = None,
    prevalence: Annotated[
        list[str] | None,
        option(
            "CLASS=SHARE",
            "Share of a class where the model will be used, for PPV and NPV; default: "
            "as in the query. Repeatable.",
            None,
        ),
    ] = None,
    report: opt.Report = None,
    dask: opt.Dask = None,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Compare the labels of a model with the true classes of samples.

    Prints the balanced accuracy with a 95 % interval, and for each class sensitivity,
    specificity, PPV and NPV. The report has the intervals of all of them, the confusion
    of classes, ROC and precision-recall curves, calibration, and what withholding
    labels would give.

    Examples:

      optirank evaluate query.h5ad --model m.optirank --label type --report page.html
      optirank evaluate cohort.csv -m er.optirank --label er --genes-in columns
      optirank evaluate x.h5ad -m er.optirank --label er --prevalence 'ER positive=0.7'
      optirank evaluate x.h5ad -m blood-human --label type --map 'cd4 t=t cell'
    """
    given = context.params
    inputs = [query, model, given["samples"], given["homologs"]]
    with tidy(), claimed_outputs({"the report": report}, inputs, force):
        from optirank._util.metrics import percent
        from optirank.io.reading import open_expression
        from optirank.model import load
        from optirank.report.pages import check_report, write_report
        from optirank.workflow.cluster import cluster_at
        from optirank.workflow.evaluate import evaluate_profiles

        if report is not None:
            check_report()
        shares = _shares(prevalence)
        names = _names(mapping)
        fitted = load(model)
        with (
            remedies_for_missing_genes(context, fitted, query),
            open_expression(
                query,
                label=label,
                known_genes=fitted.path_genes,
                **opt.reading_options(context),
            ) as opened,
            cluster_at(dask) as cluster,
            progress_bar("predicting", lines=True) as bar,
        ):
            evaluation = evaluate_profiles(
                opened,
                fitted,
                label,
                among(PredictOptions, given),
                mapping=names,
                prevalence=shares,
                progress=bar.update,
                cluster=cluster,
            )
        show_notes(evaluation.labels)
        judged = evaluation.performance
        show_performance(judged, f"Labels against {label}")
        table = judged.withholding
        rows = [
            (f"{target:.0%}", percent(share_given), percent(error))
            for target, share_given, error in zip(
                table["target_error"], table["given"], table["error"], strict=True
            )
        ]
        show_table(
            "Withholding below a confidence chosen with the true classes",
            ("error at most", "labels given", "error"),
            rows,
        )
        auc = "" if judged.auc != judged.auc else f", mean AUC {judged.auc:.3f}"
        echo(
            f"Balanced accuracy {judged.headline()}, {judged.n_right} of "
            f"{judged.n_given} labels right, {judged.n_withheld} withheld{auc}"
        )
        if report is not None:
            write_report(evaluation, report)
            echo(f"Report: {report}")


def _names(items: list[str] | None) -> dict[str, str]:
    """Names of classes from ``THEIRS=OURS``."""
    names = {}
    for item in items or ():
        theirs, _, ours = item.partition("=")
        if not theirs or not ours:
            raise ValueError(
                f"--map {item!r}: write 'THEIRS=OURS', such as 'cd4 t=t cell'"
            )
        names[theirs] = ours
    return names


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
                f"--prevalence {item!r}: write CLASS=SHARE, such as 'ER positive=0.7'"
            )
    return shares or None
