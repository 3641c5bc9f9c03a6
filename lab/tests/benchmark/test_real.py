"""The data of a task: common genes and classes, log values, and clear words where
they fail.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from benchmark_cases import FIRST, SECOND, TASKS, THIRD, designs, make_set, write_sets
from optirank_lab.benchmark.designs import QUICK, RealTasks, genes_of_best_t
from optirank_lab.benchmark.results import Storage
from optirank_lab.benchmark.sets import Set, log_values
from optirank_lab.benchmark.tasks import built_in
from optirank_lab.data.conversion import write_h5ad
from optirank_lab.data.profiles import changed


@pytest.fixture
def sets(tmp_path):
    return write_sets(tmp_path / "sets")


def test_common_genes_and_classes_are_kept(sets):
    write_h5ad(make_set(SECOND, 72, 118, ("a", "b", "x")), sets / f"{SECOND}.h5ad")
    (design,) = designs(sets, "pair")
    assert list(design.source.genes) == [f"gene{j}" for j in range(118)]
    assert design.classes == ["a", "b"]
    assert design.positives == ["b"]
    assert any("left out: c" in note for note in design.notes)
    for one in (design.source, design.tests["pair"]):
        assert set(one.labels) == {"a", "b"}
        assert one.raw.shape == (len(one.labels), 118)


def test_three_classes_make_three_problems(sets):
    (design,) = designs(sets, "pair")
    assert design.positives == ["a", "b", "c"]


def test_small_classes_are_left_out_and_named(sets):
    data = make_set(FIRST)
    data.obs.loc[data.obs.index[:3], "cell_type"] = "rare"
    write_h5ad(data, sets / f"{FIRST}.h5ad")
    (design,) = designs(sets, "pair")
    assert "rare" not in design.classes
    assert any("rare" in note for note in design.notes)


def test_models_of_one_task_are_tested_by_others_over_genes_common_to_all(sets):
    (design,) = designs(sets, "base")
    assert list(design.tests) == ["base", "other"]
    assert design.tests["base"] is None
    assert len(design.source.genes) == 116
    assert design.positives == ["a", "b", "c"]  # whatever the other set has
    assert set(design.tests["other"].labels) == {"a", "b"}


def test_a_set_that_cannot_test_the_models_of_a_task_does_not_keep_it_from_running(
    sets,
):
    (sets / f"{THIRD}.h5ad").write_bytes(b"damaged")
    (design,) = designs(sets, "base")
    assert list(design.tests) == ["base"]
    assert THIRD in design.refused["other"]
    write_h5ad(make_set(THIRD, 66, 116, ("x", "y")), sets / f"{THIRD}.h5ad")
    (design,) = designs(sets, "base")
    assert "0 common classes" in design.refused["other"]


def test_a_problem_whose_positive_class_the_auxiliary_set_lacks_is_dropped(sets):
    triple = replace(TASKS[1], name="bulk triple", scheme="folds")
    write_h5ad(make_set(SECOND, 72, 118, ("a", "b")), sets / f"{SECOND}.h5ad")
    write_h5ad(make_set(THIRD, 66, 116), sets / f"{THIRD}.h5ad")
    single, multi = RealTasks(sets, (triple,)).designs("bulk triple")
    for design in (single, multi):
        assert design.classes == ["a", "b", "c"]
        assert design.positives == ["a", "b"]
        assert any("lacks it: c" in note for note in design.notes)


def test_the_fingerprint_sees_one_changed_value(sets):
    (before,) = designs(sets, "pair")
    (again,) = designs(sets, "pair")
    assert before.fingerprint() == again.fingerprint()
    data = make_set(SECOND, 72, 118, shift=1.0)
    data.X[0, 0] += 1
    write_h5ad(data, sets / f"{SECOND}.h5ad")
    (after,) = designs(sets, "pair")
    assert before.fingerprint() != after.fingerprint()


def test_changed_data_do_not_mix_with_old_results(sets, tmp_path):
    (before,) = designs(sets, "pair")
    with Storage(tmp_path / "out").open(QUICK, 0) as storage:
        storage.add_design(before.key, before.describe())
    storage.check_design(before)
    data = make_set(FIRST)
    data.X[0, 0] += 1
    write_h5ad(data, sets / f"{FIRST}.h5ad")
    (after,) = designs(sets, "pair")
    with pytest.raises(ValueError, match="the data of pair are not those"):
        storage.check_design(after)


def test_a_found_pair_leaves_out_classes_that_are_small_in_either_set(sets):
    data = make_set(SECOND, 72, 118)
    data.obs.loc[data.obs.index[:18], "cell_type"] = "a"  # leaves 18 of b and c
    few = data.obs.index[data.obs["cell_type"] == "c"][:12]
    data.obs.loc[few, "cell_type"] = "b"  # leaves 6 of c
    write_h5ad(data, sets / f"{SECOND}.h5ad")
    (design,) = designs(sets, "found")
    assert design.classes == ["a", "b"]
    (design,) = designs(sets, "pair")
    assert design.classes == ["a", "b", "c"]


def test_the_best_genes_are_those_of_the_largest_t_statistic_of_any_class():
    random = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = random.normal(size=(60, 30)).astype(np.float32)
    X[:, 5] = 7.0  # a gene that never varies
    for gene, one in ((3, "a"), (8, "b"), (9, "c")):
        X[y == one, gene] += 4.0
    one = Set("x", X, X, y, np.arange(30))
    assert set(genes_of_best_t(one, 3)) == {3, 8, 9}
    sparse = replace(one, values=sp.csr_array(X))
    np.testing.assert_array_equal(genes_of_best_t(sparse, 30), genes_of_best_t(one, 30))
    assert genes_of_best_t(one, 30)[-1] == 5


def test_log_values_by_hand():
    X = sp.csr_array([[1.0, 3.0, 0.0, -4.0]])
    expected = np.log1p([[250_000.0, 750_000.0, 0.0, 0.0]])
    np.testing.assert_allclose(log_values(X, "linear").toarray(), expected, rtol=1e-6)
    np.testing.assert_array_equal(log_values(X, "log").toarray(), X.toarray())
    np.testing.assert_array_equal(X.toarray(), [[1.0, 3.0, 0.0, -4.0]])


def break_genes(data):
    return changed(data, genes=[f"other{j}" for j in range(data.n_vars)])


def break_classes(data):
    data.obs["cell_type"] = ["x", "y"] * (data.n_obs // 2)
    return data


def break_column(data):
    return changed(data, obs=data.obs.drop(columns="cell_type"))


def break_values(data):
    data.X.data[0] = np.nan
    return data


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (break_genes, f"0 common genes of {FIRST}, {SECOND}"),
        (break_classes, "0 common classes"),
        (break_column, "no column 'cell_type'"),
        (break_values, "missing or infinite"),
    ],
)
def test_unusable_data_are_named(sets, damage, word):
    write_h5ad(damage(make_set(SECOND, 72, 118)), sets / f"{SECOND}.h5ad")
    with pytest.raises(ValueError, match=word):
        designs(sets, "pair")


def test_a_damaged_file_is_named(sets):
    content = (sets / f"{SECOND}.h5ad").read_bytes()
    (sets / f"{SECOND}.h5ad").write_bytes(content[: len(content) // 2])
    with pytest.raises((ValueError, OSError), match=SECOND):
        designs(sets, "pair")


@pytest.mark.parametrize(
    ("name", "n_genes", "n_classes"),
    [
        ("baron_h1-segerstolpe_1000g", 969, 6),
        ("nki_er-vdx_er", 200, 2),
        ("tcga-chowdary_breast_colon", 9660, 2),
        ("golub_leukemia-armstrong_leukemia", 4510, 2),
    ],
)
def test_real_tasks_have_the_known_genes_and_classes(
    data_folder, name, n_genes, n_classes
):
    (design,) = RealTasks(data_folder, built_in()).designs(name)
    assert (len(design.source.genes), len(design.classes)) == (n_genes, n_classes)
