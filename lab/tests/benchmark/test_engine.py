"""Runs: planned before anything is fitted, resumed, over processes and a dask
cluster.
"""

from __future__ import annotations

import pytest

from benchmark_cases import TASKS, write_sets
from optirank_lab.benchmark import engine
from optirank_lab.benchmark.classifiers import choose
from optirank_lab.benchmark.designs import ALL, Profile, RealTasks
from optirank_lab.benchmark.engine import Work, plan_real, run
from optirank_lab.benchmark.results import Storage, collect

SMALL = Profile(
    "small",
    n_top=8,
    n_genes=40,
    n_splits=2,
    n_whole=1,
    grids={"l1": (0.0,), "l2": (1e-2, 1e-1)},
)
NAMES = ["lr", "rank-lr", "centroid"]
VARYING = ["fit_seconds", "predict_seconds", "unit_seconds"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return RealTasks(write_sets(tmp_path_factory.mktemp("sets")), TASKS)


def planned(source, storage, names=("pair", "base", "other"), problems="both"):
    tasks = tuple(task for task in TASKS if task.name in names)
    return plan_real(source, tasks, choose(NAMES, problems), SMALL, storage, named=True)


def run_all(source, folder, **options):
    with Storage(folder).open(SMALL, 0) as storage:
        plan = planned(source, storage)
        failed = run(plan, Work(source, SMALL), storage, **options)
    return plan, failed, collect(storage).scores.drop(columns=VARYING)


@pytest.fixture(scope="module")
def finished(source, tmp_path_factory):
    plan, failed, scores = run_all(source, tmp_path_factory.mktemp("out"))
    assert failed == {}
    return plan, scores


def test_a_plan_has_binary_and_whole_units_and_the_tasks_that_test_their_models(
    finished,
):
    plan, _ = finished
    assert plan.tasks == ["pair", "base", "other"]
    assert set(plan.designs) == {"pair", "base"}
    whole = [unit for unit in plan.units if unit.problem == ALL]
    binary = [unit for unit in plan.units if unit.problem != ALL]
    assert len(whole) == 2 * 1 * 2  # tasks, splits, classifiers without lr
    assert len(binary) == 2 * 2 * 3 * 3  # tasks, splits, classes, classifiers
    assert len({unit.path for unit in plan.units}) == len(plan.units)


def test_a_classifier_that_needs_a_second_source_is_left_out_where_there_is_none(
    source, tmp_path
):
    tasks = tuple(task for task in TASKS if task.name in ("pair", "triple"))
    chosen = choose(["ANrank-lr", "lr"], "binary")
    plan = plan_real(
        source, tasks, chosen, SMALL, Storage(tmp_path / "out"), named=True
    )
    found = {(unit.design, unit.classifier) for unit in plan.units}
    assert ("pair", "lr") in found
    assert {name for name, one in found if one == "ANrank-lr"} == {
        "triple.single",
        "triple.multi",
    }


@pytest.mark.slow
def test_a_rerun_and_more_processes_change_nothing(
    source, finished, tmp_path, monkeypatch
):
    _, _, scores = run_all(source, tmp_path, jobs=2)
    assert scores.equals(finished[1])
    monkeypatch.setattr(engine, "run_unit", None)  # would fail
    told = []
    plan, _, again = run_all(source, tmp_path, progress=lambda *one: told.append(one))
    assert told == [(unit, True) for unit in plan.units]
    assert again.equals(scores)


def test_an_interrupted_run_goes_on_where_it_stopped(source, finished, tmp_path):
    done = 0

    def interrupt(unit, stored):
        nonlocal done
        done += 1
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(source, tmp_path, progress=interrupt)
    times = {
        path: path.stat().st_mtime_ns for path in (tmp_path / "units").rglob("*.json")
    }
    assert len(times) == 7
    _, _, scores = run_all(source, tmp_path)
    assert scores.equals(finished[1])
    assert all(path.stat().st_mtime_ns == before for path, before in times.items())


def test_a_failing_unit_is_a_gap_that_the_next_run_fills(
    source, finished, tmp_path, monkeypatch
):
    run_unit = engine.run_unit

    def unlucky(design, split, name, classifier, *others, **options):
        if classifier == "rank-lr":
            raise RuntimeError("out of luck")
        return run_unit(design, split, name, classifier, *others, **options)

    monkeypatch.setattr(engine, "run_unit", unlucky)
    told = []
    _, failed, scores = run_all(
        source, tmp_path, warn=lambda unit, why: told.append(why)
    )
    assert set(failed) == {"pair", "base"}
    assert told == ["RuntimeError: out of luck"]
    assert set(scores["classifier"]) == {"lr", "centroid"}
    gaps = collect(Storage(tmp_path)).gaps
    assert set(gaps["reason"]) == {"RuntimeError: out of luck"}
    monkeypatch.undo()
    assert run_all(source, tmp_path)[2].equals(finished[1])


def test_a_problem_that_lacks_a_split_is_left_out_and_reported(
    source, finished, tmp_path
):
    run_all(source, tmp_path)
    next((tmp_path / "units" / "pair").glob("01-a_*-lr.json")).unlink()
    results = collect(Storage(tmp_path))
    assert len(results.scores) == len(finished[1]) - 2
    assert results.gaps["reason"].tolist() == ["not run to the end: a lacks 1 splits"]


def test_tasks_that_cannot_run_do_not_keep_others_from_running(tmp_path):
    source = RealTasks(write_sets(tmp_path / "sets"), TASKS)
    (tmp_path / "sets" / "vdx_er.h5ad").write_bytes(b"damaged")
    (tmp_path / "sets" / "expo_er.h5ad").unlink()
    plan = planned(source, Storage(tmp_path / "out"))
    assert plan.tasks == ["base"]
    assert set(plan.problems) == {"pair", "other"}
    assert "vdx_er" in plan.problems["pair"]
    assert not (tmp_path / "out").exists()


def test_a_cluster_keeps_only_units_under_way(source, finished, tmp_path):
    distributed = pytest.importorskip("distributed")
    most = 0
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as cluster:

        def count(unit, stored):
            nonlocal most
            most = max(most, len(cluster.scheduler.tasks))

        address = cluster.scheduler_address
        _, _, scores = run_all(source, tmp_path, dask=address, progress=count)
    assert scores.equals(finished[1])
    assert most <= 5  # two per thread, and the one that was just done
