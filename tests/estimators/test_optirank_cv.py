"""OptirankClassifierCV: what it chooses, what it keeps, and on what folds
and scores.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, StratifiedKFold

from optirank import OptirankClassifier, OptirankClassifierCV
from optirank.datasets import make_unstable_ranks

# grids of three values, as small as tests want them, have the best one at an edge
pytestmark = pytest.mark.filterwarnings("ignore:the best setting has:UserWarning")


def make_data(n=72, d=12, n_classes=2, seed=0):
    """Counts; each class raises two genes and lowers two."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rate = np.tile(rng.uniform(1, 8, size=d), (n, 1))
    for k in range(n_classes):
        up, down = rng.choice(d, size=(2, 2), replace=False)
        rate[np.ix_(y == k, up)] *= 1.6
        rate[np.ix_(y == k, down)] *= 0.6
    return rng.poisson(rate).astype(float), y


@pytest.fixture(scope="module")
def binary():
    return make_data()


@pytest.fixture(scope="module")
def three_classes():
    return make_data(n_classes=3)


def small(**options):
    grid = {
        "n_references": (2, 0.5, 1.0),
        "l1s": (0.0, 1e-2),
        "l2s": (1e-3, 1e-1),
        "cv": 3,
    }
    return OptirankClassifierCV(**{**grid, **options})


# Beside scikit-learn's search


@pytest.mark.parametrize(
    "scoring", ["balanced_accuracy", "roc_auc", "f1_macro", "neg_log_loss"]
)
def test_scores_are_about_those_of_a_grid_search(binary, scoring):
    """Neighbouring settings start from each other, so single fits may end in another
    minimum.
    """
    X, y = binary
    ours = small(scoring=scoring, selection="best").fit(X, y)
    grid = {"n_reference": [2, 0.5, 1.0], "l1": [0.0, 1e-2], "l2": [1e-3, 1e-1]}
    theirs = (
        GridSearchCV(OptirankClassifier(), grid, scoring=scoring, cv=3)
        .fit(X, y)
        .cv_results_
    )
    more = {"mean_n_genes", *(f"split{k}_n_genes" for k in range(3))}
    assert (
        set(ours.cv_results_) | {"mean_score_time", "std_score_time"}
        == set(theirs) | more
    )
    scores = dict(
        zip(map(str, theirs["params"]), theirs["mean_test_score"], strict=True)
    )
    order = [
        str({name: one[name] for name in sorted(one)})
        for one in ours.cv_results_["params"]
    ]
    difference = ours.cv_results_["mean_test_score"] - [scores[one] for one in order]
    assert abs(difference.mean()) < 0.02
    assert np.median(abs(difference)) < 1e-3
    ranks = ours.cv_results_["rank_test_score"]
    assert ranks[ours.best_index_] == ranks.min() == 1
    assert len(pd.DataFrame(ours.cv_results_)) == 12


# Scorers and folds


def count_right(y_true, y_pred):
    return float((np.asarray(y_true) == y_pred).sum())


@pytest.mark.parametrize(
    "scoring",
    [
        make_scorer(count_right),
        lambda model, X, y: balanced_accuracy_score(y, model.predict(X)),
    ],
)
def test_a_scorer_may_be_a_callable(binary, scoring):
    X, y = binary
    model = small(scoring=scoring).fit(X, y)
    for k, (_, test) in enumerate(model.folds_):
        assert (model.cv_results_[f"split{k}_test_score"] <= len(test)).all()
    assert np.isfinite(model.best_score_)


def test_a_scorer_that_never_works_shows_its_own_error(three_classes):
    with pytest.raises(ValueError, match="multi_class"):
        small(scoring="roc_auc").fit(*three_classes)


