"""OptirankClassifier: what it needs, what it keeps, what it refuses, and how well
it does.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import balanced_accuracy_score

from optirank import OptirankClassifier, RankLogisticRegression
from optirank.datasets import make_unstable_ranks
from optirank.ranks.orders import DENSE_ABOVE
from optirank.ranks.scoring import TIES
from rank_definition import ranks_by_definition

MODELS = {
    "default": {},
    "falling": {"side": "falling"},
    "sparse weights": {"l1": 5e-3},
    "fractional": {"solver_options": {"integral": False}},
    "bpcd": {"algorithm": "bpcd"},
}


FRACTIONAL = MODELS["fractional"]


def make_data(n=90, d=15, n_classes=2, seed=0):
    """Counts with ties and zeros; each class raises two genes and lowers two."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rate = np.tile(rng.uniform(1, 8, size=d), (n, 1))
    for k in range(n_classes):
        up, down = rng.choice(d, size=(2, 2), replace=False)
        rate[np.ix_(y == k, up)] *= 3
        rate[np.ix_(y == k, down)] *= 0.3
    return rng.poisson(rate).astype(float), y


@pytest.fixture(scope="module")
def binary():
    return make_data()


@pytest.fixture(scope="module")
def three_classes():
    return make_data(n_classes=3)


def small(**settings):
    return OptirankClassifier(**{"n_reference": 4, **settings})


def brute_force_scores(model, X, row=0):
    gamma = model.reference_weights_[row]
    ranks = ranks_by_definition(X, gamma, model.ties)
    return ranks @ model.coef_[row] / gamma.sum() + model.intercept_[row]


# What is learned


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_scores_are_the_definition(binary, settings, ties):
    X, y = binary
    model = small(**settings, ties=ties).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), brute_force_scores(model, X), atol=1e-9
    )


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_the_objective_is_that_of_the_model(binary, settings):
    X, y = binary
    model = small(**settings).fit(X, y)
    z, w = brute_force_scores(model, X), model.coef_[0]
    v = 0.5 / np.where(y == 1, y.sum(), (1 - y).sum())
    expected = (
        v @ (np.logaddexp(0, z) - y * z) + model.l1 * np.abs(w).sum() + 1e-3 * w @ w
    )
    assert model.objective_[0] == pytest.approx(expected, rel=1e-9)
    gamma = model.reference_weights_[0]
    assert gamma.sum() == pytest.approx(4)
    assert ((gamma >= 0) & (gamma <= 1)).all()


def test_each_of_several_classes_is_a_problem_of_its_own(three_classes):
    X, y = three_classes
    model = small(l1=2e-2).fit(X, np.array(["a", "b", "c"])[y])
    np.testing.assert_array_equal(model.classes_, ["a", "b", "c"])
    assert (
        model.coef_.shape
        == model.reference_.shape
        == model.reference_weights_.shape
        == (3, 15)
    )
    assert (
        model.intercept_.shape == model.objective_.shape == model.n_iter_.shape == (3,)
    )
    assert len(model.path_) == 3
    np.testing.assert_array_equal(model.reference_.sum(axis=1), 4)
    needed = (model.reference_ | (model.coef_ != 0)).any(axis=0)
    np.testing.assert_array_equal(model.genes_, needed)
    for k in range(3):
        one = small(l1=2e-2).fit(X, y == k)
        np.testing.assert_array_equal(model.coef_[k], one.coef_[0])
        np.testing.assert_array_equal(model.reference_[k], one.reference_[0])
        np.testing.assert_allclose(
            model.decision_function(X)[:, k], one.decision_function(X)
        )


@pytest.mark.parametrize("l1", [0.0, 2e-3])
@pytest.mark.parametrize("ties", TIES)
def test_with_all_genes_as_reference_it_is_rank_logistic_regression(binary, l1, ties):
    X, y = binary
    for everything in (1.0, 15):
        ours = OptirankClassifier(everything, l1, ties=ties).fit(X, y)
        rank_lr = RankLogisticRegression(l1, ties=ties).fit(X, y)
        np.testing.assert_array_equal(ours.coef_, rank_lr.coef_)
        np.testing.assert_array_equal(ours.intercept_, rank_lr.intercept_)


