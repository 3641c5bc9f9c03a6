"""A small model trained on the generated example, shared by the tests of files and
figures.
"""

from __future__ import annotations

import functools

import anndata
import numpy as np
import pandas as pd
from anndata import AnnData
from scipy.sparse import csr_matrix

from optirank.datasets.example import make_example
from optirank.model import Model
from optirank.verbs.training import TrainingOptions, TrainingResult
from profiles import take_genes, train

N_QUERY = 60
LABEL = "cell_type"


@functools.cache
def _pair() -> tuple[AnnData, AnnData]:
    reference, query = make_example(150, N_QUERY)
    return take_genes(reference, reference.var_names[:200]), query


@functools.cache
def _result() -> TrainingResult:
    return train(
        _pair()[0], TrainingOptions(label=LABEL, n_genes=30, n_jobs=1, name="example")
    )


@functools.cache
def telling_pair() -> tuple[AnnData, AnnData]:
    """A reference, and a query on another platform, in which most genes differ
    between three types, as in real tissues.
    """
    rng = np.random.default_rng(0)
    genes = np.array([f"GENE{j}" for j in range(300)], dtype=object)
    types = np.array(["a", "b", "c"], dtype=object)
    levels = rng.normal(1.0, 1.0, 300) + rng.normal(0.0, 0.5, (3, 300))
    pair = []
    for name, n_samples, shift in (("reference", 150, 0.0), ("query", N_QUERY, 0.7)):
        codes = np.arange(n_samples) % 3
        effects = rng.normal(0.0, shift, 300) + rng.normal(0.0, 0.5, (n_samples, 300))
        X = csr_matrix(rng.poisson(np.exp(levels[codes] + effects)).astype(np.float32))
        samples = np.array([f"{name}{k}" for k in range(n_samples)], dtype=object)
        obs = pd.DataFrame({LABEL: types[codes]}, index=samples)
        pair.append(AnnData(X, obs, pd.DataFrame(index=genes)))
    return pair[0], pair[1]


@functools.cache
def telling_model() -> Model:
    """The model of 30 genes of that reference: it stores further genes."""
    options = TrainingOptions(label=LABEL, n_genes=30, n_jobs=1, name="telling")
    return train(telling_pair()[0], options).model


def training_result() -> TrainingResult:
    """What the training of the example gave back; shared, so not to be changed."""
    return _result()


def reference_set() -> AnnData:
    """The labelled profiles that the model was trained on."""
    return _pair()[0]


def trained_example() -> tuple[Model, AnnData]:
    """The model, and the query; the query lacks a few genes of the reference."""
    return _result().model, _pair()[1]


def as_anndata(data: AnnData, storage: str = "csr") -> anndata.AnnData:
    """The data as an AnnData, with a column of clusters and one of other gene names."""
    X = {"csr": data.X.tocsr, "csc": data.X.tocsc, "dense": data.X.toarray}[storage]()
    obs = data.obs.astype("category")
    obs["leiden"] = pd.Categorical([str(k % 4) for k in range(len(obs))])
    var = pd.DataFrame(
        {"code": [f"code{j}" for j in range(data.n_vars)]}, index=data.var_names
    )
    return anndata.AnnData(X, obs=obs, var=var, layers={"double": X * 2})


def panel_names(model: Model) -> list[str]:
    """The genes that the model needs."""
    return model.genes.tolist()
