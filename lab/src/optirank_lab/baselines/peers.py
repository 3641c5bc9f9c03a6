"""Competing tools, each run in a process of its own, which cannot end the run.

A tool needs a Python that has it. `PEERS_FOLDER` holds one environment per tool, made
by ``make peers`` from the pinned requirements of ``benchmarks/peers``; others are named
by ``NAME=PYTHON``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optirank_lab.benchmark.classifiers import CLASSIFIERS
from optirank_lab.benchmark.sets import Set

SCRIPT = Path(__file__).with_name("tools") / "run_tool.py"  # says what is in the files
PEERS_FOLDER = Path(".peers")
LONGEST_REASON = 300  # characters: it stands in a table
_ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")
}


@dataclass(frozen=True, kw_only=True)
class PeerResult:
    """What a tool gave back: labels of each part, None where it gave none."""

    version: str
    n_genes: int
    fit_seconds: float
    predict_seconds: float
    labels: list[NDArray]


class PeerFailedError(RuntimeError):
    """A tool has no result; the message is one line."""


def check_peers(given: Sequence[str]) -> dict[str, str]:
    """The Pythons of peers from ``NAME=PYTHON``, by the peers' names."""
    known = peer_names()
    pythons = {}
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
        if os.path.dirname(python):
            python = os.path.abspath(python)
        pythons[name.lower()] = python
    return pythons


def peer_names() -> list[str]:
    """The tools that can be run."""
    return [entry.peer for entry in CLASSIFIERS.values() if entry.peer]


def installed_peers(folder: Path = PEERS_FOLDER) -> dict[str, str]:
    """The Pythons of the environments that ``make peers`` made in a folder."""
    pythons = {name: python_of(folder / name) for name in peer_names()}
    return {name: str(path) for name, path in pythons.items() if path.is_file()}


def python_of(environment: Path) -> Path:
    """The Python of a virtual environment."""
    inside = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return environment.absolute().joinpath(*inside)


def run_peer(
    peer: str,
    train: Set,
    parts: list[Set],
    *,
    seed: int,
    limit: float,
    pythons: Mapping[str, str],
) -> PeerResult:
    """Train a tool on samples of all classes and label the samples of the parts.

    It runs in a process of its own, for at most ``limit`` seconds. A child that
    crashes, hangs or is killed raises `PeerFailedError`, as one does that has no
    result.
    """
    python = pythons.get(peer, sys.executable)
    with tempfile.TemporaryDirectory(prefix="optirank-peer-") as name:
        folder = Path(name)
        _write_job(folder, train, parts, seed)
        result = _run([python, str(SCRIPT), peer, name], folder, limit)
    if "failed" in result:
        raise PeerFailedError(_one_line(result["failed"]))
    labels = [np.array(given, dtype=object) for given in result.pop("labels")]
    if [len(given) for given in labels] != [len(part.labels) for part in parts]:
        raise PeerFailedError("its labels are not one per sample")
    return PeerResult(labels=labels, **result)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_REASON]


def _write_job(folder: Path, train: Set, parts: list[Set], seed: int) -> None:
    _write_samples(folder / "train.npz", train, train.labels)
    for number, part in enumerate(parts):
        _write_samples(folder / f"{number}.npz", part, np.zeros(0))
    genes = [str(gene) for gene in train.genes]
    job = {"genes": genes, "seed": seed % 2**31, "n_parts": len(parts)}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def _write_samples(path: Path, part: Set, labels: NDArray) -> None:
    csr = sp.csr_array(part.raw)
    np.savez(
        path,
        labels=labels.astype(str),
        kind=part.kind,
        data=csr.data,
        indices=csr.indices,
        indptr=csr.indptr,
        shape=np.array(csr.shape),
    )


def _run(command: list[str], folder: Path, limit: float) -> dict:
    """Run the child and read what it wrote."""
    with (folder / "output.txt").open("wb") as output:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # its end says that this process has ended
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(command[0]),
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            reason = f"{command[0]} cannot be run ({error.strerror}): name a Python"
            return {"failed": reason}
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            return {"failed": f"not finished after {limit:g} s"}
        finally:
            _end(child)
    try:
        return json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        last = _last_line(folder / "output.txt")
        return {"failed": f"ended with exit code {code} and without a result: {last}"}


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child with all processes that it started."""
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
    if child.stdin is not None:
        child.stdin.close()
    child.wait()


def _last_line(path: Path) -> str:
    """The last line of a text that is not empty."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    written = [line.strip() for line in lines if line.strip()]
    return written[-1] if written else "no message"


def _environment(python: str) -> dict[str, str]:
    """Another Python must not see the packages of this one; hashes are fixed.

    pySingleCellNet draws from the order of sets.
    """
    variables = dict(os.environ)
    if python != sys.executable:
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
            variables.pop(name, None)
    return variables | {"PYTHONHASHSEED": "0"} | _ONE_THREAD
