"""SingleCellNet finds the pairs that tell the classes apart, and hides its
random class.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from optirank_lab import SingleCellNetClassifier
from optirank_lab.baselines.singlecellnet import pair_correlations


def counts_with_classes(n=150, d=40, n_classes=2, seed=0):
    """Counts in which class k raises genes 2k and lowers genes 2k + 1, beside noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rate = np.full((n, d), 10.0)
    for k in range(n_classes):
        rate[y == k, 2 * k] = 60
        rate[y == k, 2 * k + 1] = 1
    depth = rng.uniform(0.5, 3, size=(n, 1))
    return rng.poisson(rate * depth), y


def small(**settings):
    return SingleCellNetClassifier(**{"n_trees": 30, "random_state": 0, **settings})


@pytest.mark.parametrize("levels", [3, 1000])
def test_pair_correlations_agree_with_the_explicit_pair_matrix(levels):
    rng = np.random.default_rng(levels)
    values, positive = rng.integers(levels, size=(50, 7)), rng.random(50) < 0.3
    values[:, 6] = levels + 1
    correlation = pair_correlations(values, positive)
    for a in range(7):
        for b in range(7):
            feature = (values[:, a] > values[:, b]).astype(float)
            if feature.std() == 0:
                assert correlation[a, b] == -np.inf
            else:
                expected = np.corrcoef(feature, positive)[0, 1]
                np.testing.assert_allclose(correlation[a, b], expected, atol=1e-12)


def test_a_pair_that_separates_the_classes_is_found_where_no_gene_does():
    rng = np.random.default_rng(2)
    n, d = 200, 30
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) + rng.normal(scale=3, size=(n, 1)) + 50
    X[:, 5] = X[:, 4] + np.where(y == 1, 0.5, -0.5)
    model = small(n_top_pairs=1).fit(X, y)
    assert model.pairs_.tolist() == [[5, 4]]
    assert model.score(X, y) == 1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_are_told_apart_on_new_samples_of_another_scale(n_classes):
    X, y = counts_with_classes(n_classes=n_classes)
    X_new, y_new = counts_with_classes(n_classes=n_classes, seed=1)
    names = np.array(["a", "b", "c", "d"])
    model = small(n_top_genes=4, n_top_pairs=10).fit(X, names[y])
    assert (
        balanced_accuracy_score(names[y_new], model.predict(np.log1p(X_new * 7))) > 0.97
    )
    assert len(model.pairs_) <= 10 * (1 if n_classes == 2 else n_classes)


def test_the_random_class_is_hidden():
    X, y = counts_with_classes()
    model = small().fit(X, y)
    assert model.classes_.tolist() == [0, 1]
    assert model.forest_.classes_.tolist() == [0, 1, 2]
    assert small(n_random=0).fit(X, y).forest_.classes_.tolist() == [0, 1]
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    raw = model.forest_.predict_proba(model._pair_features(X))[:, :2]
    np.testing.assert_allclose(proba, raw / raw.sum(axis=1, keepdims=True))
    assert set(model.predict(X)) <= {0, 1}


def test_only_the_genes_of_the_pairs_are_used_to_predict():
    X, y = counts_with_classes()
    model = small(n_top_genes=3, n_top_pairs=5).fit(X, y)
    assert model.genes_.sum() < X.shape[1]
    np.testing.assert_array_equal(np.flatnonzero(model.genes_), np.unique(model.pairs_))
    changed = X.copy()
    changed[:, ~model.genes_] = 999
    np.testing.assert_array_equal(model.predict_proba(changed), model.predict_proba(X))


def test_the_same_seed_gives_the_same_model_and_gene_names_are_kept():
    X, y = counts_with_classes()
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(X.shape[1])])
    model = small().fit(frame, y)
    again = clone(model).fit(frame, y)
    np.testing.assert_array_equal(
        model.predict_proba(frame), again.predict_proba(frame)
    )
    assert model.feature_names_in_[0] == "g0"


def test_what_cannot_be_fitted_is_refused_with_the_remedy():
    X, y = counts_with_classes()
    with pytest.raises(ValueError, match="one class only"):
        small().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match=r"1 feature\(s\), and a pair needs 2"):
        small().fit(X[:, :1], y)
    lone = np.where(np.arange(5) == 0, X[:, :5], 3.5)
    with pytest.raises(ValueError, match="1 of the 5 genes varies"):
        small().fit(lone, y)
    ladder = np.linspace(0, 1, len(X))[:, None] + np.arange(1, 6) * 10
    with pytest.raises(ValueError, match="changes its order"):
        small().fit(ladder, y)
    with pytest.raises(ValueError, match=r"'n_trees' parameter of .* must be an int"):
        small(n_trees=0).fit(X, y)


@pytest.mark.slow
def test_pancreas_cells_of_another_platform_are_typed(data_folder):
    anndata = pytest.importorskip("anndata")
    train, test = (
        anndata.read_h5ad(data_folder / f"{name}.h5ad")
        for name in ("baron_h1", "segerstolpe_1000g")
    )
    genes = train.var_names.intersection(test.var_names)
    train = train[train.obs["cell_type"].isin(test.obs["cell_type"].unique()), genes]
    model = SingleCellNetClassifier(n_trees=300, random_state=0)
    model.fit(train.X, train.obs["cell_type"].astype(str))
    predicted = model.predict(test[:, genes].X)
    assert balanced_accuracy_score(test.obs["cell_type"].astype(str), predicted) > 0.9
