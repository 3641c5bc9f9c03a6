"""Run the speed benchmarks: all, or those named:
``python benchmarks/run.py ranks [--quick]``.

One that fails is reported, and the others still run.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(file.stem.removeprefix("bench_") for file in HERE.glob("bench_*.py"))


def main() -> None:
    chosen = [one for one in sys.argv[1:] if not one.startswith("-")]
    options = [one for one in sys.argv[1:] if one.startswith("-")]
    if unknown := [name for name in chosen if name not in NAMES]:
        sys.exit(
            f"no benchmark is called {', '.join(unknown)}: there are {', '.join(NAMES)}"
        )
    failed = []
    for name in chosen or NAMES:
        print(f"\n{'=' * 100}\n{name}\n{'=' * 100}", flush=True)
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, str(HERE / f"bench_{name}.py"), *options]
        )
        print(f"\n({name}: {time.perf_counter() - start:.0f} s)", flush=True)
        failed += [name] if done.returncode else []
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
