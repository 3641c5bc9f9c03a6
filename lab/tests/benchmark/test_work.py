"""One unit of work: nothing of validation and test samples leaks, and scores are what
they say.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import balanced_accuracy_score

from benchmark_cases import designs, write_sets
from numpy_device import NumpyBackend
from optirank import OptirankClassifier, RankLogisticRegression
from optirank_lab.baselines.transformers import SingleCellNetGenes
from optirank_lab.benchmark.classifiers import get, names_for
from optirank_lab.benchmark.designs import ALL, Profile, make_problem
from optirank_lab.benchmark.work import fit_grid, run_unit

SMALL = Profile(
    "quick",
    n_top=8,
    n_genes=40,
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


def spoil(one, rows):
    """A set with other values in some rows, and their labels turned round."""
    random = np.random.default_rng(1)
    raw, values, labels = one.raw.toarray(), one.values.toarray(), one.labels.copy()
    raw[rows] = random.poisson(50.0, raw[rows].shape)
    values[rows] = random.normal(5.0, 1.0, values[rows].shape)
    labels[rows] = labels[rows][::-1]
    return replace(
        one, raw=sp.csr_array(raw), values=sp.csr_array(values), labels=labels
    )


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("name", "scenario"),
    [("pair", ""), ("base", ""), ("inside", ""), ("triple", "multi")],
)
def test_genes_and_training_samples_do_not_see_validation_and_test(
    sets, name, scenario, whole
):
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
        rest = np.setdiff1d(
            np.arange(len(design.auxiliary.labels)), split.auxiliary_train
        )
        other = replace(other, auxiliary=spoil(design.auxiliary, rest))
    problem = ALL if whole else design.positives[0]
    before, after = (
        make_problem(one, split, problem, SMALL) for one in (design, other)
    )
    np.testing.assert_array_equal(before.train.genes, after.train.genes)
    np.testing.assert_array_equal(before.train.raw.toarray(), after.train.raw.toarray())
    np.testing.assert_array_equal(
        before.train.values.toarray(), after.train.values.toarray()
    )
    np.testing.assert_array_equal(before.train.labels, after.train.labels)
    for part, changed in zip(before.validation, after.validation, strict=True):
        assert (part.raw != changed.raw).nnz > 0  # the spoiling did spoil


def test_the_selection_is_singlecellnets_on_the_training_samples(sets):
    (design,) = designs(sets, "pair")
    split = design.splits[0]
    problem = make_problem(design, split, "b", SMALL)
    X = sp.csr_matrix(design.source.raw[split.train])
    selector = SingleCellNetGenes(8, random_state=problem.seed)
    selector.fit(X, design.source.labels[split.train] == "b")
    expected = design.source.genes[selector.get_support()]
    np.testing.assert_array_equal(problem.train.genes, expected)
    assert len(problem.train.genes) == 16


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


@pytest.mark.parametrize("name", names_for("binary"))
def test_every_classifier_gives_one_value_per_setting(sets, name):
    for design in designs(sets, "triple"):
        result = run_unit(design, design.splits[0], "a", name, SMALL)
        n = len(result["settings"])
        assert n == get(name).n_settings(SMALL, whole=False)
        for column in ("validation", "n_genes", "fit_seconds", "predict_seconds"):
            assert len(result[column]) == n
        assert [len(one) for one in result["test"].values()] == [n]
        assert max(result["validation"]) > 0.8
        assert result["n_features"] == 16
        assert max(result["n_genes"]) <= 16


@pytest.mark.parametrize("name", ["optirank", "rank-lr"])
def test_scores_are_those_of_the_estimator(sets, name):
    (design,) = designs(sets, "pair")
    split, problem = (
        design.splits[0],
        make_problem(design, design.splits[0], "b", SMALL),
    )
    result = run_unit(design, split, "b", name, SMALL)
    for k, setting in enumerate(result["settings"]):
        make = OptirankClassifier if name == "optirank" else RankLogisticRegression
        model = make(**setting).fit(problem.train.raw, problem.train.labels)
        for part, score in (
            (problem.validation[0], result["validation"][k]),
            (problem.tests["pair"], result["test"]["pair"][k]),
        ):
            expected = balanced_accuracy_score(part.labels, model.predict(part.raw))
            # The grid starts from neighbouring settings, which may end in another
            # minimum.
            tolerance = 0.1 if name == "optirank" else 1e-12
            assert score == pytest.approx(expected, abs=tolerance)


def test_validation_of_two_sources_is_the_mean_of_their_own_scores(sets):
    _, multi = designs(sets, "triple")
    problem = make_problem(multi, multi.splits[0], "a", SMALL)
    result = run_unit(multi, multi.splits[0], "a", "rank-lr", SMALL)
    model = RankLogisticRegression(**result["settings"][0])
    model.fit(problem.train.raw, problem.train.labels)
    each = [
        balanced_accuracy_score(part.labels, model.predict(part.raw))
        for part in problem.validation
    ]
    assert result["validation"][0] == pytest.approx(np.mean(each), abs=1e-12)


def test_held_out_samples_and_other_sets_are_tested_by_the_same_models(sets):
    (design,) = designs(sets, "base")
    result = run_unit(design, design.splits[0], "a", "lr", SMALL)
    assert result["n_test"] == {"base": 9, "other": 66}
    lacking = run_unit(design, design.splits[0], "c", "lr", SMALL)["test"]
    assert np.isfinite(lacking["base"]).all()
    assert np.isnan(lacking["other"]).all()  # a set that lacks the class has no score


def test_a_unit_on_a_device_labels_as_on_the_cpu(sets, monkeypatch):
    """NumPy stands in for the GPU."""
    from optirank_lab.device import backend

    monkeypatch.setattr(backend, "backend_of", lambda device: NumpyBackend())
    (design,) = designs(sets, "pair")
    problem = make_problem(design, design.splits[0], "b", SMALL)
    parts = [*problem.validation, *problem.tests.values()]
    for name in ("optirank", "rank-lr"):
        grid = get(name).grid_of(SMALL, whole=False)
        here = fit_grid(get(name), problem, grid, parts)
        there = fit_grid(get(name), problem, grid, parts, device="cuda")
        for one, other in zip(here, there, strict=True):
            assert one.setting == other.setting
            for a, b in zip(one.labels, other.labels, strict=True):
                assert np.mean(a == b) > 0.9
