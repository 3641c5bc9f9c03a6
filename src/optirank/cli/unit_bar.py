"""The progress of a benchmark, with the time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from optirank.benchmark.storage import Unit


@contextmanager
def unit_bar(total: float, n_units: int) -> Iterator[Callable[[Unit, bool], None]]:
    """A bar with the time left; where nobody looks, a line a minute."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    start = time.monotonic()
    state = {"done": 0.0, "before": 0.0, "units": 0, "said": start}

    def left() -> str:
        computed = state["done"] - state["before"]
        if computed <= 0:
            return "?"
        seconds = (time.monotonic() - start) * (total - state["done"]) / computed
        return f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.fields[units]} of {task.fields[n]} units"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left: {task.fields[left]}  {task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=total, units=0, n=n_units, left="?")

        def advance(unit: Unit, stored: bool) -> None:
            state["done"] += unit.weight
            state["units"] += 1
            if stored:
                state["before"] += unit.weight
            progress.update(
                task,
                completed=state["done"],
                description=unit.design,
                units=state["units"],
                left=left(),
            )
            if not console.is_terminal and time.monotonic() - state["said"] > 60:
                state["said"] = time.monotonic()
                said = f"{state['units']} of {n_units} units, left: {left()} ({unit.design})"
                typer.echo(said, err=True)

        yield advance
