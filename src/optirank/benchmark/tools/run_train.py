"""Run the command `optirank train` on a whole task, as a user does, and `optirank predict`."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from harness import Part, run

from optirank import load
from optirank.datasets.data import ExpressionData
from optirank.datasets.writing import write_h5ad

_BUDGET = "10s"
_LABEL = "label"
_QUERY = "query.h5ad"


class TrainCommand:
    """The public commands on .h5ad files, each in a process of its own, with one thread.

    Their times include the start of Python and reading the files: that is what a user pays.
    """

    def __init__(self, job: dict) -> None:
        self.version = f"optirank {job['options']['optirank']}"
        self.model = Path("model.optirank")

    def prepare(self, part: Part) -> Path:
        """The samples as a file."""
        n = len(part.labels)
        samples = np.array([f"sample{k}" for k in range(n)], dtype=object)
        obs = pd.DataFrame({_LABEL: part.labels.astype(object)})
        genes = np.array(part.genes, dtype=object)
        return write_h5ad(ExpressionData(part.X, genes, samples, obs), Path(_QUERY))

    def fit(self, train: Path, seed: int) -> None:
        """`optirank train`; it has no seed of its own."""
        _optirank(
            *("train", train, "--label", _LABEL, "--budget", _BUDGET, "--jobs", 1, "--force"),
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


def _optirank(*arguments: object) -> None:
    command = [sys.executable, "-m", "optirank", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"optirank {arguments[0]}: {done.stderr.strip()}")


if __name__ == "__main__":
    run(TrainCommand)
