"""Small generated data sets and tasks, for tests of the benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from optirank.datasets.data import ExpressionData
from optirank.datasets.writing import write_h5ad

TASKS = """
[[task]]
name = "pair"
title = "one platform to another"
kind = "single-cell"
shift = "platform"
train = ["first"]
test = "second"
scheme = "cells"

[[task]]
name = "triple"
title = "two platforms to a third"
kind = "single-cell"
shift = "platform"
train = ["first"]
auxiliary = "second"
test = "third"
scheme = "cells"

[[task]]
name = "base"
title = "tested on itself"
kind = "bulk"
shift = "none"
train = ["first"]
scheme = "hold-out"

[[task]]
name = "elsewhere"
title = "the same models, elsewhere"
kind = "bulk"
shift = "batch"
models_of = "base"
test = "third"

[[task]]
name = "inside"
title = "nested"
kind = "bulk"
shift = "none"
train = ["second"]
scheme = "nested"
"""


def make_set(
    name: str,
    n: int = 90,
    n_genes: int = 40,
    classes: tuple[str, ...] = ("a", "b", "c"),
    *,
    shift: float = 0.0,
    seed: int = 0,
) -> ExpressionData:
    """Counts in which each class has genes of its own; ``shift`` scales the last ten genes."""
    random = np.random.default_rng([seed, len(name), n])
    labels = np.array([classes[i % len(classes)] for i in range(n)], dtype=object)
    rates = np.full((n, n_genes), 5.0)
    for k, one in enumerate(classes):
        rates[np.ix_(labels == one, range(4 * k, 4 * k + 4))] = 25.0
    rates[:, -10:] *= np.exp(shift)
    X = sp.csr_matrix(random.poisson(rates).astype(np.float32))
    obs = pd.DataFrame({"cell_type": labels, "dataset": name, "platform": name})
    genes = np.array([f"gene{j}" for j in range(n_genes)], dtype=object)
    samples = np.array([f"{name}{i}" for i in range(n)], dtype=object)
    return ExpressionData(X, genes, samples, obs)


def write_sets(folder: Path) -> Path:
    """Three sets and ``tasks.toml`` in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_h5ad(make_set("first"), folder / "first.h5ad")
    write_h5ad(make_set("second", 72, 38, shift=1.0), folder / "second.h5ad")
    write_h5ad(make_set("third", 66, 36, ("a", "b"), shift=2.0), folder / "third.h5ad")
    (folder / "tasks.toml").write_text(TASKS)
    return folder
