"""SingleR (the package singler) as its guide advises: build the reference, then classify.

The reference is log2(1 + value) with equal sums per sample, or logarithms as they are. Queries are
given as measured, because only the order of the genes is used. The genes of the query are named.
The markers are the default ones.
"""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
import scipy.sparse as sp
from harness import run
from scales import log1p_scaled


class SingleR:
    """The tool, as `harness.run` needs it."""

    def __init__(self, job: dict) -> None:
        import singler

        self.version = f"singler {version('singler')}"
        self.package = singler

    def fit(self, train, seed: int) -> None:
        """Choose the markers and index the reference; nothing is random."""
        X = train.X if train.kind == "log" else log1p_scaled(train, None) / np.log(2.0)
        self.built = self.package.train_single(
            _genes_first(X),
            ref_labels=[str(one) for one in train.labels],
            ref_features=list(train.genes),
            test_features=list(train.genes),
        )

    def n_genes(self) -> int:
        """The markers of all pairs of classes."""
        return int(self.built.num_markers())

    def predict(self, part) -> list[str]:
        """The best label after fine-tuning; every sample gets one."""
        found = self.package.classify_single(_genes_first(part.X), self.built)
        return [str(one) for one in found["best"]]


def _genes_first(X) -> sp.csc_matrix:
    found = sp.csc_matrix(X.T, dtype=np.float64)
    found.sort_indices()  # the package refuses others
    return found


if __name__ == "__main__":
    run(SingleR)
