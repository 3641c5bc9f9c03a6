"""pySingleCellNet as its guide advises: normalise, choose variable genes, train, classify.

The settings are those of its quickstart: 2000 variable genes by the flavour "seurat_v3" on counts
(by scanpy's default on other values, and where that flavour fails) and 30 components. Genes are
numbered, because the package writes a pair as "gene_gene" and fails on names that contain "_".
"""

from __future__ import annotations

import random
import warnings
from importlib.metadata import version

import numpy as np
from harness import run
from scales import linear

N_VARIABLE = 2000
N_COMPONENTS = 30
RANDOM_CLASS = "rand"  # of shuffled profiles


class PySingleCellNet:
    """The tool, as `harness.run` needs it."""

    def __init__(self, job: dict) -> None:
        import pySingleCellNet

        warnings.filterwarnings("ignore")  # of pandas, several per sample
        self.version = f"pySingleCellNet {version('pySingleCellNet')}"
        self.package = pySingleCellNet

    def fit(self, train, seed: int) -> None:
        """Train with the settings of the quickstart."""
        import scanpy as sc

        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  the package draws from this generator
        data = _table(linear(train), len(train.genes))
        data.obs["label"] = np.asarray(train.labels, dtype=str)
        data.obs["label"] = data.obs["label"].astype("category")
        n_variable = min(N_VARIABLE, data.n_vars)
        data.layers["counts"] = data.X.copy()
        sc.pp.normalize_total(data)
        sc.pp.log1p(data)
        _choose_variable(data, n_variable, train.kind == "counts")
        components = min(N_COMPONENTS, data.n_obs - 1, n_variable - 1)
        self.model = self.package.tl.train_classifier(data, "label", n_comps=components)

    def n_genes(self) -> int:
        """The genes of the pairs."""
        return len({gene for pair in self.model["topPairs"] for gene in str(pair).split("_")})

    def predict(self, part) -> list[str | None]:
        """The class with the most votes; none where that is the class of shuffled profiles."""
        query = _table(part.X, len(part.genes))
        self.package.tl.classify_anndata(query, self.model)
        found = [str(one) for one in query.obs["SCN_class_argmax"]]
        return [None if one == RANDOM_CLASS else one for one in found]


def _choose_variable(data, n: int, counts: bool) -> None:
    """Mark the variable genes; scanpy's default where "seurat_v3" does not apply or fails."""
    import scanpy as sc

    if counts:
        try:
            sc.pp.highly_variable_genes(data, n_top_genes=n, flavor="seurat_v3", layer="counts")
            return
        except ValueError:  # its local regression is singular on some sparse counts
            pass
    sc.pp.highly_variable_genes(data, n_top_genes=n)


def _table(X, n_genes: int):
    import anndata
    import pandas as pd

    obs = pd.DataFrame(index=[f"s{k}" for k in range(X.shape[0])])
    return anndata.AnnData(X, obs, pd.DataFrame(index=[f"g{k}" for k in range(n_genes)]))


if __name__ == "__main__":
    run(PySingleCellNet)
