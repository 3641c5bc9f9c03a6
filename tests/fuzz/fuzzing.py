"""Running many cases in a child process, which may hang, crash or fill its memory."""

from __future__ import annotations

import os
import random
import select
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

resource = pytest.importorskip(
    "resource", reason="child processes with limits need a Unix system"
)
ROUNDS = int(os.environ.get("OPTIRANK_FUZZ", "1"))
_STALL = 60.0  # seconds without a sign of life, on a machine with other work


@dataclass
class Outcome:
    """What became of the cases."""

    results: Counter = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)


def fuzz(
    case: Callable[[random.Random], str],
    count: int,
    *,
    seed: int,
    seconds: float = 5.0,
    memory: float = 500.0,
    may_crash: bool = False,
) -> Outcome:
    """Run ``case`` with ``count`` generators; it returns a word for what happened.

    Bad are cases that raise, take more than so many CPU seconds or megabytes, or,
    unless a library ``may_crash``, stall or end the process.
    """
    outcome, done = Outcome(), 0
    while done < count:
        done = _run_child(
            case, done, count, seed, outcome, (seconds, memory, may_crash)
        )
    return outcome


def _run_child(
    case: Callable[[random.Random], str],
    start: int,
    count: int,
    seed: int,
    outcome: Outcome,
    limits: tuple[float, float, bool],
) -> int:
    """Run cases in a child until all are done or it dies; the number of the
    next case.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():  # of threads, which the child does not use
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(reading)
        _work(case, start, count, seed, writing)
    os.close(writing)
    at, rest = start, b""
    while True:
        if not select.select([reading], [], [], _STALL)[0]:
            os.kill(child, 9)
        block = os.read(reading, 1 << 16)
        if not block:
            break
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            number, cpu, rise, word = line.decode().split(" ", 3)
            at = int(number) + 1
            outcome.results[word if word in ("read", "refused") else "bad"] += 1
            if (
                word not in ("read", "refused")
                or float(cpu) > limits[0]
                or float(rise) > limits[1]
            ):
                outcome.bad.append(f"case {number}: {word}, {cpu} s, {rise} MB")
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if not status:
        return count
    outcome.results["crashed"] += 1
    if not limits[2]:
        outcome.bad.append(f"case {at}: stalled or ended with {status}")
    return at + 1


def _work(case, start: int, count: int, seed: int, writing: int) -> None:
    """Run the cases and report each; never returns."""
    limit = 8 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for number in range(start, count):
        before, began = _peak(), time.process_time()
        try:
            word = case(random.Random(seed * 1_000_003 + number))
        except BaseException as error:
            word = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        cpu = time.process_time() - began
        os.write(
            writing, f"{number} {cpu:.3f} {_peak() - before:.1f} {word}\n".encode()
        )
    os._exit(0)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
