"""OptirankClassifierCV: what it chooses, what it keeps, and on what folds and scores."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import balanced_accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank import OptirankClassifier, OptirankClassifierCV
from optirank.datasets import make_unstable_ranks

TINY = {"n_references": (0.5, 1.0), "l1s": (0.0,), "l2s": (1e-2,), "cv": 2}


def not_removed_by_weight(estimator):
    """Samples of weight zero stay in the folds, as in every search of scikit-learn."""
    checks = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    why = "samples of weight zero stay in the folds"
    return dict.fromkeys(checks, why) if estimator.refit == "folds" else {}


@parametrize_with_checks(
    [OptirankClassifierCV(**TINY), OptirankClassifierCV(**TINY, refit="folds")],
    expected_failed_checks=not_removed_by_weight,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


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
    grid = {"n_references": (2, 0.5, 1.0), "l1s": (0.0, 1e-2), "l2s": (1e-3, 1e-1), "cv": 3}
    return OptirankClassifierCV(**{**grid, **options})


def grid_search(model, X, y, **options):
    """scikit-learn's search over the same grid."""
    names = ("n_reference", "l1", "l2", "side")
    values = (model.n_references, model.l1s, model.l2s, model.sides)
    grid = dict(zip(names, map(list, values), strict=True))
    options = {"scoring": model.scoring, "cv": model.cv, **options}
    return GridSearchCV(OptirankClassifier(), grid, **options).fit(X, y)


def scores_by_params(results):
    return {
        tuple(sorted(params.items())): [results[f"split{k}_test_score"][i] for k in range(3)]
        for i, params in enumerate(results["params"])
    }


# Equality with scikit-learn's search


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", "f1_macro", "neg_log_loss"])
def test_cold_starts_are_a_grid_search(binary, scoring):
    X, y = binary
    ours = small(warm_start=False, selection="best", scoring=scoring).fit(X, y)
    theirs = grid_search(ours, X, y)
    expected = scores_by_params(theirs.cv_results_)
    found = scores_by_params(ours.cv_results_)
    assert found.keys() == expected.keys()
    for params, scores in found.items():
        np.testing.assert_allclose(scores, expected[params], rtol=1e-6)
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    same = {**ours.best_params_}
    np.testing.assert_array_equal(
        ours.best_estimator_.coef_, OptirankClassifier(**same).fit(X, y).coef_
    )


def test_cold_starts_are_a_grid_search_for_several_classes(three_classes):
    X, y = three_classes
    ours = small(
        n_references=(2,), sides=("best", "both", "falling"), warm_start=False, selection="best"
    ).fit(X, y)
    theirs = grid_search(ours, X, y)
    expected = scores_by_params(theirs.cv_results_)
    for params, scores in scores_by_params(ours.cv_results_).items():
        np.testing.assert_allclose(scores, expected[params], rtol=1e-9)


def test_results_have_scikit_learns_keys_and_shapes(binary):
    X, y = binary
    ours = small().fit(X, y)
    theirs = grid_search(ours, X, y).cv_results_
    more = {"mean_n_genes", *(f"split{k}_n_genes" for k in range(3))}
    assert set(ours.cv_results_) == set(theirs) | more
    for key, values in theirs.items():
        assert len(ours.cv_results_[key]) == len(values) == 12
        if key != "params":
            assert (
                ours.cv_results_[key].dtype.kind == np.asarray(values).dtype.kind or "param" in key
            )
    ranks = ours.cv_results_["rank_test_score"]
    assert ranks.min() == 1
    best = np.flatnonzero(ranks == 1)
    assert set(ours.cv_results_["mean_test_score"][best]) == {
        ours.cv_results_["mean_test_score"].max()
    }
    assert len(pd.DataFrame(ours.cv_results_)) == 12


def test_warm_starts_score_about_as_cold_ones(binary):
    X, y = binary
    warm, cold = (small(warm_start=w).fit(X, y).cv_results_["mean_test_score"] for w in (1, 0))
    assert abs((warm - cold).mean()) < 0.02


