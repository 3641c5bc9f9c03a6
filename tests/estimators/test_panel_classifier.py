"""The panel model: its ranks, its elimination, its size, and what scikit-learn expects of it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank import PanelClassifier
from optirank.panel.elimination import (
    MISSING,
    HeldOut,
    _Samples,
    among,
    choose_size,
    path_sizes,
    sort_groups,
)

WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "weights count in the fits; folds, "
    "platforms and candidates are those of the samples, and the fits have four digits"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [PanelClassifier(), PanelClassifier(2)], expected_failed_checks=lambda _: WEIGHTS
)
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def cells(n=300, d=400, n_classes=3, seed=0, depth=1.0):
    """Counts with 12 markers per class; another seed is another sample of the same classes."""
    rng, base = np.random.default_rng(seed), np.random.default_rng(99)
    means = np.exp(base.normal(-0.5, 1.2, d))
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    rates = np.tile(means, (n, 1))
    for k in range(n_classes):
        rates[np.ix_(y == k, range(12 * k, 12 * k + 12))] *= 6
    return rng.poisson(depth * rates).astype(np.float32), np.array(
        ["a", "b", "c", "d"]
    )[y]


@pytest.mark.parametrize("seed", range(4))
def test_doubled_ranks_are_the_definition_with_ties_zeros_and_negatives(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 4, (40, 30)).astype(
        [np.float32, np.float64, np.int32, np.int64][seed]
    )
    rows, columns = rng.permutation(40)[:25], np.sort(rng.permutation(30)[:13])
    found = among(sort_groups(X), rows, columns, n_threads=2)
    assert (found / 2 == rankdata(X[np.ix_(rows, columns)], axis=1) - 1).all()


def test_scores_are_weights_on_ranks_among_the_panel():
    X, y = cells()
    model = PanelClassifier(20).fit(X, y)
    ranks = (rankdata(X[:, model.panel_], axis=1) - 1) / 20
    expected = ranks @ model.coef_[:, model.panel_].T + model.intercept_
    assert np.allclose(model.decision_function(X), expected, atol=1e-6)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (model.predict(X) == model.classes_[expected.argmax(axis=1)]).all()


def test_the_last_fit_is_scikit_learns_on_the_ranks_of_the_panel():
    X, y = cells()
    model = PanelClassifier(30).fit(X, y)
    ranks = (rankdata(X[:, model.panel_], axis=1) - 1) / 30
    C = 1 / (2 * 0.03 * len(y))
    other = LogisticRegression(
        C=C, class_weight="balanced", tol=1e-8, max_iter=2000
    ).fit(ranks, y)
    assert np.abs(model.coef_[:, model.panel_] - other.coef_).max() < 1e-3


def test_finds_the_markers_and_classifies_new_samples():
    X, y = cells()
    new, truth = cells(seed=1)
    model = PanelClassifier(30).fit(X, y)
    assert (model.panel_ < 36).mean() > 0.8  # chance: 0.09
    assert balanced_accuracy_score(truth, model.predict(new)) > 0.95


def test_panels_are_nested_and_smaller_ones_need_no_training():
    X, y = cells()
    model = PanelClassifier(70).fit(X, y)
    assert sorted(model.path_) == [10, 20, 30, 50, 70]
    for small, large in zip([10, 20, 30, 50], [20, 30, 50, 70], strict=True):
        assert set(model.path_[small].genes) < set(model.path_[large].genes)
    small = model.smaller(20)
    direct = PanelClassifier(20).fit(X, y)
    assert (small.panel_ == direct.panel_).all()
    assert np.allclose(small.decision_function(X), direct.decision_function(X))
    assert len(model.panel_) == 70
    with pytest.raises(ValueError, match="no panel of 25 genes"):
        model.smaller(25)


def test_the_same_model_every_time_and_for_every_kind_of_input():
    X, y = cells(150, 200)
    names = [f"g{k}" for k in range(X.shape[1])]
    first = PanelClassifier().fit(X, y)
    others = [
        PanelClassifier(n_jobs=2).fit(X, y),
        clone(first).fit(sparse.csr_matrix(X), y),
        clone(first).fit(sparse.csc_matrix(X), y),
        clone(first).fit(pd.DataFrame(X, columns=names), y),
        clone(first).fit(np.asfortranarray(X), y),
    ]
    for other in others:
        assert (other.panel_ == first.panel_).all()
        assert np.array_equal(other.coef_, first.coef_)
        assert other.held_out_.curve() == first.held_out_.curve()
    assert others[3].feature_names_in_.tolist() == names
    assert (others[3].predict(pd.DataFrame(X, columns=names)) == first.predict(X)).all()


def test_scores_do_not_change_under_a_monotone_map_of_a_sample():
    X, y = cells()
    model = PanelClassifier(20).fit(X, y)
    depth = np.linspace(0.1, 5, len(X))[:, None]
    assert np.array_equal(
        model.decision_function(X), model.decision_function(np.log1p(X) * depth)
    )


def test_auto_is_the_smallest_of_at_least_100_within_one_standard_error():
    def held_out(accuracies):
        codes, fold = np.tile([0, 1], 50), np.repeat(np.arange(5), 20)
        scores = {}
        for size, shares in accuracies.items():
            z = np.where(codes == 1, 1.0, -1.0)
            for k, wrong in enumerate(shares):
                here = np.flatnonzero(fold == k)[:wrong]
                z[here] *= -1
            scores[size] = z[:, None]
        return HeldOut(np.arange(100), codes, fold, scores, {})

    wrong = {
        50: [0] * 5,
        100: [6] * 5,
        200: [3, 3, 3, 3, 3],
        300: [2, 2, 2, 3, 2],
        500: [2, 1, 3, 2, 2],
    }
    assert (
        choose_size(held_out(wrong)) == 300
    )  # 50 is better and too small to be chosen
    assert choose_size(held_out({10: [1] * 5, 30: [4] * 5})) == 30  # there are 30 genes


def test_held_out_scores_are_of_samples_that_the_fold_did_not_see():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 500)), np.repeat(["a", "b"], 60)
    model = PanelClassifier().fit(
        X, y
    )  # noise: candidates chosen outside the folds would show
    assert all(abs(accuracy - 0.5) < 0.2 for _, accuracy, _ in model.held_out_.curve())
    assert balanced_accuracy_score(y, model.predict(X)) > 0.9


def test_held_out_samples_are_scored_without_some_genes_by_mean_ranks():
    X, y = cells(n=200, d=60)
    codes = np.unique(y, return_inverse=True)[1]
    samples = _Samples(sort_groups(X), codes, 3, np.ones(200), 1)
    train, test, every = np.arange(120), np.arange(120, 200), np.arange(60)
    none = np.zeros(0, int)
    found = samples.held_out(train, test, every, [40], none)
    genes = samples.eliminate(train, every, [40], none)[40]
    fitted = samples.fit(train, genes)
    draws = [(share, draw) for share in MISSING for draw in range(3)]
    assert set(found) == {(40, 0.0, -1), *((40, *one) for one in draws)}
    for share, draw in [(0.0, -1), *draws]:
        lost = np.random.default_rng(max(draw, 0)).permutation(40)[: round(40 * share)]
        here = np.setdiff1d(np.arange(40), lost)
        ranks = np.tile(fitted.mean_ranks, (80, 1))
        ranks[:, here] = (rankdata(X[test][:, genes[here]], axis=1) - 1) / len(here)
        scores = ranks @ fitted.coef.T + fitted.intercept
        assert_allclose(found[40, share, draw], scores, atol=1e-9)


def test_accuracy_with_missing_genes_is_known_for_every_size_that_may_be_chosen():
    X, y = cells(n=200, d=300)
    held_out = PanelClassifier().fit(X, y).held_out_
    for size, accuracy, _ in held_out.curve():
        (none, whole), *others = held_out.with_missing(size)
        assert (none, whole) == (0.0, accuracy)
        measured = size >= 100  # smaller panels are not chosen
        assert [share for share, _ in others] == (list(MISSING) if measured else [])
        assert all(0.3 < lower <= 1.0 for _, lower in others)


def test_genes_that_must_be_in_the_panel_are_in_every_panel():
    X, y = cells()
    frame = pd.DataFrame(X, columns=[f"g{k}" for k in range(X.shape[1])])
    model = PanelClassifier(20, include=["g399", "g200"]).fit(frame, y)
    for panel in model.path_.values():
        assert {399, 200} <= set(panel.genes.tolist())
    mask = np.isin(np.arange(400), [399, 200])
    assert (PanelClassifier(20, include=mask).fit(X, y).panel_ == model.panel_).all()
    with pytest.raises(ValueError, match="not among the 400 of X: 'nonsense'"):
        PanelClassifier(20, include=["nonsense"]).fit(frame, y)
    with pytest.raises(ValueError, match="more than n_genes=2"):
        PanelClassifier(2, include=[1, 2, 3]).fit(X, y)


def test_subset_of_classes_keeps_the_order_of_their_scores():
    X, y = cells(n_classes=4)
    model = PanelClassifier(20).fit(X, y)
    two, three = model.subset(["d", "b"]), model.subset(["a", "b", "d"])
    scores = model.decision_function(X)
    assert two.classes_.tolist() == ["b", "d"]
    assert np.allclose(two.decision_function(X), scores[:, 3] - scores[:, 1])
    assert np.allclose(three.decision_function(X), scores[:, [0, 1, 3]])
    assert np.allclose(two.smaller(10).predict_proba(X).sum(axis=1), 1)
    with pytest.raises(ValueError, match="no class 'z'"):
        model.subset(["a", "z"])
    with pytest.raises(ValueError, match="at least 2"):
        model.subset(["a"])


def test_weights_of_zero_leave_samples_out():
    X, y = cells()
    keep = np.arange(len(y)) % 3 > 0
    model = PanelClassifier(20).fit(X, y, sample_weight=keep.astype(float))
    other = PanelClassifier(20).fit(X[keep], y[keep])
    assert np.array_equal(model.coef_, other.coef_)
    assert np.array_equal(
        PanelClassifier(20).fit(X, y, 2.0).panel_, PanelClassifier(20).fit(X, y).panel_
    )


def test_simulated_platforms_keep_a_gene_that_no_platform_moves_across_another():
    rng = np.random.default_rng(0)
    n = 200
    y = np.repeat([0, 1], n // 2)
    X = np.exp(rng.normal(0, 1, (n, 300)) + np.linspace(-3, 3, 300))
    X[:, 0] = np.exp(
        np.where(y == 1, 9.0, -9.0) + rng.normal(0, 0.1, n)
    )  # survives any factor
    X[:, 1] = np.exp(
        np.where(y == 1, 0.2, -0.2) + rng.normal(0, 0.02, n)
    )  # a small sharp step
    assert 0 in PanelClassifier(10).fit(X, y).panel_


@pytest.mark.parametrize(
    ("n_genes", "said"),
    [
        (1, "at least 2 genes"),
        (0, "at least 2 genes"),
        (401, "more than the 400 genes there are"),
        ("many", "use 'auto' or a number"),
        (2.5, "use 'auto' or a number"),
        (True, "use 'auto' or a number"),
    ],
)
def test_sizes_that_cannot_be_are_refused_in_words(n_genes, said):
    X, y = cells()
    with pytest.raises(ValueError, match=said):
        PanelClassifier(n_genes).fit(X, y)


def test_odd_data_either_work_or_are_refused_in_words():
    X, y = cells(n=60)
    with pytest.raises(ValueError, match="none of the 400 genes differs"):
        PanelClassifier(20).fit(np.ones_like(X), y)
    with pytest.raises(ValueError, match="one class only"):
        PanelClassifier(20).fit(X, np.zeros(len(y)))
    few = np.concatenate([np.flatnonzero(y == "a")[:3], np.flatnonzero(y != "a")])
    model = PanelClassifier().fit(X[few], y[few])  # a class of three samples
    assert set(model.classes_) == {"a", "b", "c"}
    assert PanelClassifier(5).fit(X[:, :6], y).panel_.size == 5
    assert PanelClassifier().fit(X[:, :6], y).panel_.size == 6


def test_sizes_on_the_path():
    assert path_sizes("auto", 5000) == [10, 20, 30, 50, 70, 100, 200, 300, 500, 1000]
    assert path_sizes("auto", 129) == [10, 20, 30, 50, 70, 100, 129]
    assert path_sizes(25, 5000) == [10, 20, 25]
    assert path_sizes(5, 5000) == [5]
    assert path_sizes(50, 5000, n_include=15) == [20, 30, 50]
