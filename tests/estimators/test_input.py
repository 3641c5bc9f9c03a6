"""What estimators take as X: frames are matched by their names, AnnData is refused
at once.
"""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd
import pytest

from optirank import (
    OptirankClassifier,
    OptirankClassifierCV,
    PanelClassifier,
    RankLogisticRegression,
)

ESTIMATORS = [
    OptirankClassifier(3, l1=2e-2),
    OptirankClassifierCV((3,), (2e-2,), (1e-3,), cv=2),
    PanelClassifier(5),
    RankLogisticRegression(l1=1e-2),
]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 12))
    X[:, :4] += 2 * y[:, None]
    return pd.DataFrame(X, columns=[f"g{k}" for k in range(12)]), y


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_anndata_is_refused_at_once_and_the_error_names_what_takes_one(
    estimator, frame
):
    X, y = frame
    adata = anndata.AnnData(X.to_numpy())
    with pytest.raises(TypeError, match=r"optirank\.tl\.train"):
        estimator.fit(adata, y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_columns_of_a_frame_are_matched_by_their_names(estimator, frame):
    X, y = frame
    model = estimator.fit(X, y)
    expected = model.decision_function(X)
    proba = model.predict_proba(X)
    mixed = X.assign(other=1.0)[["other", *X.columns[::-1]]]
    np.testing.assert_allclose(model.decision_function(mixed), expected)
    np.testing.assert_allclose(model.predict_proba(mixed), proba)
    needed = X.loc[:, model.genes_]
    np.testing.assert_allclose(model.decision_function(needed), expected)
    np.testing.assert_array_equal(model.predict(needed), model.predict(X))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_frame_that_lacks_a_needed_gene_or_has_it_twice_is_refused(estimator, frame):
    X, y = frame
    model = estimator.fit(X, y)
    gene = X.columns[model.genes_][0]
    with pytest.raises(ValueError, match=f"X lacks 1 of the .* needs: '{gene}'"):
        model.predict(X.drop(columns=gene))
    twice = pd.concat([X, X[[gene]]], axis=1)
    with pytest.raises(ValueError, match=f"X has 2 columns named '{gene}'"):
        model.predict(twice)
