"""Weak models are told, with what to do about them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from optirank.workflow.preparation import prepare
from optirank.workflow.train import train
from optirank.workflow.weakness import logistic_score, weaknesses
from training_cases import SINGLE, noise, small


def told(prepared, predicted):
    fold = prepared.folds[0]
    table = {"label": prepared.y[fold[1]], "predicted": predicted, "fold": 1}
    return weaknesses(prepared, fold, pd.DataFrame(table))


def test_a_good_model_is_not_warned_of():
    prepared = prepare(small(), "cell_type")
    assert logistic_score(prepared, prepared.folds[0]) > 0.7
    assert told(prepared, prepared.y[prepared.folds[0][1]]) == []


def test_a_model_far_below_logistic_regression_is_told_with_the_remedy():
    prepared = prepare(small(), "cell_type")
    labels = prepared.y[prepared.folds[0][1]].copy()
    labels[::2] = np.roll(labels, 1)[::2]
    (warning,) = told(prepared, labels)
    assert "plain logistic regression reaches" in warning
    assert "--budget" in warning


def test_a_training_on_noise_warns_of_chance():
    found = train(noise(90, 30, 3), "kind", grids=SINGLE)
    assert any("near that of guessing, 33.3 %" in warning for warning in found.warnings)
    assert set(found.warnings) <= set(found.notes)
