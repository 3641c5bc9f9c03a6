"""Generated cells for a shipped model: to try the commands, not to judge the model.

Counts are Poisson; the logarithm of a mean is proportional to the gene's mean rank in
the class, with an effect of the platform on the gene and noise of the cell.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import sparse

from optirank.io.data import make_profiles
from optirank.io.reading import write_h5ad
from optirank.model.file import SHIPPED, load
from optirank.model.model import Model

if TYPE_CHECKING:
    from anndata import AnnData

_SPREAD = (
    8.0  # of the log means over the ranks from 0 to 1: counts from 0 to some thousands
)


def make_cells(model: Model, n_cells: int = 300) -> AnnData:
    """Cells of a model's classes, in the shares of its training; ``obs`` has their
    cell_type.
    """
    rng = np.random.default_rng(0)
    likeness = model.panel.likeness
    if likeness is None:
        raise ValueError(
            "the model has no mean ranks of its classes to draw cells from"
        )
    counts = model.card.class_counts
    shares = np.array([counts[str(name)] for name in model.classes], dtype=float)
    kinds = np.sort(rng.choice(len(shares), n_cells, p=shares / shares.sum()))
    means = _SPREAD * (likeness.profiles[kinds].astype(float) - 0.5)
    means += rng.normal(0.0, 0.5, means.shape[1])
    means += rng.normal(0.0, 0.5, means.shape)
    names = np.array([f"cell_{k:03d}" for k in range(n_cells)], dtype=object)
    obs = pd.DataFrame({"cell_type": model.classes[kinds].astype(object)}, index=names)
    X = sparse.csr_matrix(rng.poisson(np.exp(means)), dtype=np.float32)
    var = pd.DataFrame(index=pd.Index(model.genes, dtype=object))
    return make_profiles(X, obs, var, "generated cells")


def write_cells(name: str, folder: Path, stem: str) -> Path:
    """Write cells for a shipped model as .h5ad."""
    cells = make_cells(load(SHIPPED / f"{name}.optirank"))
    return write_h5ad(
        cells, folder / f"{stem}.h5ad", {"note": f"generated from the model {name}"}
    )
