"""Ctrl-C that is not lost: an interrupt that a library swallows is raised again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_state = {"interrupted": False}


def remember_interrupts() -> None:
    """Remember each Ctrl-C, so that `raise_if_interrupted` can raise it again.

    A process that was started to ignore it, as in the background of a script, still
    does.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    _state["interrupted"] = True
    raise KeyboardInterrupt


def raise_if_interrupted() -> None:
    """Raise the interrupt that was swallowed, if there was one."""
    if _state["interrupted"]:
        raise KeyboardInterrupt


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a short block end before Ctrl-C acts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if waiting:
            signal.raise_signal(signal.SIGINT)
