"""`optirank labels` and `optirank train`: the labels of sets side by side with their
terms, and from labelled profiles to a model file and a report.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from optirank._util.names import counted, some, valid_text
from optirank._util.work import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import echo, tell
from optirank.cli.outputs import (
    outputs,
    show_performance,
    show_sizes,
    show_table,
    show_warnings,
    write_page,
)
from optirank.verbs.options import METHODS, TrainingOptions

_TERMS = "Write the labels with their terms (.csv; - for stdout), to correct."
_ONTOLOGY = "A table that this command wrote, with your corrections."


@opt.with_options(opt.reading)
def labels(
    context: typer.Context,
    files: opt.Files,
    label: Annotated[str, opt.option("COLUMN", "Class labels.", None, "--label", "-l")],
    ontology: Annotated[
        Path | None, opt.option("FILE", _ONTOLOGY, None, "--ontology")
    ] = None,
    out: Annotated[
        Path | None, opt.option("TABLE", _TERMS, opt.OUTPUT, "--out", "-o")
    ] = None,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Show the labels of one or more sets, and find their Cell Ontology terms.

    A label gets a term where it is its name or a synonym; case, plurals and the order
    of words make no difference. Nothing is taken because it is merely like a name:
    the nearest names are shown, and labels of tumours and tissues stay as they are.
    Labels of several sets that look like one class are shown with the option that
    joins them.

    Examples:

      optirank labels reference.h5ad --label cell_type
      optirank labels a.h5ad b.h5ad --label cell_type -o terms.csv
      optirank labels a.h5ad b.h5ad --label cell_type --ontology terms.csv
    """
    from optirank.ontology import cell_ontology, read_terms, write_terms
    from optirank.verbs.sources import LabelSets, labels_of_files

    reading = opt.reading_options(context)
    with outputs(context, {"the table": out}) as target:
        known = cell_ontology()
        ids = None if ontology is None else read_terms(ontology, known)
        sets = LabelSets(labels_of_files(files, label, **reading), known, ids)
        if not sets.terms:
            raise ValueError(f"no sample has a label in the column {label!r}")
        rows = []
        for term, numbers in zip(sets.terms, sets.counts.to_numpy(), strict=True):
            near = some([f"{name} {like}" for name, like in term.near])
            name = f"(near: {near})" if term.near else ""
            if term.id:
                name = f"{term.id} {term.name}"
            rows.append((term.label, *numbers, name))
        show_table("Labels", ("label", *map(str, sets.counts), "what"), rows)
        for note in sets.notes():
            tell(f"note: {note}", err=True)
        if strange := sorted(set(ids or ()) - set(sets.names)):
            echo(
                f"note: {ontology} has labels that no set has: {some(strange)}",
                err=True,
            )
        n_found = sum(bool(term.id) for term in sets.terms)
        of_all = counted(len(sets.terms), "label has", "labels have")
        echo(f"{n_found} of {of_all} a term of the Cell Ontology {known.version}")
        if target is not None:
            counts = sets.counts.sum(axis=1)
            write_terms(target, sets.terms, dict(zip(sets.names, counts, strict=True)))
            echo(f"{out}: correct the ids, and give it back with --ontology")


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
            "FILE|ontology",
            "Coarser labels: a table of labels and parents, or the word ontology.",
            None,
        ),
    ] = None,
    ontology: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "Cell Ontology terms of the labels, as optirank labels writes them.",
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
    target_error: Annotated[
        float | None,
        opt.option(
            "SHARE",
            "Let the model withhold labels so that at most this share of those given "
            "is wrong, judged by held-out samples.",
            None,
            min=0.0,
            max=1.0,
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
            "--genes",
            min=2,
        ),
    ] = None,
    gene_list: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "Use these genes, one per line; with --genes the best of them.",
            opt.GENES,
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
    dated: opt.Dated = False,
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
    from optirank.io.cluster import cluster_at
    from optirank.model import save
    from optirank.verbs.sources import counts_by_file, open_sources
    from optirank.verbs.train import train as run

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
            counts = counts_by_file(data, asked)
            columns = ("label", *map(str, counts))
            show_table("Samples of each label", columns, counts.itertuples())
        with progress_bar("training", lines=True) as bar:
            result = run(
                data,
                asked,
                command=opt.this_command(context, recorded=True),
                source=", ".join(valid_text(path.name) for path in files),
                say=tell,
                progress=bar.update,
                cluster=cluster,
            )
        save(result.model, target, overwrite=True)
        show_sizes(result.curve, auto=n_genes is None and gene_list is None)
        show_performance(result.performance, "On held-out samples")
        show_warnings(result)
        accuracy = result.performance.headline()
        echo(
            f"Balanced accuracy of held-out samples {accuracy}, "
            f"{result.model.n_genes} genes"
        )
        echo(f"Model:  {out}")
        write_page(result, context)
