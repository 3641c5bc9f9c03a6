"""Tools of others, each run in a process of its own, which cannot end the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from optirank_lab.benchmark.classifiers import CLASSIFIERS
from optirank_lab.benchmark.designs import Problem
from optirank_lab.benchmark.sets import Set

SCRIPT = Path(__file__).with_name("tools") / "run_tool.py"  # says what is in the files
_ONE_THREAD = {
    f"{n}_NUM_THREADS": "1" for n in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")
}


def check_peers(given: Sequence[str]) -> dict[str, str]:
    """The Pythons of peers from ``NAME=PYTHON``, by the peers' names."""
    known = [one.peer for one in CLASSIFIERS.values() if one.peer]
    found = {}
    for text in given:
        name, sign, python = (part.strip() for part in text.partition("="))
        if not sign or not python:
            raise ValueError(
                f"--peer {text!r}: write NAME=PYTHON, as in celltypist=/env/bin/python"
            )
        if name.lower() not in known:
            raise ValueError(
                f"--peer {text!r}: {name!r} is no peer: use one of {', '.join(known)}"
            )
        python = os.path.expanduser(python)
        # Links stay: the Python of a virtual environment is one.
        found[name.lower()] = (
            os.path.abspath(python) if os.path.dirname(python) else python
        )
    return found


def run_peer(
    peer: str,
    problem: Problem,
    parts: list[Set],
    limit: float,
    pythons: Mapping[str, str],
) -> dict:
    """Train a tool on a whole task and label the samples of the parts, in a process of its own.

    Returns its result, or ``failed`` with the reason: a child that crashes, hangs or is killed is
    no error here.
    """
    python = pythons.get(peer, sys.executable)
    with tempfile.TemporaryDirectory(prefix="optirank-peer-") as name:
        folder = Path(name)
        _write_job(folder, problem, parts)
        found = _run([python, str(SCRIPT), peer, name], folder, limit)
    if "failed" not in found:
        found["labels"] = [np.array(one, dtype=object) for one in found["labels"]]
        if [len(one) for one in found["labels"]] != [
            len(part.labels) for part in parts
        ]:
            found = {"failed": "its labels are not one per sample"}
    if "failed" in found:
        return {
            "failed": " ".join(found["failed"].split())[:300]
        }  # it stands in a table
    return found


def _write_job(folder: Path, problem: Problem, parts: list[Set]) -> None:
    for name, part in (("train", problem.train), *enumerate(parts)):
        csr = sp.csr_array(part.raw)
        arrays = {
            key: getattr(csr, key) for key in ("data", "indices", "indptr", "shape")
        }
        labels = problem.train.labels if name == "train" else np.zeros(0)
        np.savez(
            folder / f"{name}.npz", labels=labels.astype(str), kind=part.kind, **arrays
        )
    genes = [str(gene) for gene in problem.train.genes]
    job = {"genes": genes, "seed": problem.seed % 2**31, "n_parts": len(parts)}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def _run(command: list[str], folder: Path, limit: float) -> dict:
    with (folder / "output.txt").open("wb") as output:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # its end tells the child that this process has ended
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(command[0]),
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            return {
                "failed": f"{command[0]} cannot be run ({error.strerror}): name a Python"
            }
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            return {"failed": f"not finished after {limit:g} s"}
        finally:  # the child with all processes that it started
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(
                    child.pid, signal.SIGKILL
                ) if os.name == "posix" else child.kill()
            child.stdin.close()
            child.wait()
    try:
        return json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        said = (
            (folder / "output.txt")
            .read_text(encoding="utf-8", errors="replace")
            .split("\n")
        )
        last = next(
            (line.strip() for line in reversed(said) if line.strip()), "no message"
        )
        return {"failed": f"ended with exit code {code} and without a result: {last}"}


def _environment(python: str) -> dict[str, str]:
    """Another Python must not see the packages of this one; hashes are fixed.

    pySingleCellNet draws from the order of sets.
    """
    variables = dict(os.environ)
    if python != sys.executable:
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
            variables.pop(name, None)
    return variables | {"PYTHONHASHSEED": "0"} | _ONE_THREAD