def test_probabilities_are_logistic_and_sum_to_one(binary, three_classes):
    X, y = binary
    model = small().fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    X, y = three_classes
    model = small().fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    assert model.score(X, y) > 0.8


# What it is blind to


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_monotone_maps_of_the_samples_change_nothing(binary, settings):
    X, y = binary
    rng = np.random.default_rng(0)
    model = small(**settings).fit(X, y)
    stretched = rng.uniform(0.1, 9, size=(90, 1)) * X + rng.normal(size=(90, 1))
    bent = np.log1p(X) ** 3
    for mapped in (stretched, bent):
        np.testing.assert_allclose(
            model.decision_function(mapped), model.decision_function(X)
        )
        again = small(**settings).fit(mapped, y)
        np.testing.assert_array_equal(again.coef_, model.coef_)
        np.testing.assert_array_equal(again.reference_, model.reference_)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_prediction_looks_at_no_other_genes(binary, container):
    X, y = binary
    model = small(l1=2e-2).fit(X, y)
    spoilt = X.copy()
    spoilt[:, ~model.genes_] = np.random.default_rng(0).normal(
        scale=1e9, size=(90, (~model.genes_).sum())
    )
    assert not model.genes_.all()
    scores = model.decision_function(container(spoilt))
    np.testing.assert_array_equal(scores, model.decision_function(container(X)))


# Kinds of input


FORMS = {
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "int": lambda X: X.astype(np.int64),
    "small int": lambda X: X.astype(np.uint8),
    "float32": lambda X: X.astype(np.float32),
    "lists": lambda X: X.tolist(),
    "frame": pd.DataFrame,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_the_form_of_dense_data_does_not_matter(binary, form):
    X, y = binary
    plain = small().fit(X, y)
    model = small().fit(form(X), y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(
        model.decision_function(form(X)), plain.decision_function(X)
    )


@pytest.mark.parametrize(
    "form", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array]
)
def test_sparse_data_with_many_non_zeros_give_the_very_same_model(binary, form):
    X, y = binary
    plain = small().fit(X, y)
    model = small().fit(form(X), y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_allclose(
        model.decision_function(form(X)), plain.decision_function(X)
    )


def test_data_that_are_really_sparse_give_as_good_a_model():
    rng = np.random.default_rng(1)
    y = np.arange(200) % 2
    X = rng.poisson(np.where(rng.random(120) < 0.2, 0.3, 0.04) + np.zeros((200, 120)))
    X[:, :6] += rng.poisson(0.8 * y[:, None], size=(200, 6))
    X = X.astype(float)
    assert np.count_nonzero(X) < DENSE_ABOVE * X.size
    dense, sparse = small().fit(X, y), small().fit(sp.csr_array(X), y)
    assert sparse.reference_.sum() == 4
    assert sparse.objective_[0] <= 1.03 * dense.objective_[0]
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(X)),
        sparse.decision_function(X),
        atol=1e-9,
    )


def test_names_of_genes_are_kept_and_a_wrong_number_is_refused(binary):
    X, y = binary
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(15)])
    model = small().fit(frame, y)
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="15 features"):
        small().fit(X, y).predict(X[:, :4])


def test_a_weight_of_two_is_the_sample_twice(binary):
    X, y = binary
    weights = np.random.default_rng(0).integers(0, 4, size=90)
    twice = np.repeat(np.arange(90), weights)
    for settings, atol in (
        ({}, 1e-5),
        (FRACTIONAL, 1e-4),
        ({"class_weight": None}, 1e-5),
    ):
        weighted = small(**settings).fit(X, y, sample_weight=weights)
        repeated = small(**settings).fit(X[twice], y[twice])
        np.testing.assert_array_equal(weighted.reference_, repeated.reference_)
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=atol)
        np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-6)


# A good citizen


