"""Plots, in scanpy's manner: functions that take ``ax=`` and return it.

They take what :mod:`optirank.tl` made: an annotated AnnData, an evaluation, or a
trained model. The functions called ``draw_...`` in the modules of this room draw
tables: the pages of `optirank.report` use them too.
"""

from __future__ import annotations

from optirank.pl.axes import save_figure
from optirank.pl.genes import panel_sizes, selection_path
from optirank.pl.labels import agreement, labels, tree
from optirank.pl.truth import confusion, reliability, roc

__all__ = [
    "agreement",
    "confusion",
    "labels",
    "panel_sizes",
    "reliability",
    "roc",
    "save_figure",
    "selection_path",
    "tree",
]


def __dir__() -> list[str]:
    return __all__
