"""What several tables share: names, notes on the sources, the cell of the kind of shift."""

from __future__ import annotations

import re
from collections.abc import Sequence

from optirank.benchmark.reporting.analysis import SHIFTS
from optirank.benchmark.reporting.layout import NONE, Cell

SCENARIO_NOTES = {
    "": "Trained on one source.",
    "single": "Single-source: the second source is not used, except for the ANOVA of ANrank-lr.",
    "multi": "Multi-source: both sources are merged for training.",
}


def scenario_name(base: str, scenario: str) -> str:
    """Return the name of a table of one scenario, fit for a file."""
    name = f"{base}_{scenario}" if scenario else base
    return re.sub(r"[^\w.+-]+", "_", name)


def shift_cell(name: str) -> Cell:
    """Return a kind of shift, sorted as in the paper's tables."""
    order = list(SHIFTS).index(name) if name in SHIFTS else len(SHIFTS)
    return Cell(SHIFTS.get(name, name) or NONE, float(order))


def breaks(values: Sequence[str]) -> frozenset[int]:
    """Return the rows at which a value differs from the one before."""
    values = list(values)
    return frozenset(i for i in range(1, len(values)) if values[i] != values[i - 1])
