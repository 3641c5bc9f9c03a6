"""What all scripts of this folder share: reading the job, measuring, writing the result.

It runs in the environment of the tool, Python 3.9 or newer, which need not have optirank: it needs
NumPy and SciPy alone. A script is called with a folder as its only argument:

``job.json`` (read)
    ``tool`` (its name), ``genes``, ``classes``, ``options`` (of the script) and ``splits``: for
    each its ``index``, a ``seed``, and the names of parts: ``train``, ``validation`` (or null) and
    ``tests`` (by name of the task).
``PART.npz`` (read)
    The samples of a part: values as measured as a CSR matrix (``data``, ``indices``, ``indptr``,
    ``shape``), their log values (``log_data``, ... where they differ), ``labels`` and ``kind``
    ("counts", "linear" or "log").
``stage.txt`` (written)
    What is being done: "install", "start", "fit" or "predict".
``result.json`` (written at the end)
    ``version``, ``start_bytes``, ``peak_bytes``, and lists with one entry per split: ``n_genes``,
    ``fit_seconds``, ``predict_seconds`` and ``predictions``, the last two by part ("validation" or
    "test NAME"). A prediction is a label, or null where the tool gives none. After a failure:
    ``failed`` (one line) and ``stage`` instead.

Times are CPU seconds of this process with its threads and of the processes that it started and
waited for. Importing the tool and reading files are not counted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp

_LONGEST = 300  # characters of a reason


class Part:
    """Samples of a whole task: training samples, or samples to be labelled.

    Attributes
    ----------
    X : CSR matrix, samples x genes: values as measured.
    log : CSR matrix: log1p(CPM), or logarithms as they came.
    kind : what ``X`` holds: "counts", "linear" or "log".
    labels : array of str. A tool may look at those of training samples only.
    genes : list of str.
    """

    def __init__(self, path: Path, genes: list[str]) -> None:
        with np.load(path, allow_pickle=False) as file:
            shape = tuple(file["shape"])
            self.X = _matrix(file, "", shape)
            self.log = _matrix(file, "log_", shape) if "log_data" in file else self.X
            self.labels = file["labels"]
            self.kind = str(file["kind"])
        self.genes = genes


def _matrix(file, prefix: str, shape: tuple[int, int]) -> sp.csr_matrix:
    return sp.csr_matrix(tuple(file[prefix + key] for key in ("data", "indices", "indptr")), shape)


def run(make_tool) -> None:
    """Run a tool on the job of the folder named on the command line.

    ``make_tool(job)`` imports the tool and returns an object with

    - ``version``: the tool's name and version;
    - ``fit(train, seed)``: train on a `Part`;
    - ``n_genes()``: the number of genes that the trained model needs;
    - ``predict(part)``: a list of labels, None where the tool gives none;
    - ``warm_up()``, where it has one: called before times are measured, because the first calls
      import modules and compile code; `fit_example` suits most tools. It may fail;
    - ``prepare(part)``, where it has one: what ``fit`` and ``predict`` are given instead of the
      part, such as a file that is written. Its time is not counted.
    """
    folder = Path(sys.argv[1])
    _end_with_parent()
    stage = _Stage(folder)
    try:
        job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        result = _run_splits(make_tool, job, folder, stage)
    except ImportError as error:
        result = {"failed": " ".join(str(error).split()), "stage": stage.name}
    except MemoryError as error:
        result = {"failed": _line(error), "stage": "memory"}
    except Exception as error:
        traceback.print_exc()
        result = {"failed": _line(error), "stage": stage.name}
    temporary = folder / "result.tmp"
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.replace(folder / "result.json")


def _run_splits(make_tool, job: dict, folder: Path, stage: _Stage) -> dict:
    stage.enter("install")
    tool = make_tool(job)
    if hasattr(tool, "warm_up"):
        stage.enter("fit")
        try:
            tool.warm_up()
        except Exception:
            traceback.print_exc()  # what fails on the data as well is reported there
    stage.enter("start")
    prepare = getattr(tool, "prepare", lambda part: part)
    result: dict = {"version": tool.version, "start_bytes": None}
    for key in ("n_genes", "fit_seconds", "predict_seconds", "predictions"):
        result[key] = []
    for split in job["splits"]:
        train = prepare(Part(folder / (split["train"] + ".npz"), job["genes"]))
        if result["start_bytes"] is None:
            result["start_bytes"] = peak_bytes()
        stage.enter("fit")
        start = cpu_seconds()
        tool.fit(train, split["seed"])
        result["fit_seconds"].append(round(cpu_seconds() - start, 4))
        result["n_genes"].append(int(tool.n_genes()))
        stage.enter("predict")
        times, labels = {}, {}
        for name, file in _tested(split).items():
            part = prepare(Part(folder / (file + ".npz"), job["genes"]))
            start = cpu_seconds()
            found = tool.predict(part)
            times[name] = round(cpu_seconds() - start, 4)
            labels[name] = [None if one is None else str(one) for one in found]
        result["predict_seconds"].append(times)
        result["predictions"].append(labels)
    result["peak_bytes"] = peak_bytes()
    return result


def fit_example(tool) -> None:
    """Fit and predict 60 samples of three classes that are easy to tell apart."""
    random = np.random.default_rng(0)
    X = random.poisson(2.0, size=(60, 200)).astype(float)
    for k in range(3):
        X[k::3, 40 * k : 40 * (k + 1)] += random.poisson(6.0, size=(20, 40))
    part = SimpleNamespace(
        X=sp.csr_matrix(X),
        log=sp.csr_matrix(np.log1p(X)),
        kind="counts",
        labels=np.array(["a", "b", "c"] * 20),
        genes=[f"gene{k}" for k in range(200)],
    )
    tool.fit(part, 0)
    tool.predict(part)


def _tested(split: dict) -> dict[str, str]:
    """The files of the parts to be labelled, by their names."""
    found = {"test " + name: file for name, file in split["tests"].items()}
    if split["validation"] is not None:
        found["validation"] = split["validation"]
    return found


def cpu_seconds() -> float:
    """CPU time of this process, its threads, and the processes it waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def peak_bytes() -> int | None:
    """The largest memory of this process, or of one that it waited for; None on Windows.

    Linux counts the memory that the parent had when it started this process to ``ru_maxrss``, so
    there the mark of the process itself is read.
    """
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    own = _linux_peak() or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit)


def _linux_peak() -> int | None:
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = [line.split()[1] for line in text.splitlines() if line.startswith("VmHWM:")]
    return 1024 * int(found[0]) if found else None


class _Stage:
    """What is being done, on disk for the case that this process is ended from outside."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "stage.txt"
        self.enter("install")

    def enter(self, name: str) -> None:
        self.name = name
        self.path.write_text(name, encoding="utf-8")


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:_LONGEST]


def _end_with_parent() -> None:
    """End this process, and those it started, when the parent has ended.

    The parent holds the other end of standard input and never writes to it.
    """
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    os.read(0, 1)  # returns at the end of the file
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)
