"""Families: chains of neighbouring settings end where fits one by one do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from optirank import OptirankClassifier
from optirank.estimators.search import Family
from optirank.ranks.orders import order_samples
from optirank.solver.problem import sample_weights
from optirank_lab.benchmark.families import (
    AnovaFamily,
    FixedReferenceFamily,
    LogisticFamily,
    RankFamily,
    Samples,
    centred_values,
)

N, D = 80, 14
L1S, L2S = (0.0, 1e-3, 1e-2), (0.0, 1e-3, 1e-1)


@pytest.fixture(scope="module")
def problem():
    """Samples, labels and weights; two data sets, in the second of which some genes are
    shifted.
    """
    rng = np.random.default_rng(0)
    y = (np.arange(N) % 2).astype(float)
    X = rng.normal(size=(N, D)) + np.where(y[:, None] == 1, rng.normal(size=D), 0.0)
    dataset = np.repeat(["a", "b"], N // 2)
    X[N // 2 :, :5] += 3.0
    return Samples(X, order_samples(X), dataset), y, sample_weights(y)


CONVEX = {
    "rank-lr": RankFamily(L1S, L2S),
    "ANrank-lr": AnovaFamily(L1S, L2S, n_references=(3, 0.5, 1.0)),
    "lr": LogisticFamily(L1S, L2S),
    "optirank, full ranks": Family(L1S, L2S, n_references=(1.0,)),
    "a given reference set": FixedReferenceFamily(L1S, L2S, reference=(1, 4, 6)),
}


def of(family, samples):
    """The samples as a family takes them."""
    return samples.orders if type(family) is Family else samples


def fit_all(family, problem):
    models = {}
    samples, y, v = problem
    samples = of(family, samples)
    for head, penalties in family.chains(samples.n_genes).items():
        fits = family.fit_chain(samples, y, v, head, penalties)
        models |= {(*head, *pair): model for pair, model in fits.items()}
    return models


def key_of(family, setting):
    return (*family.head(setting, D), setting["l1"], setting["l2"])


@pytest.mark.parametrize("family", CONVEX.values(), ids=CONVEX)
def test_a_warm_chain_agrees_with_cold_fits_and_every_setting_has_its_model(
    problem, family
):
    samples, y, v = problem
    warm, cold = (
        fit_all(replace(family, warm_start=w), problem) for w in (True, False)
    )
    for params in family.settings():
        key = key_of(family, params)
        model = warm[key]
        assert model.converged
        assert model.objective == pytest.approx(cold[key].objective, rel=1e-5, abs=1e-5)
        z, w, l1 = family.scores(of(family, samples), model), model.w, params["l1"]
        penalty = (
            l1 * np.abs(w).sum()
            + (params["l2"] if l1 or params["l2"] else 1e-7) * w @ w
        )
        loss = v @ (np.logaddexp(0, z) - y * z)
        assert model.objective == pytest.approx(loss + penalty, abs=1e-6)


def test_a_warm_chain_of_optirank_is_about_as_good_as_cold_fits_of_the_estimator(
    problem,
):
    family = Family(L1S, L2S, n_references=(2, 5))
    warm, cold = (
        fit_all(replace(family, warm_start=w), problem) for w in (True, False)
    )
    ratios = np.array([warm[key].objective / cold[key].objective for key in warm])
    assert ratios.mean() < 1.01  # either may find the lower minimum
    assert np.median(ratios) == pytest.approx(1.0, abs=1e-3)
    for (size, *_), model in warm.items():
        assert set(np.unique(model.gamma)) == {0.0, 1.0}
        assert model.gamma.sum() == size
    alone = OptirankClassifier(5, 1e-3, 1e-1).fit(problem[0].X, problem[1])
    np.testing.assert_array_equal(cold[5, 1e-3, 1e-1].w, alone.coef_[0])


@pytest.mark.parametrize("warm_start", [True, False])
def test_weights_without_ridge_are_found_with_more_genes_than_samples(warm_start):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 60)), (np.arange(24) % 2).astype(float)
    problem = Samples(X, order_samples(X)), y, sample_weights(y)
    for family in (RankFamily, Family):
        models = fit_all(family((1e-4, 1e-2), (0.0,), warm_start=warm_start), problem)
        assert all(np.isfinite(model.objective) for model in models.values())


def test_sizes_that_are_the_same_number_of_genes_are_fitted_once(problem):
    family = Family((0.0,), (1e-3,), n_references=(0.005, 0.01, 1, 0.1, 1.0, 14))
    assert list(family.chains(D)) == [(1,), (14,)]
    assert len(family.settings()) == 6
    keys = {key_of(family, setting) for setting in family.settings()}
    assert keys == fit_all(family, problem).keys()


def test_the_genes_of_a_model(problem):
    (anova,) = fit_all(
        AnovaFamily((1e-2,), (1e-3,), n_references=(3,)), problem
    ).values()
    np.testing.assert_array_equal(anova.genes, (anova.w != 0) | (anova.gamma > 0))
    assert not anova.gamma[
        :5
    ].any()  # genes that are shifted between the sets are no reference
    (rank,) = fit_all(RankFamily((1e-2,), (1e-3,)), problem).values()
    assert rank.genes.all()
    (values,) = fit_all(LogisticFamily((5e-2,), (1e-3,)), problem).values()
    np.testing.assert_array_equal(values.genes, values.w != 0)
    assert not values.genes.all()


def test_anova_takes_all_genes_where_there_is_one_data_set(problem):
    samples, y, v = problem
    anova = AnovaFamily((0.0,), (1e-3,), n_references=(3,))
    (model,) = fit_all(anova, (Samples(samples.X, samples.orders), y, v)).values()
    assert model.gamma.all()


def test_anova_learns_stable_genes_from_an_auxiliary_set(problem):
    samples, y, v = problem
    half = np.arange(N // 2)
    first = samples.take(half)
    other = samples.X[N // 2 :], y[N // 2 :]
    anova = AnovaFamily((0.0,), (1e-3,), n_references=(3,), auxiliary=other)
    alone = Samples(first.X, first.orders), y[half], v[half] * 2
    (model,) = fit_all(anova, alone).values()
    assert model.gamma.sum() == 3
    assert not model.gamma[:5].any()


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1e-3), (5e-3, 1e-3)])
def test_lr_is_scikit_learns_with_the_documented_penalties(problem, l1, l2):
    samples, y, _ = problem
    (model,) = fit_all(LogisticFamily((l1,), (l2,), tol=1e-8), problem).values()
    total = 2 * l2 + l1
    theirs = LogisticRegression(
        C=1 / (N * total),
        l1_ratio=l1 / total,
        solver="saga",
        tol=1e-8,
        max_iter=100_000,
    ).fit(samples.X, y)
    np.testing.assert_allclose(model.w, theirs.coef_[0], atol=1e-3)
    assert model.b == pytest.approx(theirs.intercept_[0], abs=1e-3)


def test_lr_is_the_same_on_sparse_values(problem):
    samples, y, v = problem
    X = np.where(samples.X > 0.5, samples.X, 0.0)
    family = LogisticFamily(L1S, L2S[1:])
    dense, thin = (
        fit_all(family, (Samples(one), y, v)) for one in (X, sparse.csr_array(X))
    )
    for key, model in dense.items():
        assert thin[key].objective == pytest.approx(model.objective, rel=1e-5)


def test_samples_are_taken_in_all_their_forms(problem):
    samples = problem[0]
    rows = np.array([3, 1, 70])
    part = samples.take(rows)
    np.testing.assert_array_equal(part.X, samples.X[rows])
    np.testing.assert_array_equal(part.dataset, ["a", "a", "b"])
    w, gamma = np.arange(D, dtype=float), np.ones(D)
    expected = samples.orders.scores(w, gamma)[rows]
    np.testing.assert_allclose(part.orders.scores(w, gamma), expected)
    assert Samples(orders=samples.orders).take(rows).X is None


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_values_are_centred_for_lr(problem, container):
    X = problem[0].X
    v = np.random.default_rng(0).dirichlet(np.ones(N))
    matrix = centred_values(container(X), v)
    in_full = np.column_stack([matrix.dot(unit) for unit in np.eye(D)])
    np.testing.assert_allclose(in_full, X - v @ X, atol=1e-5)
