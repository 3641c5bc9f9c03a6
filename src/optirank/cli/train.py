"""`optirank train`: from labelled profiles to a model file and a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from optirank._util.names import valid_text
from optirank._util.work import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import echo
from optirank.cli.outputs import (
    outputs,
    show_notes,
    show_performance,
    show_sizes,
    show_table,
    write_page,
)
from optirank.verbs.options import METHODS, TrainingOptions


@opt.with_options(opt.reading)
def train(
    context: typer.Context,
    files: opt.Files,
    label: opt.Labels,
    out: Annotated[
        Path,
        opt.option("MODEL", "The model file; - for stdout.", opt.OUTPUT, "--out", "-o"),
    ],
    batch: opt.Batch = None,
    tree: Annotated[
        str | None,
        opt.option(
            "FILE",
            "Coarser labels: a table of labels and parents.",
            None,
        ),
    ] = None,
    ontology: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "Ids of the labels, kept in the model: a table of labels and ids.",
            None,
        ),
    ] = None,
    mapping: Annotated[
        list[str] | None,
        opt.option(
            "LABEL=OTHER",
            "Join a label to another, such as 'b=B cell'. Repeatable.",
            None,
            "--map",
        ),
    ] = None,
    method: Annotated[
        str | None,
        opt.option(
            "|".join(METHODS),
            "One panel (the default), the paper's classifier, or all genes.",
            None,
        ),
    ] = None,
    n_jobs: opt.Threads = None,
    dask: opt.Dask = None,
    n_genes: Annotated[
        int | None,
        opt.option(
            "N",
            "Genes in the panel; default: by held-out accuracy.",
            opt.GENES,
            "--n-genes",
            min=2,
        ),
    ] = None,
    query: opt.Query = None,
    include: opt.Include = None,
    exclude: Annotated[
        list[str] | None,
        opt.option(
            "GENES",
            "Genes that may not be: names, patterns such as 'MT-*', a file.",
            opt.GENES,
        ),
    ] = None,
    name: opt.Name = None,
    description: opt.Description = None,
    report: opt.Report = None,
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
      optirank train reference.h5ad --label cell_type --query query.h5ad -o m.optirank
      optirank train all.h5ad --label cell_type --batch donor -o m.optirank
      optirank train one.h5ad two.h5ad --label cell_type -o m.optirank
      optirank train cells.h5ad --label type --n-genes 30 --exclude 'MT-*' -o m.optirank
      optirank train cells.h5ad --label lineage,type -o m.optirank
      optirank train cells.h5ad --label type --tree tree.csv -o m.optirank
      optirank train atlas.zarr --label type --dask tcp://host:8786 -o m.optirank
      optirank train x.csv --genes-in rows --samples y.csv --label er -o er.optirank
    """
    from optirank.io.cluster import cluster_at
    from optirank.io.data import annotations_of, source_of
    from optirank.model import save
    from optirank.verbs.samples import counts_by_file
    from optirank.verbs.sources import open_sources
    from optirank.verbs.training import train as run

    reading = opt.reading_options(context)
    asked = opt.among(
        TrainingOptions,
        context,
        **opt.reference_options(context),
        mapping=opt.renamed(mapping),
    )
    opened = open_sources(files, asked.label, batch, for_query=bool(query), **reading)
    with (
        outputs(context, {"the model": out}, ".optirank") as target,
        opened as (data, source_column),
        cluster_at(dask) as cluster,
    ):
        asked = replace(asked, batch=source_column)
        if len(data) > 1:
            counts = counts_by_file(annotations_of(data), asked, source_of(data))
            columns = ("label", *map(str, counts))
            show_table("Samples of each label", columns, counts.itertuples())
        with progress_bar("training", lines=True) as bar:
            result = run(
                data,
                asked,
                command=opt.this_command(context, recorded=True),
                source=", ".join(valid_text(path.name) for path in files),
                progress=bar.update,
                cluster=cluster,
            )
        save(result.model, target, overwrite=True)
        show_sizes(result.curve, auto=n_genes is None)
        show_performance(result.performance, "On held-out samples")
        show_notes(result)
        accuracy = result.performance.headline()
        echo(
            f"Balanced accuracy of held-out samples {accuracy}, "
            f"{result.model.n_genes} genes"
        )
        echo(f"Model:  {out}")
        write_page(result, context)
