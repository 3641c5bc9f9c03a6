"""Running a search: units, families, views, joblib backends, deadlines, interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from optirank import OptirankClassifierCV
from optirank.datasets import make_unstable_ranks
from optirank.estimators import optirank_cv
from optirank.ranks.orders import order_samples
from optirank.tuning.families import LogisticFamily, OptirankFamily, RankFamily
from optirank.tuning.family import Samples
from optirank.tuning.folds import make_folds
from optirank.tuning.result import gene_counts, join_settings
from optirank.tuning.scoring import accuracy_table
from optirank.tuning.search import HELD_OUT, Unit, fold_units, search


@pytest.fixture(scope="module")
def data():
    return make_unstable_ranks(120, 20, 12, random_state=0)


@pytest.fixture(scope="module")
def alone(data):
    return grid().fit(data.X, data.y)


def grid(**options):
    options = {"cv": 3, **options}
    return OptirankClassifierCV((2, 4, 0.5, 1.0), (0.0, 3e-3), (1e-4, 1e-2), **options)


def assert_same(model, other):
    assert model.best_params_ == other.best_params_
    np.testing.assert_array_equal(model.coef_, other.coef_)
    for key, values in other.cv_results_.items():
        if "score" in key and "time" not in key:
            np.testing.assert_array_equal(model.cv_results_[key], values)


def test_two_threads_change_nothing(data, alone):
    assert_same(grid(n_jobs=2).fit(data.X, data.y), alone)


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky", "multiprocessing"])
def test_any_backend_gives_the_same_result(data, alone, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_same(grid().fit(data.X, data.y), alone)


def test_the_threads_of_blas_are_given_back(data):
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        grid(n_jobs=2).fit(data.X, data.y)
        assert threads() == before


def test_no_bar_unless_asked_for_and_then_on_stderr(data, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    grid().fit(data.X, data.y)
    silent = capsys.readouterr()
    assert silent.out == silent.err == ""
    grid(verbose=1).fit(data.X, data.y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "100%" in shown.err


# Units, families and views


OPTIRANK = OptirankFamily((0.0, 1e-2), (1e-3,), n_references=(3, 1.0), sides=("best", "both"))


@pytest.fixture(scope="module")
def samples(data):
    return Samples(data.X, order_samples(data.X))


@pytest.fixture(scope="module")
def folds(data):
    return make_folds(data.y, 3, None)


def test_families_of_several_kinds_are_searched_as_they_are_alone(data, samples, folds):
    families = [OPTIRANK, RankFamily((0.0,), (1e-3, 1e-1)), LogisticFamily((1e-3,), (1e-3,))]
    units = fold_units(samples, data.y, folds, n_classes=2)
    together = search(families, units)
    names = [setting.family.name for setting in together[0].settings]
    assert names == ["optirank"] * 8 + ["rank-lr"] * 2 + ["lr"]
    start = 0
    for family in families:
        for joint, alone in zip(together, search(family, units), strict=True):
            for k, setting in enumerate(alone.settings):
                assert joint.settings[start + k].params == setting.params
                np.testing.assert_array_equal(
                    joint.decision(start + k, HELD_OUT), alone.decision(k, HELD_OUT)
                )
                np.testing.assert_array_equal(joint.genes(start + k), alone.genes(k))
        start += len(family.settings())


def test_views_are_scored_by_the_models_of_their_fold(data, samples, folds):
    def views(fold, test):
        shifted = data.X[test] * (1 + fold)
        return {"twice": samples.take(test), "shifted": Samples(shifted, order_samples(shifted))}

    family = LogisticFamily((0.0,), (1e-2,))
    found = search(family, fold_units(samples, data.y, folds, n_classes=2, views=views))
    for k, (result, (_, test)) in enumerate(zip(found, folds, strict=True)):
        plain = result.decision(0, HELD_OUT)
        np.testing.assert_array_equal(result.decision(0, "twice"), plain)
        (model,) = result.models(0, 0)
        expected = data.X[test] * (1 + k) @ model.w + model.b
        np.testing.assert_allclose(result.decision(0, "shifted")[:, 0], expected)
    truths = [data.y[test] for _, test in folds]
    tables = [accuracy_table(found, truths, np.array([0, 1]), v) for v in (HELD_OUT, "twice")]
    np.testing.assert_array_equal(*tables)


def test_scores_and_genes_are_those_of_the_models(data, samples, folds):
    (result,) = search(OPTIRANK, fold_units(samples, data.y, folds[:1], n_classes=2))
    test = folds[0][1]
    for k, setting in enumerate(result.settings):
        models = result.models(k, 0)
        both = setting.params["side"] == "both" and setting.params["n_reference"] != 1.0
        assert len(models) == 1 + both
        scores = [OPTIRANK.scores(samples.take(test), model) for model in models]
        np.testing.assert_allclose(result.decision(k, HELD_OUT)[:, 0], np.mean(scores, axis=0))
        genes = np.any([model.genes for model in models], axis=0)
        np.testing.assert_array_equal(result.genes(k), genes)
        assert result.fit_seconds(k) > 0
        assert result.converged(k)
    assert gene_counts([result]).shape == (8, 1)


def test_a_compact_result_says_the_same_without_models(data, samples, folds):
    units = fold_units(samples, data.y, folds[:1], n_classes=2)
    (whole,), (compact,) = (search(OPTIRANK, units, compact=c) for c in (False, True))
    np.testing.assert_array_equal(gene_counts([whole]), gene_counts([compact]))
    for k in range(len(whole.settings)):
        np.testing.assert_allclose(
            compact.decision(k, HELD_OUT), whole.decision(k, HELD_OUT), rtol=1e-4, atol=1e-5
        )
    assert compact.models(0, 0) == [None]


def test_a_class_that_a_unit_lacks_scores_minus_infinity_and_needs_no_gene(samples):
    codes = np.arange(120) % 3
    train = np.flatnonzero(codes[:60] < 2)
    (result,) = search(
        RankFamily((0.0,), (1e-2,)),
        fold_units(samples, codes, [(train, np.arange(60, 120))], n_classes=3),
    )
    assert result.known.tolist() == [True, True, False]
    scores = result.decision(0, HELD_OUT)
    assert np.isfinite(scores[:, :2]).all()
    assert (scores[:, 2] == -np.inf).all()
    assert not result.genes(0, [2]).any()
    assert result.genes(0).all()
    assert result.complete().all()


def test_a_unit_of_one_class_is_refused(samples):
    unit = Unit(train=samples, codes=np.ones(120, int), n_classes=2)
    with pytest.raises(ValueError, match="fold 0 has one class only to train on"):
        search(OPTIRANK, [unit])


def test_samples_are_sorted_once_for_folds_and_final_fit(data, monkeypatch):
    calls = []

    def counted(X, n_jobs=None):
        calls.append(X.shape)
        return order_samples(X)

    monkeypatch.setattr("optirank.estimators._base.order_for_fitting", counted)
    grid().fit(data.X, data.y)
    assert calls == [data.X.shape]


def test_progress_counts_every_task(data, samples, folds):
    told = []
    units = fold_units(samples, data.y, folds, n_classes=2)
    search(OPTIRANK, units, progress=lambda *step: told.append(step))
    assert told == [(k + 1, 9) for k in range(9)]  # 2 sides and full ranks x 3 folds


@pytest.mark.parametrize("late", [False, True])
def test_no_fit_starts_once_time_is_up(data, samples, folds, late):
    units = fold_units(samples, data.y, folds[:1], n_classes=2)
    (result,) = search(OPTIRANK, units, until=0.0 if late else np.inf)
    assert (result.complete() != late).all()
    assert result.n_fits == ([0, 0, 0] if late else [2, 2, 2])


def test_joined_results_have_the_scores_of_each(data, samples, folds):
    units = fold_units(samples, data.y, folds[:1], n_classes=2)
    (whole,) = search(OPTIRANK, units)
    settings = OPTIRANK.settings()
    parts = [search(OPTIRANK.keeping([one]), units)[0] for one in settings]
    joined = join_settings(parts)
    assert [one.params for one in joined.settings] == [one.params for one in whole.settings]
    for k, part in enumerate(parts):
        np.testing.assert_array_equal(joined.decision(k, HELD_OUT), part.decision(0, HELD_OUT))
        np.testing.assert_array_equal(joined.genes(k), part.genes(0))
    assert joined.complete().all()


_LONG = """
import joblib, sys
from optirank import OptirankClassifierCV
from optirank.datasets import make_unstable_ranks

