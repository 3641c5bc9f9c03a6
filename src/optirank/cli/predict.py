"""`optirank predict` and `optirank evaluate`: labels for the samples of a file, labels
against the true classes, and the commands that help where genes are missing.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.files import replacing, write_text
from optirank._util.names import counted, percent
from optirank._util.work import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import echo
from optirank.cli.outputs import (
    STDOUT,
    outputs,
    show_notes,
    show_performance,
    show_table,
    write_page,
)
from optirank.verbs.options import PredictOptions

if TYPE_CHECKING:
    from optirank.model import Model
    from optirank.verbs.evaluate import Evaluation

_OUT = (
    "Labels: .csv (- for stdout), .parquet, .h5ad (the query with labels) or .zarr "
    "(an AnnData with the labels alone)."
)


_TABLES = (
    "The table of classes (.csv), or all figures and tables (.json); - for stdout, "
    "as .csv."
)


@opt.with_options(opt.labelling, opt.reading)
def predict(
    context: typer.Context,
    query: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help=f"{opt.FORMATS}; several are labelled one after the other.",
        ),
    ],
    model: opt.Model,
    out: Annotated[Path, opt.option("FILE", _OUT, opt.OUTPUT, "--out", "-o")] = Path(
        "labels.csv"
    ),
    report: opt.Report = None,
    dask: opt.Dask = None,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Label the samples of files with a trained model.

    Only the genes of the model's panel are read, in blocks of samples. Genes that are
    missing or spelled differently are named. Labels that are withheld are called
    'unassigned', and a column says why. The report shows how many samples got each
    label, how confident the labels are, and which genes are missing. FILE.json beside
    the labels says how they were made.

    Several files are labelled one after the other, each as if it were alone; a column
    says which file a sample is from. On a cluster (--dask) blocks of samples are tasks
    of its workers; the labels are the same, and a run that was interrupted goes on
    where it stopped.

    Examples:

      optirank predict query.h5ad --model m.optirank -o labels.csv --report page.html
      optirank predict query.h5ad -m m.optirank -o labelled.h5ad --clusters leiden
      optirank predict query.h5ad -m m.optirank --target-error 0.05
      optirank predict *.h5ad -m m.optirank -o labels.parquet
      optirank predict atlas.zarr -m m.optirank -o x.parquet --dask tcp://host:8786
      optirank predict x.csv -m m.optirank --genes-in columns
    """
    from optirank.model import load
    from optirank.verbs.label_files import predict_file, record_path, write_record

    record = None if out == STDOUT else record_path(out)
    written = {"the labels": out, "the record of the labels": record}
    with outputs(context, written) as target:
        fitted = load(model)
        with (
            remedies_for_missing_genes(context, fitted, query[0]),
            progress_bar("predicting", lines=True) as bar,
        ):
            labels = predict_file(
                query,
                fitted,
                target,
                opt.among(PredictOptions, context),
                progress=bar.update,
                dask=dask,
                **opt.reading_options(context),
            )
        if record is not None:
            write_record(labels, out)
        show_notes(labels)
        n_samples = len(labels.chosen)
        rows = [
            (label, count, f"{count / n_samples:.1%}")
            for label, count in labels.counts().items()
        ]
        show_table("Labels", ("label", "samples", "share"), rows)
        if labels.clusters is not None:
            rows = [
                (row["cluster"], row["n_samples"], row["label"], f"{row['share']:.0%}")
                for row in labels.clusters.to_dict("records")
            ]
            show_table("Clusters", ("cluster", "samples", "label", "share"), rows)
        n_withheld = int(labels.withheld.sum())
        name = "Labels" if str(out) == "-" else out
        echo(
            f"{name}: {counted(n_samples, 'sample', 'samples')}, mean "
            f"confidence {labels.confidence.mean():.3f}, "
            f"{counted(n_withheld, 'label', 'labels')} withheld"
        )
        write_page(labels, context)


