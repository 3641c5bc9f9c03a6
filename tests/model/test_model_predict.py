"""Prediction gives what the definition says, from the panel's genes alone, whatever
the layout.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import (
    as_frame,
    full,
    make_model,
    make_panel,
    make_samples,
    models,
)
from scipy import sparse
from scipy.stats import rankdata

from optirank import Model, save
from optirank.datasets import DataError
from optirank.model.confidence import fit_calibration
from optirank.ranks.scoring import panel_ranks
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
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "untidy": untidy,
}


def scores_by_definition(model: Model, X: np.ndarray) -> np.ndarray:
    """Votes of all pairs of genes, or weighted ranks relative to reference sets."""
    panel = model.panel
    values = X[:, panel.columns]
    if panel.references is None:
        signs = np.sign(values[:, :, None] - values[:, None, :])
        votes = signs.sum(axis=2) / (2 * len(panel.columns))
        return votes @ panel.coef.T
    references = panel.references
    scores = [
        ranks_by_definition(values, gamma, references.ties) @ w / gamma.sum() + b
        for w, gamma, b in zip(
            panel.coef, references.weights, references.intercept, strict=True
        )
    ]
    return np.array(scores).T


def panel_scores(model, X, *, compiled):
    """Scores with compiled loops or without, whatever pays."""
    X, match = model.align(X)
    return model.panel.scores(X, match.present, match.columns, compiled=compiled)


@pytest.mark.parametrize("compiled", [False, True])
@given(models, st.integers(0, 1000), st.sampled_from(sorted(LAYOUTS)), st.floats(0, 1))
def test_scores_are_what_the_definition_says(compiled, model, seed, layout, density):
    X = make_samples(seed, 6, model.n_features, density)
    scores = panel_scores(model, LAYOUTS[layout](X), compiled=compiled)
    expected = scores_by_definition(model, X)
    expected = expected[:, 0] if expected.shape[1] == 1 else expected
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n_genes", [1, 7, 300])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_compiled_ranks_are_those_of_numpy_and_scipy(n_genes, density):
    X = make_samples(0, 20, n_genes, density) + np.round(
        make_samples(1, 20, n_genes, density), 1
    )
    for data in (X, X.astype(np.float32), X.astype(np.int64), sparse.csr_array(X)):
        dense = data.toarray() if sparse.issparse(data) else data
        expected = (rankdata(dense.astype(float), axis=1) - 1) / n_genes
        for compiled in (False, True):
            ranks = panel_ranks(data, compiled=compiled)
            np.testing.assert_allclose(ranks, expected, rtol=1e-14, atol=1e-15)


@given(models, st.integers(0, 1000))
def test_labels_are_of_the_highest_score_and_probabilities_sum_to_one(model, seed):
    X = make_samples(seed, 6, model.n_features)
    scores = model.decision_function(X)
    labels = model.predict(X)
    assert labels.dtype == model.classes.dtype
    chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    np.testing.assert_array_equal(labels, model.classes[chosen])
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        probabilities[np.arange(6), chosen], probabilities.max(axis=1), atol=1e-12
    )


@given(models, st.integers(0, 1000))
def test_a_frame_is_read_by_its_names_in_any_order_with_other_columns(model, seed):
    X = as_frame(model, make_samples(seed, 6, model.n_features))
    whole = model.decision_function(X)
    alone = X[model.genes]
    np.testing.assert_allclose(model.decision_function(alone), whole, atol=1e-11)
    mixed = X.sample(frac=1, axis=1, random_state=seed).assign(more=1.0)
    np.testing.assert_allclose(model.decision_function(mixed), whole, atol=1e-11)
    np.testing.assert_array_equal(model.predict(mixed), model.predict(X))
    named = model.decision_function(mixed.to_numpy(), genes=mixed.columns)
    np.testing.assert_array_equal(named, model.decision_function(mixed))


def test_a_frame_most_of_whose_genes_are_in_another_case_is_refused():
    model = make_panel(n_genes=20)
    X = as_frame(model, make_samples(0, 3, model.n_features))
    with pytest.raises(DataError, match="another case only"):
        model.predict(X.rename(columns=str.swapcase))


def test_an_array_without_names_must_have_the_columns_of_the_training():
    model = make_panel()
    with pytest.raises(
        ValueError, match=r"\(2, 5\), but .* training data have 30.*genes="
    ):
        model.predict(np.zeros((2, 5)))


def test_an_anndata_is_refused_with_the_function_to_use():
    class LooksLikeAnnData:
        obs_names = ()

    with pytest.raises(TypeError, match=r"optirank\.tl\.annotate"):
        make_panel().predict(LooksLikeAnnData())


@pytest.mark.parametrize("make", [make_model, make_panel])
@pytest.mark.parametrize("compiled", [False, True])
def test_only_the_panel_is_looked_at_and_its_values_must_have_ranks(make, compiled):
    model = make(n_genes=20)
    X = make_samples(0, 3, 20)
    spoilt = X.copy()
    spoilt[:, np.setdiff1d(np.arange(20), model.panel.columns)] = np.nan
    np.testing.assert_array_equal(
        panel_scores(model, spoilt, compiled=compiled),
        panel_scores(model, X, compiled=compiled),
    )
    X[1, model.panel.columns[0]] = np.nan
    for data in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match=r"NaN or infinite values"):
            panel_scores(model, data, compiled=compiled)


def test_no_samples_give_no_predictions():
    for X in (np.zeros((0, 30)), sparse.csr_array((0, 30))):
        assert make_panel().predict_proba(X).shape == (0, 3)


def test_a_few_samples_never_load_numba_and_importing_loads_nothing_heavy(tmp_path):
    save(make_panel(), tmp_path / "m")
    code = (
        "import sys, optirank.model\n"
        "heavy = ('numba', 'sklearn', 'scipy', 'pandas', 'matplotlib', 'anndata')\n"
        "print([m for m in heavy if m in sys.modules])\n"
        "import numpy as np\n"
        "from optirank.model import load\n"
        "load(sys.argv[1]).predict(np.ones((100, 30)))\n"
        "print([m for m in ('numba', 'matplotlib', 'anndata') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["[]", "[]"]


@pytest.mark.parametrize("make", [make_model, make_panel])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_calibration_changes_probabilities_and_no_label(make, n_classes):
    model = make(n_classes=n_classes)
    X = make_samples(0, 60, model.n_features)
    scores = model.decision_function(X)
    y = model.classes[np.arange(60) % n_classes]
    calibration = fit_calibration(scores, y, model.classes)
    panel = replace(model.panel, calibration=calibration)
    calibrated = replace(model, panels={model.n_genes: panel})
    expected = calibration.probabilities(scores)
    np.testing.assert_allclose(calibrated.predict_proba(X), expected)
    assert (expected != model.predict_proba(X)).any()
    assert (calibrated.predict(X) == model.predict(X)).all()


def test_a_smaller_model_has_its_own_weights_and_nothing_of_the_larger_one():
    model = full(make_panel())
    small = model.smaller(6)
    assert small.n_genes == len(small.genes) == 6
    assert sorted(small.panels) == [3, 6]
    assert small.panel.calibration is None
    assert small.card.balanced_accuracy is None
    assert not small.card.judged
    assert [size for size, *_ in small.card.curve] == [3]
    assert model.smaller(10) is model
    with pytest.raises(ValueError, match=r"no panel of 7 genes.*3, 6, 10 genes"):
        model.smaller(7)


def test_a_model_cannot_be_changed():
    model = make_panel()
    with pytest.raises(AttributeError):
        model.n_genes = 3
    with pytest.raises(ValueError, match="no panel of 7 genes"):
        replace(model, n_genes=7)
    assert repr(full(model)) == "<optirank.Model 'random': 3 classes, 10 genes>"
