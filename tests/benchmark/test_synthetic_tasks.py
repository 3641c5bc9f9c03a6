"""The synthetic experiment as a source of tasks: data, splits, fits and the choice of settings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from optirank import ReferenceRankTransformer
from optirank.benchmark.classifiers import get
from optirank.benchmark.designs import make_problem
from optirank.benchmark.profiles import Profile
from optirank.benchmark.reporting.synthetic_table import gather
from optirank.benchmark.running.runner import Work, run
from optirank.benchmark.running.storage import Storage
from optirank.benchmark.running.work import fit_grid, run_unit
from optirank.benchmark.splits import FOLDS
from optirank.benchmark.synthetic import (
    POSITIVE,
    Point,
    Settings,
    SyntheticTasks,
    classifier_names,
    task_name,
)

POINT = Point(n_genes=20, n_perturbed=8, n_samples=200)
GRID = Profile(
    "small", n_top=None, grids={"n_reference": (0.4, 1.0), "l1": (0.0,), "l2": (1e-3, 0.0)}
)
SETTINGS = Settings(repeats=1, sweeps=(), grid=GRID, base=POINT)
FLOOR = 1e-7  # stands in for no penalty at all


def drawn(point: Point = POINT, repeat: int = 0):
    settings = Settings(repeats=repeat + 1, sweeps=(), base=point)
    (design,) = SyntheticTasks.of(settings).designs(task_name(point, repeat))
    return design


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    """A small experiment, run to the end."""
    folder = tmp_path_factory.mktemp("synthetic") / "out"
    with Storage(folder, "synthetic").open(GRID, 0) as storage:
        assert run(SETTINGS.plan(), Work(SyntheticTasks.of(SETTINGS), GRID), storage) == {}
    return storage


def test_30_percent_are_the_test_set_and_the_folds_choose_on_the_rest():
    design = drawn()
    *folds, final = design.splits
    y = design.source.labels == POSITIVE
    assert len(folds) == FOLDS
    assert (len(final.train), len(final.test), final.final) == (140, 60, True)
    assert not set(final.train) & set(final.test)
    assert y[final.test].mean() == pytest.approx(y[final.train].mean(), abs=0.01)
    for split in folds:
        assert not split.final
        assert sorted([*split.train, *split.validation]) == final.train.tolist()
    assert sorted(np.concatenate([one.validation for one in folds])) == final.train.tolist()


def test_repeats_differ_and_points_of_a_repeat_share_their_random_numbers():
    first, other, moved = drawn(), drawn(repeat=1), drawn(Point(20, 8, 200, tau=0.5))
    assert not np.array_equal(first.source.raw, other.source.raw)
    np.testing.assert_array_equal(first.source.labels, moved.source.labels)
    stable = first.truth
    np.testing.assert_array_equal(first.source.raw[:, stable], moved.source.raw[:, stable])


@pytest.mark.parametrize("name", ["lr", "rank-lr", "oracle"])
@pytest.mark.parametrize("cold", [False, True])
def test_fits_equal_scikit_learns(name, cold):
    design = drawn()
    problem = make_problem(design, design.splits[-1], POSITIVE, None)
    (test,) = problem.tests.values()
    reference = design.truth if name == "oracle" else None
    ranks = ReferenceRankTransformer(reference)
    fits = fit_grid(get(name), problem, GRID.grid(get(name)), [test], cold=cold)
    assert [fit.setting["l2"] for fit in fits] == [1e-3, 0.0]
    for fit in fits:
        X, X_test = problem.train.raw, test.raw
        if name != "lr":
            X, X_test = ranks.fit_transform(X), ranks.transform(X_test)
        strength = 1 / (2 * len(X) * max(fit.setting["l2"], FLOOR))
        model = LogisticRegression(
            C=strength, class_weight="balanced", solver="newton-cholesky", tol=1e-8, max_iter=1000
        ).fit(X, problem.train.labels)
        assert ((fit.scores[0] > 0) == model.predict(X_test)).mean() > 0.98
    if name == "oracle":
        np.testing.assert_array_equal(fits[0].reference, design.truth)


def test_optirank_among_all_genes_is_rank_lr():
    design = drawn()
    problem = make_problem(design, design.splits[-1], POSITIVE, None)
    grid = {"l1": (0.0,), "l2": (1e-3,)}
    tests = [*problem.tests.values()]
    (ours,) = fit_grid(get("optirank"), problem, {"n_reference": (1.0,), **grid}, tests, cold=True)
    (theirs,) = fit_grid(get("rank-lr"), problem, grid, tests, cold=True)
    assert ours.reference.all()
    assert ((ours.scores[0] > 0) == (theirs.scores[0] > 0)).mean() > 0.98


def test_the_cosine_compares_with_the_true_reference_set():
    design = drawn()
    share = np.sqrt(POINT.n_stable / POINT.n_genes)
    for name, expected in (("oracle", 1.0), ("rank-lr", share), ("lr", None)):
        found = run_unit(design, design.splits[0], POSITIVE, name, GRID)["cosine"]
        assert found == [pytest.approx(expected)] * 2


def test_every_classifier_and_setting_is_fitted_in_every_fold(storage):
    fits, _ = gather(SETTINGS, storage)
    for name in classifier_names():
        rows = fits[fits["classifier"] == name]
        assert set(rows["fold"]) == set(range(FOLDS))
        assert len(rows) == FOLDS * (4 if name == "optirank" else 2)
        assert rows["validation_balanced_accuracy"].between(0, 1).all()


def test_the_choice_is_refitted_on_all_training_samples_and_tested(storage):
    fits, selected = gather(SETTINGS, storage)
    design = drawn()
    problem = make_problem(design, design.splits[-1], POSITIVE, None)
    (test,) = problem.tests.values()
    assert selected["classifier"].tolist() == classifier_names()
    for row in selected.itertuples():
        keys = ["n_reference", "l2"] if row.classifier == "optirank" else ["l2"]
        own = fits[fits["classifier"] == row.classifier]
        means = own.groupby(keys)["validation_balanced_accuracy"].mean()
        assert row.validation_balanced_accuracy == pytest.approx(means.max())
        grid = {"l1": (0.0,), **{key: (getattr(row, key),) for key in keys}}
        (fit,) = fit_grid(get(row.classifier), problem, grid, [test], cold=True)
        expected = balanced_accuracy_score(test.labels, fit.scores[0] > 0)
        assert row.test_balanced_accuracy == pytest.approx(expected)


def test_progress_tells_every_unit_and_stored_ones_are_not_computed_again(storage, monkeypatch):
    from optirank.benchmark.running import runner

    monkeypatch.setattr(runner, "compute", None)  # would fail
    told = []
    plan = SETTINGS.plan()
    with storage.open(GRID, 0):
        runner.run(plan, Work(None, GRID), storage, progress=lambda *one: told.append(one))
    assert told == [(unit, True) for unit in plan.units]
