"""The panel model: its ranks, its elimination, its size, and what scikit-learn
expects of it.
"""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank import PanelClassifier
from optirank._util.numbers import STANDARDISED
from optirank.panel.elimination import MISSING, HeldOut, choose_size, path_sizes

WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "weights count in the fits; folds "
    "and candidates are those of the samples, and the fits have four digits"
    for kind in ("dense", "sparse")
}


@pytest.mark.filterwarnings("ignore:genes have mean 0")  # some checks standardise
@parametrize_with_checks(
    [PanelClassifier(), PanelClassifier(2)], expected_failed_checks=lambda _: WEIGHTS
)
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def cells(n=300, d=400, n_classes=3, seed=0, depth=1.0):
    """Counts with 12 markers per class; another seed is another sample of the same
    classes.
    """
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


def centred_ranks(X):
    k = X.shape[1]
    return (rankdata(X, axis=1) - 1 - (k - 1) / 2) / k


def test_scores_are_weights_on_centred_ranks_among_the_panel():
    X, y = cells()
    model = PanelClassifier(20).fit(X, y)
    weights = model.coef_[:, model.panel_]
    expected = centred_ranks(X[:, model.panel_]) @ weights.T
    assert np.allclose(model.decision_function(X), expected, atol=1e-12)
    assert (model.intercept_ == 0).all()
    assert np.allclose(model.predict_proba(X), softmax(expected, axis=1))
    assert (model.predict(X) == model.classes_[expected.argmax(axis=1)]).all()


def test_scores_are_sums_of_votes_over_all_pairs_of_genes():
    X, y = cells(n_classes=3)
    model = PanelClassifier(10).fit(X, y)
    weights = model.coef_[:, model.panel_]
    votes = np.zeros((len(X), 3))
    for j, m in combinations(range(10), 2):
        sign = np.sign(X[:, model.panel_[j]] - X[:, model.panel_[m]])
        votes += np.outer(sign, weights[:, j] - weights[:, m]) / (2 * 10)
    assert np.allclose(model.decision_function(X), votes)


def test_two_genes_are_a_top_scoring_pair():
    X, y = cells(n_classes=2)
    model = PanelClassifier(2).fit(X, y)
    (low, high) = model.panel_[np.argsort(model.coef_[0, model.panel_])]
    assert (model.predict(X) == np.where(X[:, high] > X[:, low], "b", "a")).all()
    assert (model.decision_function(X)[X[:, high] == X[:, low]] == 0).all()


def test_the_last_fit_is_scikit_learns_without_intercept():
    X, y = cells()
    model = PanelClassifier(30, l2=0.05).fit(X, y)
    other = LogisticRegression(
        C=1 / (2 * 0.05 * len(y)),
        class_weight="balanced",
        fit_intercept=False,
        tol=1e-8,
        max_iter=2000,
    )
    other.fit(centred_ranks(X[:, model.panel_]), y)
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
    X, y = cells(100, 120)
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


def held_out_with(wrong):
    """Held-out scores of two classes with so many wrong labels in each of
    five folds.
    """
    codes = np.tile([0, 1], 50)
    fold = np.repeat(np.arange(5), 20)
    scores = {}
    for size, of_folds in wrong.items():
        z = np.where(codes == 1, 1.0, -1.0)
        for k, n_wrong in enumerate(of_folds):
            z[np.flatnonzero(fold == k)[:n_wrong]] *= -1
        scores[size] = z[:, None]
    return HeldOut(np.arange(100), codes, fold, scores, {}, {})


@pytest.mark.parametrize(
    ("wrong", "chosen"),
    [
        ({50: [3] * 5, 100: [6] * 5, 200: [3] * 5, 500: [2, 1, 3, 2, 2]}, 500),
        ({50: [3] * 5, 100: [6] * 5, 200: [2, 3, 2, 2, 2], 500: [2, 1, 3, 2, 2]}, 200),
        ({50: [0] * 5, 100: [0] * 5, 200: [0] * 5}, 100),
        ({50: [0] * 5, 100: [6] * 5, 200: [3] * 5}, 50),
        # All folds without an error: a standard error of zero is not believed
        ({100: [0, 0, 0, 0, 1], 1000: [0] * 5}, 100),
        ({10: [1] * 5, 20: [3] * 5, 30: [4] * 5}, 10),
        ({10: [5] * 5, 20: [1, 2, 1, 2, 1], 30: [1] * 5}, 20),
        ({10: [5] * 5, 20: [3, 2, 3, 2, 3], 30: [1] * 5}, 30),
    ],
)
def test_auto_is_the_smallest_size_within_one_standard_error_of_the_best(wrong, chosen):
    assert choose_size(held_out_with(wrong)) == chosen


def test_held_out_scores_are_of_samples_that_the_fold_did_not_see():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 500)), np.repeat(["a", "b"], 60)
    model = PanelClassifier().fit(
        X, y
    )  # noise: candidates chosen outside the folds would show
    assert all(abs(accuracy - 0.5) < 0.2 for _, accuracy, _ in model.held_out_.curve())
    assert balanced_accuracy_score(y, model.predict(X)) > 0.9


def test_accuracy_with_missing_genes_is_known_for_every_size():
    X, y = cells(n=200, d=300)
    held_out = PanelClassifier().fit(X, y).held_out_
    for size, accuracy, _ in held_out.curve():
        shares, accuracies = zip(*held_out.with_missing(size), strict=True)
        assert shares == (0.0, *MISSING)
        assert accuracies[0] == accuracy
        assert accuracies[-1] < accuracies[0] + 0.02


