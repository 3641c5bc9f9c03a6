"""`optirank train` and `optirank design`: from labelled profiles to a model, and to a
panel for an assay.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optirank._util.files import replacing
from optirank._util.words import in_percent, percent, valid_text, with_interval
from optirank.cli import options as opt
from optirank.cli.command import (
    at_work,
    conclude,
    echo,
    outputs,
    recorded_command,
    show_performance,
    show_sizes,
    show_table,
)
from optirank.verbs.options import DesignOptions, TrainingOptions

if TYPE_CHECKING:
    from optirank.verbs.design import DesignResult

_WEAKEST = 4  # classes that are listed
_CONFUSED = 3  # pairs of classes that are listed
_KINDS = {
    "chosen": "A panel of {n} genes is chosen{required}",
    "extended": "The list is extended to {n} genes{required}",
    "scored": "A list of {n} genes is scored as it is",
}


def train(
    files: opt.Files,
    label: opt.Labels,
    out: Annotated[
        Path,
        opt.option("MODEL", "The model file; - for stdout.", opt.OUTPUT, "--out", "-o"),
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
    n_jobs: opt.Threads = -1,
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
    from optirank.data.opening import open_sources
    from optirank.data.profiles import annotations_of, source_of
    from optirank.model import save
    from optirank.verbs.gene_lists import genes_of_queries
    from optirank.verbs.samples import counts_by_file
    from optirank.verbs.training import train as run

    asked = TrainingOptions(
        label=opt.listed(label),
        batch=batch,
        tree=tree,
        ontology=ontology,
        mapping=opt.renamed(mapping),
        method=method,
        n_genes=n_genes,
        query_genes=genes_of_queries(query) if query else None,
        name=name,
        description=description,
        n_jobs=n_jobs,
        include=include or (),
        exclude=exclude or (),
    )
    reading = opt.how_to_read(layer, table, gene_column, genes_in, samples, invert)
    written = {"the model": out, "the report": report}
    named = [*(query or ()), *(include or ()), *(exclude or ())]
    inputs = [*files, *named, tree, ontology, samples]
    opened = open_sources(files, asked.label, batch, exclude=asked.exclude, **reading)
    with (
        outputs(written, inputs, force=force, suffix=".optirank") as target,
        opened as (data, source_column),
    ):
        asked = replace(asked, batch=source_column)
        if len(data) > 1:
            counts = counts_by_file(annotations_of(data), asked, source_of(data))
            columns = ("label", *map(str, counts))
            show_table("Samples of each label", columns, counts.itertuples())
        with at_work("training", n_jobs, dask) as update:
            result = run(
                data,
                asked,
                command=recorded_command(),
                source=", ".join(valid_text(path.name) for path in files),
                progress=update,
            )
        save(result.model, target, overwrite=True)
        show_sizes(result.curve)
        if n_genes is None and not include and len(result.curve) > 1:
            echo("chosen: the fewest within a standard error of the best, at least 100")
        show_performance(result.performance, "On held-out samples")
        accuracy = result.performance.headline()
        echo(
            f"Balanced accuracy of held-out samples {accuracy}, "
            f"{result.model.n_genes} genes"
        )
        conclude(result, report, {"Model": out})


def design(
    files: opt.Files,
    label: opt.Labels,
    out: Annotated[
        Path,
        opt.option("TABLE.csv", "The genes; - for stdout.", opt.OUTPUT, "--out", "-o"),
    ],
    batch: opt.Batch = None,
    test: Annotated[
        Path | None,
        opt.option("FILE", "Labelled samples of another platform, to judge.", None),
    ] = None,
    query: opt.ForQuery = None,
    gene_list: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "A list to score as it is; with --n-genes, to extend.",
            opt.GENES,
            exists=True,
        ),
    ] = None,
    n_genes: Annotated[
        int | None,
        opt.option("N", "Genes in the panel; default: 100.", opt.GENES),
    ] = None,
    per_class: Annotated[
        int, opt.option("N", "Heaviest genes that each class keeps.", opt.GENES)
    ] = 0,
    include: opt.Include = None,
    exclude: opt.Exclude = None,
    min_mean: Annotated[
        float | None,
        opt.option("COUNTS", "Least mean per 10,000, where highest.", opt.GENES),
    ] = None,
    max_mean: Annotated[
        float | None, opt.option("COUNTS", "Largest such mean.", opt.GENES)
    ] = None,
    name: opt.Name = "",
    description: opt.Description = "",
    layer: opt.Layer = None,
    table: opt.Table = None,
    gene_column: opt.GeneColumn = None,
    genes_in: opt.GenesIn = None,
    samples: opt.Samples = None,
    invert: opt.Invert = False,
    model: Annotated[
        Path | None,
        opt.option("MODEL", "Write the model that labels the assay.", opt.OUTPUT),
    ] = None,
    report: opt.Report = None,
    force: opt.Force = False,
    n_jobs: opt.Threads = -1,
) -> None:
    """Design a panel of genes for an assay, or score a list that somebody else made.

    The genes are chosen by their ranks among each other. Held-out samples tell how each
    class will do, also when genes fail and on simulated platforms; test data tell it
    for another platform.

    Examples:

      optirank design ref.h5ad --label type --n-genes 100 -o panel.csv
      optirank design ref.h5ad --label type -o p.csv --model p.optirank
      optirank design ref.h5ad --label type --exclude 'MT-*' -o panel.csv
      optirank design ref.h5ad --label lineage,type --per-class 3 -o panel.csv
      optirank design ref.h5ad --label type --gene-list draft.txt -o scored.csv
      optirank design ref.h5ad --label type --query probes.txt -o panel.csv
      optirank design ref.h5ad --label type --test spots.h5ad -o panel.csv
    """
    from optirank.data.opening import open_profiles, open_sources
    from optirank.model import save
    from optirank.verbs.design import design as run
    from optirank.verbs.gene_lists import genes_of_queries

    asked = DesignOptions(
        label=opt.listed(label),
        n_genes=n_genes,
        per_class=per_class,
        min_mean=min_mean,
        max_mean=max_mean,
        query_genes=genes_of_queries(query) if query else None,
        name=name,
        description=description,
        n_jobs=n_jobs,
        gene_list=[] if gene_list is None else [gene_list],
        include=include or (),
        exclude=exclude or (),
    )
    reading = opt.how_to_read(layer, table, gene_column, genes_in, samples, invert)
    judging: Any = (
        open_profiles(test, label=[asked.label[-1]]) if test else nullcontext()
    )
    written = {"the panel": out, "the model": model, "the report": report}
    named = [*(query or ()), *(include or ()), *(exclude or ())]
    inputs = [*files, *named, test, gene_list, samples]
    opened = open_sources(files, asked.label, batch, exclude=asked.exclude, **reading)
    with (
        outputs(written, inputs, force=force) as target,
        opened as (data, source_column),
        judging as judges,
    ):
        with at_work("designing", n_jobs) as update:
            result = run(
                data,
                replace(asked, batch=source_column),
                test=judges,
                command=recorded_command(),
                source=", ".join(valid_text(path.name) for path in files),
                progress=update,
            )
        with replacing(target) as temporary:
            result.genes.to_csv(temporary, index=False, float_format="%.6g")
        if model is not None:
            save(result.model, model, overwrite=True)
        _show_design(result)
        conclude(result, report, {"Panel": out, "Model": model})


def _show_design(result: DesignResult) -> None:
    """Print what there is to say of a design: conditions, sizes, weakest classes."""
    required = f", {result.n_required} of them required" if result.n_required else ""
    kind = _KINDS[result.kind].format(n=len(result.genes), required=required)
    echo(f"{kind}, for {len(result.classes)} classes.")
    rows = [
        (
            row["condition"],
            with_interval(row["balanced_accuracy"], row["low"], row["high"]),
            f"{in_percent(row['lowest'])} ({row['lowest_class']})",
        )
        for row in result.conditions.to_dict("records")
    ]
    columns = ("condition", "all classes", "lowest class")
    show_table("Balanced accuracy, % (95 % interval)", columns, rows)
    show_sizes(result.training.curve)
    weakest = result.classes.sort_values("sensitivity", kind="stable").head(_WEAKEST)
    rows = [
        (
            row["class"],
            with_interval(row["sensitivity"], row["low"], row["high"]),
            row["n_genes"],
        )
        for row in weakest.rename_axis("class").reset_index().to_dict("records")
    ]
    columns = ("class", "labelled right, %", "genes")
    show_table("Weakest classes", columns, rows)
    confused = [
        f"{row['class']} as {row['labelled']} {percent(row['share'])}"
        for row in result.confusions.head(_CONFUSED).to_dict("records")
    ]
    echo(f"Most confused: {'; '.join(confused) or 'no two classes'}")
