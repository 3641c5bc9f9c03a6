"""Run the units of a plan over processes or a dask cluster; what is finished is stored at once."""

from __future__ import annotations

import functools
import platform
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from optirank._util.cluster import cluster_threads, connect
from optirank.benchmark.classifiers import get
from optirank.benchmark.designs import Design, TaskSource
from optirank.benchmark.profiles import Profile
from optirank.benchmark.running.plan import Plan
from optirank.benchmark.running.processes import submit, worker_processes
from optirank.benchmark.running.storage import Storage, Unit, WholeUnit
from optirank.benchmark.running.whole import run_whole
from optirank.benchmark.running.work import run_unit

AnyUnit = Unit | WholeUnit
Progress = Callable[[AnyUnit, bool], None]
_NOTE_EVERY = 30.0  # seconds between notes on how long the run has gone on


@dataclass(frozen=True)
class Work:
    """What a worker needs to know besides the unit; it reads or draws the data itself."""

    source: TaskSource
    profile: Profile
    fingerprints: tuple[tuple[str, str], ...] = ()  # of the designs, by key
    device: str = "cpu"  # where classifiers that can be fitted on a GPU are fitted
    peers: tuple[tuple[str, str], ...] = ()  # interpreters of tools of others, by their names


def run(
    plan: Plan,
    work: Work,
    storage: Storage,
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: Progress = lambda unit, stored: None,
    warn: Callable[[str, str], None] = lambda task, reason: None,
    tell_gap: Callable[[WholeUnit, str], None] = lambda unit, reason: None,
) -> dict[str, str]:
    """Compute the units that are not stored yet; return what failed, by task.

    ``progress`` is called with each unit, and whether it was there before; ``warn`` with the first
    failure of a task; ``tell_gap`` with a whole unit whose tool has no result, the first of each
    tool and reason. Such a gap is stored and is no failure of the run. An interrupt ends the
    processes and leaves the finished units in the folder.
    """
    began, start = time.perf_counter(), datetime.now(UTC).isoformat(timespec="microseconds")
    for key, record in plan.designs.items():
        storage.add_design(key, record)
    waiting: deque[AnyUnit] = deque()
    for unit in plan.units:
        if storage.has(unit):
            progress(unit, True)
        else:
            waiting.append(unit)
    done, failed, noted, told = 0, {}, began, set()

    def note() -> None:
        facts = {
            "units": done,
            "jobs": None if dask else jobs,
            "device": work.device,
            "wall_seconds": round(time.perf_counter() - began, 1),
            "tasks": plan.tasks,
            "classifiers": plan.classifiers,
            "tools": plan.tools,
            "missing": plan.missing,
            "problems": plan.problems | failed,
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
        }
        storage.log(start, facts)

    note()
    try:
        if waiting:
            with _executor(jobs, dask) as (executor, at_once):
                for unit, future in _completed(waiting, executor, at_once, work):
                    try:
                        result = future.result()
                    except (KeyboardInterrupt, BrokenExecutor):
                        raise
                    except Exception as error:
                        if unit.task not in failed:
                            failed[unit.task] = _reason(unit, error)
                            warn(unit.task, failed[unit.task])
                    else:
                        storage.save(unit, result)
                        done += 1
                        gap = (unit.classifier, result.get("failed"))
                        if gap[1] is not None and gap not in told:
                            told.add(gap)
                            tell_gap(unit, gap[1])
                    progress(unit, False)
                    if time.perf_counter() - noted > _NOTE_EVERY:
                        note()
                        noted = time.perf_counter()
    finally:
        note()
    return failed


def _reason(unit: AnyUnit, error: Exception) -> str:
    where = f"{unit.scenario} {unit.classifier}".strip()
    if isinstance(unit, Unit):
        where = f"{where}, {unit.positive}, split {unit.split}"
    return " ".join(f"{where}: {type(error).__name__}: {error}".split())


def _completed(
    waiting: deque[AnyUnit], executor: Executor, at_once: int, work: Work
) -> Iterator[tuple[AnyUnit, Future]]:
    """Units with their results as they come, never more under way than can be computed soon."""
    running: dict[Future, AnyUnit] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            unit = waiting.popleft()
            running[submit(executor, compute, unit, work)] = unit
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield running.pop(future), future


def compute(unit: AnyUnit, work: Work) -> dict:
    """The result of a unit, in a worker."""
    design = _designs(unit.task, work.source, work.fingerprints)[unit.design]
    if isinstance(unit, WholeUnit):
        return run_whole(
            design,
            get(unit.classifier),
            n_splits=work.profile.whole_splits,
            time_limit=work.profile.whole_seconds,
            peers=dict(work.peers),
        )
    split = next(one for one in design.splits if one.index == unit.split)
    return run_unit(design, split, unit.positive, unit.classifier, work.profile, device=work.device)


@functools.lru_cache(maxsize=2)  # units come task by task
def _designs(
    task: str, source: TaskSource, fingerprints: tuple[tuple[str, str], ...]
) -> dict[str, Design]:
    designs = {design.key: design for design in source.designs(task)}
    for key, expected in fingerprints:
        if key in designs and designs[key].fingerprint() != expected:
            raise ValueError(f"the data of {key} changed while the run was going on")
    return designs


@contextmanager
def _executor(jobs: int, dask: str | None) -> Iterator[tuple[Executor, int]]:
    """Where the work is done, and how many units may be under way."""
    if dask is None:
        with worker_processes(jobs) as executor:
            yield executor, jobs
        return
    with connect(dask) as client:
        yield client.get_executor(pure=False), 2 * cluster_threads(client)
