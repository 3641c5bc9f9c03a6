"""What training learns on simulated platforms, and what the model remembers of it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from optirank import load, save
from optirank.model import Outcomes
from optirank.workflow.explain import describe_model
from optirank.workflow.train import train
from training_cases import SINGLE, small


@pytest.fixture(scope="module")
def found():
    return train(small(), "cell_type", grids=SINGLE, n_folds=2, target_error=0.2)


def test_the_figure_of_a_platform_is_the_mean_over_the_folds(found):
    expected = [
        np.mean([balanced_accuracy_score(f["label"], f["predicted"]) for _, f in p.groupby("fold")])
        for _, p in found.elsewhere.groupby("platform")
    ]
    assert len(expected) > 1
    assert found.accuracy_elsewhere() == pytest.approx((min(expected), max(expected)))


def test_every_held_out_sample_is_seen_on_every_platform(found):
    assert (found.elsewhere.groupby("platform").size() == len(found.held_out)).all()


def test_the_model_remembers_both_kinds_of_errors(found, tmp_path):
    save(found.model, tmp_path / "m.optirank")
    model = load(tmp_path / "m.optirank")
    outcomes = Outcomes.from_summary(model.training_summary_)
    assert len(outcomes.correct) == len(found.elsewhere)
    errors = outcomes.errors(model.rejection_.threshold)
    assert model.rejection_.elsewhere == pytest.approx((errors.min(), errors.max()), abs=0.02)
    assert "on simulated platforms" in model.rejection_.reason
    assert model.experience_.margin > 0


def test_the_description_has_the_folds_and_the_platforms(found):
    lines = dict(describe_model(found.model).lines)
    low, high = found.accuracy_elsewhere()
    assert ", 2 folds" in lines["held out"]
    assert f"{low:.3f} to {high:.3f}" in lines["simulated platforms"]
