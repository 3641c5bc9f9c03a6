"""The laboratory: the experiments of the paper, comparisons, and builders of public
data sets.

Names are imported on first use, so that the command starts quickly.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "AnovaRankLogisticRegression": "optirank_lab.baselines.anova_rank",
    "SingleCellNetClassifier": "optirank_lab.baselines.singlecellnet",
    "TopScoringPairsClassifier": "optirank_lab.baselines.top_pairs",
    "load_dataset": "optirank_lab.data.registry",
}

__all__ = [
    "AnovaRankLogisticRegression",
    "SingleCellNetClassifier",
    "TopScoringPairsClassifier",
    "__version__",
    "load_dataset",
]

if TYPE_CHECKING:
    from optirank_lab.baselines.anova_rank import AnovaRankLogisticRegression
    from optirank_lab.baselines.singlecellnet import SingleCellNetClassifier
    from optirank_lab.baselines.top_pairs import TopScoringPairsClassifier
    from optirank_lab.data.registry import load_dataset


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'optirank_lab' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
