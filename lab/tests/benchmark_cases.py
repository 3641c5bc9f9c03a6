"""Small generated data sets and tasks, for tests of the benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from anndata import AnnData

from optirank_lab.benchmark.designs import RealTasks
from optirank_lab.benchmark.tasks import BenchmarkTask
from optirank_lab.data.conversion import write_h5ad
from optirank_lab.data.profiles import made

# The names of sets of built-in tasks, so that the command finds tasks in their folder.
FIRST, SECOND, THIRD = "nki_er", "vdx_er", "expo_er"
TASKS = (
    BenchmarkTask(
        "pair", "one platform to another", train=(FIRST,), test=SECOND, scheme="cells"
    ),
    BenchmarkTask(
        "triple",
        "two to a third",
        train=(FIRST,),
        auxiliary=SECOND,
        test=THIRD,
        scheme="cells",
    ),
    BenchmarkTask("base", "tested on itself", train=(FIRST,), scheme="hold-out"),
    BenchmarkTask(
        "other", "the same models on another set", models_of="base", test=THIRD
    ),
    BenchmarkTask("inside", "nested", train=(SECOND,), scheme="nested"),
    BenchmarkTask(
        "found", "all samples train", train=(FIRST,), test=SECOND, scheme="all"
    ),
)


def make_set(
    name: str,
    n: int = 90,
    n_genes: int = 120,
    classes: tuple[str, ...] = ("a", "b", "c"),
    *,
    shift: float = 0.0,
) -> AnnData:
    """Counts in which each class has genes of its own; ``shift`` scales the last
    ten genes.
    """
    random = np.random.default_rng([len(name), n])
    labels = np.array([classes[i % len(classes)] for i in range(n)], dtype=object)
    rates = np.full((n, n_genes), 5.0)
    for k, one in enumerate(classes):
        rates[np.ix_(labels == one, range(4 * k, 4 * k + 4))] = 25.0
    rates[:, -10:] *= np.exp(shift)
    X = sp.csr_matrix(random.poisson(rates).astype(np.float32))
    obs = pd.DataFrame({"cell_type": labels, "dataset": name, "platform": name})
    genes = np.array([f"gene{j}" for j in range(n_genes)], dtype=object)
    samples = np.array([f"{name}{i}" for i in range(n)], dtype=object)
    return made(X, genes, obs.set_axis(samples), "these data")


def write_sets(folder: Path) -> Path:
    """Three sets in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_h5ad(make_set(FIRST), folder / f"{FIRST}.h5ad")
    write_h5ad(make_set(SECOND, 72, 118, shift=1.0), folder / f"{SECOND}.h5ad")
    write_h5ad(
        make_set(THIRD, 66, 116, ("a", "b"), shift=2.0), folder / f"{THIRD}.h5ad"
    )
    return folder


def designs(folder: Path, name: str):
    """The designs of one of the tasks above."""
    return RealTasks(folder, TASKS).designs(name)
