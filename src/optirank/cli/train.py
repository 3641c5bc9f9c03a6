"""`optirank train`: from labelled profiles to a model file and a report."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank._util.names import folds_in_words
from optirank._util.progress import progress_bar
from optirank.cli.common import add_row, check_outputs, new_table, show, workers
from optirank.cli.errors import DebugOption, QuietOption, bad_input, clean_exit
from optirank.cli.options import (
    AnnotationsOption,
    Device,
    DeviceOption,
    FileArgument,
    ForceOption,
    FormatOption,
    GeneColumnOption,
    GenesInOption,
    LayerOption,
    SamplesOption,
)
from optirank.cli.streams import echo, file_or_stdout

if TYPE_CHECKING:
    from optirank.datasets.reading import OpenExpression
    from optirank.workflow.result import TrainingResult


class Method(StrEnum):
    """Methods of `train`; see `optirank.workflow.train.train`."""

    auto = "auto"
    optirank = "optirank"
    rank_lr = "rank-lr"
    lr = "lr"
    k_tsp = "k-tsp"


class Preference(StrEnum):
    """Preferences of `train`; see `optirank.workflow.grids.PREFERENCES`."""

    accuracy = "accuracy"
    genes = "genes"


def train(
    file: FileArgument,
    label: Annotated[
        str, typer.Option("--label", "-l", help="Column with the class labels.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The model file; - for standard output.",
            show_default=False,
        ),
    ],
    report: Annotated[
        Path | None, typer.Option(help="Write a report (one HTML page).", show_default=False)
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(help="Column with the source (data set, donor); folds hold out sources."),
    ] = None,
    genes: Annotated[
        str | None, typer.Option(help="A file of genes to use, or the largest panel size.")
    ] = None,
    query: Annotated[
        list[Path] | None,
        typer.Option("--for", help="Query to be labelled later: use only the genes it has."),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(help="Fix the reference set to these genes: names, patterns or a file."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Genes to exclude: names, patterns such as 'MT-*', or a file."),
    ] = None,
    reference_from: Annotated[
        list[str] | None,
        typer.Option(help="Choose the reference set among these: names, patterns or a file."),
    ] = None,
    not_in_reference: Annotated[
        list[str] | None,
        typer.Option(help="Genes that may not be in the reference set: names, patterns or a file."),
    ] = None,
    budget: Annotated[
        str, typer.Option(help="Time allowed: seconds, or with a unit (90s, 10m, 1h).")
    ] = "10m",
    method: Annotated[
        Method,
        typer.Option(
            help="Classifier; auto: optirank or rank-lr, by the same rule; k-tsp: pairs of genes."
        ),
    ] = Method.auto,
    prefer: Annotated[
        Preference,
        typer.Option(
            help="genes: few genes, in one panel for all classes, at about the same accuracy."
        ),
    ] = Preference.accuracy,
    target_error: Annotated[
        float | None,
        typer.Option(help="Withhold labels so that at most this share of the others is wrong."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Threads; default: all processors."),
    ] = None,
    device: DeviceOption = Device.cpu,
    dask: Annotated[
        str | None,
        typer.Option(help="Address of a dask scheduler: its workers fit the settings."),
    ] = None,
    layer: LayerOption = None,
    gene_column: GeneColumnOption = None,
    genes_in: GenesInOption = None,
    annotations: AnnotationsOption = None,
    samples: SamplesOption = None,
    file_format: FormatOption = None,
    force: ForceOption = False,
    debug: DebugOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a classifier on labelled expression profiles.

    Settings are chosen by cross-validation within the time allowed. To suit data from other
    platforms, held-out samples are scored as they are and on simulated platforms. The accuracy
    printed at the end is that of held-out samples. With more than 1000 genes, genes are selected
    first, inside each fold.

    Examples:

      optirank train reference.h5ad --label cell_type --out model.optirank --report report.html

      optirank train all.h5ad --label cell_type --batch donor --out model.optirank

      optirank train reference.h5ad --label cell_type --for query.h5ad --out model.optirank

      optirank train counts.csv --genes-in rows --samples labels.csv --label type --out m.optirank

      optirank train reference.h5ad --label cell_type --genes 50 --exclude 'MT-*' --out m.optirank

      optirank train reference.h5ad --label cell_type --dask tcp://host:8786 --out model.optirank
    """
    begin = time.perf_counter()
    with clean_exit(), contextlib.ExitStack() as stack:
        with bad_input():
            from optirank import save
            from optirank._util.cluster import connect
            from optirank.datasets.reading import is_table
            from optirank.solver.device.backend import check_device
            from optirank.workflow import prepare, train_prepared, write_report
            from optirank.workflow.report import check_report
            from optirank.workflow.retraining import reading_record
            from optirank.workflow.train import (
                check_reference,
                check_target_error,
                reading_seconds,
            )

            seconds = parse_time(budget)
            check_device(device.value)
            check_target_error(target_error)
            client = None if dask is None else stack.enter_context(connect(dask))
            lists = (include, exclude, reference_from, not_in_reference)
            listed_files = [one for group in ([genes], *lists) for one in group or () if one]
            inputs = [file, samples, *(query or ()), *listed_files]
            check_outputs({"the model": out, "the report": report}, inputs, force)
            if report is not None:
                check_report()
            wanted, most = parse_genes(genes)
            chosen = {
                "include": parse_names(include),
                "exclude": parse_names(exclude),
                "reference_from": parse_names(reference_from),
                "not_in_reference": parse_names(not_in_reference),
            }
            beside = [name.strip() for name in (annotations or "").split(",") if name.strip()]
            options = {"layer": layer, "gene_column": gene_column, "samples": samples}
            options["genes_in"] = genes_in.value if genes_in else None
            options["format"] = file_format.value if file_format else None
            check_reference(method.value, bool(include or reference_from or not_in_reference))
            chosen["available"] = genes_of(query, options["genes_in"])
            if query and not is_table(file, options["format"]):
                options["genes_in"] = None  # it is said of the tables to be labelled
            chosen |= {"genes": wanted, "max_genes": most, "seconds": reading_seconds(seconds)}
            with _opened(file, label, batch, beside, options) as data:
                prepared = prepare(data, label, batch=batch, **chosen)
            # loading the program counts too
            prepared = replace(prepared, seconds=time.perf_counter() - begin)
        said: list[str] = []

        def say(line: str) -> None:
            said.append(line)
            echo(line)

        with file_or_stdout(out, ".optirank") as target:
            with progress_bar("cross-validation") as bar:
                result = train_prepared(
                    prepared,
                    budget=seconds,
                    n_jobs=workers(jobs),
                    device=device.value,
                    client=client,
                    method=method.value,
                    prefer=prefer.value,
                    target_error=target_error,
                    say=say,
                    progress=bar.update,
                )
            record = reading_record(annotations=beside, **options)
            result.model.training_summary_["reading"] = record
            save(result.model, target)
            _show(result)
            for note in result.notes:
                if note in result.warnings:
                    typer.echo(f"Warning: {note}", err=True)
                elif note not in said:
                    echo(f"Note: {note}")
            typer.echo(f"Model:  {out}")
            if report is not None:
                write_report(result, report)
                typer.echo(f"Report: {report}")


