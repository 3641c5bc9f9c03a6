"""Child processes that cannot end the run: a time limit, no orphans, a reason for each failure."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

STAGES = ("install", "start", "fit", "predict", "time", "memory")
ONE_THREAD = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")},
    "VECLIB_MAXIMUM_THREADS": "1",
    "LOKY_MAX_CPU_COUNT": "1",
}
_LONGEST = 300  # characters of a reason
_KILLED = -9  # the return code after SIGKILL


def gap(reason: str, stage: str) -> dict[str, str]:
    """What is stored where a tool has no result: one line, and the stage that it had reached."""
    return {"failed": " ".join(reason.split())[:_LONGEST], "stage": stage}


def run_child(
    command: Sequence[str],
    folder: Path,
    time_limit: float,
    env: Mapping[str, str] | None = None,
) -> dict:
    """Run a script of `optirank.benchmark.tools` in a process of its own; return its result.

    Parameters
    ----------
    command : the interpreter and the script; the folder is added as its argument.
    folder : has the job, and gets the result (see `optirank.benchmark.tools.harness`).
    time_limit : seconds of wall time after which the child is ended.
    env : the environment; that of this process by default. Thread pools are held to one thread.

    Returns
    -------
    dict
        The content of ``result.json``, or a gap (see `gap`): a child that crashes, hangs or is
        killed is no error here.
    """
    variables = {**(os.environ if env is None else env), **ONE_THREAD}
    with (folder / "output.txt").open("wb") as output:
        try:
            child = subprocess.Popen(
                [*command, str(folder)],
                stdin=subprocess.PIPE,  # its end tells the child that this process has ended
                stdout=output,
                stderr=subprocess.STDOUT,
                env=variables,
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            return gap(f"{command[0]} cannot be run ({error}): name another Python", "start")
        try:
            code = child.wait(time_limit)
        except subprocess.TimeoutExpired:
            return gap(f"not finished after {time_limit:g} s, during {_stage(folder)}", "time")
        finally:
            _end(child)
    if (folder / "result.json").is_file():
        try:
            return json.loads((folder / "result.json").read_text(encoding="utf-8"))
        except ValueError as error:
            return gap(f"its result cannot be read: {error}", _stage(folder))
    if code == _KILLED:
        reason = f"killed during {_stage(folder)}, perhaps for lack of memory: use fewer jobs"
        return gap(reason, "memory")
    said = _last_line(folder / "output.txt")
    return gap(f"ended with exit code {code} and without a result{said}", _stage(folder))


def _end(child: subprocess.Popen) -> None:
    """End the child with all processes that it started."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):  # where nothing of it is left
            os.killpg(child.pid, signal.SIGKILL)  # it leads a group of its own
    else:
        child.kill()
    child.stdin.close()
    child.wait()


def _stage(folder: Path) -> str:
    """The stage that a child had reached."""
    try:
        stage = (folder / "stage.txt").read_text(encoding="utf-8")
    except OSError:
        return "start"
    return stage if stage in STAGES else "start"


def _last_line(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return f": {said[-1]}" if said else ""
