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
    genes: Annotated[
        int | None,
        option(
            "N", "Genes in the panel; default: by held-out accuracy.", _GENES, min=2
        ),
    ] = None,
    gene_list: Annotated[
        Path | None, option("FILE", "Use only these genes, one per line.", _GENES)
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
    describe: Annotated[
        str, option("TEXT", "Its intended use, kept in the model.", OUTPUT)
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
        inputs = [*files, samples, *(query or ()), *(one for one in lists if one)]
        check_outputs({"the model": out, "the report": report}, inputs, force)
        if report is not None:
            from optirank.report.pages import check_report, write_report

            check_report()
        reading = opt.reading_options(context)
        with (
            file_or_stdout(out, ".optirank") as target,
            open_sources(
                files, label, batch, for_query=bool(query), **reading
            ) as opened,
        ):
            data, batch = opened
            options = TrainingOptions(
                label=label,
                batch=batch,
                n_genes="auto" if genes is None else genes,
                gene_list=None
                if gene_list is None
                else gene_names_in([str(gene_list)]),
                available=genes_of_queries(query or [], reading["genes_in"]),
                include=gene_names_in(include or []),
                exclude=gene_names_in(exclude or []),
                method=str(method),
                target_error=target_error,
                n_jobs=workers(jobs),
                name=name,
                description=describe,
            )
            with progress_bar("training", lines=True) as bar:
                result = run(data, options, say=echo, progress=bar.update)
            result.model.training_summary_ |= {
                "source": ", ".join(path.name for path in files),  # not where they lie
                "command": this_command(context, names=True),
            }
            save(result.model, target, overwrite=True)
            show_sizes(result.curve, auto=genes is None)
            show_performance(result.performance, "On held-out samples")
            for warning in result.warnings:
                echo(f"Warning: {warning}", err=True)
            accuracy = result.performance.headline()
            echo(
                f"Balanced accuracy of held-out samples {accuracy}, {len(result.genes)} genes"
            )
            echo(f"Model:  {out}")
            if report is not None:
                write_report(result, report)
                echo(f"Report: {report}")


def show_sizes(curve: pd.DataFrame, *, auto: bool = False) -> None:
    """Print the accuracy of each size of the panel, and how one was chosen automatically."""
    rows = []
    for row in curve.sort_values("n_genes").itertuples():
        measured, known = (
            one == one for one in (row.balanced_accuracy, row.standard_error)
        )
        error = f" ± {100 * row.standard_error:.1f}" if known else ""
        accuracy = f"{100 * row.balanced_accuracy:.1f}{error} %" if measured else ""
        rows.append((f"{row.n_genes:.0f}", accuracy, "chosen" if row.chosen else ""))
    if len(rows) > 1:
        show_table(
            "Panels on held-out samples", ("genes", "balanced accuracy", ""), rows
        )
    chosen = curve[curve["chosen"] & (curve["n_genes"] >= 100)][
        "balanced_accuracy"
    ].max()
    if auto and curve["balanced_accuracy"].max() > chosen:  # never where it is NaN
        echo(
            "chosen: the smallest of at least 100 genes within one standard error of the best"
        )
