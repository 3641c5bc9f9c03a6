"""Plan the units of a run and compute them over processes or a dask cluster.

What is finished is stored at once, so that an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import functools
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from optirank.data.cluster import connect
from optirank_lab.benchmark.classifiers import BINARY, WHOLE, get
from optirank_lab.benchmark.designs import ALL, Design, Profile, RealTasks, select_genes
from optirank_lab.benchmark.results import Storage, WorkUnit
from optirank_lab.benchmark.tasks import BenchmarkTask
from optirank_lab.benchmark.work import run_unit

if TYPE_CHECKING:
    from optirank_lab.benchmark.synthetic import Settings


@dataclass
class Plan:
    """Units to run; tasks whose data are not there, and those that cannot run, with
    the reason.
    """

    units: list[WorkUnit] = field(default_factory=list)
    designs: dict[str, dict] = field(default_factory=dict)  # what is stored of each
    tasks: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """What a worker needs to know besides the unit; it reads or draws the
    data itself.
    """

    source: RealTasks | Settings
    profile: Profile
    device: str = "cpu"  # where classifiers that can be fitted on a GPU are fitted
    peers: tuple[tuple[str, str], ...] = ()  # Pythons of competing tools, by name


def plan_real(
    source: RealTasks,
    tasks: tuple[BenchmarkTask, ...],
    chosen: dict[str, list[str]],
    profile: Profile,
    storage: Storage,
    *,
    named: bool,
    tell: Callable[[str], None] = lambda text: None,
) -> Plan:
    """Read the data of every task, and list the units.

    Where the tasks were not ``named`` by the user, one whose data are not there is no
    problem. A task that cannot run does not keep the others from running. Nothing is
    written.
    """
    plan = Plan()
    trained: dict[str, list[str]] = {}  # tasks by the task that trains
    for task in tasks:
        lacking = source.missing(task)
        if lacking is None:
            trained.setdefault(task.models_of or task.name, []).append(task.name)
        else:
            (plan.problems if named else plan.missing)[task.name] = lacking
    for name, wanted in trained.items():
        tell(name)
        try:
            designs = source.designs(name)
            for design in designs:
                storage.check_design(design)
                if chosen.get(BINARY):
                    # Data of which no gene passes are noticed before fitting
                    train = design.source.take(design.splits[0].train)
                    select_genes(train, design.positives[0], profile, 0)
        except (ValueError, OSError) as error:
            plan.problems.update(dict.fromkeys(wanted, " ".join(str(error).split())))
            continue
        refused = designs[0].refused
        plan.problems |= {task: refused[task] for task in wanted if task in refused}
        plan.tasks += [task for task in wanted if task not in refused]
        for design in designs:
            plan.designs[design.key] = design.describe()
            plan.units += units_of(design, chosen, profile)
    return plan


def units_of(
    design: Design, chosen: dict[str, list[str]], profile: Profile
) -> list[WorkUnit]:
    """The units of a design, without classifiers that need what it lacks."""
    available: set[str | None] = {None}
    if design.auxiliary is not None:
        available.add("auxiliary")
    if design.truth is not None:
        available.add("truth")
    problems = [
        (split, name, BINARY)
        for split in design.splits[: profile.n_splits]
        for name in design.positives
    ]
    problems += [(split, ALL, WHOLE) for split in design.whole_splits(profile.n_whole)]
    return [
        WorkUnit(
            design.task.name,
            design.key,
            split.index,
            name,
            classifier,
            float(get(classifier).n_settings(profile, whole=kind == WHOLE)),
        )
        for split, name, kind in problems
        for classifier in chosen.get(kind, ())
        if get(classifier).needs in available
    ]


def run(
    plan: Plan,
    work: Work,
    storage: Storage,
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: Callable[[WorkUnit, bool], None] = lambda unit, stored: None,
    warn: Callable[[WorkUnit, str], None] = lambda unit, reason: None,
) -> dict[str, str]:
    """Compute the units that are not stored yet; return what failed, by task.

    ``progress`` is called with each unit, and whether it was there before; ``warn``
    with a unit that has no result, the first of each classifier and reason. Such a gap
    is stored, shown in the report and tried again by the next run; it counts as a
    failure, except for tools of others.
    """
    facts = {"missing": plan.missing, "problems": plan.problems, "device": work.device}
    facts |= {"python": platform.python_version()}
    storage.note({**facts, "platform": f"{platform.system()} {platform.machine()}"})
    for key, record in plan.designs.items():
        storage.add_design(key, record)
    waiting = []
    for unit in plan.units:
        if storage.has(unit):
            progress(unit, True)
        else:
            waiting.append(unit)
    failed: dict[str, str] = {}
    warned: set[tuple[str, str]] = set()
    for unit, result in _results(waiting, work, jobs, dask):
        storage.save(unit, result)
        reason = result.get("failed")
        if reason is not None and get(unit.classifier).peer is None:
            failed.setdefault(unit.task, f"{unit.classifier}, {unit.problem}: {reason}")
        if reason is not None and (unit.classifier, reason) not in warned:
            warned.add((unit.classifier, reason))
            warn(unit, reason)
        progress(unit, False)
    return failed


def _results(
    units: list[WorkUnit], work: Work, jobs: int, dask: str | None
) -> Iterator[tuple[WorkUnit, dict]]:
    """Units with their results as they come."""
    if not units:
        return
    if dask is not None:
        with connect(dask) as client:
            yield from on_cluster(client, units, work)
        return
    n_jobs = min(jobs, len(units))
    parallel: Any = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    try:
        yield from parallel(delayed(attempt)(unit, work, os.getpid()) for unit in units)
    except TerminatedWorkerError as error:
        raise RuntimeError(
            "a worker process was ended from outside, perhaps for lack of memory; "
            "finished units are kept: run the same again, with fewer jobs"
        ) from error


@functools.cache
def _depend_on(parent: int) -> None:
    """End this worker with the process that started it, whatever ends that, and leave
    it Ctrl-C.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def on_cluster(
    client, units: list[WorkUnit], work: Work
) -> Iterator[tuple[WorkUnit, dict]]:
    """Results from the workers of a dask cluster.

    Only as many units as the workers can start soon are sent, and each is freed with
    its result.
    """
    from distributed import as_completed

    waiting = iter(units)

    def submit(n: int) -> list:
        sent = [unit for _, unit in zip(range(n), waiting, strict=False)]
        return [client.submit(attempt, unit, work, pure=False) for unit in sent]

    first = submit(2 * sum(client.nthreads().values()))
    pending = as_completed(first, loop=client.loop)
    for future in pending:
        unit, result = future.result()
        future.release()
        for more in submit(1):
            pending.add(more)
        yield unit, result


def attempt(
    unit: WorkUnit, work: Work, parent: int | None = None
) -> tuple[WorkUnit, dict]:
    """The result of a unit, in a worker (of the ``parent``); what goes wrong
    becomes a gap.
    """
    if parent not in (None, os.getpid()):
        _depend_on(parent)
    try:
        design = _designs(unit.task, work.source)[unit.design]
        split = next(part for part in design.splits if part.index == unit.split)
        options = {"device": work.device, "peers": dict(work.peers)}
        return unit, run_unit(
            design, split, unit.problem, unit.classifier, work.profile, **options
        )
    except Exception as error:
        return unit, {"failed": " ".join(f"{type(error).__name__}: {error}".split())}


@functools.lru_cache(maxsize=2)  # units come task by task
def _designs(task: str, source: RealTasks | Settings) -> dict[str, Design]:
    return {design.key: design for design in source.designs(task)}
