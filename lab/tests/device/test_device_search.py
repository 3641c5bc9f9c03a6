"""A search on a device gives what the estimators and the search give on the CPU."""

import numpy as np
import pytest

from optirank import OptirankClassifier, RankLogisticRegression
from optirank.datasets import make_unstable_ranks
from optirank.estimators.search import HELD_OUT, Family, Unit, units_of_folds
from optirank.estimators.selection import make_folds
from optirank.ranks.orders import order_samples
from optirank_lab.benchmark.families import RankFamily
from optirank_lab.device.backend import order_on_device, orders_for
from optirank_lab.device.search import search


@pytest.fixture(scope="module")
def data():
    return make_unstable_ranks(160, 20, 12, random_state=0)


def three_classes(data):
    codes = np.arange(len(data.y)) % 3
    X = data.X.copy()
    X[codes == 0, :3] += 0.4
    X[codes == 1, 5:8] += 0.4
    return X, codes


def fitted(family, backend, X, codes, weights=None):
    """The models of a family's only setting on a device, one per class."""
    train = order_on_device(backend, X)
    n_classes = int(codes.max()) + 1
    unit = Unit(train=train, codes=codes, n_classes=n_classes, weights=weights)
    (result,) = search(family, [unit], device="cuda")
    return list(result.models(0).values())


def test_two_classes_give_what_the_cpu_gives(backend, data):
    family = Family((1e-3,), (1e-3,), n_references=(4,), warm_start=False)
    here = OptirankClassifier(4, 1e-3, 1e-3).fit(data.X, data.y)
    (there,) = fitted(family, backend, data.X, data.y.astype(int))
    assert there.objective <= here.objective_[0] + 1e-4
    assert there.gamma.sum() == 4


def test_several_classes_and_weights(backend, data):
    X, codes = three_classes(data)
    weights = np.random.default_rng(0).integers(0, 3, len(codes)).astype(float)
    family = Family((1e-3,), (1e-3,), n_references=(5,), warm_start=False)
    here = OptirankClassifier(5).fit(X, codes, weights)
    there = fitted(family, backend, X, codes, weights)
    objectives = np.array([model.objective for model in there])
    assert (objectives <= here.objective_ + 1e-4).all()


def test_full_ranks_have_one_solution(backend, data):
    here = RankLogisticRegression(1e-3, 1e-3).fit(data.X, data.y)
    family = RankFamily((1e-3,), (1e-3,))
    (there,) = fitted(family, backend, data.X, data.y.astype(int))
    assert there.objective == pytest.approx(here.objective_[0], abs=1e-6)
    np.testing.assert_allclose(there.w, here.coef_[0], atol=1e-2)


def test_all_folds_run_side_by_side(numpy_as_device, data):
    X, codes = three_classes(data)
    family = Family((0, 1e-3), (1e-3,), n_references=(0.2, 1.0))
    folds = make_folds(codes, 3, None)
    found = {}
    for device, orders in (("cpu", order_samples(X)), ("cuda", orders_for(X, "cuda"))):
        units = units_of_folds(orders, codes, folds, n_classes=3)
        results = search(family, units, device=device)
        found[device] = [
            (result.decision(k, HELD_OUT).argmax(axis=1) == codes[test]).mean()
            for result, (_, test) in zip(results, folds, strict=True)
            for k in range(len(result.params))
        ]
    np.testing.assert_allclose(found["cuda"], found["cpu"], atol=0.12)
    assert np.mean(found["cuda"]) == pytest.approx(np.mean(found["cpu"]), abs=0.03)
