"""Calls on a dask cluster: large data are sent once, and workers may be lost."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from optirank._util.cluster import Cluster, connect

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("default")  # of dask's, about workers that die


class Large:
    """Counts how often it is sent."""

    sent = 0

    def __init__(self) -> None:
        self.values = np.arange(1000.0)

    def __reduce__(self):
        type(self).sent += 1
        return Large, ()


def product(large: Large, factor: float) -> float:
    return float(large.values.sum() * factor)


def fail(large: Large, factor: float) -> float:
    raise ZeroDivisionError(f"{factor}")


def slow(large: Large, victim: int, k: int) -> int:
    time.sleep(0.3)
    return k


@pytest.fixture(scope="module")
def threads():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_calls_give_their_results_and_data_are_sent_once(threads):
    cluster, large = Cluster(threads), Large()
    assert cluster.n_threads == 2
    Large.sent = 0
    for _ in range(3):
        calls = [(large, (k,)) for k in range(10)]
        assert sorted(cluster.run(product, calls)) == [499_500.0 * k for k in range(10)]
    assert Large.sent <= 2  # copies to the workers, not one per call
    assert len(cluster._sent) == 1


def test_an_error_of_a_call_is_raised(threads):
    with pytest.raises(ZeroDivisionError, match="7"):
        list(Cluster(threads).run(fail, [(Large(), (7,))]))


def test_an_address_without_a_scheduler_is_refused(monkeypatch):
    def refuse(*_, **__):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", refuse)
    with pytest.raises(ValueError, match="no dask scheduler answers at"):
        connect("tcp://127.0.0.1:1").__enter__()


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 2])
def test_a_worker_that_dies_takes_nothing_with_it(n_workers):
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as local,
        distributed.Client(local) as client,
    ):
        victim = min(client.run(os.getpid).values())
        found = []
        for one in Cluster(client).run(slow, [(Large(), (victim, k)) for k in range(8)]):
            found.append(one)
            if len(found) == 2:
                os.kill(victim, signal.SIGKILL)
        assert sorted(found) == list(range(8))
