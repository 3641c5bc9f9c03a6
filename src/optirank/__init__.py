"""optirank: classify expression profiles by ranks relative to a learned reference set
of genes.

Names are imported on first use, so that ``import optirank`` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "Model": "optirank.model.model",
    "PanelClassifier": "optirank.estimators.panel_classifier",
    "ReferenceRankTransformer": "optirank.ranks.transformer",
    "OptirankClassifier": "optirank.estimators.optirank",
    "OptirankClassifierCV": "optirank.estimators.optirank_cv",
    "RankLogisticRegression": "optirank.estimators.optirank",
    "load": "optirank.model.file",
    "save": "optirank.model.file",
    "write_page": "optirank.web",
}

_MODULES = ("datasets", "model", "pl", "tl")

__all__ = [
    "Model",
    "OptirankClassifier",
    "OptirankClassifierCV",
    "PanelClassifier",
    "RankLogisticRegression",
    "ReferenceRankTransformer",
    "__version__",
    "load",
    "save",
]

if TYPE_CHECKING:
    from optirank import datasets as datasets
    from optirank import model as model
    from optirank import pl as pl
    from optirank import tl as tl
    from optirank.estimators.optirank import OptirankClassifier, RankLogisticRegression
    from optirank.estimators.optirank_cv import OptirankClassifierCV
    from optirank.estimators.panel_classifier import PanelClassifier
    from optirank.model.file import load, save
    from optirank.model.model import Model
    from optirank.ranks.transformer import ReferenceRankTransformer
    from optirank.web import write_page as write_page


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"optirank.{name}")
    raise AttributeError(f"module 'optirank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
