"""Numbers in sentences of pages other than the evidence."""

from __future__ import annotations

import pandas as pd
from tables import number, percent, read, tissue_mean

from optirank_lab.benchmark.curve import ALL, PANEL
from optirank_lab.benchmark.tasks import SAME_PLATFORM


def mean_of_curve(method: str, k: str, chosen: pd.Series) -> str:
    """Mean of some pairs of the curve over their problems."""
    rows = read("curve")
    of_method = (rows["method"] == method) & (rows["k"] == k)
    return percent(tissue_mean(rows[of_method & chosen], "balanced_accuracy"))


def one_platform() -> pd.Series:
    """Rows of pairs of one platform."""
    return read("curve")["shift"] == SAME_PLATFORM


@number
def one_platform_pairs() -> str:
    """Pairs of one platform."""
    return str(read("curve").loc[one_platform(), "pair"].nunique())


@number
def one_platform_panel() -> str:
    """The panel of 100 on pairs of one platform."""
    return mean_of_curve(PANEL, "100", one_platform())


@number
def one_platform_lr() -> str:
    """LR on log values on the same pairs."""
    return mean_of_curve("LR on log values", ALL, one_platform())


@number
def one_platform_lr_scaled() -> str:
    """LR on z-scored log values on the same pairs."""
    return mean_of_curve("LR on log values, z-scored", ALL, one_platform())