if __name__ == "__main__":
    data = make_unstable_ranks(600, 60, 50, random_state=0)
    sizes = tuple(range(2, 60))
    print("started", flush=True)
    with joblib.parallel_config(backend=sys.argv[1], n_jobs=2):
        OptirankClassifierCV(sizes, (0.0, 1e-4, 1e-3), (1e-5, 1e-4, 1e-3)).fit(data.X, data.y)
    print("finished", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_an_interrupt_leaves_no_process_behind(backend, tmp_path):
    psutil = pytest.importorskip("psutil")
    (tmp_path / "long.py").write_text(_LONG)
    with subprocess.Popen(
        [sys.executable, "long.py", backend],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a process group of its own, which Ctrl-C goes to
        text=True,
    ) as process:
        assert process.stdout.readline() == "started\n"
        time.sleep(5)
        started = psutil.Process(process.pid).children(recursive=True)
        assert bool(started) == (backend == "loky")
        os.killpg(process.pid, signal.SIGINT)
        process.wait(30)
        assert "finished" not in process.stdout.read()
    assert process.returncode != 0
    _, alive = psutil.wait_procs(started, timeout=20)
    assert not alive


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of dask's, about the worker that dies
def test_a_cluster_that_loses_a_worker_gives_the_same_result(data, alone, monkeypatch):
    distributed = pytest.importorskip("distributed")
    done = []

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = min(client.run(os.getpid).values())

        class KillInTheMiddle:
            def update(self, count, total):
                done.append(total)
                if len(done) == 4:
                    os.kill(victim, signal.SIGKILL)

        monkeypatch.setattr(
            optirank_cv, "progress_bar", lambda *_, **__: nullcontext(KillInTheMiddle())
        )
        with joblib.parallel_config(backend="dask"):
            model = grid().fit(data.X, data.y)
        assert victim not in client.run(os.getpid).values()
    assert done == [12] * 12
    assert_same(model, alone)


def test_the_default_scorer_gives_what_scikit_learn_gives(samples, folds, data):
    from sklearn.metrics import balanced_accuracy_score, get_scorer, make_scorer

    from optirank.tuning.families import RankFamily
    from optirank.tuning.scoring import score_table

    results = search(
        RankFamily((0.0, 1e-2), (1e-3,)), fold_units(samples, data.y, folds, n_classes=2)
    )
    truths = [data.y[test] for _, test in folds]
    arguments = (results, truths, np.unique(data.y), HELD_OUT)
    slow = make_scorer(lambda truth, labels: balanced_accuracy_score(truth, labels))
    np.testing.assert_array_equal(
        score_table(*arguments, get_scorer("balanced_accuracy")), score_table(*arguments, slow)
    )
