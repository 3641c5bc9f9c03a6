"""Running a search: units, views, joblib backends."""

from __future__ import annotations

import os
import signal
from contextlib import nullcontext
from dataclasses import replace

import joblib
import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, get_scorer, make_scorer
from threadpoolctl import threadpool_info, threadpool_limits

from optirank import (
    OptirankClassifier,
    OptirankClassifierCV,
    RankLogisticRegression,
)
from optirank.datasets import make_unstable_ranks
from optirank.estimators import optirank_cv
from optirank.estimators.optirank_cv import score_table
from optirank.estimators.search import (
    HELD_OUT,
    Family,
    Unit,
    search,
    units_of_folds,
)
from optirank.estimators.selection import make_folds
from optirank.ranks.orders import order_for_fitting, order_samples
from optirank_lab.benchmark.families import LogisticFamily, RankFamily, Samples


@pytest.fixture(scope="module")
def data():
    return make_unstable_ranks(120, 20, 12, random_state=0)


@pytest.fixture(scope="module")
def alone(data):
    return grid().fit(data.X, data.y)


def grid(**options):
    options = {"cv": 3, **options}
    return OptirankClassifierCV((2, 4, 0.5, 1.0), (0.0, 3e-3), (1e-4, 1e-2), **options)


def assert_same(model, other):
    assert model.best_params_ == other.best_params_
    np.testing.assert_array_equal(model.coef_, other.coef_)
    for key, values in other.cv_results_.items():
        if "score" in key and "time" not in key:
            np.testing.assert_array_equal(model.cv_results_[key], values)


def test_two_threads_change_nothing(data, alone):
    assert_same(grid(n_jobs=2).fit(data.X, data.y), alone)


