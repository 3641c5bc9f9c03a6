"""Notes and warnings of a verb, collected where they arise.

A verb opens a collector with `collected_notes`; whatever it calls says what there is to
say with `note` and `warn`, and takes and returns no sentences. What an inner verb says
is said by the outer one too, each sentence once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass
class Notes:
    """Sentences for the reader, and those that need attention, in order."""

    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


_collector: ContextVar[Notes | None] = ContextVar("collector", default=None)


@contextmanager
def collected_notes() -> Iterator[Notes]:
    """What is said inside of the block; afterwards the block around has it too."""
    outer = _collector.get()
    own = Notes()
    token = _collector.set(own)
    try:
        yield own
    finally:
        _collector.reset(token)
        if outer is not None:
            for text in own.notes:
                _add(outer.notes, text)
            for text in own.warnings:
                _add(outer.warnings, text)


def note(text: str) -> None:
    """Say something to the reader of the result; nothing where no verb runs."""
    collector = _collector.get()
    if collector is not None:
        _add(collector.notes, text)


def warn(text: str) -> None:
    """Say something that needs attention."""
    collector = _collector.get()
    if collector is not None:
        _add(collector.warnings, text)


def _add(sentences: list[str], text: str) -> None:
    if text not in sentences:
        sentences.append(text)
