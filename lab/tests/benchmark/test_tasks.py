"""The built-in tasks, and pairs of sets found in a folder."""

from __future__ import annotations

import numpy as np
import pytest

from benchmark_cases import FIRST, SECOND, THIRD, make_set, write_sets
from optirank_lab.benchmark.splits import make_splits
from optirank_lab.benchmark.tasks import built_in, choose, find_pairs, paper_tasks
from optirank_lab.data.conversion import write_h5ad
from optirank_lab.data.registry import harmonise


def test_the_built_in_tasks_are_well_formed():
    tasks = {task.name: task for task in built_in()}
    assert len(tasks) == len(built_in()) == len({name.casefold() for name in tasks})
    assert sum(task.paper for task in tasks.values()) == 14
    for task in tasks.values():
        assert task.tissue
        assert task.shift in ("none", "batch", "platform", "technology", "biological")
        assert bool(task.train) != bool(task.models_of)
        assert len(set(task.sets)) == len(task.sets)
        assert (task.test is None) == (
            not task.models_of and task.scheme in ("hold-out", "nested")
        )
        assert [harmonise([label])[0] for label, _ in task.merge] == [
            one for one, _ in task.merge
        ]
        assert task.models_of is None or tasks[task.models_of].train
        assert make_splits(
            task.scheme, np.repeat(["a", "b"], 20), None, "", name="x", seed=0
        )


def test_tasks_are_chosen_by_name():
    tasks = built_in()
    assert choose(tasks, []) == tasks
    assert [task.name for task in choose(tasks, ["TCGA", "BRCA", "TCGA"])] == [
        "TCGA",
        "BRCA",
    ]
    with pytest.raises(
        ValueError, match="no task is called 'nothing': optirank-lab benchmark list"
    ):
        choose(tasks, ["nothing"])


def test_every_ordered_pair_of_sets_with_common_classes_is_found(tmp_path):
    found, problems = find_pairs(write_sets(tmp_path))
    assert problems == {}
    assert len(found) == 6
    assert {task.tissue for task in found} == {
        "breast"
    }  # of the sets that tasks.toml knows
    assert all(task.scheme == "all" for task in found)


def test_sets_that_do_not_fit_are_not_paired(tmp_path):
    write_sets(tmp_path)
    sets = {
        "few_genes": make_set("few_genes", n_genes=99),
        "small": make_set("small", 20),  # 7, 7 and 6 samples of the classes
        "others": make_set("others", classes=("x", "y")),
        "same_study": make_set("same_study"),
        "ovary": make_set("ovary"),
    }
    sets["same_study"].obs[["dataset", "tissue"]] = FIRST, "breast"
    sets["ovary"].obs["tissue"] = "ovary"
    for name, data in sets.items():
        write_h5ad(data, tmp_path / f"{name}.h5ad")
    (tmp_path / "damaged.h5ad").write_bytes(b"damaged")
    unlabelled = make_set("unlabelled")
    unlabelled.obs.drop(columns="cell_type", inplace=True)
    write_h5ad(unlabelled, tmp_path / "unlabelled.h5ad")
    found, problems = find_pairs(tmp_path)
    used = {name for task in found for name in task.sets}
    assert used == {FIRST, SECOND, THIRD, "same_study"}
    assert f"{FIRST} to same_study" not in {task.name for task in found}
    assert f"same_study to {SECOND}" in {task.name for task in found}
    assert set(problems) == {"damaged", "unlabelled"}
    assert "no column 'cell_type'" in problems["unlabelled"]


def test_sets_without_a_known_tissue_get_that_of_their_pairs(tmp_path):
    for name in ("one", "two"):
        write_h5ad(make_set(name), tmp_path / f"{name}.h5ad")
    write_h5ad(make_set("x1", classes=("x", "y")), tmp_path / "x1.h5ad")
    write_h5ad(make_set("x2", classes=("x", "y")), tmp_path / "x2.h5ad")
    tissues = {task.name: task.tissue for task in find_pairs(tmp_path)[0]}
    assert len(tissues) == 4
    assert tissues["one to two"] == tissues["two to one"] != tissues["x1 to x2"]
    write_h5ad(make_set(FIRST), tmp_path / f"{FIRST}.h5ad")
    tissues = {task.name: task.tissue for task in find_pairs(tmp_path)[0]}
    assert tissues["one to two"] == "breast"


def test_pairs_of_one_platform_are_told_from_pairs_of_two(tmp_path):
    sets = {name: make_set(name) for name in ("one", "two", "three", "unnamed")}
    sets["two"].obs["platform"] = "one"
    sets["unnamed"].obs.drop(columns="platform", inplace=True)
    for name, data in sets.items():
        write_h5ad(data, tmp_path / f"{name}.h5ad")
    tasks = {task.name: task for task in find_pairs(tmp_path)[0]}
    assert tasks["one to two"].shift == "same platform"
    assert not tasks["one to two"].across_platforms
    assert tasks["one to three"].shift == "platform"
    assert tasks["one to unnamed"].shift == "unknown"
    assert tasks["one to unnamed"].across_platforms


def test_every_task_of_the_paper_has_a_stand_in_of_its_shift_and_scheme():
    tasks = {task.name: task for task in built_in()}
    of_paper = {name: task for name, task in tasks.items() if task.paper}
    stand_ins = [task for task in tasks.values() if task.stands_for]
    assert len(of_paper) == 14
    matched = set()
    for stand_in in stand_ins:
        task = of_paper[stand_in.stands_for]
        assert stand_in.scenarios == task.scenarios
        assert bool(stand_in.models_of) == bool(task.models_of)
        assert task.models_of or stand_in.scheme == task.scheme
        if stand_in.shift == task.shift:
            matched.add(task.name)
    assert matched == of_paper.keys()
    assert {*paper_tasks()} == {*of_paper.values(), *stand_ins}