@pytest.mark.parametrize(
    "backend",
    [
        "sequential",
        "threading",
        "multiprocessing",
        pytest.param("loky", marks=pytest.mark.slow),
    ],
)
def test_any_backend_gives_the_same_result(data, alone, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_same(grid().fit(data.X, data.y), alone)


def test_the_threads_of_blas_are_given_back(data):
    def threads():
        return [
            pool["num_threads"]
            for pool in threadpool_info()
            if pool["user_api"] == "blas"
        ]

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        grid(n_jobs=2).fit(data.X, data.y)
        assert threads() == before


def test_no_bar_unless_asked_for_and_then_on_stderr(data, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    grid().fit(data.X, data.y)
    silent = capsys.readouterr()
    assert silent.out == silent.err == ""
    grid(verbose=1).fit(data.X, data.y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "100%" in shown.err


# Units and views


OPTIRANK = Family((0.0, 1e-2), (1e-3,), n_references=(3, 1.0))


@pytest.fixture(scope="module")
def samples(data):
    return Samples(data.X, order_samples(data.X))


@pytest.fixture(scope="module")
def folds(data):
    return make_folds(data.y, 3, None)


FAMILIES = [
    OPTIRANK,
    RankFamily((0.0,), (1e-3, 1e-1)),
    LogisticFamily((1e-3,), (1e-3,)),
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
def test_scores_and_genes_are_those_of_the_models(data, samples, folds, family):
    shifted = Samples(data.X[:9] * 2, order_samples(data.X[:9] * 2))
    if type(family) is Family:
        samples, shifted = samples.orders, shifted.orders
    units = units_of_folds(samples, data.y, folds, n_classes=2)
    units = [replace(unit, views={**unit.views, "shifted": shifted}) for unit in units]
    told = []
    found = search(family, units, progress=lambda *step: told.append(step))
    n_tasks = 3 * len(family.chains(20))
    assert told == [(k + 1, n_tasks) for k in range(n_tasks)]
    for result, (_, test) in zip(found, folds, strict=True):
        assert result.params == family.settings()
        for k in range(len(result.params)):
            (model,) = result.models(k).values()
            for view, part in ((HELD_OUT, samples.take(test)), ("shifted", shifted)):
                expected = family.scores(part, model)
                np.testing.assert_allclose(result.decision(k, view)[:, 0], expected)
            np.testing.assert_array_equal(result.genes(k), model.genes)
            assert result.fit_seconds(k) > 0
            assert model.converged


def test_a_class_that_a_unit_lacks_scores_minus_infinity_and_needs_no_gene(samples):
    codes = np.arange(120) % 3
    train = np.flatnonzero(codes[:60] < 2)
    units = units_of_folds(samples, codes, [(train, np.arange(60, 120))], n_classes=3)
    (result,) = search(RankFamily((0.0,), (1e-2,)), units)
    scores = result.decision(0, HELD_OUT)
    assert np.isfinite(scores[:, :2]).all()
    assert (scores[:, 2] == -np.inf).all()
    assert len(result.models(0)) == 2


def test_the_default_scorer_gives_what_scikit_learn_gives(samples, folds, data):
    units = units_of_folds(samples, data.y, folds, n_classes=2)
    results = search(RankFamily((0.0, 1e-2), (1e-3,)), units)
    truths = [data.y[test] for _, test in folds]
    arguments = (results, truths, np.unique(data.y), HELD_OUT)
    slow = make_scorer(lambda truth, labels: balanced_accuracy_score(truth, labels))
    np.testing.assert_array_equal(
        score_table(*arguments, get_scorer("balanced_accuracy")),
        score_table(*arguments, slow),
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_cold_search_gives_what_the_estimators_give_to_the_last_bit(
    data, n_classes, weighted
):
    codes = np.arange(120) % n_classes if n_classes > 2 else data.y.astype(int)
    train = np.arange(80)
    weights = 1.0 + np.arange(80) % 4 if weighted else None
    orders = order_for_fitting(data.X[train])
    options = {"codes": codes[train], "n_classes": n_classes, "weights": weights}
    families = {
        OptirankClassifier: Family(
            (1e-3,), (1e-3, 1e-2), n_references=(0.2, 0.05), warm_start=False
        ),
        RankLogisticRegression: RankFamily((0.0, 1e-3), (1e-3, 1e-2), warm_start=False),
    }
    for estimator, family in families.items():
        of_optirank = type(family) is Family
        samples = orders if of_optirank else Samples(orders=orders)
        (result,) = search(family, [Unit(train=samples, **options)])
        for setting, params in enumerate(result.params):
            model = estimator(**params).fit(data.X[train], codes[train], weights)
            found = result.models(setting).values()
            np.testing.assert_array_equal([one.w for one in found], model.coef_)
            np.testing.assert_array_equal([one.b for one in found], model.intercept_)
            np.testing.assert_array_equal(
                [one.gamma for one in found], model.reference_weights_
            )
            np.testing.assert_array_equal(result.genes(setting), model.genes_)


def test_a_unit_of_one_class_is_refused(samples):
    unit = Unit(train=samples.orders, codes=np.ones(120, int), n_classes=2)
    with pytest.raises(ValueError, match="fold 0 has one class only to train on"):
        search(OPTIRANK, [unit])


def test_samples_are_sorted_once_for_folds_and_final_fit(data, monkeypatch):
    calls = []

    def counted(X, n_jobs=None):
        calls.append(X.shape)
        return order_samples(X)

    monkeypatch.setattr("optirank.ranks.orders.order_for_fitting", counted)
    grid().fit(data.X, data.y)
    assert calls == [data.X.shape]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of dask's, about the worker that dies
def test_a_cluster_that_loses_a_worker_gives_the_same_result(data, alone, monkeypatch):
    distributed = pytest.importorskip("distributed")
    done = []

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = min(client.run(os.getpid).values())

        def kill_in_the_middle(count, total):
            done.append(total)
            if len(done) == 4:
                os.kill(victim, signal.SIGKILL)

        monkeypatch.setattr(
            optirank_cv,
            "progress_bar",
            lambda *_, **__: nullcontext(kill_in_the_middle),
        )
        with joblib.parallel_config(backend="dask"):
            model = grid().fit(data.X, data.y)
        assert victim not in client.run(os.getpid).values()
    assert done == [12] * 12
    assert_same(model, alone)
