"""The synthetic experiment: points and sweeps, data and splits, fits and the choice of
settings.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from optirank import ReferenceRankTransformer
from optirank_lab.benchmark.classifiers import SYNTHETIC, get, names_for
from optirank_lab.benchmark.designs import Profile, make_problem
from optirank_lab.benchmark.engine import Work, run
from optirank_lab.benchmark.report import write
from optirank_lab.benchmark.results import Storage, collect
from optirank_lab.benchmark.splits import FOLDS
from optirank_lab.benchmark.synthetic import (
    EXTENDED_GRID,
    PAPER_GRID,
    POSITIVE,
    Point,
    Settings,
    parse_sweeps,
)
from optirank_lab.benchmark.work import fit_grid, run_unit

POINT = Point(n_genes=20, n_perturbed=8, n_samples=200)
GRID = Profile(
    "small",
    n_top=None,
    grids={"n_reference": (0.4, 1.0), "l1": (0.0,), "l2": (1e-3, 0.0)},
)
SETTINGS = Settings(repeats=2, sweeps=(), grid=GRID, base=POINT)
FLOOR = 1e-7  # stands in for no penalty at all


def drawn(point: Point = POINT, repeat: int = 0):
    source = Settings(repeats=repeat + 1, sweeps=(), base=point)
    (design,) = source.designs(list(source.tasks())[-1])
    return design


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    """A small experiment, run to the end."""
    folder = tmp_path_factory.mktemp("synthetic") / "out"
    with Storage(folder, "synthetic").open(GRID, 0) as storage:
        assert run(SETTINGS.plan(), Work(SETTINGS, GRID), storage) == {}
    return storage


def test_the_default_point_is_the_papers_and_points_shared_by_sweeps_come_once():
    points = Settings().points()
    assert points[0] == Point() == Point(50, 40, 1000, 0.2, 0.05)
    assert len(points) == len(set(points)) == 1 + 3 + 5 + 5
    sizes = [
        (p.n_genes, p.n_samples, p.n_perturbed) for p in Settings().sweep_points("d")
    ]
    assert sizes == [(50, 1000, 40), (100, 2000, 40), (150, 3000, 40), (200, 4000, 40)]
    assert set(EXTENDED_GRID.grids["l2"]) - set(PAPER_GRID.grids["l2"]) == {1e-6, 1e-5}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("none", ()),
        ("all", ("d", "dp", "tau")),
        ("tau,d", ("tau", "d")),
        ("d, d", ("d",)),
    ],
)
def test_sweeps_are_read_from_text(text, names):
    assert parse_sweeps(text) == names


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"repeats": 0}, "repeats=0"),
        ({"seed": -1}, "seed=-1"),
        ({"sweeps": ("x",)}, "no sweep is called 'x'"),
        ({"base": Point(n_genes=41)}, "40 perturbed of 41 genes"),
        ({"base": Point(n_samples=49), "sweeps": ()}, "49 samples"),
    ],
)
def test_impossible_settings_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        Settings(**bad)


def test_30_percent_are_the_test_set_and_the_folds_choose_on_the_rest():
    design = drawn()
    *folds, final = design.splits
    y = design.source.labels == POSITIVE
    assert len(folds) == FOLDS
    assert (len(final.train), len(final.test), len(final.validation)) == (140, 60, 0)
    assert y[final.test].mean() == pytest.approx(y[final.train].mean(), abs=0.01)
    for split in folds:
        assert sorted([*split.train, *split.validation]) == final.train.tolist()
    assert (
        sorted(np.concatenate([one.validation for one in folds]))
        == final.train.tolist()
    )


def test_repeats_differ_and_points_of_a_repeat_share_their_random_numbers():
    first, other, moved = drawn(), drawn(repeat=1), drawn(Point(20, 8, 200, tau=0.5))
    assert not np.array_equal(first.source.raw, other.source.raw)
    np.testing.assert_array_equal(first.source.labels, moved.source.labels)
    stable = first.truth
    np.testing.assert_array_equal(
        first.source.raw[:, stable], moved.source.raw[:, stable]
    )


@pytest.mark.parametrize("name", ["lr", "rank-lr", "oracle"])
@pytest.mark.parametrize("cold", [False, True])
def test_fits_equal_scikit_learns(name, cold):
    design = drawn()
    problem = make_problem(design, design.splits[-1], POSITIVE, GRID)
    (test,) = problem.tests.values()
    ranks = ReferenceRankTransformer(design.truth if name == "oracle" else None)
    fits = fit_grid(
        get(name), problem, get(name).grid_of(GRID, whole=False), [test], cold=cold
    )
    assert [fit.setting["l2"] for fit in fits] == [1e-3, 0.0]
    for fit in fits:
        X, X_test = problem.train.raw, test.raw
        if name != "lr":
            X, X_test = ranks.fit_transform(X), ranks.transform(X_test)
        strength = 1 / (2 * len(X) * max(fit.setting["l2"], FLOOR))
        model = LogisticRegression(
            C=strength,
            class_weight="balanced",
            solver="newton-cholesky",
            tol=1e-8,
            max_iter=1000,
        ).fit(X, problem.train.labels)
        assert (fit.labels[0] == model.predict(X_test)).mean() > 0.98
    if name == "oracle":
        np.testing.assert_array_equal(fits[0].reference, design.truth)


def test_optirank_among_all_genes_is_rank_lr():
    design = drawn()
    problem = make_problem(design, design.splits[-1], POSITIVE, GRID)
    grid = {"l1": (0.0,), "l2": (1e-3,)}
    tests = [*problem.tests.values()]
    (ours,) = fit_grid(
        get("optirank"), problem, {"n_reference": (1.0,), **grid}, tests, cold=True
    )
    (theirs,) = fit_grid(get("rank-lr"), problem, grid, tests, cold=True)
    assert ours.reference.all()
    assert (ours.labels[0] == theirs.labels[0]).mean() > 0.98


def test_the_cosine_compares_with_the_true_reference_set():
    design = drawn()
    share = np.sqrt((POINT.n_genes - POINT.n_perturbed) / POINT.n_genes)
    for name, expected in (("oracle", 1.0), ("rank-lr", share), ("lr", None)):
        found = run_unit(design, design.splits[0], POSITIVE, name, GRID)["cosine"]
        assert found == [pytest.approx(expected)] * 2


def test_the_best_setting_of_the_folds_is_tested_after_a_fit_to_all_training_samples(
    storage,
):
    scores = collect(storage).scores
    assert len(scores) == 2 * len(names_for(SYNTHETIC))
    assert set(scores["split"]) == {FOLDS}
    for row in scores.itertuples():
        units = [
            one
            for one in storage.units(row.task)
            if one["classifier"] == row.classifier
        ]
        folds = [one for one in units if one["split"] < FOLDS]
        means = np.mean([one["validation"] for one in folds], axis=0)
        assert row.validation == pytest.approx(means.max())
        final = next(one for one in units if one["split"] == FOLDS)
        assert row.test in final["test"][row.task]


def test_the_page_compares_the_default_point_and_leaves_the_oracle_out_of_the_answer(
    storage, tmp_path
):
    written = write(collect(storage), tmp_path, SETTINGS)
    (comparison,) = written.comparisons
    assert list(comparison.tissues) == ["data set 1", "data set 2"]
    page = written.page.read_text("utf-8")
    assert "The synthetic experiment" in page
    assert "<b>2 data sets</b><span>drawn per point</span>" in page
    assert "<b>oracle</b>" not in page
    assert "Beside published figures" not in page  # another point than the paper's
