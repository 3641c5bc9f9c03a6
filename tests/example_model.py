"""A small model trained on the generated example, shared by the tests of files and
figures.
"""

from __future__ import annotations

import functools

import anndata
import pandas as pd
from anndata import AnnData

from optirank.datasets.example import make_example
from optirank.model import Model
from optirank.workflow.train import TrainingOptions, TrainingResult, train
from profiles import take_genes

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
