"""What the algorithms for one class and for all classes together share: stages and their record."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

RELAX = (20, 2e-3)  # rounds at most, and the relative decrease that ends them, before the push
PUSH_STEP = 1e-4  # times path_step, of the loss at zero weights: the rise that a push adds
FASTER = 2.0  # pushes of a grid after the first, from a relaxed solution that is nearly right
_CHEAP = 1e7  # n d^2 below which several starts are carried to the end, and more pairs are tried


class Point(Protocol):
    """Where an algorithm is."""

    objective: float


P = TypeVar("P", bound=Point)


class Stages:
    """What happened in a solve so far; ``callback`` gets a dict for each stage.

    Once ``until`` (of ``time.perf_counter``) has passed, stages end with what they have.
    """

    def __init__(
        self,
        n_samples: int,
        n_genes: int,
        callback: Callable[[dict], None] | None,
        until: float = float("inf"),
    ) -> None:
        self.cheap = n_samples * n_genes**2 <= _CHEAP  # whether a fit costs next to nothing
        self.until = until
        self._callback = callback
        self._path: list[dict] = []

    def late(self) -> bool:
        """Whether time is up."""
        return time.perf_counter() > self.until

    def note(self, stage: str, state: P, **more: object) -> P:
        """Write down where a stage ended."""
        entry = {"stage": stage, "objective": float(state.objective), **more}
        self._path.append(entry)
        if self._callback is not None:
            self._callback(entry)
        return state


def never() -> bool:
    """Where nothing stops a loop."""
    return False
