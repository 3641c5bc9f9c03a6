"""`optirank train`: from labelled profiles to a model file and a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from optirank._util.names import valid_text
from optirank._util.work import progress_bar
from optirank.cli import options as opt
from optirank.cli.command import echo, is_on, recorded_command
from optirank.cli.outputs import (
    outputs,
    show_notes,
    show_page,
    show_performance,
    show_sizes,
    show_table,
)


def train(
    files: opt.Files,
    label: opt.Labels,
    out: Annotated[
        Path,
        opt.out("MODEL", "The model file; - for stdout."),
    ],
    batch: opt.Batch = None,
    tree: Annotated[
        Path | None,
        opt.option("FILE", "Coarser labels: a table of labels and parents.", None),
    ] = None,
    ontology: Annotated[
        Path | None,
        opt.option("FILE", "A table of labels and their ontology ids.", None),
    ] = None,
    mapping: opt.Mapping = None,
    method: Annotated[
        str, opt.option("panel|optirank", "One panel, or the paper's classifier.", None)
    ] = "panel",
    query: opt.ForQuery = None,
    n_genes: Annotated[
        int | None,
        opt.option(
            "N", "Genes in the panel; default: by held-out accuracy.", opt.GENES
        ),
    ] = None,
    include: opt.Include = None,
    exclude: opt.Exclude = None,
    name: opt.Name = "",
    description: opt.Description = "",
    layer: opt.Layer = None,
    table: opt.Table = None,
    gene_column: opt.GeneColumn = None,
    genes_in: opt.GenesIn = None,
    samples: opt.Samples = None,
    invert: opt.Invert = False,
    report: opt.Report = None,
    force: opt.Force = False,
    dask: opt.Dask = None,
    n_jobs: opt.Threads = None,
) -> None:
    """Train a classifier on labelled expression profiles.

    A panel of genes is chosen, and its size: folds repeat the whole training, so the
    accuracy printed for each size is that of held-out samples. The same command on the
    same data gives the same model.

    With columns from coarse to fine, or a tree of labels, samples later get the finest
    label that is sure. Labels of several files are shown side by side first.

    Examples:

      optirank train ref.h5ad --label cell_type -o m.optirank
      optirank train ref.h5ad --label cell_type --query new.h5ad -o m.optirank
      optirank train all.h5ad --label cell_type --batch donor -o m.optirank
      optirank train one.h5ad two.h5ad --label cell_type -o m.optirank
      optirank train cells.h5ad --label type --n-genes 30 -o m.optirank
      optirank train cells.h5ad --label lineage,type -o m.optirank
      optirank train x.csv --samples y.csv --label er -o er.optirank
    """
    from optirank.data.cluster import on_cluster
    from optirank.data.profiles import annotations_of, source_of
    from optirank.model import save
    from optirank.verbs.options import TrainingOptions
    from optirank.verbs.samples import counts_by_file
    from optirank.verbs.sources import genes_of_queries, open_sources
    from optirank.verbs.training import train as run

    asked = TrainingOptions(
        label=opt.listed(label),
        batch=batch,
        tree=tree,
        ontology=ontology,
        mapping=opt.renamed(mapping),
        method=method,
        n_genes=n_genes or "auto",
        query_genes=genes_of_queries(query or ()),
        name=name,
        description=description,
        n_jobs=n_jobs or -1,
        include=include or (),
        exclude=exclude or (),
    )
    reading = opt.reading(
        layer=layer,
        table=table,
        gene_column=gene_column,
        genes_in=genes_in,
        samples=samples,
        invert=invert,
    )
    written = {"the model": out, "the report": report}
    inputs = [*files, *(query or ()), *(include or ()), *(exclude or ())]
    inputs += [tree, ontology, samples]
    opened = open_sources(files, asked.label, batch, exclude=asked.exclude, **reading)
    with (
        outputs(written, inputs, force=force, suffix=".optirank") as target,
        opened as (data, source_column),
        on_cluster(dask),
    ):
        asked = replace(asked, batch=source_column)
        if len(data) > 1:
            counts = counts_by_file(annotations_of(data), asked, source_of(data))
            columns = ("label", *map(str, counts))
            show_table("Samples of each label", columns, counts.itertuples())
        with progress_bar("training", shown=not is_on("quiet")) as update:
            result = run(
                data,
                asked,
                command=recorded_command(),
                source=", ".join(valid_text(path.name) for path in files),
                progress=update,
            )
        save(result.model, target, overwrite=True)
        show_sizes(result.curve)
        show_performance(result.performance, "On held-out samples")
        show_notes(result)
        accuracy = result.performance.headline()
        echo(
            f"Balanced accuracy of held-out samples {accuracy}, "
            f"{result.model.n_genes} genes"
        )
        echo(f"Model:  {out}")
        show_page(result, report)
