"""Run one tool of others on one whole task: ``python run_tool.py NAME FOLDER``.

It runs in the environment of the tool, Python 3.9 or newer, which need not have
optirank: it needs NumPy, SciPy and the tool. In the folder are

``job.json`` (read)
    ``genes``, ``seed`` and ``n_parts``.
``train.npz``, ``0.npz``, ``1.npz``, ... (read)
    The training samples and the parts to be labelled: values as measured as a CSR
    matrix (``data``, ``indices``, ``indptr``, ``shape``), ``kind`` ("counts", "linear"
    or "log") and ``labels``, of training samples only.
``result.json`` (written at the end)
    ``version``, ``n_genes``, ``fit_seconds``, ``predict_seconds`` and ``labels``, one
    list per part; a label is null where the tool gives none. After a failure:
    ``failed`` (one line) instead.

Times are CPU seconds of this process with its threads and of the processes that it
started and waited for. Importing the tool and reading files are not counted.

A tool is a class of `TOOLS`. It imports its package when it is made, and has
``version``, ``fit(train, seed)``, ``n_genes()`` (needed by the trained model) and
``predict(part)``: a list of labels, None where the tool gives none. Samples come with
``X`` (CSR, samples x genes, as measured), ``kind``, ``labels`` and ``genes``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp


def linear(part) -> sp.csr_matrix:
    """Values that can be added up: counts and intensities, or 2^x of logarithms.

    Negative intensities become 0. Logarithms that are nowhere negative and often
    exactly 0 are taken as log2(1 + value), as is usual for cells: there it is 2^x - 1,
    and 0 stays 0.
    """
    X: Any = sp.csr_matrix(part.X, dtype=np.float64, copy=True)
    X.eliminate_zeros()
    if part.kind != "log":
        np.maximum(X.data, 0.0, out=X.data)
        return X
    zeros = 1.0 - X.nnz / max(1.0, float(X.shape[0]) * X.shape[1])
    if zeros > 0.05 and X.data.min(initial=0.0) >= 0.0:
        X.data = np.exp2(X.data) - 1.0
        return X
    return sp.csr_matrix(np.exp2(X.toarray()))


def log1p_scaled(part, target: float | None = 1e4) -> sp.csr_matrix:
    """log(1 + v), where v are the linear values scaled to the sum ``target`` per
    sample.

    None stands for the mean of the sums. A sample without any value stays 0.
    """
    X = linear(part)
    total = np.asarray(X.sum(axis=1), dtype=float).ravel()
    wanted = total.mean() if target is None else target
    factor = np.divide(wanted, total, out=np.zeros_like(total), where=total > 0)
    X = sp.csr_matrix(sp.diags(factor) @ X)
    X.data = np.log1p(X.data)
    return X


class CellTypist:
    """CellTypist as its guide advises: log1p of counts per 10,000, train, annotate,
    best match.

    Majority voting stays off: it uses the other samples of the query.
    ``feature_selection`` stays off as by default.
    """

    def __init__(self) -> None:
        # The package makes this folder, for models to download, when it is imported.
        os.environ["CELLTYPIST_FOLDER"] = os.path.join(sys.argv[2], "celltypist")
        import sklearn

        celltypist = import_module("celltypist")

        self.version = f"celltypist {version('celltypist')}"
        if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
            raise ImportError(
                f"CellTypist cannot train with scikit-learn {sklearn.__version__}: "
                "make an environment with pip install celltypist 'scikit-learn<1.8' "
                "and name its Python by --peer celltypist=PYTHON"
            )
        celltypist.logger.set_level(40)  # errors only
        self.package = celltypist

    def fit(self, train, seed: int) -> None:
        """Train with the defaults; nothing is random."""
        self.model = self.package.train(
            _table(log1p_scaled(train), train.genes), labels=train.labels
        )

    def n_genes(self) -> int:
        """All genes that are seen in a training sample."""
        return len(self.model.features)

    def predict(self, part) -> list[str]:
        """The class with the largest score; every sample gets one."""
        annotated = self.package.annotate(
            _table(log1p_scaled(part), part.genes), model=self.model
        )
        return [str(label) for label in annotated.predicted_labels["predicted_labels"]]


class SingleR:
    """SingleR (the package singler) as its guide advises: build the reference, then
    classify.

    The reference is log2(1 + value) with equal sums per sample, or logarithms as they
    are. Queries are given as measured, because only the order of the genes is used. The
    markers are the default ones.
    """

    def __init__(self) -> None:
        singler = import_module("singler")
        self.version = f"singler {version('singler')}"
        self.package = singler

    def fit(self, train, seed: int) -> None:
        """Choose the markers and index the reference; nothing is random."""
        X = train.X if train.kind == "log" else log1p_scaled(train, None) / np.log(2.0)
        self.built = self.package.train_single(
            _genes_first(X),
            ref_labels=[str(label) for label in train.labels],
            ref_features=list(train.genes),
            test_features=list(train.genes),
        )

    def n_genes(self) -> int:
        """The markers of all pairs of classes."""
        return int(self.built.num_markers())

    def predict(self, part) -> list[str]:
        """The best label after fine-tuning; every sample gets one."""
        results = self.package.classify_single(_genes_first(part.X), self.built)
        return [str(label) for label in results["best"]]


def _genes_first(X) -> sp.csc_matrix:
    transposed = sp.csc_matrix(X.T, dtype=np.float64)
    transposed.sort_indices()  # the package refuses others
    return transposed


class PySingleCellNet:
    """pySingleCellNet as its guide advises: normalise, choose variable genes, train,
    classify.

    The settings are those of its quickstart: 2000 variable genes by the flavour
    "seurat_v3" on counts (by scanpy's default on other values, and where that flavour
    fails) and 30 components. Genes are numbered, because the package writes a pair as
    "gene_gene" and fails on names that contain "_".
    """

    def __init__(self) -> None:
        warnings.filterwarnings("ignore")  # of pandas, several per sample
        self.version = f"pySingleCellNet {version('pySingleCellNet')}"
        self.package = import_module("pySingleCellNet")

    def fit(self, train, seed: int) -> None:
        """Train with the settings of the quickstart."""
        sc = import_module("scanpy")
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  the package draws from this generator
        data = _table(linear(train), _numbers(train))
        data.obs["label"] = np.asarray(train.labels, dtype=str)
        data.obs["label"] = data.obs["label"].astype("category")
        n_variable = min(2000, data.n_vars)
        data.layers["counts"] = data.X.copy()
        sc.pp.normalize_total(data)
        sc.pp.log1p(data)
        flavour = (
            {"flavor": "seurat_v3", "layer": "counts"} if train.kind == "counts" else {}
        )
        try:
            sc.pp.highly_variable_genes(data, n_top_genes=n_variable, **flavour)
        except ValueError:  # its local regression is singular on some sparse counts
            sc.pp.highly_variable_genes(data, n_top_genes=n_variable)
        components = min(30, data.n_obs - 1, n_variable - 1)
        self.model = self.package.tl.train_classifier(data, "label", n_comps=components)

    def n_genes(self) -> int:
        """The genes of the pairs."""
        return len(
            {gene for pair in self.model["topPairs"] for gene in str(pair).split("_")}
        )

    def predict(self, part) -> list[str | None]:
        """The class with the most votes; none where that is "rand", of shuffled
        profiles.
        """
        query = _table(part.X, _numbers(part))
        self.package.tl.classify_anndata(query, self.model)
        labels = [str(label) for label in query.obs["SCN_class_argmax"]]
        return [None if label == "rand" else label for label in labels]


def _table(X: Any, genes: list[str]) -> Any:
    import anndata
    import pandas as pd

    samples = pd.Index([f"s{k}" for k in range(X.shape[0])])
    obs = pd.DataFrame(index=samples)
    return anndata.AnnData(X, obs, pd.DataFrame(index=pd.Index(genes)))


def _numbers(part) -> list[str]:
    return [f"g{k}" for k in range(len(part.genes))]


TOOLS = {
    "celltypist": CellTypist,
    "singler": SingleR,
    "pysinglecellnet": PySingleCellNet,
}


def main() -> None:
    """Run the tool on the job of the folder; what goes wrong stands in the result."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
        result = _measured(TOOLS[name](), job, folder)
    except Exception as error:
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError):
            text = (
                f"{error.name} is not installed for {sys.executable}: name a Python "
                f"that has it (--peer {name}=PYTHON), or pip install 'optirank[peers]'"
            )
        result = {"failed": text}
    temporary = folder / "result.tmp"
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.replace(folder / "result.json")