def test_threads_change_nothing(three_classes):
    X, y = three_classes
    alone, together = small().fit(X, y), small(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(alone.coef_, together.coef_)
    np.testing.assert_array_equal(alone.reference_, together.reference_)
    np.testing.assert_array_equal(alone.intercept_, together.intercept_)


def test_its_repr_names_what_was_set():
    text = repr(OptirankClassifier(0.1, side="rising"))
    assert text == "OptirankClassifier(n_reference=0.1, side='rising')"


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
def test_verbose_tells_of_every_stage(three_classes, settings, capsys):
    small(**settings, verbose=1).fit(*three_classes)
    lines = capsys.readouterr().out.splitlines()
    for label in ("0", "1", "2"):
        assert any(line.startswith(f"[OptirankClassifier] {label}: ") for line in lines)
    assert any("objective" in line for line in lines)


def test_too_few_steps_warn_and_name_the_remedy(binary):
    X, y = binary
    for settings in ({"n_reference": 1.0}, FRACTIONAL):
        model = small(max_iter=1, tol=1e-9, **settings)
        with pytest.warns(ConvergenceWarning, match="raise max_iter") as caught:
            model.fit(X, y)
        assert caught[0].filename == __file__
        assert np.isfinite(model.decision_function(X)).all()


# Edge cases


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(
    "X",
    [
        np.array([[1.0], [2.0], [3.0], [4.0]]),
        np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 3.0], [4.0, 1.0]]),
        np.zeros((4, 3)),
        np.array([[0.0, 0, 0, 0], [1, 2, 3, 4], [0, 0, 0, 0], [1, 2, 3, 4]]),
        np.tile(np.array([[1.0], [2.0], [3.0], [1.0]]), (1, 5)),
    ],
    ids=["one gene", "two genes", "constant", "empty samples", "copies"],
)
def test_small_and_dull_data_are_fitted(X, settings):
    for n_reference in {1, X.shape[1]}:
        model = OptirankClassifier(n_reference, **settings).fit(X, [0, 1, 0, 1])
        assert np.isfinite(model.decision_function(X)).all()
        assert model.reference_weights_.sum() == pytest.approx(
            n_reference * len(model.coef_)
        )


@pytest.mark.parametrize(
    ("n_reference", "n_genes", "count"),
    [
        (0.2, 50, 10), (0.05, 1000, 50), (0.29, 100, 29), (0.1, 5, 1), (1e-9, 5, 1), (1.0, 7, 7),
        (1, 7, 1), (7, 7, 7), (np.int64(3), 7, 3), (np.float32(0.5), 8, 4), (0.6, 5, 3),
    ],
)  # fmt: skip
def test_a_fraction_is_rounded_down_and_a_count_is_taken(n_reference, n_genes, count):
    X = np.random.default_rng(0).normal(size=(4, n_genes))
    model = OptirankClassifier(n_reference, solver_options={"polish": False}).fit(
        X, [0, 1, 0, 1]
    )
    assert model.reference_.sum() == count


@pytest.mark.parametrize(
    ("n_reference", "message"),
    [
        (0, "leaves no reference gene"), (-1, "leaves no reference gene"), (1.5, "no fraction"),
        (0.0, "no fraction"), (float("nan"), "no fraction"), (True, "fraction in"),
        ("a", "fraction in"), (None, "fraction in"), (16, "more than the 15 genes"),
    ],
)  # fmt: skip
def test_a_wrong_size_of_the_reference_is_refused(binary, n_reference, message):
    with pytest.raises(ValueError, match=message) as error:
        OptirankClassifier(n_reference).fit(*binary)
    assert str(n_reference) in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"l1": -1e-3}, r"'l1' .* in the range \[0.0, inf\). Got -0.001"), ({"l2": -1}, r"'l2' .* Got -1"),
        ({"l1": float("nan")}, r"'l1' .* Got nan"), ({"l2": float("inf")}, r"'l2' .* Got inf"),
        ({"l1": "a"}, r"'l1' .* Got 'a'"), ({"l1": (1e-3, 1e-2)}, "'l1' .* must be a float"),
        ({"tol": 0}, r"'tol' .* Got 0"), ({"max_iter": 0}, r"'max_iter' .* Got 0"),
        ({"ties": "first"}, r"'ties' .*'average'.* Got 'first'"),
        ({"algorithm": "fast"}, r"'algorithm' .*'bpcd'.* Got 'fast'"),
        ({"side": "both"}, r"'side' .*'rising'.* Got 'both'"),
        ({"class_weight": "equal"}, r"'class_weight' .*'balanced'.* Got 'equal'"),
        ({"class_weight": {5: 1.0}}, "names 5, which is not a class"),
        ({"class_weight": {1: -1.0}}, "class_weight.*-1"),
        ({"algorithm": "bpcd", "side": "rising"}, "side='rising' with algorithm='bpcd'"),
        ({"reference_candidates": []}, "reference_candidates is empty"),
        ({"reference_candidates": [1, 2, 3]}, "more than the 3 candidate genes"),
        ({"solver_options": 7}, r"'solver_options' .* 'dict' or None. Got 7"),
        ({"solver_options": {"speed": 1}}, "has 'speed'.*path_step, integral, polish, refit"),
        ({"solver_options": {"path_step": 0}}, r"'path_step' parameter of solver_options .* Got 0"),
        ({"solver_options": {"polish": "no"}}, r"'polish' .* 'bool'.* Got 'no'"),
    ],
)  # fmt: skip
def test_options_without_sense_are_refused(binary, settings, message):
    with pytest.raises(ValueError, match=message):
        small(**settings).fit(*binary)