def parse_time(text: str, option: str = "--budget") -> float:
    """Seconds of a time such as 90, 90s, 10m or 1.5h; ``option`` is named in the error."""
    from optirank.workflow.train import check_budget

    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        return check_budget(float(number) * unit)
    except ValueError:
        raise ValueError(f"{option} {text}: give a time such as 90 (seconds), 10m or 1h") from None


def parse_genes(text: str | None) -> tuple[list[str] | None, int | None]:
    """A list of genes from a file, or the most genes to need."""
    if text is None:
        return None, None
    if text.isdigit():
        return None, int(text)
    names = _lines(Path(text))
    if not names:
        raise ValueError(f"--genes {text}: the file names no gene")
    return names, None


def parse_names(items: list[str] | None) -> list[str]:
    """Names and patterns from options, each separated by commas or in a file."""
    found: list[str] = []
    for item in items or []:
        if Path(item).is_file():
            found += _lines(Path(item))
        else:
            found += [name.strip() for name in item.split(",") if name.strip()]
    return found


def _lines(path: Path) -> list[str]:
    """The first column of a file, without a header called gene."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is neither a number of genes nor a file of their names")
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    names = [line.replace("\t", ",").split(",")[0].strip().strip('"') for line in lines]
    names = [name for name in names if name and not name.startswith("#")]
    return names[1:] if names and names[0].lower() in ("gene", "genes", "symbol") else names


@contextlib.contextmanager
def _opened(
    file: Path, label: str, batch: str | None, beside: list[str], options: dict
) -> Iterator[OpenExpression]:
    """Open the file; columns that must be there are looked for before the matrix is read."""
    from optirank.datasets import open_expression
    from optirank.datasets.data import check_column

    if options["genes_in"] == "columns" and options["samples"] is None:
        beside = list(dict.fromkeys([*beside, label, *([batch] if batch else [])]))
    with open_expression(file, annotations=beside, **options) as opened:
        for column in (label, batch):
            if column is not None:
                check_column(opened.obs, column, str(options["samples"] or file))
        yield opened


def genes_of(files: list[Path] | None, genes_in: str | None) -> list[str] | None:
    """The genes that all of some files of expression have."""
    from optirank.datasets.reading import read_gene_names

    common: list[str] | None = None
    for file in files or []:
        there = read_gene_names(file, genes_in)
        common = there if common is None else [name for name in common if name in set(there)]
    return common


def _show(result: TrainingResult) -> None:
    table = new_table(
        "On held-out samples", "class", "samples", "balanced accuracy", "found", "right"
    )
    for name, row in result.per_class.iterrows():
        shares = (row["balanced_accuracy"], row["recall"], row["precision"])
        cells = ["-" if share != share else f"{100 * share:.1f} %" for share in shares]
        add_row(table, name, f"{row['n_samples']:.0f}", *cells)
    show(table)
    typer.echo(
        f"Balanced accuracy {100 * result.balanced_accuracy:.1f} % "
        f"(± {100 * result.standard_error:.1f}, {folds_in_words(len(result.by_fold))}), "
        f"{len(result.genes)} genes needed"
    )
    if (there := result.accuracy_elsewhere()) is not None:
        low, high = (f"{100 * value:.1f}" for value in there)
        typer.echo(f"On simulated platforms {low} to {high} %; real ones can be worse")