def test_folds_from_an_int_a_splitter_or_splits_are_the_same(binary):
    X, y = binary
    splitter = StratifiedKFold(3)
    models = [
        small(cv=cv).fit(X, y) for cv in (3, splitter, list(splitter.split(X, y)))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(
            model.cv_results_["mean_test_score"],
            models[0].cv_results_["mean_test_score"],
        )
        assert model.best_params_ == models[0].best_params_


def test_groups_leave_whole_groups_out(binary):
    X, y = binary
    groups = np.repeat(["a", "b", "c", "d"], 18)
    for cv in (3, 10, LeaveOneGroupOut()):
        model = small(n_references=(2,), cv=cv).fit(X, y, groups=groups)
        assert len(model.folds_) == (3 if cv == 3 else 4)
        for train, test in model.folds_:
            assert not set(groups[train]) & set(groups[test])


def test_folds_whose_validation_part_has_no_score_are_left_out_of_the_means(binary):
    X, y = binary
    place = np.arange(72)
    groups = np.where((y == 0) & (place >= 48), "a", np.where(place < 24, "b", "c"))
    with pytest.warns(
        UserWarning, match="1 of 3 folds have no score with scoring='roc_auc'"
    ):
        model = small(scoring="roc_auc").fit(X, y, groups=groups)
    assert np.isfinite(model.best_score_)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert np.isnan(model.cv_results_["split0_test_score"]).all()
    assert np.isfinite(model.one_se_path()["score"]).all()


# What is chosen


def test_the_one_standard_error_rule_takes_no_more_genes_than_the_best(binary):
    X, y = binary
    sparse, best = (small(selection=rule).fit(X, y) for rule in ("one_se", "best"))
    genes = best.cv_results_["mean_n_genes"]
    assert genes[sparse.best_index_] <= genes[best.best_index_]
    assert best.best_score_ == best.cv_results_["mean_test_score"].max()
    assert (
        sparse.best_score_ == sparse.cv_results_["mean_test_score"][sparse.best_index_]
    )
    assert sparse.best_params_ == sparse.cv_results_["params"][sparse.best_index_]


def test_the_path_rises_with_the_genes_and_shows_what_was_selected(binary):
    model = small().fit(*binary)
    path = model.one_se_path()
    assert {"n_genes", "score", "standard_error", "selected", "best", "l1"} <= set(
        path.columns
    )
    assert path["n_genes"].is_monotonic_increasing
    (chosen,) = path[path["selected"]].to_dict("records")
    (best,) = path[path["best"]].to_dict("records")
    assert {name: chosen[name] for name in model.best_params_} == model.best_params_
    assert chosen["score"] == pytest.approx(model.best_score_)
    assert chosen["score"] >= best["score"] - best["standard_error"] - 1e-12
    assert chosen["n_genes"] <= best["n_genes"]
    others = path[~path["selected"]]
    assert others["score"].is_monotonic_increasing


# What is kept


def test_refit_is_a_classifier_of_the_chosen_setting_on_everything(binary):
    X, y = binary
    model = small().fit(X, y)
    alone = OptirankClassifier(**model.best_params_).fit(X, y)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    np.testing.assert_array_equal(model.reference_, alone.reference_)
    np.testing.assert_array_equal(model.genes_, alone.genes_)
    np.testing.assert_array_equal(
        model.decision_function(X), alone.decision_function(X)
    )
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_the_final_model_knows_names_weights_and_candidates(binary):
    X, y = binary
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(12)])
    weights = np.random.default_rng(0).uniform(0.1, 5, size=72)
    options = {"reference_candidates": [f"gene{j}" for j in range(6)], "ties": "min"}
    model = small(n_references=(2,), **options).fit(frame, y, weights)
    alone = OptirankClassifier(**model.best_params_, **options).fit(frame, y, weights)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert not model.reference_[:, 6:].any()
    assert list(model.best_estimator_.feature_names_in_) == list(frame.columns)


def test_a_class_smaller_than_the_number_of_folds_is_learned(three_classes):
    X, y = three_classes
    keep = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:2]])
    model = small(cv=4, n_references=(2, 0.5)).fit(X[keep], y[keep])
    assert len(model.folds_) == 4
    assert np.isfinite(model.decision_function(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


# Kinds of input


def test_a_fold_without_weight_on_a_class_is_refused(binary):
    X, y = binary
    weights = np.ones(72)
    weights[(y == 1) & (np.arange(72) >= 24)] = 0.0
    splits = [(np.arange(24, 72), np.arange(24))]
    with pytest.raises(ValueError, match="fold 0 has one class only to train on"):
        small(cv=splits).fit(X, y, sample_weight=weights)


def test_class_weights_are_those_of_the_final_model(binary):
    X, y = binary
    model = small(n_references=(2,), class_weight={0: 1.0, 1: 9.0}).fit(X, y)
    alone = OptirankClassifier(**model.best_params_, class_weight={0: 1.0, 1: 9.0}).fit(
        X, y
    )
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.predict(X).sum() > small(n_references=(2,)).fit(X, y).predict(X).sum()


@pytest.mark.parametrize("thin", [False, True], ids=["densified", "kept sparse"])
def test_sparse_input_gives_the_dense_result(binary, thin):
    X, y = binary
    if thin:
        X = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, X, 0.0)
    dense, sparse = (
        small(l1s=(0.0,)).fit(X, y),
        small(l1s=(0.0,)).fit(sp.csr_array(X), y),
    )
    assert sparse.folds_[0][0].tolist() == dense.folds_[0][0].tolist()
    if not thin:
        np.testing.assert_array_equal(sparse.coef_, dense.coef_)
        assert sparse.best_params_ == dense.best_params_
    scores = (
        sparse.cv_results_["mean_test_score"] - dense.cv_results_["mean_test_score"]
    )
    assert abs(scores.mean()) < 0.05
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(X)), sparse.decision_function(X)
    )


