"""A script as a user writes it over the public names: it is type-checked and run."""

from __future__ import annotations

from pathlib import Path

import anndata as ad
import numpy as np
import pandas as pd
from numpy.typing import NDArray

import optirank
from optirank import Model, OptirankClassifier, PanelClassifier, load, save
from optirank.datasets import make_unstable_ranks


def main(folder: Path) -> NDArray:
    """Fit, save, load and label; the labels."""
    data = make_unstable_ranks(n_samples=200, random_state=0)
    names = np.array([f"gene{column}" for column in range(data.X.shape[1])])
    frame = pd.DataFrame(data.X, columns=names)
    labels = np.where(data.y == 1, "ill", "healthy")
    panel = PanelClassifier(n_genes=20).fit(frame, labels)
    classes: NDArray = panel.classes_
    paper = OptirankClassifier(n_reference=0.2, l2=1e-3).fit(frame, labels)
    print(classes, paper.reference_.sum(), panel.predict_proba(frame).shape)

    model: Model = Model.from_estimator(panel, genes=names)
    save(model, folder / "panel.optirank")
    smaller: Model = load(folder / "panel.optirank").smaller(10)
    print(smaller.genes[:3], smaller.card.method, smaller.table().head(3))

    obs = pd.DataFrame({"state": labels}, index=np.arange(200).astype(str))
    adata = ad.AnnData(data.X, obs=obs, var=pd.DataFrame(index=names))
    trained = optirank.tl.train(adata, "state", n_genes=20)
    optirank.tl.annotate(adata, trained)
    print(adata.obs["optirank"].value_counts())
    return smaller.predict(frame)
