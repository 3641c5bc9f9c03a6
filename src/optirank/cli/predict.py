"""`optirank predict`: labels for the samples of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optirank._util.names import counted
from optirank._util.work import progress_bar
from optirank.cli import options as opt
from optirank.cli.common import echo
from optirank.cli.options import option
from optirank.cli.outputs import (
    STDOUT,
    end_strictly,
    outputs,
    show_notes,
    show_table,
    write_page,
)
from optirank.cli.remedies import remedies_for_missing_genes

if TYPE_CHECKING:
    from optirank.workflow.labels import Labels

_OUT = (
    "Labels: .csv (- for stdout), .parquet, .h5ad (the query with labels) or .zarr "
    "(an AnnData with the labels alone)."
)


@opt.with_options(opt.labelling, opt.reading)
def predict(
    context: typer.Context,
    query: opt.Queries,
    model: opt.Model,
    out: Annotated[Path, option("FILE", _OUT, opt.OUTPUT, "--out", "-o")] = Path(
        "labels.csv"
    ),
    spreadsheet: Annotated[
        bool,
        option(
            None,
            "Write texts that a spreadsheet would run as formulas with an apostrophe.",
            opt.OUTPUT,
            "--spreadsheet",
        ),
    ] = False,
    report: opt.Report = None,
    dated: opt.Dated = False,
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
      optirank predict x.csv -m m.optirank --genes-in columns --annotations donor,batch
    """
    from optirank.model import load
    from optirank.workflow.label_files import predict_file, record_path, write_record
    from optirank.workflow.options import PredictOptions

    given = opt.given_options(context)
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
                opt.among(PredictOptions, given),
                spreadsheet=spreadsheet,
                progress=bar.update,
                dask=dask,
                **opt.reading_options(given),
            )
        if record is not None:
            write_record(labels, out)
        show_notes(labels)
        _show_labels(labels)
        n_withheld = int(labels.withheld.sum())
        name = "Labels" if str(out) == "-" else out
        echo(
            f"{name}: {counted(len(labels.chosen), 'sample', 'samples')}, mean "
            f"confidence {labels.confidence.mean():.3f}, "
            f"{counted(n_withheld, 'label', 'labels')} withheld"
        )
        write_page(labels, context)
    end_strictly(labels, strict=given["strict"])


def _show_labels(labels: Labels) -> None:
    """Print how many samples got each label, and the labels of clusters."""
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