# Scorers and folds


def count_right(y_true, y_pred):
    return float((np.asarray(y_true) == y_pred).sum())


@pytest.mark.parametrize(
    "scoring",
    [make_scorer(count_right), lambda model, X, y: balanced_accuracy_score(y, model.predict(X))],
)
def test_a_scorer_may_be_a_callable(binary, scoring):
    X, y = binary
    model = small(scoring=scoring).fit(X, y)
    for k, (_, test) in enumerate(model.folds_):
        assert (model.cv_results_[f"split{k}_test_score"] <= len(test)).all()
    assert np.isfinite(model.best_score_)


def test_an_unknown_scorer_is_refused(binary):
    with pytest.raises(ValueError, match="scor"):
        small(scoring="nonsense").fit(*binary)


def test_a_scorer_that_never_works_shows_its_own_error(three_classes):
    with pytest.raises(ValueError, match="multi_class"):
        small(scoring="roc_auc").fit(*three_classes)


def test_folds_from_an_int_a_splitter_or_splits_are_the_same(binary):
    X, y = binary
    splitter = StratifiedKFold(3)
    models = [small(cv=cv).fit(X, y) for cv in (3, splitter, list(splitter.split(X, y)))]
    for model in models[1:]:
        np.testing.assert_array_equal(
            model.cv_results_["mean_test_score"], models[0].cv_results_["mean_test_score"]
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


def test_a_class_smaller_than_the_number_of_folds(three_classes):
    X, y = three_classes
    keep = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:2]])
    for per_class in (False, True):
        model = small(cv=4, per_class=per_class).fit(X[keep], y[keep])
        assert model.decision_function(X).shape == (72, 3)
        assert np.isfinite(model.decision_function(X)).all()
        assert len(model.folds_) == 4


def test_a_fold_that_lacks_a_class_never_predicts_it(three_classes):
    X, y = three_classes
    alone = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:1]])
    X, y = X[alone], y[alone]
    model = small(cv=2, refit="folds").fit(X, y)
    (lacking,) = (k for k, (train, _) in enumerate(model.folds_) if 2 not in y[train])
    fold = model.fold_estimators_[lacking]
    assert 2 not in fold.predict(X)
    assert (fold.predict_proba(X)[:, 2] == 0).all()
    assert not np.isnan(model.predict_proba(X)).any()
    assert model.genes_.any()


def test_a_class_is_predicted_by_the_folds_that_have_it(three_classes):
    X, y = three_classes
    keep = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:20]])
    X, y = X[keep], y[keep]
    rare = np.flatnonzero(y == 2)
    every = np.arange(len(y))
    folds = [(np.setdiff1d(every, test), test) for test in (every[::3], every[1::3], rare)]
    model = small(cv=folds, refit="folds").fit(X, y)
    lacking = model.fold_estimators_[2]
    assert (lacking.decision_function(X)[:, 2] == -np.inf).all()
    expected = np.mean([fold.decision_function(X) for fold in model.fold_estimators_[:2]], axis=0)
    np.testing.assert_allclose(model.decision_function(X)[:, 2], expected[:, 2])
    assert (model.predict(X)[rare] == 2).sum() > 10


def test_the_third_argument_of_fit_is_the_weights_of_the_samples(binary):
    X, y = binary
    weights = np.random.default_rng(0).uniform(0.1, 5, size=72)
    named = small(n_references=(2,)).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(small(n_references=(2,)).fit(X, y, weights).coef_, named.coef_)
    with pytest.raises(TypeError):
        small().fit(X, y, weights, np.zeros(72))


def test_folds_whose_validation_part_has_no_score_are_left_out_of_the_means(binary):
    X, y = binary
    place = np.arange(72)
    groups = np.where((y == 0) & (place >= 48), "a", np.where(place < 24, "b", "c"))
    with pytest.warns(UserWarning, match="1 of 3 folds have no score with scoring='roc_auc'"):
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
    assert sparse.best_score_ == sparse.cv_results_["mean_test_score"][sparse.best_index_]
    assert sparse.best_params_ == sparse.cv_results_["params"][sparse.best_index_]


