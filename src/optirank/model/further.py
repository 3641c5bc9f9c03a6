"""What a model knows of genes outside its panel, by which labels are checked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optirank.io.genes import match_genes


@dataclass(frozen=True, eq=False)
class FurtherGenes:
    """Mean ranks of each class over genes outside the panel.

    The genes are ranked among themselves, from -1/2 to 1/2. No score depends on them:
    `optirank.panel.further` compares them with those of a query.
    """

    genes: NDArray[np.object_]  # (genes,): names
    means: NDArray[np.float16]  # (classes, genes)

    def __post_init__(self) -> None:
        if self.means.ndim != 2 or self.means.shape[1] != len(self.genes):
            raise ValueError(
                f"mean ranks of shape {self.means.shape} do not fit the "
                f"{len(self.genes)} further genes"
            )
        if not self.means.size or not (np.abs(self.means) <= 0.5).all():
            raise ValueError("the mean ranks of further genes are not all within 1/2")

    def of_classes(self, kept: NDArray[np.intp]) -> FurtherGenes:
        """Those of some of the classes."""
        return FurtherGenes(self.genes, self.means[kept])

    def found_among(
        self, names: Iterable[str], used: Collection[str]
    ) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Columns of the genes that some data have, and the mean ranks of these.

        ``names`` are the genes of the data, ``used`` those of the panel that labels
        them, which must have no part: a larger panel than the model's own may have
        some of the further genes.
        """
        columns = match_genes(self.genes.tolist(), names).columns
        there = columns >= 0
        there &= ~np.isin(self.genes, list(used))
        return columns[there], self.means[:, there].astype(np.float64)
