"""`optirank train`: from labelled profiles to a model file and a report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.flags import among
from optirank._util.names import valid_text
from optirank._util.progress import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import (
    check_page,
    claimed_outputs,
    echo,
    file_or_stdout,
    listed,
    renamed,
    show_performance,
    show_table,
    show_warnings,
    tell,
    this_command,
    tidy,
    workers,
    write_page,
)
from optirank.cli.options import OUTPUT, option
from optirank.io.options import ReadOptions
from optirank.workflow.options import TrainingOptions

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData


@opt.with_options(TrainingOptions, ReadOptions)
def train(
    context: typer.Context,
    files: opt.Files,
    out: Annotated[
        Path, option("MODEL", "The model file; - for stdout.", OUTPUT, "--out", "-o")
    ],
    report: opt.Report = None,
    dated: opt.Dated = False,
    dask: opt.Dask = None,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Train a classifier on labelled expression profiles.

    A panel of genes is chosen, and its size: folds repeat the whole training, so the
    accuracy printed for each size is that of held-out samples. The same command on the
    same data gives the same model.

    With columns from coarse to fine, or a tree of labels, samples later get the finest
    label that is sure. Labels of several files are shown side by side first.

    Examples:

      optirank train reference.h5ad --label cell_type -o m.optirank --report report.html
      optirank train reference.h5ad --label cell_type --for query.h5ad -o m.optirank
      optirank train all.h5ad --label cell_type --batch donor -o m.optirank
      optirank train one.h5ad two.h5ad --label cell_type -o m.optirank
      optirank train cells.h5ad --label type --genes 30 --exclude 'MT-*' -o m.optirank
      optirank train cells.h5ad --label lineage,type -o m.optirank
      optirank train cells.h5ad --label type --tree tree.csv -o m.optirank
      optirank train atlas.zarr --label type --dask tcp://host:8786 -o m.optirank
      optirank train x.csv --genes-in rows --samples y.csv --label er -o er.optirank
    """
    with tidy():
        from optirank import save
        from optirank.io.cluster import cluster_at
        from optirank.workflow.sources import open_sources
        from optirank.workflow.train import train as run

        given = context.params
        lists = [
            given["gene_list"],
            *(given["include"] or ()),
            *(given["exclude"] or ()),
        ]
        queries = given["query_genes"] or ()
        inputs = [*files, given["samples"], *queries, *(name for name in lists if name)]
        inputs += [given["ontology"], given["tree"]]
        columns = listed(given["label"])
        outputs = {"the model": out, "the report": report}
        reading = opt.reading_options(context)
        with (
            claimed_outputs(outputs, inputs, force),
            file_or_stdout(out, ".optirank") as target,
            open_sources(
                files,
                columns,
                given["batch"],
                for_query=bool(queries),
                **reading,
            ) as (data, source_column),
            cluster_at(dask) as cluster,
        ):
            check_page(report, dated)
            asked = _training_options(given, source_column, reading["genes_in"])
            if len(data) > 1:
                _show_labels(data, asked)
            with progress_bar("training", lines=True) as bar:
                result = run(
                    data,
                    asked,
                    command=this_command(context, recorded=True),
                    source=", ".join(valid_text(path.name) for path in files),
                    say=tell,
                    progress=bar.update,
                    cluster=cluster,
                )
            save(result.model, target, overwrite=True)
            is_free = given["n_genes"] is None and given["gene_list"] is None
            show_sizes(result.curve, auto=is_free)
            show_performance(result.performance, "On held-out samples")
            show_warnings(result)
            accuracy = result.performance.headline()
            echo(
                f"Balanced accuracy of held-out samples {accuracy}, "
                f"{result.model.n_genes} genes"
            )
            echo(f"Model:  {out}")
            write_page(result, report, dated)


def _training_options(
    given: Mapping[str, Any], source_column: str | None, genes_in: str | None
) -> TrainingOptions:
    """What is asked of the training, with the names of genes read from their files."""
    from optirank.workflow.sources import gene_names_in, genes_of_queries

    values = dict(given)
    columns = listed(given["label"])
    values["label"] = columns[0] if len(columns) == 1 else columns
    values["tree"] = given["tree"] and str(given["tree"])
    values["mapping"] = renamed(given["mapping"])
    values["batch"] = source_column
    values["method"] = str(given["method"])
    values["n_genes"] = "auto" if given["n_genes"] is None else given["n_genes"]
    values["n_jobs"] = workers(given["n_jobs"])
    values["include"] = gene_names_in(given["include"] or ())
    values["exclude"] = gene_names_in(given["exclude"] or ())
    values["query_genes"] = genes_of_queries(given["query_genes"] or (), genes_in)
    if given["gene_list"] is not None:
        values["gene_list"] = gene_names_in([str(given["gene_list"])])
    return among(TrainingOptions, values)


def _show_labels(data: list[AnnData], options: TrainingOptions) -> None:
    """Print the samples of each label in each file, before anything is fitted."""
    from optirank.workflow.sources import counts_by_file

    counts = counts_by_file(data, options)
    rows = [(label, *numbers) for label, *numbers in counts.itertuples()]
    show_table("Samples of each label", ("label", *map(str, counts)), rows)


def show_sizes(curve: pd.DataFrame, *, auto: bool = False) -> None:
    """Print the accuracy of each size of the panel, and how one was chosen."""
    import numpy as np

    from optirank._util.metrics import in_percent

    rows = []
    for point in curve.sort_values("n_genes").to_dict("records"):
        accuracy = ""
        if np.isfinite(point["balanced_accuracy"]):
            accuracy = in_percent(point["balanced_accuracy"])
            if np.isfinite(point["standard_error"]):
                accuracy += f" ± {in_percent(point['standard_error'])}"
            accuracy += " %"
        chosen = "chosen" if point["chosen"] else ""
        rows.append((point["n_genes"], accuracy, chosen))
    if len(rows) > 1:
        show_table(
            "Panels on held-out samples", ("genes", "balanced accuracy", ""), rows
        )
    if auto and len(rows) > 1:
        echo(
            "chosen: the smallest within one standard error of the best, of at least "
            "100 genes where there is one"
        )
