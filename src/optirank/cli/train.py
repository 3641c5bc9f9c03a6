"""`optirank train`: from labelled profiles to a model file and a report."""

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
    show_performance,
    show_table,
    this_command,
    tidy,
    workers,
)
from optirank.cli.options import OUTPUT, option
from optirank.workflow import METHODS

if TYPE_CHECKING:
    import pandas as pd

_GENES = "Options for the genes"
_Method = opt.one_of(*METHODS)


def train(
    context: typer.Context,
    files: opt.Files,
    label: Annotated[str, option("COLUMN", "Class labels.", None, "--label", "-l")],
    out: Annotated[
        Path, option("MODEL", "The model file; - for stdout.", OUTPUT, "--out", "-o")
    ],
    batch: Annotated[
        str | None,
        option("COLUMN", "Source (data set, donor); each is held out in turn.", None),
    ] = None,
    method: Annotated[
        _Method,
        option(
            "|".join(METHODS), "One panel, the paper's classifier, or all genes.", None
        ),
    ] = "panel",
    target_error: Annotated[
        float | None,
        opt.share(
            "Let the model withhold labels so that at most this share of those given is wrong, "
            "judged by held-out samples."
        ),
    ] = None,
    jobs: opt.Processes = None,
    n_genes: Annotated[
        int | None,
        option(
            "N",
            "Genes in the panel; default: by held-out accuracy.",
            _GENES,
            "--genes",
            min=2,
        ),
    ] = None,
    gene_list: Annotated[
        Path | None,
        option(
            "FILE",
            "Use these genes, one per line; with --genes the best of them.",
            _GENES,
        ),
    ] = None,
    query: Annotated[
        list[Path] | None,
        option(
            "QUERY",
            "To be labelled later: use only its genes. Repeatable.",
            _GENES,
            "--for",
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        option(
            "GENES",
            "Genes that must be in the panel: names, patterns or a file.",
            _GENES,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        option(
            "GENES",
            "Genes that may not be: names, patterns such as 'MT-*', a file.",
            _GENES,
        ),
    ] = None,
    report: opt.Report = None,
    name: Annotated[str, option("TEXT", "Name of the model.", OUTPUT)] = "",
    description: Annotated[
        str,
        option("TEXT", "Its intended use, kept in the model.", OUTPUT, "--describe"),
    ] = "",
    force: opt.Force = False,
    layer: opt.Layer = None,
    gene_column: opt.GeneColumn = None,
    genes_in: opt.GenesIn = None,
    annotations: opt.Annotations = None,
    samples: opt.Samples = None,
    drop_missing: opt.DropMissing = False,
) -> None:
    """Train a classifier on labelled expression profiles.

    A panel of genes is chosen, and its size: folds repeat the whole training, so the accuracy
    printed for each size is that of held-out samples. The same command on the same data gives the
    same model.

    Examples:

      optirank train reference.h5ad --label cell_type -o model.optirank --report report.html
      optirank train reference.h5ad --label cell_type --for query.h5ad -o model.optirank
      optirank train all.h5ad --label cell_type --batch donor -o model.optirank
      optirank train one.h5ad two.h5ad --label cell_type -o model.optirank
      optirank train reference.h5ad --label cell_type --genes 30 --exclude 'MT-*' -o m.optirank
      optirank train counts.csv --genes-in rows --samples labels.csv --label er -o m.optirank
    """
    with tidy():
        from optirank import save
        from optirank.workflow.preparation import (
            gene_names_in,
            genes_of_queries,
            open_sources,
        )
        from optirank.workflow.train import TrainingOptions
        from optirank.workflow.train import train as run

        lists = [gene_list, *(include or ()), *(exclude or ())]
        inputs = [*files, samples, *(query or ()), *(name for name in lists if name)]
        check_outputs({"the model": out, "the report": report}, inputs, force)
        if report is not None:
            from optirank.report.pages import check_report, write_report

            check_report()
        reading = opt.reading_options(context)
        given = dict(context.params)
        with (
            file_or_stdout(out, ".optirank") as target,
            open_sources(files, label, batch, for_query=bool(query), **reading) as (
                data,
                source_column,
            ),
        ):
            given["batch"] = source_column
            given["n_genes"] = "auto" if n_genes is None else n_genes
            given["method"] = str(method)
            given["n_jobs"] = workers(jobs)
            given["include"] = gene_names_in(include or [])
            given["exclude"] = gene_names_in(exclude or [])
            given["query_genes"] = genes_of_queries(query or [], reading["genes_in"])
            if gene_list is not None:
                given["gene_list"] = gene_names_in([str(gene_list)])
            with progress_bar("training", lines=True) as bar:
                result = run(
                    data,
                    TrainingOptions.among(given),
                    command=this_command(context, names=True),
                    source=", ".join(path.name for path in files),  # not where they lie
                    say=echo,
                    progress=bar.update,
                )
            save(result.model, target, overwrite=True)
            show_sizes(result.curve, auto=n_genes is None and gene_list is None)
            show_performance(result.performance, "On held-out samples")
            for warning in result.warnings:
                echo(f"Warning: {warning}", err=True)
            accuracy = result.performance.headline()
            echo(
                f"Balanced accuracy of held-out samples {accuracy}, "
                f"{result.model.n_genes} genes"
            )
            echo(f"Model:  {out}")
            if report is not None:
                write_report(result, report)
                echo(f"Report: {report}")


def show_sizes(curve: pd.DataFrame, *, auto: bool = False) -> None:
    """Print the accuracy of each size of the panel, and how one was chosen."""
    rows = []
    for point in curve.sort_values("n_genes").itertuples():
        accuracy = ""
        if point.balanced_accuracy == point.balanced_accuracy:
            accuracy = f"{100 * point.balanced_accuracy:.1f}"
            if point.standard_error == point.standard_error:
                accuracy += f" ± {100 * point.standard_error:.1f}"
            accuracy += " %"
        rows.append((point.n_genes, accuracy, "chosen" if point.chosen else ""))
    if len(rows) > 1:
        show_table(
            "Panels on held-out samples", ("genes", "balanced accuracy", ""), rows
        )
    if auto and len(rows) > 1:
        echo(
            "chosen: the smallest within one standard error of the best, of at least 100 "
            "genes where there is one"
        )
