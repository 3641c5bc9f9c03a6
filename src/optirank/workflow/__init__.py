"""From a file of profiles to a model, and from a model to labels: the workflow of a user."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_HOMES = {
    "Prepared": "preparation",
    "TrainingResult": "result",
    "prepare": "preparation",
    "train_prepared": "train",
    "write_report": "report",
}

__all__ = ["Prepared", "TrainingResult", "prepare", "train_prepared", "write_report"]

if TYPE_CHECKING:
    from optirank.workflow.preparation import Prepared, prepare
    from optirank.workflow.report import write_report
    from optirank.workflow.result import TrainingResult
    from optirank.workflow.train import train_prepared


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"optirank.workflow.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'optirank.workflow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
