"""Helpers of the benchmarks: fair timing, peak memory, lines with a target and what was
reached.

With ``--quick`` benchmarks take small sizes: that shows that they run, and targets are
not judged.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

QUICK = "--quick" in sys.argv
# Problems with the results of the published implementation
ANCHORS = Path(__file__).resolve().parents[1] / "tests" / "anchors"
Work = Callable[[], object]


def interleaved(
    works: dict[str, Work],
    repeats: int = 15,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Least seconds of each piece of work, taking turns, so that a busy moment hits
    them all.

    Disturbances only add time, so the least is the steadiest figure. The clock is this
    process's CPU time, which other programs disturb little; work that runs in several
    threads is timed with ``time.perf_counter``. A first round compiles and is not
    counted.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(2 if QUICK else repeats + 1):
        for name, work in works.items():
            start = clock()
            work()
            if turn:
                times[name].append(clock() - start)
    return {name: min(taken) for name, taken in times.items()}


_MEASURE = """
import re, resource, sys

def status(field):
    with open("/proc/self/status") as file:
        return int(re.search(field + r":\\s+(\\d+) kB", file.read()).group(1)) * 1024

{setup}
before = status("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # forget the peak so far
{work}
print(status("VmHWM") - before)
"""


def peak_memory(setup: str, work: str) -> int | None:
    """Bytes that ``work`` adds at its peak, in a process of its own; None where
    Linux is not.
    """
    if not sys.platform.startswith("linux"):
        return None
    code = _MEASURE.format(setup=setup, work=work)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def heading(text: str) -> None:
    """Print a heading above a few lines."""
    print(f"\n{text}\n{'-' * len(text)}")


def line(what: str, figure: str, target: str = "", reached: bool | None = None) -> None:
    """Print one figure, with its target and whether it was reached where
    there is one.
    """
    verdict = "" if reached is None or QUICK else ("reached" if reached else "MISSED")
    print(f"{what:<54} {figure:>30}  {target:>9}  {verdict}".rstrip())


def columns() -> None:
    """Print what the columns of :func:`line` are."""
    print(f"{'':<54} {'':>30}  {'target':>9}")
