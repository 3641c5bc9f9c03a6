"""Tools of others: which Python has one, and a process that runs it and cannot end the run."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from optirank.benchmark import tools
from optirank.benchmark.classifiers import CLASSIFIERS

if TYPE_CHECKING:
    from optirank.benchmark.classifiers import Classifier
    from optirank.benchmark.designs import Problem
    from optirank.benchmark.sets import Set

PACKAGES = {"celltypist": "celltypist", "singler": "singler", "pysinglecellnet": "pySingleCellNet"}
_LONGEST = 300  # characters of a reason: it stands in a table
_PROBE_SECONDS = 60.0  # the first start of a Python on a slow disk takes tens of seconds
# Looks for packages without importing them, which takes seconds. The sign tells the answer from
# what a start-up file of that Python may print.
_PROBE = """
import sys
from importlib.util import find_spec
print("\\n@", *(name for name in sys.argv[1:] if find_spec(name) is None))
"""
_ONE_THREAD = {f"{n}_NUM_THREADS": "1" for n in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")}


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
            raise ValueError(f"--peer {text!r}: {name!r} is no peer: use one of {', '.join(known)}")
        python = os.path.expanduser(python)
        # Links stay: the Python of a virtual environment is one.
        found[name.lower()] = os.path.abspath(python) if os.path.dirname(python) else python
    return found


def run_peer(
    peer: Classifier,
    problem: Problem,
    parts: list[Set],
    classes: list[str],
    limit: float,
    pythons: Mapping[str, str],
) -> dict:
    """Train a tool on a whole task and label the samples of the parts, in a process of its own.

    Returns ``version`` and ``fitted`` (what `Fitted` needs), or ``failed`` with the reason: a child
    that crashes, hangs or is killed is no error here.
    """
    python = pythons.get(peer.peer, sys.executable)
    if reason := why_no_peer(peer.peer, python):
        return _gap(reason)
    script = Path(tools.__file__).with_name(f"run_{peer.peer}.py")
    with tempfile.TemporaryDirectory(prefix="optirank-peer-") as name:
        folder = Path(name)
        _write_job(folder, problem, parts, classes)
        found = _run([python, str(script)], folder, limit)
    if "failed" in found:
        return found
    try:
        labels = [np.array(one, dtype=object) for one in found["labels"]]
        if [len(one) for one in labels] != [len(part.labels) for part in parts]:
            raise ValueError("its labels are not one per sample")
        fitted = {
            "setting": {},
            "labels": labels,
            "n_genes": int(found["n_genes"]),
            "seconds": float(found["fit_seconds"]),
            "predict_seconds": float(found["predict_seconds"]),
        }
        return {"version": str(found["version"]), "fitted": fitted}
    except (KeyError, TypeError, ValueError) as error:
        return _gap(f"its result cannot be used: {type(error).__name__}: {error}")


def _write_job(folder: Path, problem: Problem, parts: list[Set], classes: list[str]) -> None:
    """Write the files that a child reads (see `optirank.benchmark.tools.harness`)."""
    for name, part in (("train", problem.train), *enumerate(parts)):
        csr = sp.csr_array(part.raw)
        arrays = {key: getattr(csr, key) for key in ("data", "indices", "indptr", "shape")}
        labels = problem.train.labels if name == "train" else np.zeros(0)
        np.savez(folder / f"{name}.npz", labels=labels.astype(str), kind=part.kind, **arrays)
    job = {
        "genes": [str(gene) for gene in problem.train.genes],
        "classes": [str(one) for one in classes],
        "seed": problem.seed % 2**31,
        "n_parts": len(parts),
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def _run(command: list[str], folder: Path, limit: float) -> dict:
    with (folder / "output.txt").open("wb") as output:
        try:
            child = subprocess.Popen(
                [*command, str(folder)],
                stdin=subprocess.PIPE,  # its end tells the child that this process has ended
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(command[0]) | _ONE_THREAD,
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            return _gap(f"{command[0]} cannot be run ({error}): name another Python")
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            return _gap(f"not finished after {limit:g} s")
        finally:  # the child with all processes that it started
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL) if os.name == "posix" else child.kill()
            child.stdin.close()
            child.wait()
    try:
        return json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        said = (folder / "output.txt").read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip() for line in reversed(said) if line.strip()), "no message")
        return _gap(f"ended with exit code {code} and without a result: {last}")


def _gap(reason: str) -> dict[str, str]:
    return {"failed": " ".join(reason.split())[:_LONGEST]}


def _environment(python: str) -> dict[str, str]:
    """Another Python must not see the packages of this one; hashes are fixed.

    pySingleCellNet draws from the order of sets.
    """
    variables = dict(os.environ)
    if python != sys.executable:
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
            variables.pop(name, None)
    return variables | {"PYTHONHASHSEED": "0"}


@functools.lru_cache(maxsize=16)
def why_no_peer(peer: str, python: str) -> str | None:
    """Why a peer cannot be run by this Python, with the remedy; None where it can."""
    package, option = PACKAGES[peer], f"--peer {peer}=PYTHON"
    if Path(python).is_dir():
        return f"{python} is a folder: name the Python in it, as in {Path(python, 'bin', 'python')}"
    if shutil.which(python) is None:
        return f"{python} cannot be run: name a Python that has {package} ({option})"
    try:
        done = subprocess.run(
            [python, "-c", _PROBE, "numpy", "scipy", package],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            env=_environment(python),
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        return f"{python} gives no answer ({error}): name a Python that has {package} ({option})"
    answers = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("@")]
    if done.returncode or not answers:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        return f"{python} is not a Python that works ({said}): name another ({option})"
    if not answers[-1]:
        return None
    if python == sys.executable:
        remedy = f"pip install 'optirank[peers]', or name a Python that has it ({option})"
    else:
        remedy = f"{python} -m pip install {answers[-1][-1]}"
    return f"{answers[-1][-1]} is not installed: {remedy}"
