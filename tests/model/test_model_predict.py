"""Prediction by blocks gives the estimator's results, from the panel's genes alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_cases import make_model, make_samples, models, own_scores
from scipy import sparse

from optirank.model import Predictor, fit_calibration, predict_samples, save
from optirank.model.missing import bind
from optirank.ranks import scoring
from optirank.ranks.definition import ranks_by_definition

LAYOUTS = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "int": lambda X: X.astype(np.int64),
    "csr": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "frame": pd.DataFrame,
}


def untidy(X: np.ndarray) -> sparse.csr_array:
    """A CSR matrix with stored zeros and values given in two parts."""
    rows, columns = (part.ravel() for part in np.indices(X.shape))
    halves = np.concatenate([X.ravel() / 2, X.ravel() / 2])
    where = (np.tile(rows, 2), np.tile(columns, 2))
    return sparse.csr_array(sparse.coo_array((halves, where), shape=X.shape))


@pytest.mark.parametrize("compiled", [False, True])
@given(models, st.integers(0, 1000), st.sampled_from(sorted(LAYOUTS)), st.floats(0, 1))
def test_scores_are_the_estimator_s_whatever_the_layout(compiled, model, seed, layout, density):
    X = make_samples(seed, 6, model.n_features_in_, density)
    found = Predictor(model, compiled=compiled).scores(LAYOUTS[layout](X))
    np.testing.assert_allclose(found, own_scores(model, X), rtol=1e-10, atol=1e-10)


@given(models, st.integers(0, 1000), st.booleans())
def test_compiled_loops_give_what_numpy_gives(model, seed, as_sparse):
    X = make_samples(seed, 6, model.n_features_in_, 0.9 if seed % 2 else 0.2)
    bound = bind(model)
    block = X[:, bound.columns]
    block = sparse.csr_array(block) if as_sparse else block
    compiled, plain = (bound.rows.scores(block, compiled=way) for way in (True, False))
    np.testing.assert_allclose(compiled, plain, rtol=1e-11, atol=1e-11)


@given(models, st.integers(0, 1000))
def test_scores_are_what_the_definition_says(model, seed):
    X = make_samples(seed, 3, model.n_features_in_)
    rows = [
        ranks_by_definition(X, gamma, model.ties) @ w / gamma.sum() + b
        for w, gamma, b in zip(model.coef_, model.reference_weights_, model.intercept_, strict=True)
    ]
    n_problems = 1 if len(model.classes_) == 2 else len(model.classes_)
    expected = np.array(rows).T.reshape(3, n_problems, -1).mean(axis=2)
    found = Predictor(model).scores(X).reshape(3, n_problems)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("compiled", [False, True])
def test_stored_zeros_and_values_in_parts_change_nothing(compiled):
    model = make_model(n_genes=20)
    X = make_samples(0, 5, 20)
    predictor = Predictor(model, compiled=compiled)
    np.testing.assert_allclose(predictor.scores(untidy(X)), predictor.scores(X), atol=1e-12)


@given(models, st.integers(0, 1000))
def test_labels_and_probabilities_are_the_estimator_s(model, seed):
    X = make_samples(seed, 6, model.n_features_in_)
    found = Predictor(model).predict(X)
    names = getattr(model, "feature_names_in_", None)
    frame = X if names is None else pd.DataFrame(X, columns=names)
    np.testing.assert_allclose(found.probabilities, model.predict_proba(frame), atol=1e-9)
    np.testing.assert_array_equal(found.labels, model.predict(frame))
    assert found.labels.dtype == model.classes_.dtype
    np.testing.assert_allclose(found.confidence, found.probabilities.max(axis=1), atol=1e-12)


@given(models.filter(lambda m: hasattr(m, "feature_names_in_")), st.integers(0, 1000))
def test_the_panel_s_genes_alone_give_the_same_as_all_genes(model, seed):
    X = pd.DataFrame(make_samples(seed, 6, model.n_features_in_), columns=model.feature_names_in_)
    whole = predict_samples(model, X)
    alone = predict_samples(model, X.loc[:, model.genes_])
    np.testing.assert_array_equal(alone.scores, whole.scores)
    shuffled = X.loc[:, np.random.default_rng(seed).permutation(X.columns)].assign(more=1.0)
    np.testing.assert_allclose(predict_samples(model, shuffled).scores, whole.scores, atol=1e-11)


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_a_narrowed_predictor_takes_the_columns_that_were_read(to):
    model = make_model(n_genes=40)
    X = to(make_samples(0, 5, 40))
    predictor = Predictor(model, model.feature_names_in_)
    assert len(predictor.columns) == model.genes_.sum() < 40
    narrow = predictor.narrowed()
    assert narrow.narrowed().columns.tolist() == narrow.columns.tolist()
    np.testing.assert_array_equal(
        narrow.predict(X[:, predictor.columns]).scores, predictor.predict(X).scores
    )


def test_genes_outside_the_panel_are_not_looked_at():
    model = make_model(n_genes=20)
    X = make_samples(0, 3, 20)
    spoilt = X.copy()
    spoilt[:, ~model.genes_] = np.nan
    np.testing.assert_array_equal(Predictor(model).scores(spoilt), Predictor(model).scores(X))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array])
def test_values_without_a_rank_are_refused(compiled, to):
    X = make_samples(0, 3, 12)
    X[1, np.flatnonzero(make_model().genes_)[0]] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinite values.*\(1 in the genes needed\)"):
        Predictor(make_model(), compiled=compiled).scores(to(X))


def test_another_number_of_columns_is_refused():
    with pytest.raises(ValueError, match=r"shape \(2, 5\), but 12 columns were announced"):
        Predictor(make_model()).scores(np.zeros((2, 5)))


def test_no_samples_give_no_predictions():
    for X in (np.zeros((0, 12)), sparse.csr_array((0, 12))):
        found = Predictor(make_model()).predict(X)
        assert found.probabilities.shape == (0, 3)
        assert len(found.table()) == 0


def test_blocks_are_cut_and_joined(monkeypatch):
    X = make_samples(0, 50, 12)
    whole = Predictor(make_model()).scores(X)
    monkeypatch.setattr(scoring, "_BLOCK", 70)
    for data in (X, sparse.csr_array(X), sparse.csc_array(X)):
        np.testing.assert_array_equal(Predictor(make_model()).scores(data), whole)


def test_compiled_loops_take_over_once_there_is_enough_to_do(monkeypatch):
    used = []
    for name in ("_plain_scores", "_compiled_scores"):
        score = getattr(scoring.ScoreRows, name)
        monkeypatch.setattr(
            scoring.ScoreRows, name, lambda rows, X, s=score, n=name: used.append(n) or s(rows, X)
        )
    monkeypatch.setattr(scoring, "_COMPILE_FROM", 13 * 25)
    predictor = Predictor(make_model())
    for _ in range(3):
        predictor.scores(make_samples(0, 10, 12))
    assert used == ["_plain_scores", "_plain_scores", "_compiled_scores"]


def test_a_few_samples_never_load_numba(tmp_path):
    save(make_model(n_genes=30), tmp_path / "m")
    code = (
        "import sys, numpy as np\n"
        "from optirank.model import Predictor, load\n"
        "Predictor(load(sys.argv[1])).predict(np.ones((100, 30)))\n"
        "print([m for m in ('numba', 'matplotlib', 'anndata') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_importing_the_room_loads_nothing_heavy():
    heavy = ("numba", "sklearn", "scipy", "pandas", "matplotlib", "anndata")
    code = f"import sys, optirank.model; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_table_has_label_confidence_and_a_probability_a_class():
    found = Predictor(make_model()).predict(make_samples(0, 4, 12))
    table = found.table(index=["a", "b", "c", "d"])
    assert table.columns.tolist() == [
        "label", "confidence", "probability_type 0", "probability_type 1", "probability_type 2"
    ]  # fmt: skip
    assert table.index.tolist() == ["a", "b", "c", "d"]
    threshold = np.median(found.confidence)
    withheld = found.table(threshold=threshold)["label"].to_numpy()
    low = found.confidence < threshold
    assert 0 < low.sum() < 4
    assert set(withheld[low]) == {"unassigned"}
    assert (withheld[~low] == found.labels[~low]).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_calibration_changes_probabilities_and_no_label(n_classes):
    model = make_model(n_classes=n_classes)
    X = make_samples(0, 60, 12)
    scores = Predictor(model).scores(X)
    y = model.classes_[np.arange(60) % n_classes]
    plain = Predictor(model).predict(X)
    model.calibration_ = fit_calibration(scores, y, model.classes_)
    found = Predictor(model).predict(X)
    np.testing.assert_allclose(found.probabilities, model.calibration_.probabilities(scores))
    np.testing.assert_allclose(found.confidence, found.probabilities.max(axis=1))
    assert (found.probabilities != plain.probabilities).any()
    assert (found.labels == plain.labels).all()
    off = Predictor(model, calibrated=False).predict(X)
    np.testing.assert_array_equal(off.probabilities, plain.probabilities)
    assert (off.labels == plain.labels).all()


@pytest.mark.timing
def test_twenty_classes_are_predicted_at_ten_thousand_cells_a_second():
    import time

    model = make_model(n_classes=20, n_genes=20_000, n_weights=200)
    model.reference_weights_[:] = 0
    for k, gamma in enumerate(model.reference_weights_):
        gamma[np.random.default_rng(k).choice(20_000, 200, replace=False)] = 1
    rng = np.random.default_rng(0)
    X = sparse.random_array((3000, 20_000), density=0.05, format="csr", rng=rng, dtype=np.float32)
    predictor = Predictor(model, compiled=True)
    predictor.predict(X[:10])
    taken = []
    for _ in range(3):
        start = time.process_time()
        predictor.predict(X)
        taken.append(time.process_time() - start)
    assert 3000 / min(taken) > 10_000
