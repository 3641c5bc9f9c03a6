"""From stored units to results: the one-standard-error rule, parts apart, unfinished problems."""

from __future__ import annotations

import pytest

from optirank.benchmark.classifiers import get, ordered
from optirank.benchmark.profiles import PAPER
from optirank.benchmark.reporting.results import choose, collect
from optirank.benchmark.running.storage import Storage, Unit

DESIGN = {
    "fingerprint": "x",
    "added": "2026",
    "task": "t",
    "scenario": "",
    "kind": "bulk",
    "sources": "one",
    "tests": ["t", "u"],
    "titles": ["T", "U"],
    "shifts": ["none", "batch"],
    "targets": ["held-out samples", "two"],
    "n_genes": 10,
    "classes": ["a", "b"],
    "positives": ["b"],
    "parts": [0, 0, 1, 1],
    "n_train": [4, 4, 4, 4],
    "n_validation": [2, 2, 2, 2],
    "n_test": [[3] * 4, [7] * 4],
    "notes": ["a word"],
}


LOG = {
    "units": 4,
    "jobs": 2,
    "wall_seconds": 5.0,
    "tasks": ["t", "u"],
    "classifiers": ["lr"],
    "missing": {},
    "problems": {},
}


def unit_result(validation, test, n_genes):
    return {
        "settings": [{"l1": 0.0, "l2": 10.0**-k} for k in range(len(validation))],
        "validation": validation,
        "test": test,
        "n_genes": n_genes,
        "fit_seconds": [0.1] * len(validation),
        "converged": [False] + [True] * (len(validation) - 1),
        "n_features": 10,
        "unit_seconds": 2.0,
    }


@pytest.fixture
def storage(tmp_path):
    with Storage(tmp_path / "out").open(PAPER, 0) as storage:
        storage.add_design("t", DESIGN)
    # Part 0: setting 0 is best (0.9 +- 0.1), setting 1 within one standard error with fewer genes.
    # Part 1: setting 2 is best without any spread.
    for split, validation in enumerate(
        [[0.8, 0.75, 0.6], [1.0, 0.95, 0.6], [0.5, 0.5, 0.7], [0.5, 0.5, 0.7]]
    ):
        tests = [[0.1 * k + 0.01 * split, 0.2 * k] for k in range(3)]
        unit = Unit("t", "", split, 0, "b", "lr")
        storage.save(unit, unit_result(validation, tests, [9, 4, 6]))
    return storage


def test_each_part_chooses_by_the_one_standard_error_rule(storage):
    scores = collect(storage).scores
    chosen = scores.groupby("part")["l2"].unique()
    assert chosen[0].tolist() == [0.1]
    assert chosen[1].tolist() == [0.01]
    assert scores.groupby("part")["n_genes"].first().tolist() == [4, 6]


def test_the_best_validation_score_can_be_asked_for(storage):
    results = collect(storage, ["best"])
    chosen = results.scores.groupby("part")["l2"].unique()
    assert chosen[0].tolist() == [1.0]
    assert chosen[1].tolist() == [0.01]
    assert results.run["selection"] == ["best"]


def test_further_rules_are_further_columns(storage):
    scores = collect(storage, ["one_se", "best"]).scores
    chosen = scores.groupby(["classifier", "part"])["l2"].first()
    assert chosen.to_dict() == {
        ("lr", 0): 0.1,
        ("lr", 1): 0.01,
        ("lr (best)", 0): 1.0,
        ("lr (best)", 1): 0.01,
    }
    assert get("lr (best)").colour == get("lr").colour
    assert ordered(["rf", "lr (best)", "lr"]) == ["lr", "lr (best)", "rf"]


def test_an_unknown_rule_is_refused(storage):
    with pytest.raises(ValueError, match="no rule is called 'worst': use one_se, best, transfer"):
        collect(storage, ["worst"])


def with_platforms(storage, platforms):
    """The stored units with validation scores on simulated platforms, the same in every split."""
    for split in range(4):
        unit = Unit("t", "", split, 0, "b", "lr")
        storage.save(unit, storage.load(unit) | {"platforms": platforms})


