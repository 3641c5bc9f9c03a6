"""A small model trained on the generated example, shared by the tests of files and figures."""

from __future__ import annotations

import copy
import functools

import anndata
import numpy as np
import pandas as pd

from optirank import OptirankClassifier
from optirank.datasets import ExpressionData
from optirank.datasets.example import make_example
from optirank.model import Predictor, gather_experience, remember_training

N_QUERY = 60


@functools.cache
def _trained() -> tuple[OptirankClassifier, ExpressionData]:
    reference, query = make_example(90, N_QUERY)
    y = reference.labels("cell_type").to_numpy()
    model = OptirankClassifier(n_reference=12, l1=3e-2, l2=1e-2, tol=1e-3).fit(reference.X, y)
    remember_training(model, reference.X, y, genes=reference.gene_names, source="example")
    return model, query


def trained_example() -> tuple[OptirankClassifier, ExpressionData]:
    """A copy of the model, and the query; the query lacks a few genes of the reference."""
    model, query = _trained()
    return copy.deepcopy(model), query


def with_held_out(model: OptirankClassifier) -> OptirankClassifier:
    """The model as if held-out samples of its training were known: half of the unsure are wrong."""
    confidence = np.linspace(0.2, 1.0, 81)
    correct = (confidence > 0.6) | (np.arange(81) % 2 == 0)
    model.training_summary_["held_out"] = {"confidence": confidence, "correct": correct}
    return model


def with_experience(model: OptirankClassifier, shift: float = 0.0) -> OptirankClassifier:
    """The model as if held-out samples had the scores of its training samples.

    ``shift`` moves the scores of the first class, relative to their separation, as another platform
    would: what held-out samples had is then not what a query has.
    """
    reference, _ = make_example(90, N_QUERY)
    y = reference.labels("cell_type").to_numpy()
    scores = Predictor(model, reference.gene_names).scores(reference.X)
    model.experience_ = gather_experience(model, reference.X, y, scores, np.arange(len(y)))
    separation = model.experience_.inside[0] - model.experience_.outside[0]
    model.intercept_ = model.intercept_ + shift * separation * (np.arange(len(model.coef_)) == 0)
    return model


def as_anndata(data: ExpressionData, storage: str = "csr") -> anndata.AnnData:
    """The data as an AnnData, with a column of clusters and one of other gene names."""
    X = {"csr": data.X.tocsr, "csc": data.X.tocsc, "dense": data.X.toarray}[storage]()
    obs = data.obs.astype("category")
    obs["leiden"] = pd.Categorical([str(k % 4) for k in range(len(obs))])
    var = pd.DataFrame({"code": [f"code{j}" for j in range(data.n_genes)]}, index=data.gene_names)
    return anndata.AnnData(X, obs=obs, var=var, layers={"double": X * 2})


def panel_names(model: OptirankClassifier) -> list[str]:
    """The genes that the model needs."""
    return model.feature_names_in_[model.genes_].tolist()