def test_numbers_of_genes_are_those_of_the_fold_models(binary):
    X, y = binary
    model = small(refit="folds").fit(X, y)
    for k, fold in enumerate(model.fold_estimators_):
        assert model.cv_results_[f"split{k}_n_genes"][model.best_index_] == fold.genes_.sum()


def test_each_class_may_have_settings_of_its_own(three_classes):
    X, y = three_classes
    words = np.array(["a", "b", "c"])[y]
    model = small(per_class=True, l1s=(0.0,)).fit(X, words)
    assert list(model.best_params_) == list(model.cv_results_) == ["a", "b", "c"]
    for k, label in enumerate("abc"):
        alone = small(l1s=(0.0,), cv=model.folds_).fit(X, words == label)
        assert alone.best_params_ == model.best_params_[label]
        np.testing.assert_allclose(
            alone.cv_results_["mean_test_score"], model.cv_results_[label]["mean_test_score"]
        )
        np.testing.assert_allclose(
            alone.decision_function(X), model.decision_function(X)[:, k], atol=1e-8
        )
    together = small(l1s=(0.0,)).fit(X, words)
    assert sorted(together.best_params_) == ["l1", "l2", "n_reference", "side"]


def test_per_class_is_nothing_special_for_two_classes(binary):
    model = small(per_class=True, n_references=(2,)).fit(*binary)
    assert isinstance(model.best_index_, int)


def test_sides_are_a_dimension_of_the_grid(binary):
    X, y = binary
    sides = ("best", "rising", "falling", "both")
    model = small(n_references=(3,), l1s=(0.0,), sides=sides).fit(X, y)
    results = pd.DataFrame(model.cv_results_)
    assert sorted(results["param_side"].unique()) == sorted(sides)
    scores = dict(iter(results.groupby("param_side", sort=False)))
    keys = [f"split{k}_test_score" for k in range(3)]
    best, rising, falling = (scores[side][keys].to_numpy() for side in sides[:3])
    assert ((best == rising) | (best == falling)).all()
    both = small(n_references=(3,), l1s=(0.0,), l2s=(1e-3,), sides=("both",)).fit(X, y)
    assert both.coef_.shape == (2, 12)
    assert both.best_params_["side"] == "both"


def test_the_path_rises_with_the_genes_and_shows_what_was_selected(binary):
    model = small().fit(*binary)
    path = model.one_se_path()
    assert {"n_genes", "score", "standard_error", "selected", "best", "l1"} <= set(path.columns)
    assert path["n_genes"].is_monotonic_increasing
    (chosen,) = path[path["selected"]].to_dict("records")
    (best,) = path[path["best"]].to_dict("records")
    assert {name: chosen[name] for name in model.best_params_} == model.best_params_
    assert chosen["score"] == pytest.approx(model.best_score_)
    assert chosen["score"] >= best["score"] - best["standard_error"] - 1e-12
    assert chosen["n_genes"] <= best["n_genes"]
    others = path[~path["selected"]]
    assert others["score"].is_monotonic_increasing


def test_the_path_of_a_class_is_asked_for_by_name(three_classes):
    model = small(per_class=True, n_references=(2, 0.5), l1s=(0.0,)).fit(*three_classes)
    assert model.one_se_path(1)["selected"].sum() == 1
    with pytest.raises(ValueError, match=r"label=None: name one of \[0, 1, 2\]"):
        model.one_se_path()


# What is kept


