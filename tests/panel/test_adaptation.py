"""Learning from the query: the reference's recipe, in blocks, the same every time."""

import functools
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from optirank._util.work import using_threads
from optirank.panel import further
from optirank.panel.further import learn_from_query, sharpened
from optirank.panel.samples import fold_matrix


def query(n=240, d=300, n_classes=3, seed=0, sure=1.0):
    """Counts with markers of each class, and probabilities that are often wrong."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    rates = np.exp(rng.normal(0.0, 1.0, d)) * np.ones((n, 1))
    for k in range(n_classes):
        rates[np.ix_(codes == k, range(20 * k, 20 * k + 20))] *= 4.0
    scores = rng.normal(size=(n, n_classes))
    scores[np.arange(n), codes] += sure
    return rng.poisson(rates).astype(float), codes, softmax(scores, axis=1)


def learn(probabilities, X, **options):
    """Learning from a query in memory."""
    run_pass = functools.partial(fold_matrix, X)
    return learn_from_query(probabilities, run_pass, X.shape[1], **options)


def in_plain_scikit_learn(probabilities, X, rounds=2, keep=0.8):
    """The definition, on all genes of X."""
    ranks = rankdata(X, axis=1) / X.shape[1]
    current = probabilities
    for _ in range(rounds):
        labels = current.argmax(axis=1)
        surest = []
        for label in np.unique(labels):
            own = np.flatnonzero(labels == label)
            order = own[np.argsort(-current[own, label], kind="stable")]
            surest += order[: max(3, int(np.ceil(keep * len(own))))].tolist()
        model = LogisticRegression(C=0.01, class_weight="balanced", tol=1e-3)
        model.fit(ranks[surest] - ranks.mean(axis=0), labels[surest])
        seen = np.full(probabilities.shape, 1e-6)
        given = model.predict_proba(ranks - ranks.mean(axis=0))
        seen[:, model.classes_] = np.maximum(given, 1e-6)
        seen /= seen.sum(axis=1, keepdims=True)
        mixed = 0.5 * np.log(np.maximum(probabilities, 1e-9)) + 0.5 * np.log(seen)
        current = softmax(mixed, axis=1)
    return current


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_is_the_recipe_in_scikit_learn(n_classes):
    X, _, probabilities = query(n_classes=n_classes)
    learned = learn(probabilities, X)
    expected = in_plain_scikit_learn(probabilities, X)
    assert (learned.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.98
    np.testing.assert_allclose(learned, expected, atol=0.03)  # both stop at 1e-3


def test_corrects_labels_that_were_wrong():
    X, codes, probabilities = query()
    learned = learn(probabilities, X)
    before = balanced_accuracy_score(codes, probabilities.argmax(axis=1))
    after = balanced_accuracy_score(codes, learned.argmax(axis=1))
    assert after > before + 0.1
    np.testing.assert_allclose(learned.sum(axis=1), 1.0)


def test_forms_threads_and_blocks_change_nothing(monkeypatch):
    X, _, probabilities = query()
    first = learn(probabilities, X)
    for form in (sparse.csr_matrix, sparse.csc_array):
        with using_threads(2):
            other = learn(probabilities, form(X))
        np.testing.assert_array_equal(first, other)
    monkeypatch.setattr("optirank.panel.samples._BLOCK_ENTRIES", 300 * 17)
    blocks = learn(probabilities, X)
    np.testing.assert_allclose(first, blocks, atol=1e-6)


def test_a_monotone_map_of_the_values_changes_nothing_where_all_genes_take_part():
    X, _, probabilities = query()
    first = learn(probabilities, X)
    other = learn(probabilities, np.log1p(X) / 3)
    np.testing.assert_array_equal(first, other)


def test_large_queries_are_learned_from_a_fixed_number_of_samples(monkeypatch):
    X, codes, probabilities = query(n=600)
    whole = learn(probabilities, X)
    monkeypatch.setattr(further, "_MOST", 60)
    few = learn(probabilities, X)
    before = balanced_accuracy_score(codes, probabilities.argmax(axis=1))
    assert balanced_accuracy_score(codes, few.argmax(axis=1)) > before + 0.1
    assert not np.array_equal(few, whole)


def test_a_class_that_no_sample_got_stays_improbable():
    X, _, probabilities = query()
    probabilities[:, 2] = 1e-4
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    learned = learn(probabilities, X)
    assert learned[:, 2].max() < 0.01


@pytest.mark.parametrize("case", ["one label", "no gene varies"])
def test_where_there_is_nothing_to_learn_probabilities_stay(case):
    X, _, probabilities = query(n=30)
    if case == "one label":
        probabilities = np.tile([0.8, 0.1, 0.1], (30, 1))
    else:
        X = np.ones_like(X)
    np.testing.assert_array_equal(learn(probabilities, X), probabilities)


@pytest.mark.skipif(
    "OPTIRANK_PROTOTYPE" not in os.environ,
    reason="OPTIRANK_PROTOTYPE does not name the reference implementation",
)
def test_equals_the_reference_implementation():
    path = Path(os.environ["OPTIRANK_PROTOTYPE"])
    spec = importlib.util.spec_from_file_location("prototype", path)
    prototype = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prototype)
    X, _, probabilities = query()
    learned = learn(probabilities, X)
    expected = prototype.adapt(probabilities, X)
    np.testing.assert_allclose(learned, expected, atol=0.01)


def test_sharpened_probabilities_are_as_sure_as_asked_for_and_change_no_label():
    rng = np.random.default_rng(0)
    soft = rng.dirichlet(np.full(4, 20.0), size=300)
    for asked in (0.3, 0.6, 0.9):
        sure = sharpened(soft, asked)
        np.testing.assert_allclose(sure.sum(axis=1), 1.0)
        assert sure.max(axis=1).mean() == pytest.approx(asked, abs=1e-4)
        assert (sure.argmax(axis=1) == soft.argmax(axis=1)).all()
    assert (sharpened(np.full((3, 2), 0.5), 0.9) == 0.5).all()
