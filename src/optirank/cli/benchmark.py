"""`optirank benchmark`: classifiers compared on real data, built-in tasks or one's own folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli.common import add_row, listed, new_table, show, tidy
from optirank.cli.errors import BAD_INPUT, UNEXPECTED
from optirank.cli.options import DataOption, Device, DeviceOption, ProcessesOption

if TYPE_CHECKING:
    from optirank.benchmark.engine import Plan
    from optirank.benchmark.storage import Storage

_HELP = """Compare classifiers on real data: the paper's evaluation, or pairs of your own sets.

Examples:

  optirank benchmark list                           the built-in tasks, and which have data

  optirank benchmark run --quick --out quick        some of them, in about two minutes

  optirank benchmark run --data sets --out own      every pair of sets of a folder

  optirank benchmark report results                 write the report again

  optirank benchmark curve --data sets --out results/curve.csv   accuracy against genes
"""

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)


class Problems(StrEnum):
    """What is learned from a task."""

    binary = "binary"
    whole = "whole"
    both = "both"


class Selection(StrEnum):
    """How settings are chosen from validation scores."""

    one_se = "one_se"
    best = "best"


@app.command("list")
def list_(data: DataOption = None) -> None:
    """List the built-in tasks with their data, and the pairs found in a folder (--data).

    Examples:

      optirank benchmark list --data sets
    """
    with tidy():
        from optirank.benchmark.real import RealTasks
        from optirank.benchmark.tasks import built_in, find_pairs
        from optirank.datasets.catalogue import data_folder, local_paths

        local_paths(data)  # a folder that is not there is an error
        source = RealTasks(data_folder(data), built_in())
        ready, remedies = 0, {}
        for title, wanted in (("Tasks of the paper", True), ("Tasks on public stand-ins", False)):
            table = new_table(title, "task", "tissue", "data", "what")
            for column in table.columns[:3]:  # a name is what one has to type
                column.no_wrap, column.justify = True, "left"
            for task in (one for one in source.tasks if one.paper == wanted):
                lacking = source.missing(task)
                ready += lacking is None
                remedies |= {} if lacking is None else {lacking: None}
                here = "ready" if lacking is None else "missing"
                add_row(table, task.name, task.tissue, here, task.title)
            show(table)
        typer.echo(f"{ready} of {len(source.tasks)} tasks are ready.")
        for remedy in remedies:
            typer.echo(f"Missing: {remedy}")
        if data is not None:
            pairs, unusable = find_pairs(data)
            table = new_table("Pairs found in the folder", "task", "tissue")
            table.columns[1].justify = "left"
            for task in pairs:
                add_row(table, task.name, task.tissue)
            show(table)
            for name, reason in unusable.items():
                typer.echo(f"{name}: {reason}")


@app.command("run")
def run(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the results; a rerun resumes there.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of .h5ad files: every pair of sets that fit is a task."),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Names, comma-separated; default: all that are ready."),
    ] = None,
    classifiers: Annotated[
        str | None,
        typer.Option(help="Names, comma-separated; default: the paper's, or all for whole tasks."),
    ] = None,
    problems: Annotated[
        Problems | None,
        typer.Option(
            help="binary: each class against the rest, tuned; whole: all classes at once. Default: "
            "binary for built-in tasks, whole with --data.",
            show_default=False,
        ),
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=PYTHON: the Python that has a tool of others (celltypist, singler, "
            "pysinglecellnet); default: this one. Can be repeated."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few tasks, small grids, fewer genes and splits.")
    ] = False,
    jobs: ProcessesOption = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Address of a dask scheduler whose workers can read the same files."),
    ] = None,
    device: DeviceOption = Device.cpu,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of splits and forests.")] = 0,
) -> None:
    """Run tasks and write the report into the folder's report/.

    Without --data the built-in tasks are run on the sets of OPTIRANK_DATA or the cache. With --data
    the tasks are all ordered pairs of sets of that folder which share at least two classes of at
    least 8 samples (column cell_type) and at least 100 genes; --tasks can name built-in ones too.

    Each (task, split, problem, classifier) is stored as soon as it is done. After Ctrl-C or a
    crash, the same command resumes. A task with damaged data is reported and left out. A tool of
    others runs in a process of its own; one that is not installed is a gap in the tables.

    Examples:

      optirank benchmark run --quick --out quick

      optirank benchmark run --data sets --out own

      optirank benchmark run --out results --classifiers panel,optirank,rank-lr --jobs 8

      optirank benchmark run --out results --problems whole --peer celltypist=/env/bin/python

      optirank benchmark run --out results --dask tcp://host:8786

      optirank benchmark run --out results --device cuda
    """
    with tidy():
        from optirank.benchmark import classifiers as registry
        from optirank.benchmark.designs import PAPER, QUICK
        from optirank.benchmark.engine import Work, plan_real
        from optirank.benchmark.peers import check_peers
        from optirank.benchmark.real import RealTasks
        from optirank.benchmark.storage import Storage
        from optirank.benchmark.tasks import built_in, choose, find_pairs
        from optirank.cli.running import compute
        from optirank.datasets.catalogue import data_folder, local_paths
        from optirank.solver.device.backend import check_device

        if jobs is not None and dask is not None:
            raise ValueError("--jobs and --dask: give one of them")
        local_paths(data)  # a folder that is not there is an error, whatever the tasks
        pairs, unusable = find_pairs(data) if data is not None else ((), {})
        known = (*pairs, *built_in())
        wanted = choose(known, listed(tasks)) if tasks or data is None else pairs
        if quick and not tasks and data is None:
            wanted = tuple(task for task in wanted if task.quick)
        found = any(task.scheme == "all" for task in wanted)
        if found and problems not in (None, Problems.whole):
            raise ValueError(
                f"--problems {problems}: pairs found in a folder have no samples to tune on, so "
                "they are run with --problems whole only"
            )
        kind = problems or (Problems.whole if found else Problems.binary)
        if peer and kind == Problems.binary:
            raise ValueError("--peer: tools of others take part with --problems whole or both")
        chosen = registry.choose(listed(classifiers), kind.value)
        pythons = check_peers(peer or ())
        check_device(device.value)
        profile = QUICK if quick else PAPER
        source = RealTasks(data_folder(data).resolve(), known, seed)
        storage = Storage(out)
        storage.check(profile, seed)
        with _status("reading data") as tell:
            plan = plan_real(source, wanted, chosen, profile, storage, named=bool(tasks), tell=tell)
        plan.problems |= unusable if not tasks else {}
        _announce(plan, storage)
        with storage.open(profile, seed):
            work = Work(source, profile, device.value, tuple(pythons.items()))
            failed = compute(plan, work, storage, jobs, dask)
            _write_report(storage, Selection.one_se, may_be_empty=bool(failed))
        if failed:
            raise typer.Exit(UNEXPECTED)
        if plan.problems:
            raise typer.Exit(BAD_INPUT)


@app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.", show_default=False)],
    selection: Annotated[
        Selection,
        typer.Option(help="How settings are chosen: the paper's rule, or best validation score."),
    ] = Selection.one_se,
) -> None:
    """Write the tables, figures and page of a run again from its stored results.

    With the best validation score the report is written to report-best/ beside report/.

    Examples:

      optirank benchmark report results

      optirank benchmark report results --selection best
    """
    with tidy():
        from optirank.benchmark.storage import Storage

        _write_report(Storage(folder), selection)


@app.command("curve")
def curve(
    data: Annotated[Path, typer.Option(help="Folder of .h5ad files: every pair is evaluated.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The CSV; a figure of the same name goes beside it.")
    ] = Path("results/curve.csv"),
    jobs: ProcessesOption = None,
) -> None:
    """Compare classifiers at the same number of genes, over every pair of sets of a folder.

    Finished pairs are kept in the CSV, and the same command goes on from there.

    Examples:

      optirank benchmark curve --data sets --out results/curve.csv
    """
    with tidy():
        from optirank._util.progress import progress_bar
        from optirank.benchmark import curve as study
        from optirank.benchmark.report import percent
        from optirank.benchmark.tasks import find_pairs
        from optirank.cli.common import workers

        pairs, unusable = find_pairs(data)
        for name, reason in unusable.items():
            typer.echo(f"{name}: {reason}", err=True)
        if not pairs:
            raise ValueError(f"{data} has no pair of sets with common classes and genes")
        with progress_bar("pairs", len(pairs), lines=True) as bar:
            table = study.run(data, pairs, out, workers(jobs), lambda: bar.advance())
        wide = study.means(table).pivot_table(
            index="method", columns="k", values="mean", sort=False
        )
        shown = new_table("Mean balanced accuracy (%) by genes", "method", *map(str, wide.columns))
        shown.columns[0].justify = "left"
        for method, row in wide.iterrows():
            add_row(shown, method, *(percent(value) for value in row))
        show(shown)
        typer.echo(f"Table: {out}")
        if chosen := study.write_left_out(table, out):
            typer.echo(f"Sizes chosen without each tissue: {chosen}")
        if figure := study.draw(table, out):
            typer.echo(f"Figure: {figure}")


def _announce(plan: Plan, storage: Storage) -> None:
    """Print what will be done and what cannot be, before any fitting."""
    for name, reason in plan.problems.items():
        typer.echo(f"{name} cannot be run: {reason}", err=True)
    if plan.tasks and not plan.units:
        raise ValueError("ANrank-lr alone needs tasks with an auxiliary set, and there are none")
    if not plan.units:
        raise ValueError(
            "no task can be run: optirank benchmark list shows what is missing; optirank datasets "
            "fetch stand-ins gets public sets; --data names a folder of your own"
        )
    if plan.missing:
        typer.echo(
            f"No data here for {len(plan.missing)} tasks: optirank benchmark list shows them."
        )
    stored = sum(storage.has(unit) for unit in plan.units)
    there = f", {stored} of them already stored" if stored else ""
    typer.echo(f"Tasks: {len(plan.tasks)}, units of work: {len(plan.units)}{there}.")


def _write_report(storage: Storage, rule: Selection, *, may_be_empty: bool = False) -> None:
    from optirank.benchmark import report
    from optirank.benchmark.results import collect
    from optirank.cli.running import show_means

    results = collect(storage, rule.value)
    if results.scores.empty:
        if may_be_empty:
            return
        raise ValueError(f"{storage.folder} contains no finished problem yet")
    name = "report" if rule == Selection.one_se else f"report-{rule.value}"
    show_means(report.write(results, storage.folder / name))


@contextmanager
def _status(text: str) -> Iterator[Callable[[str], None]]:
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield lambda name: status.update(f"{text}: {name}")
