"""`optirank predict` and `optirank evaluate`: labels for the samples of a file, and
labels against the true classes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optirank._util.files import replacing, write_text
from optirank._util.words import counted
from optirank.cli import options as opt
from optirank.cli.command import (
    STDOUT,
    at_work,
    conclude,
    echo,
    outputs,
    show_performance,
    show_table,
)
from optirank.verbs.options import PredictOptions

if TYPE_CHECKING:
    from optirank.verbs.evaluation import Evaluation


def predict(
    query: opt.Queries,
    model: opt.Model,
    adapt: opt.Adapt = False,
    target_error: opt.TargetError = None,
    threshold: opt.Threshold = None,
    clusters: Annotated[
        str | None,
        opt.option("COLUMN", "Clusters: a table of them is shown too.", None),
    ] = None,
    layer: opt.Layer = None,
    table: opt.Table = None,
    gene_column: opt.GeneColumn = None,
    genes_in: opt.GenesIn = None,
    samples: opt.Samples = None,
    invert: opt.Invert = False,
    out: Annotated[
        Path,
        opt.option(
            "FILE",
            ".csv (- for stdout), .parquet, .h5ad or .zarr.",
            opt.OUTPUT,
            "--out",
            "-o",
        ),
    ] = Path("labels.csv"),
    report: opt.Report = None,
    force: opt.Force = False,
    dask: opt.Dask = None,
    n_jobs: opt.Threads = -1,
) -> None:
    """Label the samples of files with a trained model.

    Only the genes of the model's panel are read, in blocks of samples. Genes that are
    missing or spelled differently are named. Labels that are withheld are called
    'unassigned'. FILE.json beside the labels says how they were made.

    Several files are labelled one after the other, each as if it were alone; a column
    says which file a sample is from. An .h5ad is the query with its labels; a .zarr
    has the labels alone.

    Examples:

      optirank predict query.h5ad --model m.optirank -o labels.csv
      optirank predict query.h5ad -m m.optirank --report page.html
      optirank predict query.h5ad -m m.optirank -o labelled.h5ad --clusters leiden
      optirank predict query.h5ad -m m.optirank --target-error 0.05
      optirank predict *.h5ad -m m.optirank -o labels.parquet
    """
    from optirank.model import load
    from optirank.verbs.label_files import predict_file, record_path, write_record

    record = None if out == STDOUT else record_path(out)
    options = PredictOptions(
        adapt=adapt, target_error=target_error, threshold=threshold, clusters=clusters
    )
    reading = opt.how_to_read(layer, table, gene_column, genes_in, samples, invert)
    written = {"the labels": out, "the record of the labels": record}
    inputs = [*query, model, samples]
    with outputs(written | {"the report": report}, inputs, force=force) as target:
        with at_work("predicting", n_jobs) as update:
            labels = predict_file(
                query,
                load(model),
                target,
                options,
                progress=update,
                dask=dask,
                **reading,
            )
        if record is not None:
            write_record(labels, out)
        n_samples = len(labels.chosen)
        rows = [
            (label, count, f"{count / n_samples:.1%}")
            for label, count in labels.counts().items()
        ]
        show_table("Labels", ("label", "samples", "share"), rows)
        if labels.clusters is not None:
            rows = [
                (
                    *(row["cluster"], row["n_samples"], row["label"]),
                    *(f"{row['share']:.0%}", f"{row['confidence']:.3f}"),
                    *(f"{row['likeness']:.2f}", f"{row['likeness_minus_best']:+.2f}"),
                )
                for row in labels.clusters.to_dict("records")
            ]
            header = ("cluster", "samples", "label", "share", "confidence", "likeness")
            show_table("Clusters", (*header, "minus best"), rows)
        echo(
            f"{'Labels' if record is None else out}: "
            f"{counted(n_samples, 'sample', 'samples')}, mean confidence "
            f"{labels.confidence.mean():.3f}, "
            f"{counted(int(labels.withheld.sum()), 'label', 'labels')} withheld"
        )
        conclude(labels, report, {})


def evaluate(
    query: opt.Query,
    model: opt.Model,
    label: opt.Truth,
    mapping: opt.Mapping = None,
    adapt: opt.Adapt = False,
    target_error: opt.TargetError = None,
    threshold: opt.Threshold = None,
    layer: opt.Layer = None,
    table: opt.Table = None,
    gene_column: opt.GeneColumn = None,
    genes_in: opt.GenesIn = None,
    samples: opt.Samples = None,
    invert: opt.Invert = False,
    out: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "The classes (.csv), or all tables (.json).",
            opt.OUTPUT,
            "--out",
            "-o",
        ),
    ] = None,
    report: opt.Report = None,
    force: opt.Force = False,
    dask: opt.Dask = None,
    n_jobs: opt.Threads = -1,
) -> None:
    """Compare the labels of a model with the true classes of samples.

    Prints the balanced accuracy with a 95 % interval, and for each class sensitivity,
    specificity, PPV and NPV. The report has the intervals of all of them, the confusion
    of classes, ROC and precision-recall curves, and calibration.

    Examples:

      optirank evaluate query.h5ad --model m.optirank --label type
      optirank evaluate query.h5ad -m m.optirank --label type --report page.html
      optirank evaluate cohort.csv -m er.optirank --label er --genes-in columns
      optirank evaluate x.h5ad -m blood-human --label type --map 'cd4 t=T cell'
    """
    from optirank.data.opening import open_profiles
    from optirank.model import load
    from optirank.verbs.evaluation import evaluate_profiles

    if out not in (None, STDOUT) and out.suffix.lower() not in (".csv", ".json"):
        raise ValueError(
            f"{out}: the tables are written as .csv (that of the classes) or .json "
            "(all): use such a name"
        )
    options = PredictOptions(
        adapt=adapt, target_error=target_error, threshold=threshold
    )
    names = opt.renamed(mapping)
    reading = opt.how_to_read(layer, table, gene_column, genes_in, samples, invert)
    written = {"the tables": out, "the report": report}
    with outputs(written, [query, model, samples], force=force) as target:
        fitted = load(model)
        with (
            open_profiles(
                query, label=[label], known_genes=fitted.genes.tolist(), **reading
            ) as profiles,
            at_work("predicting", n_jobs, dask) as update,
        ):
            evaluation = evaluate_profiles(
                profiles,
                fitted,
                label,
                options,
                mapping=names,
                progress=update,
            )
        _show_evaluation(evaluation)
        if target is not None:
            _write_tables(evaluation, target)
        conclude(evaluation, report, {"Tables": out})


def _show_evaluation(evaluation: Evaluation) -> None:
    """Print the figures of each class, what became of the samples by the level of
    their label in a tree, and the headline.
    """
    judged = evaluation.performance
    show_performance(judged, f"Labels against {evaluation.label}")
    withheld = "withheld"
    if evaluation.levels is not None:
        withheld = "withheld or coarser"
        columns = ["level", "n_samples", "share", "right", "coarse", "wrong"]
        levels = evaluation.levels[columns]
        shares = [f"{share:.1%}" for share in levels["share"]]
        header = ("level", "samples", "share", "right", "right but coarse", "wrong")
        rows = levels.assign(share=shares).itertuples(index=False)
        show_table("Labels given, by level of the tree", header, rows)
    auc = "" if judged.auc != judged.auc else f", mean AUC {judged.auc:.3f}"
    echo(
        f"Balanced accuracy {judged.headline()}, {judged.n_right} of "
        f"{judged.n_given} labels right, {judged.n_withheld} {withheld}{auc}"
    )


def _write_tables(evaluation: Evaluation, target: Path) -> None:
    """Write the table of the classes, or all tables with the record of the labels."""
    if target.suffix.lower() != ".json":
        table = evaluation.performance.per_class.rename_axis("class")
        with replacing(target) as temporary:
            table.to_csv(temporary, float_format="%.6g")
        return
    tables: dict[str, Any] = {
        name: json.loads(str(table.to_json(orient="split", double_precision=15)))
        for name, table in evaluation.tables.items()
    }
    judged = evaluation.performance
    content = {
        "query": Path(evaluation.source).name,
        "label": evaluation.label,
        "balanced_accuracy": judged.balanced_accuracy,
        "interval": judged.interval,
        "n_samples": judged.n_samples,
        "n_right": judged.n_right,
        "n_withheld": judged.n_withheld,
        "unknown_classes": evaluation.unknown,
        "warnings": evaluation.warnings,
        "notes": evaluation.notes,
        "tables": tables,
    }
    write_text(target, f"{json.dumps(content, indent=1, ensure_ascii=False)}\n")
