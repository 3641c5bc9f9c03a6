"""Designing panels: `optirank design` in a process of its own, its time and memory.

    python benchmarks/bench_design.py               a small reference, and 100,000 cells
    python benchmarks/bench_design.py FILE.h5ad     a reference with a column cell_type

A panel of 100 genes with its page, and a list of 300 genes that is scored as it is.
Cells are generated as for bench_scale. Targets are wall-clock seconds of two cores that
do nothing else: CPU seconds are held against twice as many.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_scale import N_GENES, write_cells
from timing import QUICK, columns, heading, line

from optirank.data.opening import open_profiles

SMALL, LARGE = (300, 400) if QUICK else (2000, 100_000)
N_LISTED = 300
LIMITS = {"panel": (20, None), "list": (5, None), "large": (180, 2.0)}


def main() -> None:
    files = [Path(name) for name in sys.argv[1:] if not name.startswith("-")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if files:
            for file in files:
                measure(file, "panel", folder)
            return
        small, large = folder / "small.h5ad", folder / "large.h5ad"
        write_cells(small, SMALL, (0, 1, 2), seed=1)
        measure(small, "panel", folder)
        write_cells(large, LARGE, (0, 1, 2), seed=1)
        measure(large, "large", folder)


def measure(file: Path, kind: str, folder: Path) -> None:
    """Choose a panel with its page, and score a list, on one reference."""
    heading(f"{file.name}: up to {N_GENES} genes, two threads")
    columns()
    page = ["--n-genes", "100", "--report", str(folder / "panel.html")]
    report("a panel of 100 genes with its page", run(file, page, folder), kind)
    if kind == "panel":
        with open_profiles(file) as profiles:
            names = profiles.genes[:N_LISTED].tolist()
        listed = folder / "list.txt"
        listed.write_text("\n".join(names), encoding="utf-8")
        scored = run(file, ["--gene-list", str(listed)], folder)
        report(f"a list of {len(names)} genes scored", scored, "list")


def run(file: Path, options: list[str], folder: Path) -> tuple[float, float, float]:
    """Wall-clock seconds, CPU seconds and peak GB of one command."""
    command = [sys.executable, "-m", "optirank", "--quiet", "design", str(file)]
    command += ["--label", "cell_type", "--n-jobs", "2", "--force", *options]
    command += ["-o", str(folder / "panel.csv")]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"{' '.join(command)} failed")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024**2


def report(what: str, taken: tuple[float, float, float], kind: str) -> None:
    """Print what a command took beside its targets."""
    wall, cpu, gigabytes = taken
    seconds, most = LIMITS[kind]
    figure = f"{wall:.1f} s, CPU {cpu:.1f} s"
    line(what, figure, f"<= {seconds} s", wall <= seconds or cpu <= 2 * seconds)
    if most is None:
        line("  peak memory", f"{gigabytes:.2f} GB")
    else:
        line(
            "  peak memory", f"{gigabytes:.2f} GB", f"<= {most:g} GB", gigabytes <= most
        )


if __name__ == "__main__":
    main()
