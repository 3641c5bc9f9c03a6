"""The baselines follow scikit-learn's contract, and optirank's own habits."""

from __future__ import annotations

import inspect

import anndata
import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank import Model, save
from optirank.datasets import make_unstable_ranks
from optirank_lab import (
    AnovaRankLogisticRegression,
    SingleCellNetClassifier,
    TopScoringPairsClassifier,
)


@pytest.mark.filterwarnings("ignore:one data set only:UserWarning")
@parametrize_with_checks(
    [
        AnovaRankLogisticRegression(),
        SingleCellNetClassifier(n_trees=10, random_state=0),
        TopScoringPairsClassifier(),
        TopScoringPairsClassifier(3, max_genes=2),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_the_signature_of_anrank_lr_is_as_documented():
    parameters = inspect.signature(AnovaRankLogisticRegression).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "n_reference": 0.2,
        "l1": 1e-3,
        "l2": 1e-3,
        "ties": "average",
        "tol": 1e-5,
        "max_iter": 10_000,
        "class_weight": "balanced",
        "n_jobs": None,
        "verbose": 0,
    }


def test_an_anndata_is_refused_at_once():
    adata = anndata.AnnData(np.ones((6, 3)))
    with pytest.raises(TypeError, match=r"optirank\.tl\.train"):
        TopScoringPairsClassifier().fit(adata, [0, 1] * 3)


@pytest.mark.parametrize("kind", [SingleCellNetClassifier, TopScoringPairsClassifier])
def test_classifiers_without_weights_on_ranks_are_not_saved(kind, tmp_path):
    data = make_unstable_ranks(40, 16, 6, random_state=0)
    fitted = kind().fit(np.exp(data.X), data.y)
    words = rf"a {kind.__name__} has no weights.*PanelClassifier"
    with pytest.raises(TypeError, match=words):
        save(fitted, tmp_path / "m")
    with pytest.raises(TypeError, match=f"{kind.__name__} has no weights"):
        Model.from_estimator(fitted)
