"""Whole tasks: scores by definition, the child's own costs, and gaps that leave the run intact."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from benchmark_cases import write_sets
from optirank.benchmark.classifiers import get
from optirank.benchmark.profiles import PAPER, QUICK
from optirank.benchmark.real import RealTasks
from optirank.benchmark.running.storage import Storage, WholeUnit
from optirank.benchmark.running.whole import run_whole, score_labels, whole_splits
from whole_cases import fake_tool

KEYS = {
    *("kind", "tool", "version", "classes", "splits", "validation", "test", "unassigned"),
    *("n_genes", "fit_seconds", "predict_seconds", "n_test", "n_train", "n_features"),
    *("peak_bytes", "start_bytes", "seconds"),
}


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    return write_sets(tmp_path_factory.mktemp("sets"))


def designs(sets, task: str):
    return RealTasks(sets, sets / "tasks.toml").designs(task)


def whole(design, tool, n_splits: int = 1, limit: float = 120.0) -> dict:
    return run_whole(design, tool, n_splits=n_splits, time_limit=limit)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["a", "b", "c", None]))))
def test_scores_are_mean_recalls_of_the_classes_there_are(pairs):
    pairs = [("a", "a"), *pairs]
    truth = np.array([one for one, _ in pairs])
    predicted = [one for _, one in pairs]
    score, share = score_labels(truth, predicted)
    recalls = []
    for one in sorted(set(truth)):
        own = [label for true, label in pairs if true == one]
        recalls.append(sum(label == one for label in own) / len(own))
    assert score == pytest.approx(sum(recalls) / len(recalls))
    assert share == pytest.approx(predicted.count(None) / len(pairs))


def test_an_estimator_of_the_registry_scores_as_it_does_here(sets):
    (design,) = designs(sets, "pair")
    record = whole(design, get("lr-log"), n_splits=2)
    assert record.keys() == KEYS
    assert json.loads(json.dumps(record)) == record
    for k, split in enumerate(design.splits[:2]):
        train, test = design.source.take(split.train), design.tests["pair"]
        model = LogisticRegression(class_weight="balanced", max_iter=1000)
        model.fit(train.values, train.labels)
        expected = balanced_accuracy_score(test.labels, model.predict(test.values))
        assert record["test"]["pair"][k] == pytest.approx(expected)
        held = design.source.take(split.validation)
        expected = balanced_accuracy_score(held.labels, model.predict(held.values))
        assert record["validation"][k] == pytest.approx(expected)
        assert record["n_genes"][k] == np.count_nonzero(model.coef_.any(axis=0))
        assert record["n_train"][k] == len(split.train)
    assert record["version"].startswith("scikit-learn ")
    assert record["n_features"] == len(design.genes)
    assert record["n_test"] == {"pair": len(design.tests["pair"].labels)}
    assert record["unassigned"] == {"pair": [0.0, 0.0]}


def test_the_version_is_that_of_the_package_that_fits(sets):
    (design,) = designs(sets, "pair")
    record = whole(design, get("svm-ranks"), n_splits=1)
    assert record["version"] == f"scikit-learn {sklearn.__version__}"  # on our ranks
    assert get("centroid").options()["package"] == "optirank"


def test_two_sources_train_together_and_every_test_set_is_scored(sets, tmp_path, monkeypatch):
    own = "self.n = len(train.labels)"  # what the tool says of genes tells how many samples it saw
    tool = fake_tool(tmp_path, monkeypatch, "fake", fit=own)
    _, multi = designs(sets, "triple")
    split = multi.splits[0]
    assert whole(multi, tool)["n_genes"] == [len(split.train) + len(split.auxiliary_train)]
    (base,) = designs(sets, "base")
    record = whole(base, tool)
    assert record["test"].keys() == {"base", "elsewhere"}
    assert record["n_test"]["base"] == len(base.splits[0].test)
    assert record["test"]["base"] == [pytest.approx(1 / 3)]
    assert record["test"]["elsewhere"] == [0.5]  # two classes there


def test_nested_splits_test_each_part_once(sets):
    (nested,) = designs(sets, "inside")
    assert [split.part for split in whole_splits(nested.splits, 5)] == [0, 1, 2, 3]
    assert len(whole_splits(nested.splits, 1)) == 1
    (pair,) = designs(sets, "pair")
    assert whole_splits(pair.splits, 3) == pair.splits[:3]


@pytest.mark.skipif(os.name != "posix", reason="memory is measured on POSIX systems")
def test_times_and_memory_are_those_of_the_child(sets, tmp_path, monkeypatch):
    fit = (
        "start = time.process_time()\n"
        "while time.process_time() - start < 0.5:\n"
        "    pass\n"
        "block = bytearray(200_000_000)\n"
        "block[::4096] = b'x' * len(block[::4096])"
    )
    predict = f"time.sleep(1)\n{fake_tool.__kwdefaults__['predict']}"
    tool = fake_tool(tmp_path, monkeypatch, "fake", fit=fit, predict=predict)
    (design,) = designs(sets, "pair")
    big = np.ones(400_000_000 // 8)  # memory of this process is not the child's
    record = whole(design, tool)
    del big
    assert 0.5 <= record["fit_seconds"][0] < 2.0
    assert record["predict_seconds"]["pair"][0] < 0.5
    assert record["start_bytes"] < 200e6
    assert 190e6 < record["peak_bytes"] - record["start_bytes"] < 260e6


def test_a_sample_without_a_label_is_wrong_and_counted(sets, tmp_path, monkeypatch):
    some = "return [None if k % 2 else 'a' for k in range(len(part.labels))]"
    tool = fake_tool(tmp_path, monkeypatch, "fake", predict=some)
    (design,) = designs(sets, "pair")
    record = whole(design, tool)
    labels = design.tests["pair"].labels
    right = [one == "a" and k % 2 == 0 for k, one in enumerate(labels)]
    assert record["test"]["pair"] == [pytest.approx(sum(right) / sum(labels == "a") / 3)]
    assert record["unassigned"]["pair"] == [0.5]


@pytest.mark.parametrize(
    ("lines", "stage", "words"),
    [
        ({"fit": "raise ValueError('no\\n genes')"}, "fit", "ValueError: no genes"),
        ({"predict": "raise KeyError('x')"}, "predict", "KeyError: 'x'"),
        ({"predict": "return ['a']"}, "predict", "1 labels for"),
        ({"fit": "import not_there"}, "fit", "No module named 'not_there'"),
        ({"fit": "raise MemoryError"}, "memory", "MemoryError"),
    ],
)
def test_a_tool_that_fails_is_a_gap_with_the_stage(
    sets, tmp_path, monkeypatch, lines, stage, words
):
    tool = fake_tool(tmp_path, monkeypatch, "fake", **lines)
    (design,) = designs(sets, "pair")
    record = whole(design, tool)
    assert record.keys() == {"kind", "tool", "failed", "stage"}
    assert record["stage"] == stage
    assert words in record["failed"]
    assert "\n" not in record["failed"]


def test_a_gap_is_no_result_and_records_are_found_by_tool(tmp_path):
    with Storage(tmp_path / "out").open(QUICK, 0) as storage:
        done, lost = WholeUnit("t", "multi", "optirank train"), WholeUnit("t", "multi", "SCN")
        storage.save(done, {"kind": "whole", "tool": "optirank train"})
        storage.save(lost, {"kind": "whole", "tool": "SCN", "failed": "why", "stage": "fit"})
        assert storage.has(done)
        assert not storage.has(lost)
        assert set(storage.whole("t.multi")) == {"optirank train", "SCN"}
        for damaged in (b"{", b"[]", b"{}", b"3", b"\xff"):
            (storage.folder / "units" / lost.path).write_bytes(damaged)
            assert set(storage.whole("t.multi")) == {"optirank train"}
        assert storage.load(lost) is None
        assert storage.whole("other") == {}


def test_a_folder_of_the_six_classifiers_can_be_continued(tmp_path):
    """The record of a run made before there were whole tasks."""
    record = {"format": 2, "experiment": "real", "version": "0.1.0", "seed": 0, "profile": "paper"}
    record |= {"n_top": 500, "n_splits": None, "platforms": [0.5, 0.5, 1.0, 1.0], "grids": {}}
    (tmp_path / "run.json").write_text(json.dumps(record))
    Storage(tmp_path).check(PAPER, 0)
