"""From counts to expression values, and the choice of genes; imported on first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_HOMES = {
    "Downsample": "optirank_lab.baselines.transformers",
    "LogCPM": "optirank_lab.baselines.transformers",
    "SingleCellNetGenes": "optirank_lab.baselines.transformers",
    "dataset_f_values": "optirank_lab.baselines.anova",
    "select_stable_genes": "optirank_lab.baselines.anova",
}

__all__ = [
    "Downsample",
    "LogCPM",
    "SingleCellNetGenes",
    "dataset_f_values",
    "select_stable_genes",
]

if TYPE_CHECKING:
    from optirank_lab.baselines.anova import dataset_f_values, select_stable_genes
    from optirank_lab.baselines.transformers import (
        Downsample,
        LogCPM,
        SingleCellNetGenes,
    )


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(
            f"module 'optirank.preprocessing' has no attribute {name!r}"
        )
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