# What is refused, and said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_references": ()}, "n_references is empty: use a sequence of at least one"),
        ({"n_references": 0.2}, r"'n_references' .* array-like. Got 0.2"),
        ({"n_references": (0,)}, "n_reference=0 leaves no reference gene"),
        ({"n_references": (0.5, 1.5)}, "n_reference=1.5 is no fraction"),
        ({"n_references": (13,)}, "13 reference genes are more than the 12"),
        ({"n_references": ("a",)}, "n_reference='a'"),
        ({"l1s": (-1e-3,)}, r"'l1' .* in the range \[0.0, inf\). Got -0.001"),
        ({"l2s": (np.nan,)}, r"'l2' .* Got nan"),
        ({"l2s": ("x",)}, r"'l2' .* Got 'x'"),
        ({"l2s": "auto"}, r"'l2s' .* array-like. Got 'auto'"),
        ({"selection": "median"}, r"'selection' .*'one_se'.* Got 'median'"),
        ({"scoring": "nonsense"}, "scor"),
        ({"cv": 1}, "cv=1: use at least 2 folds"),
        ({"tol": 0}, r"'tol' .* Got 0"),
        ({"class_weight": "equal"}, r"'class_weight' .* Got 'equal'"),
    ],
)
def test_bad_options_are_named(binary, options, message):
    with pytest.raises(ValueError, match=message):
        small(**options).fit(*binary)


def test_too_few_steps_are_told_once_with_the_remedy(binary):
    X, y = binary
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        small(n_references=(2,), l1s=(0.0,), l2s=(1e-6,), max_iter=1).fit(X, y)


def test_the_grid_of_the_paper_is_fitted_with_more_genes_than_samples():
    X, y = make_data(n=24, d=40)
    penalties = (0.0, 1e-4, 1e-1)
    model = OptirankClassifierCV((0.005, 0.2, 1.0), penalties, penalties, cv=2).fit(
        X, y
    )
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_it_finds_the_reference_set_size_of_the_synthetic_task():
    data = make_unstable_ranks(250, 20, 12, random_state=0)
    model = OptirankClassifierCV(
        (0.1, 0.3, 1.0), (0.0,), (1e-5,), cv=3, selection="best"
    )
    model.fit(data.X, data.y)
    assert model.best_params_["n_reference"] < 1.0
    assert get_scorer("balanced_accuracy")(model, data.X, data.y) > 0.85


def _shifted_problem(n=120, d=30):
    """One strong gene tells the classes apart, many weak ones do so together."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) + rng.uniform(0, 6, d)
    X[y == 1, :10] += 1.2
    X[y == 1, 10:20] -= 1.2
    return X, y


def test_a_number_is_a_weight_of_every_sample():
    X, y = _shifted_problem()
    grid = OptirankClassifierCV((0.1, 0.5), (1e-2,), (1e-3,), cv=3)
    plain, weighted = clone(grid).fit(X, y), clone(grid).fit(X, y, sample_weight=2.0)
    assert plain.best_params_ == weighted.best_params_
    np.testing.assert_allclose(weighted.coef_, plain.coef_, atol=1e-6)


def test_a_best_setting_at_the_edge_of_the_grid_is_said(monkeypatch):
    data = make_unstable_ranks(200, random_state=0)
    note = "the best setting has l2=1, the smallest of the grid"
    monkeypatch.setattr(
        "optirank.estimators.optirank_cv.edges_of_grid", lambda params, scores: [note]
    )
    with pytest.warns(UserWarning, match=note):
        OptirankClassifierCV((0.2,), (0.0,), (1.0,), cv=2).fit(data.X, data.y)