def test_the_order_of_the_columns_changes_no_result():
    X, y = cells(n=200)
    order = np.random.default_rng(0).permutation(X.shape[1])
    model = PanelClassifier().fit(X, y)
    other = PanelClassifier().fit(X[:, order], y)
    assert (np.sort(order[other.panel_]) == model.panel_).all()
    assert np.array_equal(other.coef_, model.coef_[:, order])
    assert other.held_out_.curve() == model.held_out_.curve()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_counts_and_logarithms_give_the_same_model(form):
    X, y = cells(100, 120)
    total = X.sum(axis=1, keepdims=True)
    counts = PanelClassifier().fit(form(X.astype(float)), y)
    for values in (np.log1p(X.astype(float)), np.log2(1 + X * 1e6 / total)):
        logs = PanelClassifier().fit(form(values), y)
        assert np.array_equal(logs.coef_, counts.coef_)
        assert logs.held_out_.curve() == counts.held_out_.curve()


def test_standardised_values_are_noticed():
    X, y = cells(n=100, d=50)
    scaled = StandardScaler().fit_transform(X)
    with pytest.warns(UserWarning, match=re.escape(STANDARDISED)):
        PanelClassifier(10).fit(scaled, y)


def test_class_weights_shift_the_labels_and_sample_weights_do_so_without_balance():
    X, y = cells(n_classes=2, depth=0.05)
    given = {}
    for weight in (1.0, 20.0):
        model = PanelClassifier(10, class_weight={"a": weight}).fit(X, y)
        given[weight] = (model.predict(X) == "a").mean()
    assert given[20.0] > given[1.0]
    of_samples = np.where(y == "a", 20.0, 1.0)
    plain = PanelClassifier(10, class_weight=None).fit(X, y, of_samples)
    assert (plain.predict(X) == "a").mean() == given[20.0]
    balanced = PanelClassifier(10).fit(X, y, of_samples)
    assert np.allclose(balanced.coef_, PanelClassifier(10).fit(X, y).coef_, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"l2": 0}, r"'l2' .* in the range \(0.0, inf\). Got 0"),
        ({"l2": "much"}, r"'l2' .* Got 'much'"),
        ({"class_weight": "equal"}, r"'class_weight' .*'balanced'.* Got 'equal'"),
        ({"class_weight": {"z": 1}}, "names 'z', which is not a class"),
        ({"class_weight": {"a": -1}}, r"'a' .* class_weight .* \(0.0, inf\). Got -1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, said):
    X, y = cells(n=60)
    with pytest.raises(ValueError, match=said):
        PanelClassifier(20, **options).fit(X, y)


def test_verbose_prints_a_line_per_stage(capsys):
    X, y = cells(n=60)
    PanelClassifier(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[0] == "[PanelClassifier] stage 1 of 8 is done"


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


def test_weights_of_zero_leave_samples_out():
    X, y = cells()
    keep = np.arange(len(y)) % 3 > 0
    model = PanelClassifier(20).fit(X, y, sample_weight=keep.astype(float))
    other = PanelClassifier(20).fit(X[keep], y[keep])
    assert np.array_equal(model.coef_, other.coef_)
    assert np.array_equal(
        PanelClassifier(20).fit(X, y, 2.0).panel_, PanelClassifier(20).fit(X, y).panel_
    )


@pytest.mark.parametrize(
    ("n_genes", "said"),
    [
        (1, r"in the range \[2, inf\). Got 1"),
        (0, r"in the range \[2, inf\). Got 0"),
        (401, "more than the 400 genes there are"),
        ("many", r"'auto'.* or an int .* Got 'many'"),
        (2.5, r"'auto'.* or an int .* Got 2.5"),
        (True, r"'auto'.* or an int .* Got True"),
    ],
)
def test_sizes_that_cannot_be_are_refused(n_genes, said):
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
    assert 2 <= PanelClassifier().fit(X[:, :6], y).panel_.size <= 6


def test_sizes_on_the_path():
    assert path_sizes("auto", 5000) == [10, 20, 30, 50, 70, 100, 200, 300, 500, 1000]
    assert path_sizes("auto", 129) == [10, 20, 30, 50, 70, 100, 129]
    assert path_sizes(25, 5000) == [10, 20, 25]
    assert path_sizes(5, 5000) == [5]
    assert path_sizes(50, 5000, n_include=15) == [20, 30, 50]


@pytest.mark.parametrize("n_samples", [200, 1700])
def test_the_order_of_the_samples_changes_no_bit(n_samples):
    X, y = cells(n_samples, 120)
    order = np.random.default_rng(0).permutation(len(X))
    model = PanelClassifier().fit(X, y)
    other = PanelClassifier().fit(X[order], y[order])
    assert np.array_equal(other.coef_, model.coef_)
    assert other.held_out_.curve() == model.held_out_.curve()
    columns = np.random.default_rng(1).permutation(X.shape[1])
    third = PanelClassifier().fit(X[order][:, columns], y[order])
    assert np.array_equal(third.coef_, model.coef_[:, columns])


def test_copies_of_samples_are_in_one_fold():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 300)), np.repeat(["a", "b"], 50)
    once = PanelClassifier().fit(X, y).held_out_
    thrice = PanelClassifier().fit(np.repeat(X, 3, axis=0), np.repeat(y, 3)).held_out_
    for held_out in (once, thrice):
        assert all(abs(accuracy - 0.5) < 0.15 for _, accuracy, _ in held_out.curve())
