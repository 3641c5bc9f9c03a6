"""Small data and short grids for the tests of training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from optirank.datasets import ExpressionData
from optirank.datasets.example import make_example
from optirank.workflow.grids import Grid
from optirank.workflow.preparation import prepare
from optirank.workflow.train import train, train_prepared

SHORT = (Grid.of((0.1,), (5e-3, 2e-2), (1e-2,)), Grid.of((0.1,), (5e-3,), (1e-2,)))
SINGLE = SHORT[1:]


def shorten_training(patch, **defaults) -> None:
    """Let `train` and the command have other defaults, such as ``grids`` and ``n_folds``."""
    for function in (train, prepare, train_prepared):
        for name, value in defaults.items():
            if name in function.__kwdefaults__:
                patch.setitem(function.__kwdefaults__, name, value)


def small(n_samples: int = 100, n_genes: int = 110) -> ExpressionData:
    """The generated reference, with its markers and some other genes."""
    data, _ = make_example(n_samples, 20)
    return data.select_genes(np.arange(n_genes))


def with_obs(data: ExpressionData, **columns) -> ExpressionData:
    """The same data with columns of ``obs`` set."""
    return replace(data, obs=data.obs.assign(**columns))


def noise(n_samples: int, n_genes: int, n_classes: int = 2) -> ExpressionData:
    """Values that say nothing of the labels."""
    rng = np.random.default_rng(0)
    names = np.array([f"g{k}" for k in range(n_genes)], dtype=object)
    samples = np.array([f"s{k}" for k in range(n_samples)], dtype=object)
    obs = pd.DataFrame({"kind": [f"c{k % n_classes}" for k in range(n_samples)]}, index=samples)
    return ExpressionData(rng.normal(size=(n_samples, n_genes)), names, samples, obs, "noise")