@opt.with_options(opt.labelling, opt.reading, without=["clusters"])
def evaluate(
    context: typer.Context,
    query: Annotated[Path, typer.Argument(metavar="FILE", help=f"{opt.FORMATS}.")],
    model: opt.Model,
    label: Annotated[str, opt.option("COLUMN", "True classes.", None, "--label", "-l")],
    mapping: Annotated[
        list[str] | None,
        opt.option(
            "THEIRS=OURS",
            "A class of that column, and the model's name for it. Repeatable.",
            None,
            "--map",
        ),
    ] = None,
    out: Annotated[
        Path | None, opt.option("FILE", _TABLES, opt.OUTPUT, "--out", "-o")
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
      optirank evaluate x.h5ad -m blood-human --label type --map 'cd4 t=T cell'
      optirank evaluate x.h5ad -m m.optirank --label type -o figures.json
    """
    from optirank.io.cluster import cluster_at
    from optirank.io.reading import open_file
    from optirank.model import load
    from optirank.verbs.evaluate import evaluate_profiles

    with outputs(context, {"the tables": out}) as target:
        if out not in (None, STDOUT) and out.suffix.lower() not in (".csv", ".json"):
            raise ValueError(
                f"{out}: the tables are written as .csv (that of the classes) or .json "
                "(all): use such a name"
            )
        names = opt.renamed(mapping)
        fitted = load(model)
        reading = opt.reading_options(context)
        with (
            remedies_for_missing_genes(context, fitted, query),
            open_file(
                query, label=label, known_genes=fitted.path_genes, **reading
            ) as opened,
            cluster_at(dask) as cluster,
            progress_bar("predicting", lines=True) as bar,
        ):
            evaluation = evaluate_profiles(
                opened,
                fitted,
                label,
                opt.among(PredictOptions, context),
                mapping=names,
                progress=bar.update,
                cluster=cluster,
            )
        show_notes(evaluation)
        _show_evaluation(evaluation, label)
        if target is not None:
            if target.suffix.lower() == ".json":
                text = json.dumps(_plain(evaluation), indent=1, ensure_ascii=False)
                write_text(target, f"{text}\n")
            else:
                table = evaluation.performance.per_class.rename_axis("class")
                with replacing(target) as temporary:
                    table.to_csv(temporary, float_format="%.6g")
            echo(f"Tables: {out}")
        write_page(evaluation, context)


def _show_evaluation(evaluation: Evaluation, label: str) -> None:
    """Print the figures of each class, those of withholding, the headline, and what
    became of the samples by the level of their label in a tree.
    """
    judged = evaluation.performance
    show_performance(judged, f"Labels against {label}")
    rows = [
        (f"{row['target_error']:.0%}", percent(row["given"]), percent(row["error"]))
        for row in judged.withholding.to_dict("records")
    ]
    show_table(
        "Withholding below a confidence chosen with the true classes",
        ("error at most", "labels given", "error"),
        rows,
    )
    agreement = evaluation.labels.record["agreement"]
    checked = "labels not checked by other genes"
    if agreement is not None:
        checked = f"agreement of other genes {agreement:.2f}"
    withheld = "withheld" if evaluation.levels is None else "withheld or coarser"
    auc = "" if judged.auc != judged.auc else f", mean AUC {judged.auc:.3f}"
    echo(
        f"Balanced accuracy {judged.headline()}, {judged.n_right} of "
        f"{judged.n_given} labels right, {judged.n_withheld} {withheld}{auc}; "
        f"{checked}"
    )
    if evaluation.levels is not None:
        columns = ["level", "n_samples", "share", "right", "coarse", "wrong"]
        levels = evaluation.levels[columns]
        shares = [f"{share:.1%}" for share in levels["share"]]
        header = ("level", "samples", "share", "right", "right but coarse", "wrong")
        rows = levels.assign(share=shares).itertuples(index=False)
        show_table("Labels given, by level of the tree", header, rows)


def _plain(evaluation: Evaluation) -> dict[str, Any]:
    """Figures, tables and notes in the types that JSON has; what is NaN is null."""
    import pandas as pd

    judged = evaluation.performance
    low, high = judged.interval
    figures = {
        "n_samples": judged.n_samples,
        "n_right": judged.n_right,
        "n_withheld": judged.n_withheld,
        "balanced_accuracy": judged.balanced_accuracy,
        "low": low,
        "high": high,
        "auc": judged.auc,
        "agreement": evaluation.labels.record["agreement"],
    }
    tables = {}
    for name, table in evaluation.tables.items():
        if not isinstance(table.index, pd.RangeIndex):
            table = table.rename_axis("class").reset_index()
        text = table.to_json(orient="records", double_precision=15)
        tables[name] = json.loads(str(text))
    return {
        "query": Path(evaluation.source).name,
        "label": evaluation.label,
        **{name: None if share != share else share for name, share in figures.items()},
        "agreement_by_label": evaluation.labels.record["agreement_by_label"],
        "unknown_classes": evaluation.unknown,
        "warnings": evaluation.warnings,
        "notes": evaluation.notes,
        "tables": tables,
    }


@contextmanager
def remedies_for_missing_genes(
    context: typer.Context, fitted: Model, query: Path
) -> Iterator[None]:
    """Add the commands that help to the error of missing genes."""
    from optirank.model import MissingGenesError

    try:
        yield
    except MissingGenesError as error:
        remedies = []
        if error.match.other_column:
            gene_column = error.match.other_column[0]
            remedies += [
                "read the gene names of the query from another column:",
                opt.this_command(context, gene_column=gene_column),
            ]
        if error.match.present.any():
            remedies += [
                "train a model for the genes that the query has:",
                _training_for(query, fitted, context.params["genes_in"]),
            ]
        for line in remedies:
            error.add_note(line)
        if remedies:
            error.args = (f"{error.what} One can:",)
        raise


def _training_for(query: Path, fitted: Model, genes_in: str | None) -> str:
    """The command that made a model, for the genes of a query; else one to fill in."""
    words = shlex.split(fitted.card.command)
    sources = fitted.card.source.split(", ")
    if words[:2] != ["optirank", "train"] or not all(map(os.path.isfile, sources)):
        words = ["optirank", "train", "REFERENCE", "--label", "LABEL"]
    of_its_own = {"--out", "--report", "--query"}
    kept = [
        word
        for word, previous in zip(words, ["", *words], strict=False)
        if not of_its_own & {word, previous}
    ]
    if genes_in is not None and "--genes-in" not in kept:
        kept += ["--genes-in", genes_in]
    return shlex.join([*kept, "--query", str(query), "--out", "for_query.optirank"])
