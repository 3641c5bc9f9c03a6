"""Tables of held-out samples, and how sure their figures are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from optirank._util.names import folds_in_words
from optirank.tuning.selection import settings_table
from optirank.workflow.result import fold_table, held_out_error


def held_out(right, label, fold):
    predicted = np.where(right, label, "another")
    return pd.DataFrame({"label": label, "predicted": predicted, "fold": fold})


def test_one_part_has_the_error_of_its_counts():
    rng = np.random.default_rng(0)
    label = np.repeat(["a", "b"], (60, 15))
    shares = {"a": 0.9, "b": 0.6}
    drawn = [rng.random(75) < [shares[one] for one in label] for _ in range(2000)]
    tables = [held_out(right, label, 1) for right in drawn[:200]]
    spread = np.std([(r[:60].mean() + r[60:].mean()) / 2 for r in drawn])
    errors = [held_out_error(table, fold_table(table)) for table in tables]
    assert np.mean(errors) == pytest.approx(spread, rel=0.1)


def test_a_part_without_an_error_is_not_certain():
    table = held_out(np.ones(8, bool), np.repeat(["a", "b"], 4), 1)
    assert 0.05 < held_out_error(table, fold_table(table)) < 0.2


def test_several_folds_have_the_error_over_the_folds():
    right = np.tile([True, True, True, False], 6)
    right[:4] = True
    table = held_out(right, np.tile(["a", "b"], 12), np.repeat([1, 2, 3], 8))
    scores = fold_table(table)["balanced_accuracy"]
    expected = scores.std(ddof=1) / np.sqrt(3)
    assert held_out_error(table, fold_table(table)) == pytest.approx(expected)


def test_one_fold_has_no_standard_error_in_the_table_of_settings():
    scores, genes = np.array([[0.9], [0.8]]), np.array([[10], [5]])
    assert settings_table([{"l1": 0}, {"l1": 1}], scores, genes, 0)["standard_error"].isna().all()


def test_folds_in_words():
    assert folds_in_words(1) == "one held-out part"
    assert folds_in_words(5) == "5 folds"