def test_the_transfer_rule_counts_simulated_platforms_twice(storage):
    # Part 0: 0.9, 0.85 and 0.6 plain; with platforms of 0.5, 0.6 and 0.7 the second is best.
    with_platforms(storage, [[0.4, 0.7, 0.7], [0.6, 0.5, 0.7]])
    results = collect(storage, ["one_se", "transfer"])
    chosen = results.scores.groupby(["classifier", "part"])["l2"].first()
    assert chosen["lr (transfer)", 0] == 0.1
    assert chosen["lr (transfer)", 1] == 0.01
    assert chosen["lr", 0] == 0.1  # the paper's columns stay
    assert results.run["selection"] == ["one_se", "transfer"]


def test_the_transfer_rule_leaves_the_untuned_setting_only_for_a_clear_gain():
    settings = [{"l1": 1e-3, "l2": 1e-3}, {"l1": 0.0, "l2": 1e-3}]
    for gain, expected in ((0.01, 0), (0.05, 1)):
        unit = {
            "settings": settings,
            "validation": [0.8, 0.8 + gain],
            "platforms": [[0.7, 0.7 + gain]],
            "n_genes": [5, 5],
        }
        assert choose([unit, unit], "transfer") == expected


def test_the_transfer_rule_needs_scores_on_simulated_platforms(storage):
    with pytest.raises(ValueError, match=r"no scores on simulated platforms.*into a new folder"):
        collect(storage, ["transfer"])


def test_test_scores_are_those_of_each_splits_own_model(storage):
    scores = collect(storage).scores
    own = scores[scores["task"] == "t"].sort_values("split")
    assert own["test"].tolist() == pytest.approx([0.1, 0.11, 0.22, 0.23])
    assert scores[scores["task"] == "u"]["test"].tolist() == pytest.approx([0.2, 0.2, 0.4, 0.4])
    assert len(scores) == 8


def test_tasks_and_run_are_described(storage):
    machine = {"python": "3.99.1", "platform": "Elsewhere"}
    storage.log("now", LOG | {"missing": {"v": "no data"}, "problems": {"w": "bad"}} | machine)
    results = collect(storage)
    assert results.tasks["shift"].tolist() == ["none", "batch"]
    assert results.tasks["n_test"].tolist() == [3, 7]
    assert results.run["cpu_seconds"] == 8.0
    assert results.run["missing"] == ["v"]
    assert results.run["unconverged"] == 4
    assert results.problems == {"w": "bad"}
    assert results.run["classifiers"] == ["lr"]
    # The machine that ran, not the one that writes the report.
    assert {name: results.run[name] for name in machine} == machine


def test_an_unfinished_part_is_left_out_and_said(storage):
    (storage.folder / "units" / Unit("t", "", 3, 0, "b", "lr").path).unlink()
    results = collect(storage)
    assert set(results.scores["part"]) == {0}
    assert "1 units are missing" in results.problems["t"]


def test_a_half_written_unit_counts_as_missing(storage):
    path = storage.folder / "units" / Unit("t", "", 3, 0, "b", "lr").path
    path.write_text(path.read_text()[:20])
    assert set(collect(storage).scores["part"]) == {0}


def test_a_planned_classifier_without_any_unit_is_missed(storage):
    storage.log("now", LOG | {"classifiers": ["lr", "rf"]})
    assert "4 units are missing" in collect(storage).problems["t"]


def test_a_fold_without_validation_samples_of_a_class_does_not_choose(storage):
    unit = Unit("t", "", 0, 0, "b", "lr")
    nan = float("nan")
    storage.save(unit, storage.load(unit) | {"validation": [nan] * 3})
    chosen = collect(storage).scores.groupby("part")["l2"].unique()
    assert chosen[0].tolist() == [1.0]  # by the other fold of the part alone


def test_an_empty_folder_has_no_results(tmp_path):
    with pytest.raises(ValueError, match="holds no results"):
        collect(Storage(tmp_path))
