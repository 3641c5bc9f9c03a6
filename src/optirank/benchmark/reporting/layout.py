"""A table as readers see it, before it becomes Markdown, LaTeX or part of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

NONE = "–"


@dataclass(frozen=True)
class Column:
    """A heading over numbers, or over words (`words`).

    In LaTeX `latex` stands for it, already escaped, and `in_latex=False` leaves the column out.
    """

    text: str
    latex: str | None = None
    in_latex: bool = True
    words: bool = False


@dataclass(frozen=True)
class Cell:
    """What stands in a cell, what it is sorted by, and how it is set off.

    `tone` is "better" (bold green), "worse" (red italic) or nothing.
    """

    text: str
    sort: float | str | None = None
    bold: bool = False
    tone: str = ""


@dataclass(frozen=True)
class Table:
    """One table with its numbers in full (`frame`, for the CSV file).

    `breaks` are the rows before which a rule is drawn, where one kind of shift gives way to the
    next. `place` names task and scenario of a pairwise table.
    """

    name: str
    title: str
    caption: str
    columns: list[Column]
    rows: list[list[Cell]]
    frame: pd.DataFrame
    breaks: frozenset[int] = field(default_factory=frozenset)
    place: tuple[str, str] | None = None


Show = Callable[[Any], Cell]  # from a row of a frame, as a named tuple


def listing(
    name: str,
    title: str,
    caption: str,
    shown: dict[Column | str, Show],
    frame: pd.DataFrame,
    *,
    rows: pd.DataFrame | None = None,
    by: str | None = None,
) -> Table:
    """Return a table with one line per row of `rows` (by default of `frame`).

    `shown` says what stands under each heading. A change in the column `by` draws a rule.
    """
    rows = frame if rows is None else rows
    lines = [[show(row) for show in shown.values()] for row in rows.itertuples()]
    columns = [Column(one) if isinstance(one, str) else one for one in shown]
    return Table(name, title, caption, columns, lines, frame, breaks(rows[by] if by else ()))


def breaks(values: Iterable[str]) -> frozenset[int]:
    """Return the rows at which a value differs from the one before."""
    values = list(values)
    return frozenset(i for i in range(1, len(values)) if values[i] != values[i - 1])


def word(heading: str, **options) -> Column:
    """Return a heading over words."""
    return Column(heading, words=True, **options)


def text(value: object) -> Cell:
    """Return words as a cell."""
    words = " ".join(str(value).split())
    return Cell(words or NONE, words.casefold())


def number(value: float, digits: int = 0, *, bold: bool = False) -> Cell:
    """Return a number with so many decimals as a cell."""
    if not np.isfinite(value):
        return Cell(NONE)
    return Cell(f"{value:.{digits}f}".replace("-", "−"), float(value), bold)


def with_error(mean: float, error: float, digits: int, *, signed: bool = False) -> str:
    """Return "mean ± standard error", or the mean alone where it has none."""
    if not np.isfinite(mean):
        return NONE
    shown = f"{mean:{'+' if signed else ''}.{digits}f}".replace("-", "−")
    return f"{shown} ± {error:.{digits}f}" if np.isfinite(error) else shown


def seconds(value: float, error: float = np.nan) -> str:
    """Return a time with about three digits, and its standard error with as many decimals."""
    if not np.isfinite(value):
        return NONE
    steps = ((99.95, 0), (9.995, 1), (0.9995, 2), (0.0995, 3))
    digits = next((n for limit, n in steps if value >= limit), 4)
    return with_error(value, error, digits)


def p_value(value: float) -> Cell:
    """Return a p-value with three decimals as a cell."""
    if not np.isfinite(value):
        return Cell(NONE)
    return Cell("<0.001" if value < 0.0005 else f"{value:.3f}", float(value))


def points(difference: float, error: float = np.nan, sign: int = 0) -> Cell:
    """Return a difference of two shares in percentage points as a cell; `sign` as in `tone`."""
    words = with_error(100 * difference, 100 * error, 1, signed=True)
    return Cell(words, float(difference), tone=tone(sign))


def tone(sign: int) -> str:
    """Return how a significant difference is set off: 1 is better, -1 worse, 0 neither."""
    return {1: "better", -1: "worse"}.get(int(sign), "")


def compact(value: object) -> Cell:
    """Return a setting (0.005, 1e-4) as a cell."""
    if not isinstance(value, int | float):
        return text(value)
    return Cell(f"{value:g}", float(value)) if np.isfinite(value) else Cell(NONE)