def test_only_candidates_are_in_the_reference_set(binary):
    X, y = binary
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(15)])
    mask = np.arange(15) < 6
    models = [
        OptirankClassifier(0.5, reference_candidates=given).fit(frame, y)
        for given in (mask, np.arange(6), [f"gene{j}" for j in range(6)])
    ]
    for model in models:
        assert model.reference_.sum() == 3
        assert not model.reference_[:, 6:].any()
        assert (model.coef_[:, 6:] != 0).any()
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_data_without_sense_are_refused(binary):
    X, y = binary
    with pytest.raises(ValueError, match="one class only"):
        small().fit(X, np.zeros(90))
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        small().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="Unknown label type"):
        small().fit(X, np.linspace(0, 1, 90))
    for bad in (np.nan, np.inf):
        spoilt = X.copy()
        spoilt[3, 2] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            small().fit(spoilt, y)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            small().fit(X, y).predict(spoilt)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        small().fit(X, y[:-1])
    with pytest.raises(NotFittedError):
        small().predict(X)


def test_weights_without_sense_are_refused(binary):
    X, y = binary
    with pytest.raises(ValueError, match=r"Negative values|non-negative|negative"):
        small().fit(X, y, sample_weight=-np.ones(90))
    with pytest.raises(ValueError, match="class 1 are all zero"):
        small().fit(X, y, sample_weight=1.0 - y)


# Quality on the paper's synthetic model


def quality(seed):
    """Balanced test accuracy of the learned and of the true reference set, and their
    cosine.

    700 samples to train on, 300 to choose l2, 300 to test.
    """
    data = make_unstable_ranks(1300, random_state=seed)
    train, held_out, test = slice(700), slice(700, 1000), slice(1000, None)

    def best(make):
        models = [
            make(l2).fit(data.X[train], data.y[train]) for l2 in (0.0, 1e-6, 1e-5, 1e-4)
        ]

        def score(model, part):
            return balanced_accuracy_score(data.y[part], model.predict(data.X[part]))

        chosen = max(models, key=lambda model: score(model, held_out))
        return chosen, score(chosen, test)

    learned, ours = best(lambda l2: OptirankClassifier(10, l2=l2))
    true = {"reference_candidates": data.reference}
    _, given = best(lambda l2: OptirankClassifier(1.0, l2=l2, **true))
    return ours, given, (learned.reference_[0] & data.reference).sum() / 10


def test_the_synthetic_task_is_solved_as_well_as_with_the_true_reference():
    ours, given, cosines = np.mean([quality(seed) for seed in range(2)], axis=0)
    assert ours >= given - 0.015
    assert cosines >= 0.85


@pytest.mark.parametrize("max_iter", [1, 20, 60])
def test_max_iter_is_kept_and_a_warning_comes(binary, max_iter):
    with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}"):
        model = small(max_iter=max_iter).fit(*binary)
    assert model.n_iter_[0] <= max_iter + 40  # a stage under way is ended


def test_the_first_fit_says_that_it_compiles(binary, monkeypatch, caplog):
    monkeypatch.setattr("optirank._compiled.jit.is_compiled", lambda function: False)
    small().fit(*binary)
    assert "the first fit compiles its loops" in caplog.text
    caplog.clear()
    monkeypatch.undo()
    small().fit(*binary)
    assert not caplog.text
