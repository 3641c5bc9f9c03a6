"""scikit-learn's own checks of every classifier on ranks, and the public signatures."""

from __future__ import annotations

import inspect

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import optirank
from optirank import (
    AnovaRankLogisticRegression,
    OptirankClassifier,
    RankLogisticRegression,
    ReferenceRankTransformer,
    SingleCellNetClassifier,
)
from optirank.datasets import make_unstable_ranks


@pytest.mark.filterwarnings("ignore:one data set only:UserWarning")
@parametrize_with_checks(
    [
        OptirankClassifier(),
        OptirankClassifier(side="both"),
        OptirankClassifier(algorithm="bpcd"),
        OptirankClassifier(integral=False),
        OptirankClassifier(shared_reference=True),
        RankLogisticRegression(),
        AnovaRankLogisticRegression(),
        AnovaRankLogisticRegression(reference=[0]),
    ]
)
def test_scikit_learn_contract(estimator, check):
    relaxed = not getattr(estimator, "integral", True)
    if relaxed and "sample_weight_equivalence" in check.func.__name__:
        pytest.skip("asks for 1e-7, fractional weights are float32's: see test_optirank.py")
    check(estimator)


REQUIRED = inspect.Parameter.empty
SOLVER = {"ties": "average", "tol": 1e-5, "max_iter": 10_000}
RUNNING = {"n_jobs": None, "random_state": None, "verbose": 0}
BALANCED = {"class_weight": "balanced"}

# name: positional parameters, then those by keyword only
PUBLIC = {
    OptirankClassifier: (
        {"n_reference": 0.2, "l1": 1e-3, "l2": 1e-3},
        {
            "algorithm": "alternating",
            **SOLVER,
            "path_step": 100,
            "integral": True,
            "polish": True,
            "refit": True,
            "side": "best",
            "shared_reference": False,
            "reference_candidates": None,
            "whole_panel": False,
            "n_platforms": 0,
            **BALANCED,
            "device": "cpu",
            **RUNNING,
        },
    ),
    RankLogisticRegression: (
        {"l1": 1e-3, "l2": 1e-3},
        {**SOLVER, **BALANCED, "device": "cpu", **RUNNING},
    ),
    AnovaRankLogisticRegression: (
        {"n_reference": 0.2, "l1": 1e-3, "l2": 1e-3},
        {"reference": None, **SOLVER, **BALANCED, **RUNNING},
    ),
    ReferenceRankTransformer: ({"reference": None}, {"ties": "average", "scale": True}),
    make_unstable_ranks: (
        {"n_samples": 1000, "n_genes": 50, "n_perturbed": 40},
        {"tau": 0.2, "sigma": 0.05, "label_accuracy": 0.98, "random_state": None},
    ),
    OptirankClassifier.fit: (
        {"self": REQUIRED, "X": REQUIRED, "y": REQUIRED, "sample_weight": None},
        {},
    ),
    AnovaRankLogisticRegression.fit: (
        {"self": REQUIRED, "X": REQUIRED, "y": REQUIRED, "sample_weight": None},
        {"dataset": None, "X_auxiliary": None, "y_auxiliary": None},
    ),
}


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.__qualname__)
def test_signatures_are_as_documented(public):
    positional, by_keyword = PUBLIC[public]
    parameters = inspect.signature(public).parameters
    assert [(name, p.default) for name, p in parameters.items()] == [
        *positional.items(),
        *by_keyword.items(),
    ]
    kinds = {name: p.kind for name, p in parameters.items()}
    assert all(kinds[name] == inspect.Parameter.POSITIONAL_OR_KEYWORD for name in positional)
    assert all(kinds[name] == inspect.Parameter.KEYWORD_ONLY for name in by_keyword)


def test_the_public_names_are_there():
    documented = {each.__name__ for each in PUBLIC if inspect.isclass(each)}
    assert documented | {SingleCellNetClassifier.__name__} <= set(optirank.__all__)
    for name in optirank.__all__:
        assert getattr(optirank, name) is not None
