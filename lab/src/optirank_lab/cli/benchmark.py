"""`optirank-lab benchmark`: classifiers compared on real data, built-in tasks or one's
own folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from optirank._util.work import progress_bar, worker_count
from optirank.cli.command import (
    BAD_INPUT,
    UNEXPECTED,
    Command,
    echo,
    help_text,
    show_table,
    tell_error,
)
from optirank.cli.options import listed
from optirank_lab.cli import options as opt

if TYPE_CHECKING:
    import pandas as pd

    from optirank_lab.benchmark.engine import Plan, Work
    from optirank_lab.benchmark.report import Written
    from optirank_lab.benchmark.results import Storage, WorkUnit
    from optirank_lab.benchmark.tasks import BenchmarkTask

_HELP = """Compare classifiers on real data: the paper's tasks, or pairs of your sets.

Examples:

  optirank-lab benchmark list                       the built-in tasks
  optirank-lab benchmark run --quick --out quick    some of them, in two minutes
  optirank-lab benchmark run --data sets --out own  every pair of sets of a folder
  optirank-lab benchmark report results             write the report again
  optirank-lab benchmark curve --data sets          accuracy against genes
"""

app = typer.Typer(help=help_text(_HELP), no_args_is_help=True, rich_markup_mode="rich")
if TYPE_CHECKING:
    _Experiment = str
    _Problems = str
    _Selection = str
else:
    _Experiment = opt.one_of("paper")
    _Problems = opt.one_of("binary", "whole", "both")
    _Selection = opt.one_of("one_se", "best")  # how settings are chosen

_Label = Annotated[
    str | None,
    typer.Option(
        help="Column of the labels of sets found in a folder; default: cell_type."
    ),
]
_Peer = Annotated[
    list[str] | None,
    typer.Option(
        help="NAME=PYTHON: the Python that has a competing tool (celltypist, singler, "
        "pysinglecellnet); default: that of make peers in .peers, else this one. Can "
        "be repeated."
    ),
]


@app.command("list", cls=Command)
def list_(data: opt.Data = None, label: _Label = None) -> None:
    """List the pairs found in a folder (--data), and the built-in tasks with their
    data.

    Examples:

      optirank-lab benchmark list --data sets
      optirank-lab benchmark list --data sets --label subtype
    """
    from optirank_lab.benchmark.designs import RealTasks
    from optirank_lab.benchmark.tasks import built_in
    from optirank_lab.data.registry import data_folder, local_paths

    local_paths(data)  # a folder that is not there is an error
    if data is not None:
        _show_pairs(data, label)
    source = RealTasks(data_folder(data), built_in())
    lacking = {task.name: source.missing(task) for task in source.tasks}
    for title, of_paper in (
        ("Tasks of the paper", True),
        ("Tasks on public stand-ins", False),
    ):
        rows = [
            (
                task.name,
                task.tissue,
                "missing" if lacking[task.name] else "ready",
                task.title,
            )
            for task in source.tasks
            if task.paper == of_paper
        ]
        show_table(
            title,
            ("task", "tissue", "data", "what"),
            rows,
            whole=("task",),
        )
    ready = sum(remedy is None for remedy in lacking.values())
    echo(f"{ready} of {len(source.tasks)} tasks are ready.")
    for remedy in dict.fromkeys(lacking.values()):
        if remedy is not None:
            echo(f"Missing: {remedy}")


def _show_pairs(data: Path, label: str | None) -> None:
    """The pairs of sets of a folder, and why some sets are in none."""
    from optirank_lab.benchmark.tasks import find_pairs
    from optirank_lab.data.registry import LABEL

    pairs, unusable = find_pairs(data, label or LABEL)
    rows = [(task.name, task.tissue, task.shift) for task in pairs]
    show_table(
        "Pairs found in the folder",
        ("task", "tissue", "shift"),
        rows,
        whole=("task",),
    )
    for name, reason in unusable.items():
        echo(f"{name}: {reason}")


@app.command("run", cls=Command)
def run(
    experiment: Annotated[
        _Experiment | None,
        typer.Argument(
            help="paper: the tasks of the paper, and the public stand-ins of each.",
            show_default=False,
        ),
    ] = None,
    out: opt.ResultsFolder = Path("optirank-benchmark"),
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of .h5ad files: every pair of sets that fit is a task."
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Names, comma-separated; default: all that are ready."),
    ] = None,
    classifiers: Annotated[
        str | None,
        typer.Option(
            help="Names, comma-separated; default: the paper's, or all for whole tasks."
        ),
    ] = None,
    problems: Annotated[
        _Problems | None,
        typer.Option(
            help=(
                "binary: each class against the rest, tuned; whole: all classes at "
                "once. Default: binary for built-in tasks, whole with --data."
            ),
            show_default=False,
        ),
    ] = None,
    label: _Label = None,
    peer: _Peer = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Few tasks, small grids, fewer genes and splits."),
    ] = False,
    jobs: opt.Processes = None,
    dask: Annotated[
        str | None,
        typer.Option(
            help="Address of a dask scheduler whose workers can read the same files."
        ),
    ] = None,
    device: opt.Device = "cpu",
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of splits and forests.")
    ] = 0,
) -> None:
    """Run tasks and write the report into the folder's report/.

    Without --data the built-in tasks are run on the sets of OPTIRANK_DATA or the cache.
    With --data the tasks are all ordered pairs of sets of that folder which share at
    least two classes of at least 8 samples (column --label) and at least 100 genes;
    --tasks can name built-in ones too.

    With the word paper: all that the paper ran on real data, by its grids, splits,
    classifiers and rule, on its own sets where they are there and on stand-ins.

    Each (task, split, problem, classifier) is stored as soon as it is done. After
    Ctrl-C or a crash, the same command resumes. A task with damaged data is reported
    and left out. A competing tool runs in a process of its own; one that is not
    installed is a gap in the tables.

    Examples:

      optirank-lab benchmark run --quick --out quick
      optirank-lab benchmark run paper --device cuda
      optirank-lab benchmark run --data sets --out own
      optirank-lab benchmark run --problems whole --peer celltypist=/env/bin/python
      optirank-lab benchmark run --out results --dask tcp://host:8786
      optirank-lab benchmark run --out results --device cuda
    """
    from optirank_lab.benchmark import classifiers as registry
    from optirank_lab.benchmark.designs import PAPER, QUICK, RealTasks
    from optirank_lab.benchmark.engine import Work, plan_real
    from optirank_lab.benchmark.results import Storage
    from optirank_lab.benchmark.tasks import paper_tasks
    from optirank_lab.data.registry import data_folder
    from optirank_lab.device.backend import check_device

    if jobs is not None and dask is not None:
        raise ValueError("--jobs and --dask: give one of them")
    names = listed(tasks)
    if experiment is not None:
        if names or label:
            raise ValueError("run paper has its own tasks: leave --tasks, --label")
        names = [task.name for task in paper_tasks()]
    chosen_tasks = _choose_tasks(data, names, label, quick)
    kind = _kind_of_problems(chosen_tasks.wanted, problems)
    pythons = _pythons_of_peers(peer, kind)
    chosen = registry.choose(listed(classifiers), kind)
    check_device(device)
    profile = QUICK if quick else PAPER
    source = RealTasks(data_folder(data).resolve(), chosen_tasks.known, seed)
    storage = Storage(out)
    storage.check(profile, seed)
    with progress_bar("reading data") as update:

        def tell(name: str) -> None:
            update(0, text=f"reading data: {name}")

        plan = plan_real(
            source,
            chosen_tasks.wanted,
            chosen,
            profile,
            storage,
            named=bool(tasks),
            tell=tell,
        )
    plan.problems |= chosen_tasks.unusable
    _announce(plan, storage)
    with storage.open(profile, seed):
        work = Work(source, profile, device, tuple(pythons.items()))
        failed = compute(plan, work, storage, jobs, dask)
        _write_report(storage, "one_se", may_be_empty=bool(failed))
    if failed:
        raise typer.Exit(UNEXPECTED)
    if plan.problems:
        raise typer.Exit(BAD_INPUT)


class _ChosenTasks(NamedTuple):
    """The tasks of a run."""

    wanted: tuple[BenchmarkTask, ...]
    known: tuple[BenchmarkTask, ...]  # whose models others may test
    unusable: dict[str, str]  # sets of the folder that cannot be read, with the reason


def _choose_tasks(
    data: Path | None, names: list[str], label: str | None, quick: bool
) -> _ChosenTasks:
    """The tasks that are named; else the pairs of the folder, or the built-in ones."""
    from optirank_lab.benchmark.tasks import built_in, choose, find_pairs
    from optirank_lab.data.registry import LABEL, local_paths

    if label is not None and data is None:
        raise ValueError(
            f"--label {label}: the built-in tasks have labels of their own; name a "
            "folder of your sets by --data"
        )
    local_paths(data)  # a folder that is not there is an error, whatever the tasks
    pairs, unusable = ((), {}) if data is None else find_pairs(data, label or LABEL)
    known = (*pairs, *built_in())
    if names:
        return _ChosenTasks(choose(known, names), known, {})
    if data is not None:
        return _ChosenTasks(pairs, known, unusable)
    wanted = tuple(task for task in known if task.quick or not quick)
    return _ChosenTasks(wanted, known, {})


def _kind_of_problems(tasks: tuple[BenchmarkTask, ...], problems: str | None) -> str:
    """Each class against the rest, all classes at once, or both."""
    any_found = any(task.scheme == "all" for task in tasks)
    if any_found and problems not in (None, "whole"):
        raise ValueError(
            f"--problems {problems}: pairs found in a folder have no samples to tune "
            "on, so they are run with --problems whole only"
        )
    return str(problems or ("whole" if any_found else "binary"))


def _pythons_of_peers(peer: list[str] | None, kind: str) -> dict[str, str]:
    """The Pythons of competing tools: those of make peers, and those that are named."""
    from optirank_lab.baselines.peers import check_peers, installed_peers

    if peer and kind == "binary":
        raise ValueError(
            "--peer: competing tools take part with --problems whole or both"
        )
    return installed_peers() | check_peers(peer or ())


@app.command("report", cls=Command)
def report(
    folder: Annotated[
        Path, typer.Argument(help="Folder of a run.", show_default=False)
    ],
    selection: Annotated[
        _Selection,
        typer.Option(
            help="How settings are chosen: the paper's rule, or best validation score."
        ),
    ] = "one_se",
) -> None:
    """Write the tables, figures and page of a run again from its stored results.

    With the best validation score the report is written to report-best/ beside report/.

    Examples:

      optirank-lab benchmark report results
      optirank-lab benchmark report results --selection best
    """
    from optirank_lab.benchmark.results import Storage

    _write_report(Storage(folder), str(selection))


@app.command("curve", cls=Command)
def curve(
    data: Annotated[
        Path, typer.Option(help="Folder of .h5ad files: every pair is evaluated.")
    ],
    out: opt.ResultsFolder = Path("optirank-curve"),
    label: _Label = None,
    peer: _Peer = None,
    jobs: opt.Processes = None,
) -> None:
    """Compare classifiers at the same number of genes, over every pair of sets of a
    folder.

    The folder given by --out gets curve.csv, with one row per pair, method and number
    of genes, and a figure. Each pair and method is stored as soon as it is done: the
    same command goes on from there. Competing tools take part where there is a Python
    that has them.

    Examples:

      optirank-lab benchmark curve --data sets --out curve
      optirank-lab benchmark curve --data sets --peer singler=/env/bin/python
    """
    from optirank_lab.benchmark import curve as study
    from optirank_lab.benchmark.designs import CURVE, RealTasks
    from optirank_lab.benchmark.results import Storage
    from optirank_lab.benchmark.tasks import find_pairs
    from optirank_lab.data.registry import LABEL

    pairs, unusable = find_pairs(data, label or LABEL)
    for name, reason in unusable.items():
        echo(f"{name}: {reason}", err=True)
    if not pairs:
        raise ValueError(f"{data} has no pair of sets with common classes and genes")
    pythons = _pythons_of_peers(peer, "whole")
    source = RealTasks(data.resolve(), pairs)
    storage = Storage(out)
    storage.check(CURVE, source.seed)
    plan = study.plan(source, storage, pythons)
    _announce(plan, storage)
    with storage.open(CURVE, source.seed):
        failed = compute(plan, study.work(source, pythons), storage, jobs)
    table = study.table(storage, pairs)
    _show_curve(table)
    study.write(table, out / "curve.csv")
    echo(f"Table: {out / 'curve.csv'}")
    if sizes := study.write_left_out(table, out / "curve.csv"):
        echo(f"Sizes chosen without each tissue: {sizes}")
    echo(f"Figure: {study.draw(table, out / 'curve.csv')}")
    if failed:
        raise typer.Exit(UNEXPECTED)


def _show_curve(table: pd.DataFrame) -> None:
    """Means over tissues by number of genes, and the tools that failed."""
    from optirank._util.words import in_percent
    from optirank_lab.benchmark import curve as study

    wide = study.means(table).pivot_table(
        index="method", columns="k", values="mean", sort=False
    )
    rows = [(str(method), *map(in_percent, row)) for method, row in wide.iterrows()]
    columns = ("method", *map(str, wide.columns))
    show_table(
        "Balanced accuracy (%) by genes, mean over tissues",
        columns,
        rows,
        whole=("method",),
    )
    failed = table[table["note"].notna()]
    groups: Any = failed.groupby(["method", "note"])
    for (method, reason), rows_of_tool in groups:
        tell_error(f"{method} has no result on {len(rows_of_tool)} pairs: {reason}")


def _announce(plan: Plan, storage: Storage) -> None:
    """Print what will be done and what cannot be, before any fitting."""
    for name, reason in plan.problems.items():
        tell_error(f"{name} cannot be run: {reason}")
    if plan.tasks and not plan.units:
        raise ValueError(
            "ANrank-lr alone needs tasks with an auxiliary set, and there are none"
        )
    if not plan.units:
        raise ValueError(
            "no task can be run: optirank-lab benchmark list shows what is missing; "
            "optirank-lab datasets fetch stand-ins gets public sets; --data names a "
            "folder of your own"
        )
    if plan.missing:
        echo(
            f"No data here for {len(plan.missing)} tasks: optirank-lab benchmark list "
            "shows them."
        )
    stored = sum(storage.has(unit) for unit in plan.units)
    there = f", {stored} of them already stored" if stored else ""
    echo(f"Tasks: {len(plan.tasks)}, units of work: {len(plan.units)}{there}.")


def _write_report(storage: Storage, rule: str, *, may_be_empty: bool = False) -> None:
    from optirank_lab.benchmark import report
    from optirank_lab.benchmark.results import collect

    results = collect(storage, rule)
    if not results.scores.empty:
        name = "report" if rule == "one_se" else f"report-{rule}"
        show_means(report.write(results, storage.folder / name))
    elif not may_be_empty:
        raise ValueError(f"{storage.folder} contains no finished problem yet")


def compute(
    plan: Plan, work: Work, storage: Storage, jobs: int | None, dask: str | None = None
) -> dict[str, str]:
    """Run the units of a plan with a bar; return what failed, by task."""
    from optirank_lab.benchmark import engine

    n_done, done = 0, 0.0
    total = sum(unit.weight for unit in plan.units)
    with progress_bar("fitting", total) as update:

        def advance(unit: WorkUnit, stored: bool) -> None:
            nonlocal n_done, done
            n_done, done = n_done + 1, done + unit.weight
            update(done, text=f"{n_done} of {len(plan.units)} units, {unit.design}")

        def warn(unit: WorkUnit, reason: str) -> None:
            tell_error(f"{unit.design}: {unit.classifier} has no result: {reason}")

        options = {
            "jobs": worker_count(-1 if jobs is None else jobs),
            "dask": dask,
            "progress": advance,
            "warn": warn,
        }
        try:
            return engine.run(plan, work, storage, **options)
        except KeyboardInterrupt:
            kept = f"Finished units are kept in {storage.folder}"
            echo(f"{kept}: the same command continues.", err=True)
            raise


def show_means(written: Written) -> None:
    """Print the means of each comparison and of the sweeps, and where the report is."""
    from optirank_lab.benchmark.text import standings_text, sweeps_text

    for comparison in written.comparisons:
        shown = standings_text(comparison).drop(columns=["median", "worst", "rank"])
        _show_frame(f"{comparison.name}: balanced accuracy (%)", shown)
    if written.sweeps is not None and len(written.sweeps):
        _show_frame(
            "Balanced accuracy (%) along the sweeps", sweeps_text(written.sweeps)
        )
    echo(f"Report: {written.page}")


def _show_frame(title: str, frame: pd.DataFrame) -> None:
    """Print a table of text."""
    columns = [str(name) for name in frame.columns]
    show_table(title, columns, frame.itertuples(index=False), whole=("classifier",))
