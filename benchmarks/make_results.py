"""All studies again, their tables on the pages and the figures: python
benchmarks/make_results.py.

Options are those of the studies. What competing tools said does not depend on this
project, so their rows of results/curve.csv are kept; with ``--tools`` they are run
again, where ``make peers`` installed them. With ``--quick``, a part of each study is
run into a temporary folder: results/ and the pages stay as they are. The shipped models
have a command of their own, ``make models``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from studies import options, pairs_of

HERE = Path(__file__).parent
STUDIES = (
    "panel_pairs",
    "study_ablation",
    "study_confidence",
    "study_error_simulation",
    "study_unknown",
    "study_tissues",
    "study_small",
    "study_synthetic",
    "study_sweeps",
    "study_paper",
    "study_sources",
    "study_design",
    "study_assays",
)


def main() -> None:
    args = options(__doc__, add_tools)
    begin = time.perf_counter()
    if args.quick:
        args.out = Path(tempfile.mkdtemp(prefix="optirank-results-"))
    given = ["--data", str(args.data), "--out", str(args.out), "--jobs", str(args.jobs)]
    if args.quick:
        given.append("--quick")
    timed("curve", lambda: curve(args))
    for name in STUDIES:
        command = [sys.executable, str(HERE / f"{name}.py"), *given]
        timed(name, lambda command=command: subprocess.run(command, check=True))
    if not args.quick:
        for name in ("fill_tables", "draw_curve", "draw_sweeps"):
            subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True)
    print(f"\n{args.out}: {(time.perf_counter() - begin) / 60:.1f} minutes")


def add_tools(parser: argparse.ArgumentParser) -> None:
    """The option of this script."""
    text = "run the competing tools again, instead of keeping their rows"
    parser.add_argument("--tools", action="store_true", help=text)


def curve(args: argparse.Namespace) -> None:
    """What `optirank benchmark curve` does, from the beginning but for the tools."""
    from optirank_lab.baselines.peers import installed_peers
    from optirank_lab.benchmark import curve as study
    from optirank_lab.benchmark.rivals import TOOLS

    args.out.mkdir(parents=True, exist_ok=True)
    before = args.out / "curve.csv"
    new = args.out / "curve-new.csv"
    new.unlink(missing_ok=True)
    pythons = {} if args.quick else installed_peers(HERE.parent / ".peers")
    if before.is_file() and not args.tools:
        rows = study.read(before)
        study.write(rows[rows["method"].isin([*TOOLS])], new)
    study.run(args.data, pairs_of(args), new, args.jobs, pythons=pythons)
    new.replace(before)


def timed(name: str, work: Callable[[], object]) -> None:
    """Do some work, and print how long it took."""
    print(f"\n== {name}", flush=True)
    start = time.perf_counter()
    before = cpu_seconds()
    work()
    wall = time.perf_counter() - start
    print(f"({name}: {wall:.0f} s, {cpu_seconds() - before:.0f} s of CPU)", flush=True)


def cpu_seconds() -> float:
    """CPU time of this process and of those that it started and waited for."""
    times = os.times()
    return sum(times[:4])


if __name__ == "__main__":
    main()
