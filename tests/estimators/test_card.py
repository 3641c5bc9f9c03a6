"""What a model and its training summary show: in a terminal, in a notebook, from bad files too."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from example_model import trained_example
from optirank import (
    OptirankClassifier,
    OptirankClassifierCV,
    TopScoringPairsClassifier,
    load,
    save,
)
from optirank.estimators.summary import TrainingSummary

TRAINED = {
    "label": "cell_type",
    "source": "blood.h5ad",
    "date": "2026-11-15",
    "optirank": "0.1.0",
    "balanced_accuracy": 0.9213,
    "balanced_accuracy_standard_error": 0.0121,
    "n_folds": 5,
    "recall": {"t cell": 0.75, "b cell": float("nan")},
    "notes": ["<b>2 genes</b> were left out"],
}


@pytest.fixture
def model():
    model = trained_example()[0]
    model.training_summary_ |= TRAINED
    return model


def simple(n_classes=2):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    return rng.normal(size=(60, 6)) + 2 * np.eye(6)[y], y


def test_a_trained_model_says_classes_genes_accuracy_source_and_date(model, tmp_path):
    save(model, tmp_path / "blood.optirank")
    for one in (model, load(tmp_path / "blood.optirank")):
        shown = one._repr_mimebundle_()
        assert shown["text/plain"] == repr(one)
        assert shown["text/html"] == one._repr_html_()
        for text in shown.values():
            for part in (
                f"{len(model.classes_)}: {model.classes_[0]}",
                f"{model.genes_.sum()} needed, of {model.n_features_in_}",
                "balanced accuracy 92.1 % ± 1.2, 5 folds",
                "90 samples of blood.h5ad",
                "2026-11-15, optirank 0.1.0",
            ):
                assert part in text
    assert "blood.optirank" in repr(one)
    assert "blood.optirank" not in repr(model)
    assert "n_reference=12" in one._repr_html_()


@pytest.mark.parametrize(
    "unfitted",
    [
        OptirankClassifier(n_reference=3),
        OptirankClassifierCV((2,), (0.0,), (1e-2,), cv=3),
        TopScoringPairsClassifier(k_max=2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_other_models_have_scikit_learns_representation_until_they_come_from_a_file(
    unfitted, tmp_path
):
    X, y = simple()
    fitted = clone(unfitted).fit(X, y)
    assert repr(fitted) == repr(unfitted) == BaseEstimator.__repr__(unfitted)
    assert "<style" in fitted._repr_html_()
    assert fitted._repr_mimebundle_()["text/plain"] == repr(unfitted)
    save(fitted, tmp_path / "model.optirank")
    loaded = load(tmp_path / "model.optirank")
    assert "model.optirank" in repr(loaded)
    assert repr(clone(loaded)) == repr(unfitted)
    assert repr(loaded.fit(X, y)) == repr(unfitted)  # no longer what the file held


def test_long_representations_are_broken_into_lines_as_scikit_learns_are():
    model = OptirankClassifier(n_reference=0.123456, l1=0.123, l2=0.3456, max_iter=777, tol=1e-9)
    lines = repr(model).splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80
    assert repr(LogisticRegression(C=0.5)) in repr(make_pipeline(model, LogisticRegression(C=0.5)))


def test_a_training_summary_prints_as_one_and_stays_a_dictionary(model):
    summary = model.training_summary_
    assert isinstance(summary, dict)
    assert summary == dict(summary)
    assert eval(repr(dict(summary)).replace("nan", "None"))["source"] == "blood.h5ad"
    text = str(summary)
    assert "balanced accuracy 92.1 %" in text
    assert "note:      <b>2 genes</b>" in text
    (line,) = [one for one in text.splitlines() if one.startswith("t cell")]
    assert line.split()[-2:] == ["%", "–"]
    assert "75.0 %" in line
    assert "{" not in text
    page = summary._repr_html_()
    assert "<td>t cell</td>" in page
    assert "&lt;b&gt;2 genes" in page
    for one in (copy.deepcopy(summary), pickle.loads(pickle.dumps(summary)), summary | {"a": 1}):
        assert isinstance(one, TrainingSummary)


@pytest.mark.parametrize("value", [None, "x" * 10_000, "\x1b]0;t\x07", [1], {"a": {}}, np.ones(3)])
def test_summaries_of_any_values_can_be_shown(value, model):
    keys = [*TRAINED, "class_counts", "n_samples", "n_panel", "n_genes", "precision", "batch"]
    for key in keys:
        model.training_summary_ = TrainingSummary(TRAINED) | {key: value}
        summary = model.training_summary_
        for text in (repr(model), model._repr_html_(), str(summary), summary._repr_html_()):
            assert "\x1b" not in text
            assert len(text) < 5000
