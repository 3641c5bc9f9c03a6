"""Ordered pairs of real data sets that differ by platform, for the studies of transfer.

Real sets: OPTIRANK_DATA, else ../shared/data beside the project. Data sets that share cells
(cepo_* with baron_h1 and segerstolpe_1000g) are not paired.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from optirank.datasets import load_dataset
from optirank.datasets.data import ExpressionData

FOLDER = Path(
    os.environ.get("OPTIRANK_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
_TUMOURS = "tcga_breast_crc"  # breast of one set and colorectal of another
_BOTH_WAYS = {
    "pancreas": (
        ("baron_h1", "segerstolpe_1000g"),
        ("baron_h1", "xin_980g"),
        ("segerstolpe_1000g", "xin_980g"),
        ("cepo_baron_betaductal", "cepo_segerstolpe_betaductal"),
        ("cepo_baron_betaductal", "cepo_lawlor_betaductal"),
        ("cepo_segerstolpe_betaductal", "cepo_lawlor_betaductal"),
    ),
    "mouse immune cells": (("tm_10x_immune", "zilionis_mouse_immune"),),
    "blood": (("kang_pbmc_ctrl", "kang_pbmc_stim"),),
    "interneurons": (("tasic_interneurons", "zeisel_interneurons"),),
    "leukaemia": (("golub_leukemia", "armstrong_leukemia"),),
    "breast cancer": (("nki_er", "vdx_er"), ("vdx_er", "expo_er"), ("nki_er", "expo_er")),
    "bladder cancer": (("bladder_gse89", "bladder_gse1827"),),
}
BULK = ("leukaemia", "breast cancer", "bladder cancer", "tumours")


@dataclass(frozen=True)
class Pair:
    """What to train on and what to label; pairs of one tissue share data sets."""

    train: str
    test: str
    tissue: str

    @property
    def bulk(self) -> bool:
        """Whether samples are of many cells."""
        return self.tissue in BULK


def pairs() -> list[Pair]:
    """Every ordered pair."""
    found = [
        Pair(*order, tissue)
        for tissue, sets in _BOTH_WAYS.items()
        for one, other in sets
        for order in ((one, other), (other, one))
    ]
    return [*found, Pair(_TUMOURS, "chowdary_breast_colon", "tumours")]


@cache
def read(name: str) -> ExpressionData:
    """A data set."""
    if name != _TUMOURS:
        return load_dataset(name, data=str(FOLDER))
    tumours, colon = (read(one) for one in ("tcga_tumours9", "tcga_crc"))
    genes = sorted({*tumours.gene_names} & {*colon.gene_names})
    breast = tumours.labels("cell_type").to_numpy() == "breast"
    parts = [tumours.select_samples(breast).select_genes(genes), colon.select_genes(genes)]
    obs = pd.concat([part.obs[["cell_type"]].astype(str) for part in parts])
    X = np.vstack([part.X.toarray() if sparse.issparse(part.X) else part.X for part in parts])
    names = np.concatenate([part.sample_names for part in parts])
    return ExpressionData(X, parts[0].gene_names, names, obs, name)


def both_sides(pair: Pair) -> tuple[ExpressionData, ExpressionData]:
    """Training set and query over their common genes and classes."""
    sets = [read(name) for name in (pair.train, pair.test)]
    genes = sorted(set.intersection(*({*one.gene_names} for one in sets)))
    labels = [one.labels("cell_type").astype(str).to_numpy() for one in sets]
    common = np.intersect1d(*labels)
    classes = [one for one in common if (labels[0] == one).sum() >= 3]
    kept = [np.isin(label, classes) for label in labels]
    train, test = (
        one.select_genes(genes).select_samples(keep) for one, keep in zip(sets, kept, strict=True)
    )
    return train, test


def labels_of(data: ExpressionData) -> np.ndarray:
    """The classes of the samples."""
    return data.labels("cell_type").astype(str).to_numpy()
