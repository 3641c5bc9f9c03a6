"""A dask cluster: connecting to one, and running calls on it whose large argument is sent once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from distributed import Client, Future

R = TypeVar("R")

_ATTEMPTS = 4  # of a call whose data or worker got lost


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address; it has workers, or this is a ValueError."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("a dask cluster needs: pip install 'optirank[dask]'") from None
    try:
        client = Client(address, timeout=30)
    except (OSError, ValueError) as error:
        raise ValueError(f"no dask scheduler answers at {address!r}: {error}") from error
    with client:
        if cluster_threads(client) == 0:
            raise ValueError(f"the dask scheduler at {address!r} has no workers: start some")
        yield client


def cluster_threads(client: Client) -> int:
    """Threads of all workers."""
    return sum(client.nthreads().values())


@dataclass
class Cluster:
    """Runs calls on the workers of a client.

    Large arguments are copied to all workers once and stay there for later calls. A call whose
    worker is lost runs again elsewhere; data that are lost with the last worker are sent again.
    """

    client: Client
    _sent: dict[int, tuple[object, Future]] = field(default_factory=dict, init=False)

    @property
    def n_threads(self) -> int:
        """Threads of all workers, at least one."""
        return max(1, cluster_threads(self.client))

    def run(
        self, function: Callable[..., R], calls: Iterable[tuple[object, tuple[Any, ...]]]
    ) -> Iterator[R]:
        """``function(large, *arguments)`` for pairs of these, in the order of their ends."""
        from distributed import as_completed

        def submit(large: object, arguments: tuple[Any, ...]) -> Future:
            return self.client.submit(function, self._send(large), *arguments, pure=False)

        pending = {submit(*call): (call, 1) for call in calls}
        finished = as_completed(pending)
        try:
            for future in finished:
                call, attempts = pending.pop(future)
                if future.status == "finished":
                    yield future.result()
                elif attempts == _ATTEMPTS or not _lost(future):
                    future.result()  # raises what went wrong
                    raise RuntimeError("a call on the cluster was cancelled")
                else:
                    self._sent.pop(id(call[0]), None)
                    again = submit(*call)
                    pending[again] = call, attempts + 1
                    finished.add(again)
        finally:
            self.client.cancel(list(pending))

    def forget(self) -> None:
        """Let the workers free what was sent."""
        self._sent.clear()

    def _send(self, large: object) -> Future:
        """The copy on the workers; the original is kept, so that its id stays its own."""
        if id(large) not in self._sent:
            future = self.client.scatter(large, broadcast=True, hash=False)
            self._sent[id(large)] = large, future
        return self._sent[id(large)][1]


def _lost(future: Future) -> bool:
    """Whether a call failed because of a worker or data that are gone, not by itself."""
    from distributed.scheduler import KilledWorker

    return future.status in ("cancelled", "lost") or isinstance(future.exception(), KilledWorker)