def test_refit_is_a_classifier_of_the_chosen_setting_on_everything(binary):
    X, y = binary
    model = small().fit(X, y)
    alone = OptirankClassifier(**model.best_params_).fit(X, y)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    np.testing.assert_array_equal(model.reference_, alone.reference_)
    np.testing.assert_array_equal(model.genes_, alone.genes_)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_fold_models_predict_with_the_mean_of_their_scores(binary, three_classes):
    for X, y in (binary, three_classes):
        model = small(refit="folds").fit(X, y)
        assert len(model.fold_estimators_) == 3
        scores = [fold.decision_function(X) for fold in model.fold_estimators_]
        np.testing.assert_allclose(model.decision_function(X), np.mean(scores, axis=0))
        held_out = [
            balanced_accuracy_score(y[test], fold.predict(X[test]))
            for fold, (_, test) in zip(model.fold_estimators_, model.folds_, strict=True)
        ]
        assert model.best_score_ == pytest.approx(np.mean(held_out))
        assert model.score(X, y) > 0.5
        assert len(model.coef_) == 3 * len(model.fold_estimators_[0].coef_)


@pytest.mark.parametrize("refit", [True, "folds"])
def test_a_fitted_model_can_be_cloned_and_pickled(binary, refit):
    X, y = binary
    model = small(refit=refit, n_references=(2,)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.one_se_path().equals(model.one_se_path())
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert not hasattr(fresh, "one_se_path")


# Kinds of input


def test_sample_weights_reach_the_fits(binary):
    X, y = binary
    plain, ones = small().fit(X, y), small().fit(X, y, sample_weight=np.full(72, 3.0))
    np.testing.assert_allclose(
        ones.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )
    np.testing.assert_allclose(ones.coef_, plain.coef_, atol=1e-6)
    weights = np.random.default_rng(0).uniform(0.1, 5, size=72)
    model = small(n_references=(2,)).fit(X, y, sample_weight=weights)
    alone = OptirankClassifier(**model.best_params_).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    folds = small(n_references=(2,), refit="folds", warm_start=False)
    folds.fit(X, y, sample_weight=weights)
    train = folds.folds_[0][0]
    first = OptirankClassifier(**folds.best_params_).fit(X[train], y[train], weights[train])
    np.testing.assert_allclose(folds.fold_estimators_[0].coef_, first.coef_, atol=1e-6)


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
    alone = OptirankClassifier(**model.best_params_, class_weight={0: 1.0, 1: 9.0}).fit(X, y)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.predict(X).sum() > small(n_references=(2,)).fit(X, y).predict(X).sum()


@pytest.mark.parametrize("thin", [False, True], ids=["densified", "kept sparse"])
def test_sparse_input_gives_the_dense_result(binary, thin):
    X, y = binary
    if thin:
        X = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, X, 0.0)
    dense, sparse = small(l1s=(0.0,)).fit(X, y), small(l1s=(0.0,)).fit(sp.csr_array(X), y)
    assert sparse.folds_[0][0].tolist() == dense.folds_[0][0].tolist()
    if not thin:
        np.testing.assert_array_equal(sparse.coef_, dense.coef_)
        assert sparse.best_params_ == dense.best_params_
    scores = sparse.cv_results_["mean_test_score"] - dense.cv_results_["mean_test_score"]
    assert abs(scores.mean()) < 0.05
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(X)), sparse.decision_function(X)
    )


def test_names_of_genes_are_kept_and_checked(binary):
    X, y = binary
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(12)])
    for refit in (True, "folds"):
        model = small(n_references=(2,), refit=refit).fit(frame, y)
        assert list(model.feature_names_in_) == list(frame.columns)
        inner = model.fold_estimators_[0] if refit == "folds" else model.best_estimator_
        assert list(inner.feature_names_in_) == list(frame.columns)
        model.predict(frame)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[frame.columns[::-1]])