def _read(path: Path, genes: list[str]) -> SimpleNamespace:
    with np.load(path, allow_pickle=False) as file:
        arrays = tuple(file[key] for key in ("data", "indices", "indptr"))
        X = sp.csr_matrix(arrays, tuple(file["shape"]))
        return SimpleNamespace(
            X=X, labels=file["labels"], kind=str(file["kind"]), genes=genes
        )


def _measured(tool, job: dict, folder: Path) -> dict:
    try:
        _fit_example(tool)  # the first calls import modules and compile code
    except Exception:
        traceback.print_exc()  # what fails on the data as well is reported there
    train, *parts = (
        _read(folder / f"{name}.npz", job["genes"])
        for name in ("train", *range(job["n_parts"]))
    )
    start = cpu_seconds()
    tool.fit(train, job["seed"])
    fitted = cpu_seconds()
    labels_of_parts = [
        [None if label is None else str(label) for label in tool.predict(part)]
        for part in parts
    ]
    return {
        "version": tool.version,
        "n_genes": int(tool.n_genes()),
        "fit_seconds": round(fitted - start, 4),
        "predict_seconds": round(cpu_seconds() - fitted, 4),
        "labels": labels_of_parts,
    }


def _fit_example(tool) -> None:
    """Fit and predict 60 samples of three classes that are easy to tell apart."""
    draw = np.random.default_rng(0)
    X = draw.poisson(2.0, size=(60, 200)).astype(float)
    for k in range(3):
        X[k::3, 40 * k : 40 * (k + 1)] += draw.poisson(6.0, size=(20, 40))
    labels, genes = np.array(["a", "b", "c"] * 20), [f"gene{k}" for k in range(200)]
    part = SimpleNamespace(
        X=sp.csr_matrix(X), kind="counts", labels=labels, genes=genes
    )
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


if __name__ == "__main__":
    main()
