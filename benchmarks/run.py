"""Run the benchmarks: all of them, or those named: ``python benchmarks/run.py ranks``."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

NAMES = sorted(
    file.stem.removeprefix("bench_") for file in Path(__file__).parent.glob("bench_*.py")
)


def main(chosen: list[str]) -> None:
    if unknown := [name for name in chosen if name not in NAMES]:
        sys.exit(f"no benchmark is called {', '.join(unknown)}: there are {', '.join(NAMES)}")
    for name in chosen or NAMES:
        print(f"\n{'=' * 100}\n{name}\n{'=' * 100}", flush=True)
        start = time.perf_counter()
        importlib.import_module(f"bench_{name}").main()
        print(f"\n({name}: {time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