# What is refused, and said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_references": ()}, r"n_references=\(\): give a sequence of at least one value"),
        ({"n_references": 0.2}, "n_references=0.2: give a sequence"),
        ({"n_references": (0,)}, "n_reference=0 leaves no reference gene"),
        ({"n_references": (0.5, 1.5)}, "n_reference=1.5 is no fraction"),
        ({"n_references": (13,)}, "13 reference genes are more than the 12"),
        ({"n_references": ("a",)}, "n_reference='a'"),
        ({"l1s": (-1e-3,)}, "-0.001 is no penalty"),
        ({"l2s": (np.nan,)}, "nan is no penalty"),
        ({"l2s": ("x",)}, "'x' is no penalty"),
        ({"l2s": "auto"}, "l2s='auto': give a sequence"),
        ({"sides": ("up",)}, "sides has 'up': use some of"),
        ({"sides": "best"}, "sides='best': give a sequence"),
        ({"selection": "median"}, "selection='median' is not known"),
        ({"refit": "both"}, "refit='both' is not known"),
        ({"refit": False}, "refit=False is not known"),
        ({"cv": 1}, "cv=1: use at least 2 folds"),
        ({"tol": 0}, "tol=0"),
        ({"class_weight": "equal"}, "class_weight='equal'"),
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
    model = OptirankClassifierCV((0.005, 0.2, 1.0), penalties, penalties, cv=2).fit(X, y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_it_finds_the_reference_set_size_of_the_synthetic_task():
    data = make_unstable_ranks(250, 20, 12, random_state=0)
    model = OptirankClassifierCV((0.1, 0.3, 1.0), (0.0,), (1e-5,), cv=3, selection="best")
    model.fit(data.X, data.y)
    assert model.best_params_["n_reference"] < 1.0
    assert get_scorer("balanced_accuracy")(model, data.X, data.y) > 0.85


def test_scores_are_not_given_before_the_fit():
    with pytest.raises(NotFittedError):
        small().decision_function(np.zeros((2, 12)))
    assert re.search("OptirankClassifierCV", repr(small()))


def _shifted_problem(n=120, d=30):
    """One strong gene tells the classes apart, many weak ones do so together."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d)) + rng.uniform(0, 6, d)
    X[y == 1, :10] += 1.2
    X[y == 1, 10:20] -= 1.2
    return X, y


def test_selection_for_transfer_looks_at_simulated_platforms():
    X, y = _shifted_problem()
    search = OptirankClassifierCV((0.1, 0.5), (1e-3, 3e-2), (1e-3,), selection="transfer", cv=3)
    search.fit(X, y)
    results = search.cv_results_
    scores = results["mean_transfer_score"]
    assert (scores <= results["mean_test_score"] + 0.02).all()  # platforms make it harder
    assert search.best_index_ == scores.argmax()
    assert search.predict(X).shape == y.shape
    again = OptirankClassifierCV((0.1, 0.5), (1e-3, 3e-2), (1e-3,), selection="transfer", cv=3)
    assert (again.fit(X, y).cv_results_["mean_transfer_score"] == scores).all()
    other = again.set_params(random_state=5).fit(X, y).cv_results_["mean_transfer_score"]
    assert (other != scores).any()


def test_the_untuned_setting_is_left_only_for_a_clearly_better_one():
    X, y = _shifted_problem()
    search = OptirankClassifierCV((0.2, 0.3), (1e-3, 1.2e-3), (1e-3,), selection="transfer", cv=3)
    search.fit(X, y)
    scores = search.cv_results_["mean_transfer_score"]
    assert scores.max() <= scores[0] + 0.02
    assert search.best_index_ == 0
    assert search.best_params_["n_reference"] == 0.2


def test_the_final_model_of_a_transfer_search_is_fitted_on_the_samples_themselves():
    X, y = _shifted_problem()
    search = OptirankClassifierCV((0.2,), (1e-3,), (1e-3,), selection="transfer", cv=3).fit(X, y)
    plain = OptirankClassifier(0.2, 1e-3, 1e-3).fit(X, y)
    assert np.allclose(search.coef_, plain.coef_)


def test_with_groups_the_real_shifts_decide():
    X, y = _shifted_problem()
    groups = np.arange(len(y)) // 40
    search = OptirankClassifierCV((0.1, 0.5), (1e-3, 3e-2), (1e-3,), selection="transfer", cv=3)
    search.fit(X, y, groups=groups)
    results = search.cv_results_
    assert np.allclose(results["mean_transfer_score"], results["mean_test_score"])
