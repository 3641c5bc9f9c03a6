"""Run the blocks of a page one after the other, in the current folder.

Python blocks share one namespace; R blocks print nothing where there is no R. Reads a
list of (language, code, page, line) as JSON from the first file named and writes what
each printed to the second; ends at the first block that fails.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path


def main(given: str, found: str) -> None:
    namespace = {"__name__": "__main__"}
    printed: list[str] = []
    for language, code, page, line in json.loads(Path(given).read_text("utf-8")):
        print(f"--- {page}:{line}", file=sys.stderr, flush=True)
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile("\n" * (line - 1) + code, page, "exec"), namespace)
            printed.append(output.getvalue())
        elif language == "r" and shutil.which("Rscript") is None:
            printed.append("")
        else:
            program = ["Rscript", "-"] if language == "r" else ["bash", "-e"]
            done = subprocess.run(program, input=code, capture_output=True, text=True)
            sys.stderr.write(done.stderr)
            printed.append(done.stdout + done.stderr)
            if done.returncode:
                sys.stderr.write(done.stdout)
                sys.exit(f"{page}:{line}: ended with code {done.returncode}")
        Path(found).write_text(json.dumps(printed), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
