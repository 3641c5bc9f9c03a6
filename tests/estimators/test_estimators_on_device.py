"""Estimators on a device, here with NumPy standing in for the GPU."""

import numpy as np
import pytest

from optirank import OptirankClassifier, OptirankClassifierCV, RankLogisticRegression
from optirank.datasets import make_unstable_ranks
from optirank.solver.device import backend


@pytest.fixture(scope="module")
def data():
    return make_unstable_ranks(160, 20, 12, random_state=0)


def three_classes(data):
    y = np.array(["a", "b", "c"])[np.arange(len(data.y)) % 3]
    X = data.X.copy()
    X[y == "a", :3] += 0.4
    X[y == "b", 5:8] += 0.4
    return X, y


@pytest.mark.parametrize("side", ["best", "rising"])
def test_two_classes_give_what_the_cpu_gives(numpy_as_device, data, side):
    here = OptirankClassifier(4, 1e-3, side=side).fit(data.X, data.y)
    there = OptirankClassifier(4, 1e-3, side=side, device="cuda").fit(data.X, data.y)
    assert (there.objective_ <= here.objective_ + 1e-4).all()
    assert there.reference_.sum(axis=1).tolist() == here.reference_.sum(axis=1).tolist()
    assert (there.predict(data.X) == here.predict(data.X)).mean() > 0.97


def test_several_classes_and_weights(numpy_as_device, data):
    X, y = three_classes(data)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    here = OptirankClassifier(5).fit(X, y, weights)
    there = OptirankClassifier(5, device="cuda").fit(X, y, weights)
    assert (there.objective_ <= here.objective_ + 1e-4).all()
    assert there.coef_.shape == here.coef_.shape


def test_full_ranks_have_one_solution(numpy_as_device, data):
    here = RankLogisticRegression(1e-3, 1e-3).fit(data.X, data.y)
    there = RankLogisticRegression(1e-3, 1e-3, device="cuda").fit(data.X, data.y)
    np.testing.assert_allclose(there.objective_, here.objective_, atol=1e-6)
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-2)


def test_a_search_runs_all_folds_side_by_side(numpy_as_device, data):
    X, y = three_classes(data)
    grid = {"n_references": (0.2, 1.0), "l1s": (0, 1e-3), "l2s": (1e-3,), "cv": 3}
    here = OptirankClassifierCV(**grid).fit(X, y)
    there = OptirankClassifierCV(**grid, device="cuda").fit(X, y)
    np.testing.assert_allclose(
        there.cv_results_["mean_test_score"],
        here.cv_results_["mean_test_score"],
        atol=0.05,
    )
    assert there.best_estimator_.device == "cuda"


def test_candidates_on_a_device(numpy_as_device, data):
    allowed = np.arange(data.X.shape[1]) % 2 == 0
    options = {"reference_candidates": allowed, "device": "cuda"}
    single = OptirankClassifier(4, **options).fit(data.X, data.y)
    grid = {"n_references": (0.2,), "l1s": (0,), "l2s": (1e-3,), "cv": 2}
    searched = OptirankClassifierCV(**grid, **options).fit(data.X, data.y)
    assert not single.reference_[:, ~allowed].any()
    assert not searched.reference_[:, ~allowed].any()


def test_the_papers_algorithm_is_refused(numpy_as_device, data):
    with pytest.raises(ValueError, match=r"bpcd.*CPU alone"):
        OptirankClassifier(4, algorithm="bpcd", device="cuda").fit(data.X, data.y)


@pytest.mark.parametrize(
    "estimator",
    [OptirankClassifier(4), OptirankClassifierCV(cv=2), RankLogisticRegression()],
)
def test_a_device_that_is_not_there_is_an_error_before_any_work(estimator, data):
    with pytest.raises(ValueError, match="device='tpu'"):
        estimator.set_params(device="tpu").fit(data.X, data.y)
    backend.backend_of.cache_clear()
    try:
        import cupy  # noqa: F401
    except ImportError:
        with pytest.raises(backend.DeviceError, match="optirank\\[gpu\\]"):
            estimator.set_params(device="cuda").fit(data.X, data.y)


@pytest.mark.gpu
def test_cupy_arrays_stay_on_the_gpu(data):
    cupy = pytest.importorskip("cupy")
    model = OptirankClassifier(4, device="cuda").fit(
        cupy.asarray(data.X), cupy.asarray(data.y)
    )
    host = OptirankClassifier(4, device="cuda").fit(data.X, data.y)
    np.testing.assert_allclose(model.coef_, host.coef_, atol=1e-6)
    np.testing.assert_array_equal(
        model.predict(cupy.asarray(data.X)), host.predict(data.X)
    )
