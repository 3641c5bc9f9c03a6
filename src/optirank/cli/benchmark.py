"""`optirank benchmark`: the paper's evaluation on real data, and other tools, as a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optirank.cli.common import add_row, listed, new_table, show, tidy
from optirank.cli.errors import BAD_INPUT, UNEXPECTED, DebugOption
from optirank.cli.options import DataOption, Device, DeviceOption, ProcessesOption

if TYPE_CHECKING:
    from optirank.benchmark.reporting.layout import Table
    from optirank.benchmark.running.plan import Plan
    from optirank.benchmark.running.storage import Storage

_HELP = """The paper's evaluation on real data, and a comparison with other tools.

Data sets are read from a folder (--data, or OPTIRANK_DATA); see optirank datasets.

Examples:

  optirank benchmark list --data sets               which tasks can be run

  optirank benchmark run --quick --out quick        small grids, in minutes

  optirank benchmark run --out results              the paper's grids; can be resumed

  optirank benchmark run --problems whole --out r   all tools, all classes of a task at once

  optirank benchmark report results                 write the report again
"""

app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)


class Problems(StrEnum):
    """What is learned from a task."""

    binary = "binary"
    whole = "whole"
    both = "both"


TaskFileOption = Annotated[
    Path | None,
    typer.Option("--task-file", help="TOML file of more tasks, in the format of tasks.toml."),
]


@app.command("list")
def list_(
    data: DataOption = None, task_file: TaskFileOption = None, debug: DebugOption = False
) -> None:
    """List the tasks and whether their data are available.

    Examples:

      optirank benchmark list --data sets
    """
    with tidy():
        from optirank.benchmark.real import RealTasks

        source = RealTasks(data, task_file)
        file = source.file()
        ready, remedies = 0, {}
        for title, wanted in (("Tasks of the paper", True), ("Tasks on other sets", False)):
            table = new_table(title, "task", "shift", "data", "what")
            for column in table.columns[:3]:  # a name is what one has to type
                column.no_wrap = True
            for task in file.tasks.values():
                if task.paper == wanted:
                    lacking = source.missing(task, file)
                    ready += lacking is None
                    remedies |= {} if lacking is None else {lacking: None}
                    here = "here" if lacking is None else "missing"
                    add_row(table, task.name, task.shift, here, task.title)
            show(table)
        typer.echo(f"{ready} of {len(file.tasks)} tasks can be run.")
        for remedy in remedies:
            typer.echo(f"Missing: {remedy}")


@app.command("run")
def run(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder of the results; a rerun resumes there.")
    ],
    tasks: Annotated[
        str | None,
        typer.Option(help="Names, comma-separated; default: all that can be run."),
    ] = None,
    problems: Annotated[
        Problems,
        typer.Option(help="binary: each class against the rest; whole: all classes at once."),
    ] = Problems.binary,
    classifiers: Annotated[
        str | None,
        typer.Option(
            help="Names, comma-separated, or groups: paper (default for binary), field (default "
            "for whole), peers."
        ),
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=PYTHON: the Python that has a tool of others (celltypist, singler, "
            "pysinglecellnet); default: this one. Can be repeated."
        ),
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option(
            help="Longest time of one tool on one whole task, such as 90s or 1h; default: 15m, 3m "
            "with --quick.",
            show_default=False,
        ),
    ] = None,
    data: DataOption = None,
    jobs: ProcessesOption = None,
    dask: Annotated[
        str | None,
        typer.Option(help="Address of a dask scheduler whose workers can read the same files."),
    ] = None,
    device: DeviceOption = Device.cpu,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small grids, fewer genes, splits and trees.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of splits and forests.")] = 0,
    task_file: TaskFileOption = None,
    debug: DebugOption = False,
) -> None:
    """Run tasks and write the report into the folder's report/.

    Each (task, split, class, classifier) is stored as soon as it is done. After Ctrl-C or a crash,
    the same command resumes. A task with damaged data is reported and left out; the others are run.

    With --problems whole, each tool learns all classes of a task at once, in a process of its own
    with one thread, and its time and memory are measured. A tool that is not installed or fails is
    a gap in the tables; the same command tries it again.

    Examples:

      optirank benchmark run --quick --out quick --data sets

      optirank benchmark run --out results --tasks nki_er-vdx_er,vdx_er-expo_er

      optirank benchmark run --out results --classifiers optirank,rank-lr --jobs 8

      optirank benchmark run --out results --dask tcp://host:8786

      optirank benchmark run --out results --device cuda --jobs 8

      optirank benchmark run --out results --problems whole --peer celltypist=/env/bin/python
    """
    with tidy():
        from optirank.benchmark.choice import check_peers, choose
        from optirank.benchmark.profiles import PAPER, QUICK
        from optirank.benchmark.real import RealTasks
        from optirank.benchmark.running.plan import plan_real
        from optirank.benchmark.running.runner import Work
        from optirank.benchmark.running.storage import Storage
        from optirank.cli.running import compute
        from optirank.cli.train import parse_time
        from optirank.datasets.catalogue import data_folder, local_paths
        from optirank.solver.device.backend import check_device

        if jobs is not None and dask is not None:
            raise ValueError("--jobs and --dask: give one of them")
        if problems != Problems.binary and (dask is not None or device != Device.cpu):
            raise ValueError(
                f"--problems {problems} measures tools in processes of this machine, on the CPU: "
                "leave out --dask and --device, or use --problems binary"
            )
        if problems == Problems.binary and (peer or time_limit is not None):
            option = "--peer" if peer else "--time-limit"
            raise ValueError(
                f"{option} is for tools on whole tasks: add --problems whole (or both), or leave "
                "it out"
            )
        chosen = choose(listed(classifiers), problems.value)
        pythons = check_peers(peer or ())
        check_device(device.value)
        profile = QUICK if quick else PAPER
        if time_limit is not None:
            seconds = parse_time(time_limit, "--time-limit")
            profile = replace(profile, whole_seconds=seconds)
        local_paths(data)  # a folder that is not there is an error, whatever the tasks
        file = task_file.resolve() if task_file else None
        source = RealTasks(data_folder(data).resolve(), file, seed, profile.n_splits)
        source.file().choose(listed(tasks))
        storage = Storage(out)
        storage.check(profile, seed)
        with _status("reading data") as tell:
            plan = plan_real(source, listed(tasks), chosen, profile, storage, tell=tell)
        _announce(plan, storage)
        prints = tuple((key, record["fingerprint"]) for key, record in plan.designs.items())
        with storage.open(profile, seed):
            work = Work(source, profile, prints, device.value, tuple(pythons.items()))
            failed = compute(plan, work, storage, jobs, dask)
            _write_report(storage, may_be_empty=bool(failed))
        if failed:
            raise typer.Exit(UNEXPECTED)
        if plan.problems:
            raise typer.Exit(BAD_INPUT)


@app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.", show_default=False)],
    selection: Annotated[
        str,
        typer.Option(
            help="one_se (the paper's rule), best (validation score) or transfer (on simulated "
            "platforms too); or several, comma-separated."
        ),
    ] = "one_se",
    debug: DebugOption = False,
) -> None:
    """Write the tables, figures and page of a run again from its stored results.

    With another selection rule the report is written to report-best/ beside report/. With several
    rules, the rules after the first add columns such as "optirank (transfer)".

    Examples:

      optirank benchmark report results

      optirank benchmark report results --selection best

      optirank benchmark report results --selection one_se,transfer
    """
    with tidy():
        from optirank.benchmark.running.storage import Storage

        _write_report(Storage(folder), listed(selection))


def _announce(plan: Plan, storage: Storage) -> None:
    """Print what will be done and what cannot be, before any fitting."""
    from optirank.benchmark.reporting.words import count

    for name, reason in plan.problems.items():
        typer.echo(f"{name} cannot be run: {reason}", err=True)
    if plan.tasks and not plan.units:
        raise ValueError("ANrank-lr alone needs tasks with an auxiliary set, and there are none")
    if not plan.units:
        raise ValueError(
            "no task can be run: optirank benchmark list shows what is missing; --data names the "
            "folder of data sets"
        )
    if plan.missing:
        lacking = count(len(plan.missing), "task")
        typer.echo(f"No data here for {lacking}: optirank benchmark list shows them.")
    stored = sum(storage.has(unit) for unit in plan.units)
    there = f", {stored} of them already stored" if stored else ""
    tasks, units = count(len(plan.tasks), "task"), count(len(plan.units), "unit")
    typer.echo(f"{tasks}, {units} of work{there}.")


def _write_report(
    storage: Storage, rules: Sequence[str] = ("one_se",), *, may_be_empty: bool = False
) -> None:
    from optirank.benchmark.reporting import report
    from optirank.benchmark.reporting.results import collect
    from optirank.benchmark.reporting.whole_tables import OVERALL

    results = collect(storage, rules)
    empty = results.scores.empty and not results.whole
    if empty and may_be_empty:
        return
    if empty:
        raise ValueError(f"{storage.folder} contains no finished problem yet")
    name = "-".join(["report", *rules]).removesuffix("-one_se")
    written = report.write(results, storage.folder / name)
    for table in written.summaries:
        if table.name == OVERALL:
            _show_overall(table)
        else:
            _show_summary(table)
    if written.missing:
        typer.echo(f"No figures and no page: they need {written.missing}")
    typer.echo(f"Report: {written.page or storage.folder / name}")


def _show_summary(summary: Table) -> None:
    """Mean and rank of each classifier; standard errors are in the report."""
    from rich.text import Text

    kept = [k for k, column in enumerate(summary.columns) if column.text != "shift"]
    table = new_table(f"{summary.title} (%, rank)", *(summary.columns[k].text for k in kept))
    table.columns[0].overflow = "fold"
    for row in summary.rows:
        cells = [row[k] for k in kept]
        shown = (Text(re.sub(r" ± [\d.]+", "", one.text), "bold" * one.bold) for one in cells)
        table.add_row(*shown)
    show(table)


def _show_overall(overall: Table) -> None:
    """The tools over whole tasks, without the columns that only the report has room for."""
    shown = ("tool", "tasks", "accuracy (%)", "rank", "genes", "training (s)", "memory (MB)")
    kept = [k for k, column in enumerate(overall.columns) if column.text in shown]
    table = new_table(overall.title, *(overall.columns[k].text for k in kept))
    table.columns[0].no_wrap = True
    for row in overall.rows:
        add_row(table, *(row[k].text for k in kept))
    show(table)


@contextmanager
def _status(text: str) -> Iterator[Callable[[str], None]]:
    from rich.console import Console

    with Console(stderr=True).status(text) as status:
        yield lambda name: status.update(f"{text}: {name}")
