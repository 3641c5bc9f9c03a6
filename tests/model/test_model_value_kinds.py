"""What kind of values a model was trained on, and how those of a query differ."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from model_cases import make_model

from optirank.model import load, remember_training, save
from optirank.model.value_kinds import ValueKinds, value_kinds

COUNTS = np.random.default_rng(0).poisson(0.6, (60, 12)).astype(float)


@given(hnp.arrays(float, (7, 4), elements=st.sampled_from([-1.5, -1.0, 0.0, 2.0, 0.5])))
def test_kinds_are_counted_alike_dense_sparse_and_in_blocks(X):
    whole = value_kinds(X)
    assert whole.zeros == (X == 0).mean()
    assert whole.negative == (X < 0).mean()
    assert whole.whole == (np.round(X) == X).all()
    blocks = ValueKinds()
    for part in (X[:3], sp.csr_matrix(X[3:])):
        blocks.add(part)
    assert blocks == whole


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X, None),
        (np.log1p, None),
        (lambda X: X / X.sum(axis=1, keepdims=True), None),
        (lambda X: (X - X.mean(axis=0)) / X.std(axis=0), "are negative, and none were"),
        (lambda X: X + 0.01, "0.0% of the values are zero, and"),
        (lambda X: X * (np.arange(12) < 1), "zeros are ties"),
    ],
)
def test_a_query_of_another_kind_is_told_and_a_rising_function_is_not(change, words):
    found = value_kinds(change(COUNTS)).differences(value_kinds(COUNTS).to_plain())
    if words is None:
        assert found == []
    else:
        assert any(words in note for note in found)


def test_a_model_of_scaled_values_says_so_of_counts():
    scaled = value_kinds(COUNTS - COUNTS.mean(axis=0))
    assert "if they were scaled" in value_kinds(COUNTS).differences(scaled.to_plain())[0]
    assert "negative and none is zero" in scaled.own_notes()[0]
    assert value_kinds(COUNTS).own_notes() == []


@pytest.mark.parametrize(
    "stored", [None, {}, [], {"version": 2}, {"version": 1, "zeros": "x", "negative": 0}]
)
def test_what_a_file_says_in_another_form_says_nothing(stored):
    assert value_kinds(COUNTS).differences(stored) == []


def test_the_model_file_keeps_the_kind_of_the_panel_s_values(tmp_path):
    model = make_model()
    remember_training(model, COUNTS, model.classes_[np.arange(60) % 3])
    save(model, tmp_path / "m")
    kept = load(tmp_path / "m").training_summary_["values"]
    assert kept == value_kinds(COUNTS[:, model.genes_]).to_plain()
