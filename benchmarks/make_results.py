"""All studies again, their tables on the pages and the figures: python
benchmarks/make_results.py.

Options are those of the studies. What competing tools said does not depend on this
project, so their rows of results/curve.csv are kept; with ``--tools`` they are run
again, where ``make peers`` installed them. With ``--quick``, a part of each study is
run into a temporary folder: results/ and the pages stay as they are. After an
interruption the same command goes on with the first study that is not finished, if code
and data are the same. The shipped models have a command of their own, ``make models``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from itertools import count
from pathlib import Path

from studies import header, options, pairs_of

from optirank._util.files import write_text

HERE = Path(__file__).parent
STUDIES = (
    "panel_pairs",
    "study_ablation",
    "study_product",
    "study_agreement",
    "study_small",
    "study_synthetic",
    "study_paper",
    "study_design",
    "study_tree",
)


TOOLS = "# competing tools: "  # how a line about their rows begins
DRAWN = (
    "fill_tables",
    "draw_curve",
    "draw_differences",
    "draw_problems",
    "draw_sweeps",
)
UNFINISHED = ".unfinished.json"  # in the folder of the CSV files, until all is done


def main() -> None:
    args = options(__doc__, add_tools)
    begin = time.perf_counter()
    if args.quick:
        args.out = Path(tempfile.mkdtemp(prefix="optirank-results-"))
    args.out.mkdir(parents=True, exist_ok=True)
    given = ["--data", str(args.data), "--out", str(args.out), "--jobs", str(args.jobs)]
    if args.quick:
        given.append("--quick")
    progress = Progress.of(args)
    progress.do("curve", lambda: curve(args, fresh=not progress.resumed))
    for name in STUDIES:
        command = [sys.executable, str(HERE / f"{name}.py"), *given]
        progress.do(name, lambda command=command: subprocess.run(command, check=True))
    if not args.quick:
        for name in DRAWN:
            subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True)
    progress.path.unlink()
    print(f"\n{args.out}: {(time.perf_counter() - begin) / 60:.1f} minutes")


def add_tools(parser: argparse.ArgumentParser) -> None:
    """The option of this script."""
    text = "run the competing tools again, instead of keeping their rows"
    parser.add_argument("--tools", action="store_true", help=text)


@dataclass
class Progress:
    """The studies that an interrupted run of the same code on the same data finished."""

    path: Path
    fingerprint: str
    finished: list[str]
    resumed: bool

    @classmethod
    def of(cls, args: argparse.Namespace) -> Progress:
        """What the folder of the CSV files says of such a run."""
        progress = cls(args.out / UNFINISHED, fingerprint_of(args), [], False)
        if progress.path.is_file():
            record = json.loads(progress.path.read_text("utf-8"))
            if record["fingerprint"] == progress.fingerprint:
                progress.finished = record["finished"]
                progress.resumed = True
        progress.write()
        return progress

    def do(self, name: str, work: Callable[[], object]) -> None:
        """Do a study unless it is finished."""
        if name in self.finished:
            print(f"\n== {name}: finished before the interruption", flush=True)
            return
        timed(name, work)
        self.finished.append(name)
        self.write()

    def write(self) -> None:
        """Store what is finished."""
        record = {"fingerprint": self.fingerprint, "finished": self.finished}
        write_text(self.path, json.dumps(record))


def fingerprint_of(args: argparse.Namespace) -> str:
    """A digest of the code, the data and the options."""
    rooms = (HERE.parent / "src", HERE.parent / "lab" / "src")
    code = [*HERE.glob("*.py"), *HERE.glob("*.toml")]
    for room in rooms:
        code += [*room.rglob("*.py"), *room.rglob("*.toml"), *room.rglob("*.csv")]
    digest = hashlib.sha256(f"{args.quick} {args.tools}".encode())
    for path in (*sorted(code), *sorted(args.data.glob("*.h5ad"))):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def curve(args: argparse.Namespace, fresh: bool) -> None:
    """What `optirank-lab benchmark curve` does, but for the tools; ``fresh`` from the
    beginning, else from where it was interrupted.
    """
    from optirank_lab.baselines.peers import installed_peers, peer_names
    from optirank_lab.benchmark import curve as study
    from optirank_lab.benchmark import engine
    from optirank_lab.benchmark.designs import CURVE, RealTasks
    from optirank_lab.benchmark.results import Storage

    path = args.out / "curve.csv"
    units = args.out / "curve-units"
    pythons = installed_peers(HERE.parent / ".peers") if args.tools else {}
    lacking = [name for name in peer_names() if name not in pythons]
    if args.tools and lacking:
        sys.exit(f"--tools: {', '.join(lacking)} not installed: run make peers first")
    if fresh:
        shutil.rmtree(units, ignore_errors=True)
    pairs = pairs_of(args)
    source = RealTasks(args.data.resolve(), pairs)
    storage = Storage(units)
    plan = study.plan(source, storage, pythons)
    finished = count(1)

    def show(*_: object) -> None:
        print(f"\r{next(finished)} of {len(plan.units)}", end="", flush=True)

    with storage.open(CURVE, source.seed):
        work = study.work(source, pythons)
        failed = engine.run(plan, work, storage, jobs=args.jobs, progress=show)
    print()
    if failed:
        sys.exit("\n".join(f"{name}: {reason}" for name, reason in failed.items()))
    table = study.table(storage, pairs)
    first = header("optirank-lab benchmark curve", args.data)
    if args.tools:
        first += line_of_tools(peer_names())
    elif path.is_file():
        table = study.with_rows_of(table, study.read(path))
        first += lines_of_tools(path)
    study.write(table, path, first)
    shutil.rmtree(units)


def line_of_tools(names: Iterable[str]) -> str:
    """The line of a header about rows of competing tools: their versions, the date."""
    used = []
    for name in names:
        pinned = (HERE / "peers" / f"{name}.txt").read_text("utf-8").splitlines()
        lines = [line for line in pinned if line.lower().startswith(f"{name}==")]
        used += [line.replace("==", " ") for line in lines]
    return f"{TOOLS}{', '.join(used)}; {date.today().isoformat()}\n"


def lines_of_tools(path: Path) -> str:
    """The lines of a table's header about rows of competing tools, which are kept."""
    with path.open(encoding="utf-8") as table:
        return "".join(line for line in table if line.startswith(TOOLS))


def timed(name: str, work: Callable[[], object]) -> None:
    """Do some work, and print how long it took."""
    print(f"\n== {name}", flush=True)
    start = time.perf_counter()
    work()
    print(f"({name}: {time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
