"""CellTypist as its guide advises: log1p of counts per 10,000, `train`, `annotate`, best match.

Majority voting stays off: it uses the other samples of the query. ``feature_selection`` stays off
as by default.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version

from harness import run
from scales import log1p_scaled


class CellTypist:
    """The tool, as `harness.run` needs it."""

    def __init__(self, job: dict) -> None:
        # The package makes this folder, for models to download, when it is imported.
        os.environ["CELLTYPIST_FOLDER"] = os.path.join(sys.argv[1], "celltypist")
        import celltypist
        import sklearn

        self.version = f"celltypist {version('celltypist')}"
        if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
            raise ImportError(
                f"CellTypist cannot train with scikit-learn {sklearn.__version__}: make an "
                "environment with pip install celltypist 'scikit-learn<1.8' and name its Python "
                "by --peer celltypist=PYTHON"
            )
        celltypist.logger.set_level(40)  # errors only
        self.package = celltypist

    def fit(self, train, seed: int) -> None:
        """Train with the defaults; nothing is random."""
        self.model = self.package.train(_table(train), labels=train.labels)

    def n_genes(self) -> int:
        """All genes that are seen in a training sample."""
        return len(self.model.features)

    def predict(self, part) -> list[str]:
        """The class with the largest score; every sample gets one."""
        found = self.package.annotate(_table(part), model=self.model)
        return [str(one) for one in found.predicted_labels["predicted_labels"]]


def _table(part):
    import anndata
    import pandas as pd

    X = log1p_scaled(part)
    obs = pd.DataFrame(index=[f"s{k}" for k in range(X.shape[0])])
    return anndata.AnnData(X, obs, pd.DataFrame(index=list(part.genes)))


if __name__ == "__main__":
    run(CellTypist)
