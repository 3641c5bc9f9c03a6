"""What all scripts of this folder share: reading the job, measuring, writing the result.

It runs in the environment of the tool, Python 3.9 or newer, which need not have optirank: it needs
NumPy and SciPy alone. A script is called with a folder as its only argument:

``job.json`` (read)
    ``genes``, ``classes``, ``seed`` and ``n_parts``.
``train.npz``, ``0.npz``, ``1.npz``, ... (read)
    The training samples and the parts to be labelled: values as measured as a CSR matrix
    (``data``, ``indices``, ``indptr``, ``shape``), ``kind`` ("counts", "linear" or "log") and
    ``labels``, of training samples only.
``result.json`` (written at the end)
    ``version``, ``n_genes``, ``fit_seconds``, ``predict_seconds`` and ``labels``, one list per
    part; a label is null where the tool gives none. After a failure: ``failed`` (one line) instead.

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


class Part:
    """Samples: ``X`` (CSR, samples x genes, as measured), ``kind``, ``labels`` and ``genes``."""

    def __init__(self, path: Path, genes: list[str]) -> None:
        with np.load(path, allow_pickle=False) as file:
            arrays = tuple(file[key] for key in ("data", "indices", "indptr"))
            self.X = sp.csr_matrix(arrays, tuple(file["shape"]))
            self.labels = file["labels"]
            self.kind = str(file["kind"])
        self.genes = genes


def run(make_tool) -> None:
    """Run a tool on the job of the folder named on the command line.

    ``make_tool(job)`` imports the tool and returns an object with

    - ``version``: the tool's name and version;
    - ``fit(train, seed)``: train on a `Part`;
    - ``n_genes()``: the number of genes that the trained model needs;
    - ``predict(part)``: a list of labels, None where the tool gives none.
    """
    folder = Path(sys.argv[1])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        result = _measured(make_tool(job), job, folder)
    except Exception as error:
        traceback.print_exc()
        text = " ".join(str(error).split())
        named = text if isinstance(error, ImportError) else f"{type(error).__name__}: {text}"
        result = {"failed": named[:300]}
    temporary = folder / "result.tmp"
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.replace(folder / "result.json")


def _measured(tool, job: dict, folder: Path) -> dict:
    try:
        _fit_example(tool)  # the first calls import modules and compile code
    except Exception:
        traceback.print_exc()  # what fails on the data as well is reported there
    train = Part(folder / "train.npz", job["genes"])
    parts = [Part(folder / f"{k}.npz", job["genes"]) for k in range(job["n_parts"])]
    start = cpu_seconds()
    tool.fit(train, job["seed"])
    fitted = cpu_seconds()
    found = [[None if one is None else str(one) for one in tool.predict(part)] for part in parts]
    return {
        "version": tool.version,
        "n_genes": int(tool.n_genes()),
        "fit_seconds": round(fitted - start, 4),
        "predict_seconds": round(cpu_seconds() - fitted, 4),
        "labels": found,
    }


def _fit_example(tool) -> None:
    """Fit and predict 60 samples of three classes that are easy to tell apart."""
    random = np.random.default_rng(0)
    X = random.poisson(2.0, size=(60, 200)).astype(float)
    for k in range(3):
        X[k::3, 40 * k : 40 * (k + 1)] += random.poisson(6.0, size=(20, 40))
    labels, genes = np.array(["a", "b", "c"] * 20), [f"gene{k}" for k in range(200)]
    part = SimpleNamespace(X=sp.csr_matrix(X), kind="counts", labels=labels, genes=genes)
    tool.fit(part, 0)
    tool.predict(part)


def cpu_seconds() -> float:
    """CPU time of this process, its threads, and the processes it waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _end_with_parent() -> None:
    """End this process, and those it started, when the parent has ended.

    The parent holds the other end of standard input and never writes to it.
    """
    os.read(0, 1)  # returns at the end of the file
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)
