"""All studies again, their tables on the pages and the figure: python benchmarks/make_results.py.

Options are those of the studies. With ``--quick``, a part of each study is run into a temporary
folder: results/ and the pages stay as they are.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from studies import options, pairs_of

HERE = Path(__file__).parent
STUDIES = (
    *(
        "panel_pairs",
        "study_unknown",
        "study_tissues",
        "study_small",
        "study_synthetic",
    ),
    *("study_log_values", "study_sources", "study_design", "study_assays"),
)


def main() -> None:
    args = options(__doc__)
    begin = time.perf_counter()
    if args.quick:
        args.out = Path(tempfile.mkdtemp(prefix="optirank-results-"))
    given = ["--data", str(args.data), "--out", str(args.out), "--jobs", str(args.jobs)]
    _timed("curve", lambda: curve(args))
    for name in STUDIES:
        command = [
            sys.executable,
            str(HERE / f"{name}.py"),
            *given,
            *["--quick"] * args.quick,
        ]
        _timed(name, lambda command=command: subprocess.run(command, check=True))
    if not args.quick:
        for name in ("fill_tables", "draw_curve"):
            subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True)
    print(f"\n{args.out}: {(time.perf_counter() - begin) / 60:.1f} minutes")


def curve(args) -> None:
    """What `optirank benchmark curve` does, from the beginning."""
    from optirank_lab.benchmark.curve import run

    args.out.mkdir(parents=True, exist_ok=True)
    new = args.out / "curve-new.csv"
    run(args.data, pairs_of(args), new, args.jobs)
    new.replace(args.out / "curve.csv")


def _timed(name: str, work) -> None:
    print(f"\n== {name}", flush=True)
    start = time.perf_counter()
    work()
    print(f"({name}: {time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
