"""scikit-learn's own checks of every classifier, the public signatures, light
prediction.
"""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank import (
    OptirankClassifier,
    OptirankClassifierCV,
    RankLogisticRegression,
)

FRACTIONAL = OptirankClassifier(solver_options={"integral": False})
TINY_GRID = OptirankClassifierCV((0.5, 1.0), (0.0,), (1e-2,), cv=2)


@parametrize_with_checks(
    [
        OptirankClassifier(),
        OptirankClassifier(algorithm="bpcd"),
        FRACTIONAL,
        TINY_GRID,
        RankLogisticRegression(),
    ]
)
def test_scikit_learn_contract(estimator, check):
    if "sample_weight_equivalence" in check.func.__name__:
        if getattr(estimator, "solver_options", None) is not None:
            pytest.skip(
                "asks for 1e-7, fractional weights are float32's: see test_optirank.py"
            )
        if getattr(estimator, "algorithm", "") == "bpcd":
            pytest.skip(
                "the paper's steps stop early on a path that is not convex: on some "
                "processors, rounding leads weights and repeats to different sets"
            )
    check(estimator)


SOLVER = {"tol": 1e-5, "max_iter": 10_000, "class_weight": "balanced"}
RUNNING = {"n_jobs": None, "verbose": 0}

# Positional parameters, then those by keyword only
PUBLIC = {
    OptirankClassifier: (
        {"n_reference": 0.2, "l1": 1e-3, "l2": 1e-3},
        {"algorithm": "alternating", "ties": "average", "side": "best"}
        | {"reference_candidates": None, **SOLVER, **RUNNING}
        | {"solver_options": None},
    ),
    OptirankClassifierCV: (
        {"n_references": (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0)}
        | {"l1s": (0, 1e-4, 1e-3), "l2s": (1e-8, 1e-6, 1e-4, 1e-3, 1e-2)},
        {"cv": 5, "scoring": "balanced_accuracy", "selection": "one_se"}
        | {
            "reference_candidates": None,
            "ties": "average",
            **SOLVER,
            **RUNNING,
        },
    ),
    RankLogisticRegression: (
        {"l1": 1e-3, "l2": 1e-3},
        {"ties": "average", **SOLVER, **RUNNING},
    ),
}


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.__qualname__)
def test_signatures_are_as_documented(public):
    positional, by_keyword = PUBLIC[public]
    parameters = inspect.signature(public).parameters
    defaults = [(name, p.default) for name, p in parameters.items()]
    assert defaults == [*positional.items(), *by_keyword.items()]
    assert all(
        parameters[name].kind == inspect.Parameter.KEYWORD_ONLY for name in by_keyword
    )
    assert len(parameters) <= 14


def test_a_fitted_model_is_pickled_cloned_and_predicts_without_numba(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.poisson(3.0, (60, 8)), np.arange(60) % 3
    models = [
        one.fit(X, y)
        for one in (
            OptirankClassifier(3),
            FRACTIONAL,
            TINY_GRID,
            RankLogisticRegression(),
        )
    ]
    (tmp_path / "models").write_bytes(pickle.dumps((models, X)))
    code = (
        "import pickle, sys\n"
        f"models, X = pickle.load(open({str(tmp_path / 'models')!r}, 'rb'))\n"
        "print([float(m.decision_function(X).sum()) for m in models])\n"
        "assert 'numba' not in sys.modules, 'numba was imported'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    sums = [m.decision_function(X).sum() for m in models]
    np.testing.assert_allclose(eval(done.stdout), sums)
    for model in models:
        assert clone(model).get_params() == model.get_params()
        assert not hasattr(clone(model), "coef_")
