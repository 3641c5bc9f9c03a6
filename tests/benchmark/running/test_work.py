"""One unit of work: nothing of validation and test samples leaks, and scores are what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import balanced_accuracy_score

from benchmark_cases import write_sets
from optirank import OptirankClassifier, RankLogisticRegression
from optirank.benchmark import designs as designs_module
from optirank.benchmark.classifiers import CLASSIFIERS, names_for
from optirank.benchmark.profiles import PAPER, QUICK, Profile
from optirank.benchmark.real import RealTasks
from optirank.benchmark.running.work import run_unit
from optirank.preprocessing import SingleCellNetGenes

SMALL = Profile(
    "quick",
    n_top=8,
    grids={
        "n_reference": (0.3, 1.0),
        "l1": (0.0,),
        "l2": (1e-2, 1e-1),
        "n_trees": (20,),
        "n_estimators": (20,),
    },
)


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    return write_sets(tmp_path_factory.mktemp("sets"))


def designs(sets, name: str):
    return RealTasks(sets, sets / "tasks.toml").designs(name)


def make_problem(design, split, positive: str, profile: Profile):
    return designs_module.make_problem(design, split, positive, profile.n_top)


def spoil(one, rows):
    """A set with other values in some rows, and their labels turned round."""
    random = np.random.default_rng(1)
    raw, values, labels = one.raw.toarray(), one.values.toarray(), one.labels.copy()
    raw[rows] = random.poisson(50.0, raw[rows].shape)
    values[rows] = random.normal(5.0, 1.0, values[rows].shape)
    labels[rows] = labels[rows][::-1]
    return replace(one, raw=sp.csr_array(raw), values=sp.csr_array(values), labels=labels)


@pytest.mark.parametrize(
    ("name", "scenario"), [("pair", ""), ("base", ""), ("inside", ""), ("triple", "multi")]
)
def test_genes_and_training_samples_do_not_see_validation_and_test(sets, name, scenario):
    design = next(one for one in designs(sets, name) if one.scenario == scenario)
    split = design.splits[0]
    unseen = np.setdiff1d(np.arange(len(design.source.labels)), split.train)
    other = replace(
        design,
        source=spoil(design.source, unseen),
        tests={
            key: None if one is None else spoil(one, np.arange(len(one.labels)))
            for key, one in design.tests.items()
        },
    )
    if scenario == "multi":
        rest = np.setdiff1d(np.arange(len(design.auxiliary.labels)), split.auxiliary_train)
        other = replace(other, auxiliary=spoil(design.auxiliary, rest))
    before = make_problem(design, split, design.positives[0], SMALL)
    after = make_problem(other, split, design.positives[0], SMALL)
    np.testing.assert_array_equal(before.selected, after.selected)
    np.testing.assert_array_equal(before.train.raw.toarray(), after.train.raw.toarray())
    np.testing.assert_array_equal(before.train.values.toarray(), after.train.values.toarray())
    np.testing.assert_array_equal(before.train.labels, after.train.labels)
    for part, changed in zip(before.validation, after.validation, strict=True):
        assert (part.raw != changed.raw).nnz > 0  # the spoiling did spoil


def test_a_leaking_selection_would_be_noticed(sets):
    """The same change of validation samples does move a selection that sees them."""
    (design,) = designs(sets, "pair")
    split = design.splits[0]
    unseen = np.setdiff1d(np.arange(len(design.source.labels)), split.train)
    spoiled = spoil(design.source, unseen)

    def all_samples(one) -> list:
        y = one.labels == "a"
        return SingleCellNetGenes(8, random_state=0).fit(sp.csr_matrix(one.raw), y).get_support()

    assert (all_samples(design.source) != all_samples(spoiled)).any()


def test_the_selection_is_singlecellnets_on_the_training_samples(sets):
    (design,) = designs(sets, "pair")
    split = design.splits[0]
    problem = make_problem(design, split, "b", SMALL)
    X = sp.csr_matrix(design.source.raw[split.train])
    selector = SingleCellNetGenes(8, random_state=problem.seed)
    selector.fit(X, design.source.labels[split.train] == "b")
    np.testing.assert_array_equal(problem.selected, selector.get_support(indices=True))
    assert len(problem.selected) == 16


def test_two_sources_are_told_apart_in_training_and_validation(sets):
    single, multi = designs(sets, "triple")
    alone = make_problem(single, single.splits[0], "a", SMALL)
    both = make_problem(multi, multi.splits[0], "a", SMALL)
    assert alone.dataset is None
    assert alone.auxiliary is not None
    assert len(alone.validation) == 1
    assert both.auxiliary is None
    assert len(both.validation) == 2
    sizes = [len(multi.splits[0].train), len(multi.splits[0].auxiliary_train)]
    np.testing.assert_array_equal(np.bincount(both.dataset), sizes)


@pytest.mark.parametrize("name", names_for("real"))
def test_every_classifier_gives_one_value_per_setting(sets, name):
    for design in designs(sets, "triple"):
        result = run_unit(design, design.splits[0], "a", name, SMALL)
        n = len(result["settings"])
        assert n == (
            4 if name in ("optirank", "ANrank-lr") else 2 if name in ("lr", "rank-lr") else 1
        )
        for column in ("validation", "test", "n_genes", "fit_seconds", "converged"):
            assert len(result[column]) == n
        assert all(0 <= score <= 1 for score in result["validation"])
        assert max(result["validation"]) > 0.8
        assert result["n_features"] == 16
        if name == "rank-lr":
            assert result["n_genes"] == [16, 16]


@pytest.mark.parametrize("name", ["optirank", "rank-lr"])
def test_scores_are_those_of_the_estimator(sets, name):
    (design,) = designs(sets, "pair")
    split, problem = design.splits[0], make_problem(design, design.splits[0], "b", SMALL)
    result = run_unit(design, split, "b", name, SMALL)
    for k, setting in enumerate(result["settings"]):
        make = OptirankClassifier if name == "optirank" else RankLogisticRegression
        model = make(**setting).fit(problem.train.raw, problem.train.labels)
        for part, score in (
            (problem.validation[0], result["validation"][k]),
            (problem.tests["pair"], result["test"][k][0]),
        ):
            expected = balanced_accuracy_score(part.labels, model.predict(part.raw))
            # The grid starts from neighbouring settings, which may end in another minimum.
            tolerance = 0.1 if name == "optirank" else 1e-12
            assert score == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("name", ["optirank", "lr"])
def test_validation_samples_are_scored_on_simulated_platforms_too(sets, name):
    (design,) = designs(sets, "pair")
    split = design.splits[0]
    result = run_unit(design, split, "b", name, replace(SMALL, platforms=(0.0, 0.5, 30.0)))
    plain, _, strong = result["platforms"]
    assert plain == result["validation"]  # a platform of strength 0 changes nothing
    assert [len(one) for one in result["platforms"]] == [len(result["settings"])] * 3
    assert np.mean(strong) < np.mean(plain)
    without = run_unit(design, split, "b", name, replace(SMALL, platforms=()))
    assert {key: result[key] for key in ("validation", "test", "n_genes")} == {
        key: without[key] for key in ("validation", "test", "n_genes")
    }


def test_two_sources_are_measured_on_the_same_simulated_platform(sets):
    _, multi = designs(sets, "triple")
    problem = designs_module.make_problem(multi, multi.splits[0], "a", 8, (0.5,))
    ((first, second),) = problem.platforms
    factors = []
    for part, own in zip((first, second), problem.validation, strict=True):
        raw, before = part.raw.toarray(), own.raw.toarray()
        assert (raw[before == 0] == 0).all()
        factors.append(raw.sum(axis=0) / before.sum(axis=0))
        np.testing.assert_allclose(raw, before * factors[-1], rtol=1e-5)
    np.testing.assert_allclose(*factors, rtol=1e-5)


def test_validation_of_two_sources_is_the_mean_of_their_own_scores(sets):
    _, multi = designs(sets, "triple")
    problem = make_problem(multi, multi.splits[0], "a", SMALL)
    result = run_unit(multi, multi.splits[0], "a", "rank-lr", SMALL)
    setting = result["settings"][0]
    model = RankLogisticRegression(**setting).fit(problem.train.raw, problem.train.labels)
    each = [
        balanced_accuracy_score(part.labels, model.predict(part.raw)) for part in problem.validation
    ]
    assert result["validation"][0] == pytest.approx(np.mean(each), abs=1e-12)


def test_held_out_samples_and_other_sets_are_tested_by_the_same_models(sets):
    (design,) = designs(sets, "base")
    result = run_unit(design, design.splits[0], "a", "lr", SMALL)
    assert [len(one) for one in result["test"]] == [2, 2]
    assert result["n_test"] == {"base": 9, "elsewhere": 66}


def test_a_class_that_a_test_set_lacks_has_no_score_there(sets):
    (design,) = designs(sets, "base")
    result = run_unit(design, design.splits[0], "c", "lr", SMALL)
    own, elsewhere = np.array(result["test"]).T
    assert np.isfinite(own).all()
    assert np.isnan(elsewhere).all()


def test_one_source_fits_anrank_lr_on_its_own_samples_alone(sets):
    single, _ = designs(sets, "triple")
    split = single.splits[0]
    problem = make_problem(single, split, "a", SMALL)
    assert len(problem.train.labels) == len(split.train)
    before = run_unit(single, split, "a", "rank-lr", SMALL)
    changed = replace(single, auxiliary=spoil(single.auxiliary, np.arange(48)))
    assert run_unit(changed, split, "a", "rank-lr", SMALL)["test"] == before["test"]
    assert make_problem(changed, split, "a", SMALL).selected.tolist() == problem.selected.tolist()


def test_the_paper_profile_has_the_papers_grids():
    optirank = CLASSIFIERS["optirank"]
    grid = PAPER.grid(optirank)
    assert grid["l1"] == grid["l2"] == (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
    assert grid["n_reference"] == (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert (PAPER.n_top, PAPER.n_splits) == (500, None)
    assert PAPER.grid(CLASSIFIERS["SCN"]) == {"n_trees": (1000,)}
    assert QUICK.grid(CLASSIFIERS["rf"])["n_estimators"] == (100,)
    assert set(QUICK.grid(optirank)["l2"]) <= set(grid["l2"])
