"""Run the command `optirank train` on a whole task, as a user does, and `optirank predict`."""

from __future__ import annotations

import csv
import io
import runpy
import sys
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from harness import Part, run

from optirank import load
from optirank.datasets.data import ExpressionData
from optirank.datasets.writing import write_h5ad

_BUDGET = "10s"
_LABEL = "label"


class TrainCommand:
    """The public commands on .h5ad files, with one thread.

    They run in this process, which has done both once on a small example, so that the time of
    importing modules is not counted. Reading the files is part of the commands, and is counted.
    """

    def __init__(self, job: dict) -> None:
        self.version = f"optirank {job['options']['optirank']}"
        self.model = Path("model.optirank")

    def warm_up(self) -> None:
        """Both commands on a small example."""
        random = np.random.default_rng(0)
        X = sp.csr_matrix(random.poisson(2.0, size=(40, 30)).astype(np.float32))
        labels = np.repeat(["a", "b"], 20)
        example = _write(X, [f"gene{k}" for k in range(30)], labels)
        self.fit(example, 0, budget="1s")
        self.predict(example)

    def prepare(self, part: Part) -> Path:
        """The samples as a file."""
        return _write(part.X, part.genes, part.labels)

    def fit(self, train: Path, seed: int, budget: str = _BUDGET) -> None:
        """`optirank train`, which has no seed."""
        _optirank(
            *("train", train, "--label", _LABEL, "--budget", budget, "--jobs", 1, "--force"),
            *("--out", self.model),
        )

    def n_genes(self) -> int:
        """The panel of the model file."""
        return int(np.count_nonzero(load(self.model).genes_))

    def predict(self, part: Path) -> list[str | None]:
        """`optirank predict`."""
        out = Path("labels.csv")
        _optirank("predict", part, "--model", self.model, "--out", out, "--force")
        with out.open(newline="", encoding="utf-8") as file:
            labels = [row["label"] for row in csv.DictReader(file)]
        return [None if one == "unassigned" else one for one in labels]


def _write(X: sp.csr_matrix, genes: list[str], labels: np.ndarray) -> Path:
    samples = np.array([f"sample{k}" for k in range(len(labels))], dtype=object)
    obs = pd.DataFrame({_LABEL: labels.astype(object)})
    data = ExpressionData(X, np.array(genes, dtype=object), samples, obs)
    return write_h5ad(data, Path("samples.h5ad"))


def _optirank(*arguments: object) -> None:
    """``optirank ARGUMENTS``, in this process."""
    before, said = sys.argv, io.StringIO()
    sys.argv = ["optirank", *map(str, arguments)]
    try:
        with redirect_stderr(said):
            runpy.run_module("optirank", run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            message = f"optirank {arguments[0]}: {said.getvalue().strip()}"
            raise RuntimeError(message) from None
    finally:
        sys.argv = before


if __name__ == "__main__":
    run(TrainCommand)
