"""Families: chains of neighbouring settings end where fits one by one do."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from optirank.ranks.orders import order_samples
from optirank.solver.problem import sample_weights
from optirank.tuning.families import (
    AnovaFamily,
    FixedReferenceFamily,
    LogisticFamily,
    OptirankFamily,
    RankFamily,
)
from optirank.tuning.family import Chain, Samples

N, D = 80, 14
L1S, L2S = (0.0, 1e-3, 1e-2), (0.0, 1e-3, 1e-1)


@pytest.fixture(scope="module")
def problem():
    """Samples, labels and weights; two data sets, in the second of which some genes are shifted."""
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
    "optirank, full ranks": OptirankFamily(L1S, L2S, n_references=(1.0,)),
}


def models_of(family, setting, models):
    return [models[key] for key in family.keys_of(setting, models, D)]


def fit_all(family, problem):
    models = {}
    for chain in family.chains(D):
        models.update(family.fit_chain(*problem, chain))
    return models


@pytest.mark.parametrize("family", CONVEX.values(), ids=CONVEX)
def test_a_warm_chain_agrees_with_cold_fits(problem, family):
    warm, cold = (fit_all(replace(family, warm_start=w), problem) for w in (True, False))
    assert warm.keys() == cold.keys()
    for key, model in warm.items():
        assert model.converged
        assert model.objective == pytest.approx(cold[key].objective, rel=1e-5, abs=1e-5)


def test_a_warm_chain_of_optirank_is_about_as_good_as_cold_fits(problem):
    family = OptirankFamily(L1S, L2S, n_references=(2, 5), sides=("rising", "falling"))
    warm, cold = (fit_all(replace(family, warm_start=w), problem) for w in (True, False))
    assert warm.keys() == cold.keys()
    ratios = np.array([warm[key].objective / cold[key].objective for key in warm])
    assert ratios.mean() < 1.01  # either may find the lower minimum
    assert np.median(ratios) == pytest.approx(1.0, abs=1e-3)
    for (size, *_), model in warm.items():
        assert set(np.unique(model.gamma)) == {0.0, 1.0}
        assert model.gamma.sum() == size


def test_the_best_side_is_the_better_of_both(problem):
    """On small problems, where both sides are carried to the end."""
    grid = {"n_references": (2, 5), "l1s": L1S, "l2s": L2S}
    best, both = (fit_all(OptirankFamily(**grid, sides=(s,)), problem) for s in ("best", "both"))
    for (size, _, l1, l2), model in best.items():
        pair = [both[size, side, l1, l2].objective for side in ("rising", "falling")]
        assert model.objective == pytest.approx(min(pair), rel=1e-3)


@pytest.mark.parametrize("warm_start", [True, False])
def test_weights_without_ridge_are_found_with_more_genes_than_samples(warm_start):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 60)), (np.arange(24) % 2).astype(float)
    problem = Samples(X, order_samples(X)), y, sample_weights(y)
    for family in (RankFamily, OptirankFamily):
        grid = family((1e-4, 1e-2), (0.0,), warm_start=warm_start)
        models = grid.fit_chain(*problem, grid.chains(60)[0])
        assert all(np.isfinite(model.objective) for model in models.values())


@pytest.mark.parametrize("family", CONVEX.values(), ids=CONVEX)
def test_every_setting_has_its_model(problem, family):
    models = fit_all(family, problem)
    for setting in family.settings():
        (model,) = models_of(family, setting, models)
        objective = model.objective
        z = family.scores(problem[0], model)
        _, y, v = problem
        l1, l2 = setting[family.names.index("l1")], setting[family.names.index("l2")]
        l2 = l2 if l1 or l2 else 1e-7
        penalty = l1 * np.abs(model.w).sum() + l2 * model.w @ model.w
        assert objective == pytest.approx(v @ (np.logaddexp(0, z) - y * z) + penalty, abs=1e-6)


@pytest.mark.parametrize("warm_start", [True, False])
def test_models_of_the_sides(problem, warm_start):
    sides = ("best", "rising", "falling", "both")
    family = OptirankFamily(
        (0.0, 1e-3), (1e-3,), n_references=(3, 1.0), sides=sides, warm_start=warm_start
    )
    models = fit_all(family, problem)
    for s, l1 in product((3, 1.0), (0.0, 1e-3)):
        of = {side: models_of(family, (s, l1, 1e-3, side), models) for side in sides}
        if s == 1.0:  # full ranks have no side
            assert all(of[side] == of["best"] and len(of[side]) == 1 for side in sides)
            continue
        (rising,), (falling,), (best,) = of["rising"], of["falling"], of["best"]
        assert of["both"][0] is rising
        assert of["both"][1] is falling
        if warm_start:
            lower = min(rising, falling, key=lambda model: model.objective)
            assert best is lower
        else:
            lower = min(rising.objective, falling.objective)
            assert best.objective == pytest.approx(lower, rel=1e-6)


@pytest.mark.parametrize(
    ("sides", "warm_start", "expected"),
    [
        (("rising",), True, ["rising"]),
        (("best",), True, ["best"]),
        (("both",), True, ["rising", "falling"]),
        (("best", "falling"), True, ["rising", "falling"]),
        (("best",), False, ["best"]),
        (("best", "falling"), False, ["best", "falling"]),
        (("both",), False, ["rising", "falling"]),
    ],
)
def test_no_side_is_fitted_that_nobody_asked_for(sides, warm_start, expected):
    family = OptirankFamily((0.0,), (1e-3,), n_references=(3,), sides=sides, warm_start=warm_start)
    assert family.chains(D) == [Chain((3, side), ((0.0, 1e-3),)) for side in expected]


def test_sizes_that_are_the_same_number_of_genes_are_fitted_once(problem):
    family = OptirankFamily((0.0,), (1e-3,), n_references=(0.005, 0.01, 1, 0.1, 1.0, 14))
    assert [chain.head for chain in family.chains(D)] == [(1, "best"), (14, None)]
    assert len(family.settings()) == 6
    models = fit_all(family, problem)
    same = [models_of(family, (s, 0.0, 1e-3, "best"), models)[0] for s in (0.005, 1, 0.1)]
    assert same[0] is same[1] is same[2]
    anova = AnovaFamily((0.0,), (1e-3,), n_references=(0.005, 0.01, 1))
    assert [chain.head for chain in anova.chains(D)] == [(1,)]


def test_the_genes_of_a_model(problem):
    anova = AnovaFamily((1e-2,), (1e-3,), n_references=(3,))
    (model,) = fit_all(anova, problem).values()
    np.testing.assert_array_equal(model.genes, (model.w != 0) | (model.gamma > 0))
    assert not model.gamma[:5].any()  # genes that are shifted between the sets are no reference
    (rank,) = fit_all(RankFamily((1e-2,), (1e-3,)), problem).values()
    assert rank.genes.all()
    (values,) = fit_all(LogisticFamily((5e-2,), (1e-3,)), problem).values()
    np.testing.assert_array_equal(values.genes, values.w != 0)
    assert not values.genes.all()


def test_anova_takes_all_genes_where_there_is_one_data_set(problem):
    samples, y, v = problem
    alone = Samples(samples.X, samples.orders)
    anova = AnovaFamily((0.0,), (1e-3,), n_references=(3,))
    (model,) = fit_all(anova, (alone, y, v)).values()
    assert model.gamma.all()


def test_anova_learns_stable_genes_from_an_auxiliary_set(problem):
    samples, y, v = problem
    half = np.arange(N // 2)
    first = samples.take(half)
    other = samples.X[N // 2 :], y[N // 2 :]
    anova = AnovaFamily((0.0,), (1e-3,), n_references=(3,), auxiliary=other)
    alone = Samples(first.X, first.orders), y[half], v[half] * 2
    (model,) = fit_all(anova, alone).values()
    (told,) = fit_all(anova, problem).values()
    assert model.gamma.sum() == 3
    assert not model.gamma[:5].any()
    assert told.gamma.sum() == 3


def test_lr_is_the_same_on_sparse_values(problem):
    samples, y, v = problem
    X = np.where(samples.X > 0.5, samples.X, 0.0)
    for warm_start in (True, False):
        family = LogisticFamily(L1S, L2S[1:], warm_start=warm_start)
        dense = fit_all(family, (Samples(X), y, v))
        thin = fit_all(family, (Samples(sparse.csr_array(X)), y, v))
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


def test_a_family_of_some_settings_fits_these_alone(problem):
    family = OptirankFamily(L1S, L2S, n_references=(2, 5, 1.0), sides=("rising", "both"))
    kept = [(5, 0.0, 1e-3, "rising"), (2, 1e-3, 1e-1, "both"), (1.0, 1e-2, 1e-1, "both")]
    some = family.keeping(kept)
    assert some.settings() == kept
    assert some.chains(D) == [
        Chain((2, "rising"), ((1e-3, 1e-1),)),
        Chain((2, "falling"), ((1e-3, 1e-1),)),
        Chain((5, "rising"), ((0.0, 1e-3),)),
        Chain((D, None), ((1e-2, 1e-1),)),
    ]
    models = fit_all(some, problem)
    assert [len(models_of(some, setting, models)) for setting in kept] == [1, 2, 1]
    with pytest.raises(KeyError):
        some.keys_of((5, 1e-3, 1e-1, "rising"), models, D)


def test_ranks_relative_to_a_given_reference_set(problem):
    family = FixedReferenceFamily(L1S, L2S, reference=(1, 4, 6))
    models = fit_all(family, problem)
    assert len(models) == 9
    for model in models.values():
        np.testing.assert_array_equal(np.flatnonzero(model.gamma), [1, 4, 6])
