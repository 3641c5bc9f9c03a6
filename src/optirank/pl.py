"""Plots, in scanpy's manner: functions that take ``ax=`` and return it."""

from __future__ import annotations

from optirank._plots.common import save_figure
from optirank._plots.panel import panel, panel_weights, reference_stability
from optirank._plots.performance import confusion, reliability
from optirank._plots.query import query_scores
from optirank._plots.selection import selection_path

__all__ = [
    "confusion",
    "panel",
    "panel_weights",
    "query_scores",
    "reference_stability",
    "reliability",
    "save_figure",
    "selection_path",
]
