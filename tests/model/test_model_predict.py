"""Prediction gives what the definition says, from the panel's genes alone, whatever the layout."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import (
    as_input,
    make_model,
    make_panel,
    make_samples,
    models,
    named_models,
    weights_of,
)
from scipy import sparse
from scipy.stats import rankdata

from optirank import save
from optirank.model import (
    Predictor,
    fit_calibration,
    fit_error_control,
    mixed_word,
    panel_ranks,
    withheld_word,
)
from rank_definition import ranks_by_definition


def untidy(X: np.ndarray) -> sparse.csr_array:
    """A sparse matrix with stored zeros and values given in two parts."""
    rows, columns = (part.ravel() for part in np.indices(X.shape))
    halves = np.concatenate([X.ravel() / 2, X.ravel() / 2])
    where = (np.tile(rows, 2), np.tile(columns, 2))
    return sparse.csr_array(sparse.coo_array((halves, where), shape=X.shape))


LAYOUTS = {
    "array": np.asarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: X.astype(np.int16),
    "frame": pd.DataFrame,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "untidy": untidy,
}


@pytest.mark.parametrize("compiled", [False, True])
@given(models, st.integers(0, 1000), st.sampled_from(sorted(LAYOUTS)), st.floats(0, 1))
def test_scores_are_what_the_definition_says(compiled, model, seed, layout, density):
    X = make_samples(seed, 6, model.n_features_in_, density)
    found = Predictor(model, compiled=compiled).scores(LAYOUTS[layout](X))
    coef, references, ties = weights_of(model)
    expected = [
        ranks_by_definition(X, gamma, ties) @ w / gamma.sum() + b
        for w, gamma, b in zip(coef, references, model.intercept_, strict=True)
    ]
    expected = expected[0] if len(expected) == 1 else np.array(expected).T
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    own = model.decision_function(as_input(model, X))
    np.testing.assert_allclose(found, own, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n_genes", [1, 7, 300])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_compiled_ranks_are_those_of_numpy_and_scipy(n_genes, density):
    X = make_samples(0, 20, n_genes, density) + np.round(
        make_samples(1, 20, n_genes, density), 1
    )
    for data in (X, X.astype(np.float32), X.astype(np.int64), sparse.csr_array(X)):
        dense = data.toarray() if sparse.issparse(data) else data
        expected = (rankdata(dense, axis=1) - 1) / n_genes
        for compiled in (False, True):
            found = panel_ranks(data, compiled=compiled)
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


@given(models, st.integers(0, 1000))
def test_labels_and_probabilities_are_the_estimator_s(model, seed):
    X = make_samples(seed, 6, model.n_features_in_)
    found = Predictor(model).predict(X)
    own = as_input(model, X)
    np.testing.assert_allclose(found.probabilities, model.predict_proba(own), atol=1e-9)
    np.testing.assert_array_equal(found.labels, model.predict(own))
    assert found.labels.dtype == model.classes_.dtype
    np.testing.assert_allclose(
        found.confidence, found.probabilities.max(axis=1), atol=1e-12
    )


@given(named_models, st.integers(0, 1000))
def test_the_panel_s_genes_alone_give_the_same_as_all_genes(model, seed):
    X = as_input(model, make_samples(seed, 6, model.n_features_in_))
    whole = Predictor(model, X.columns).scores(X)
    alone = X.loc[:, model.genes_]
    np.testing.assert_array_equal(Predictor(model, alone.columns).scores(alone), whole)
    shuffled = X.loc[:, np.random.default_rng(seed).permutation(X.columns)].assign(
        more=1.0
    )
    found = Predictor(model, shuffled.columns).scores(shuffled)
    np.testing.assert_allclose(found, whole, atol=1e-11)


@pytest.mark.parametrize("make", [make_model, make_panel])
@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_a_narrowed_predictor_takes_the_columns_that_were_read(make, to):
    model = make(n_genes=40)
    X = to(make_samples(0, 5, 40))
    predictor = Predictor(model, model.feature_names_in_)
    assert len(predictor.columns) == model.genes_.sum() < 40
    narrow = predictor.narrowed()
    np.testing.assert_array_equal(
        narrow.predict(X[:, predictor.columns]).scores, predictor.predict(X).scores
    )


@pytest.mark.parametrize("make", [make_model, make_panel])
@pytest.mark.parametrize("compiled", [False, True])
def test_only_the_panel_is_looked_at_and_its_values_must_have_ranks(make, compiled):
    model, X = make(n_genes=20), make_samples(0, 3, 20)
    spoilt = X.copy()
    spoilt[:, ~model.genes_] = np.nan
    predictor = Predictor(model, compiled=compiled)
    np.testing.assert_array_equal(predictor.scores(spoilt), predictor.scores(X))
    X[1, np.flatnonzero(model.genes_)[0]] = np.nan
    for data in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match=r"NaN or infinite values"):
            predictor.scores(data)
    with pytest.raises(
        ValueError, match=r"shape \(2, 5\), but 20 columns were announced"
    ):
        predictor.scores(np.zeros((2, 5)))


def test_no_samples_give_no_predictions():
    for X in (np.zeros((0, 30)), sparse.csr_array((0, 30))):
        found = Predictor(make_panel(), adapt=True).predict(X)
        assert found.probabilities.shape == (0, 3)
        assert len(found.table()) == 0


def test_a_few_samples_never_load_numba_and_importing_loads_nothing_heavy(tmp_path):
    save(make_panel(), tmp_path / "m")
    code = (
        "import sys, optirank.model\n"
        "heavy = ('numba', 'sklearn', 'scipy', 'pandas', 'matplotlib', 'anndata')\n"
        "print([m for m in heavy if m in sys.modules])\n"
        "import numpy as np\n"
        "from optirank.model import Predictor, load\n"
        "Predictor(load(sys.argv[1])).predict(np.ones((100, 30)))\n"
        "print([m for m in ('numba', 'matplotlib', 'anndata') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["[]", "[]"]


def test_the_table_has_label_confidence_and_a_probability_per_class():
    found = Predictor(make_panel()).predict(make_samples(0, 4, 30))
    table = found.table(index=["a", "b", "c", "d"])
    assert table.columns.tolist() == [
        "label", "confidence", "probability_type 0", "probability_type 1", "probability_type 2"
    ]  # fmt: skip
    assert table.index.tolist() == ["a", "b", "c", "d"]


def test_a_class_called_unassigned_or_heterogeneous_is_told_from_withheld_labels():
    assert withheld_word(["a", "b"]) == "unassigned"
    assert withheld_word(["withheld", "unassigned", "withheld 2"]) == "withheld 3"
    assert mixed_word(["a"]) == "heterogeneous"
    assert mixed_word(["heterogeneous", "b"]) == "mixed"
    assert withheld_word(["a", "unassigned"]) == "withheld"


@pytest.mark.parametrize("make", [make_model, make_panel])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_calibration_changes_probabilities_and_no_label(make, n_classes):
    model = make(n_classes=n_classes)
    X = make_samples(0, 60, model.n_features_in_)
    plain = Predictor(model).predict(X)
    y = model.classes_[np.arange(60) % n_classes]
    model.calibration_ = fit_calibration(plain.scores, y, model.classes_)
    found = Predictor(model).predict(X)
    expected = model.calibration_.probabilities(plain.scores)
    np.testing.assert_allclose(found.probabilities, expected)
    assert (found.probabilities != plain.probabilities).any()
    assert (found.labels == plain.labels).all()


def test_the_target_error_of_the_training_acts_at_prediction():
    model = make_panel()
    assert Predictor(model).withholding() is None
    with pytest.raises(ValueError, match="stores no errors of held-out samples"):
        Predictor(model).withholding(0.1)
    confidence, correct = np.linspace(0.5, 1, 100), np.arange(100) >= 20
    model.error_control_ = fit_error_control(confidence, correct)
    assert Predictor(model).withholding() is None
    model.error_control_ = fit_error_control(confidence, correct, target_error=0.05)
    assert Predictor(model).withholding().threshold == pytest.approx(
        confidence[19], abs=0.01
    )
    assert Predictor(model).withholding(0.5).threshold == 0.0


@pytest.mark.timing
def test_two_hundred_thousand_cells_are_labelled_per_cpu_second():
    import time

    model = make_panel(n_classes=20, n_genes=100, sizes=(100,))
    X = np.random.default_rng(0).poisson(1.0, (20_000, 100)).astype(np.float32)
    predictor = Predictor(model, compiled=True)
    predictor.predict(X[:10])
    taken = []
    for _ in range(3):
        start = time.process_time()
        predictor.scores(X)
        taken.append(time.process_time() - start)
    assert 20_000 / min(taken) > 200_000
