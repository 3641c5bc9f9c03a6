"""A model that needs fewer genes: the same classes, trained again within a size."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from optirank._util.names import some
from optirank.datasets.errors import DataError
from optirank.datasets.reading import read_expression
from optirank.model.linear import linear_model


@dataclass(frozen=True)
class Shrunk:
    """A model of a smaller panel, beside the one it stands in for."""

    model: Any
    n_genes: int
    n_genes_before: int
    accuracy: float
    """Balanced accuracy on held-out samples."""
    standard_error: float
    accuracy_before: float | None
    """That of the old model, where it knows it."""


def shrink(
    model: Any,
    data: str | os.PathLike[str],
    max_genes: int,
    *,
    label: str | None = None,
    batch: str | None = None,
    available: Sequence[str] | None = None,
    budget: float | None = None,
    n_jobs: int | None = None,
    say: Any = None,
    progress: Any = None,
    **reading: Any,
) -> Shrunk:
    """Train a model of the same classes that needs at most ``max_genes`` genes.

    Parameters
    ----------
    model : a fitted model.
    data : a file of labelled profiles, as it was trained on.
    max_genes : the most genes of the new panel.
    label, batch : columns of the classes and of the sources; those of the training where not given.
    available, budget, n_jobs, say, progress : as in :func:`optirank.workflow.train.train`.
    reading : options of :func:`optirank.datasets.read_expression`.
    """
    from optirank.workflow.train import train

    fitted = linear_model(model)
    summary = getattr(model, "training_summary_", getattr(fitted, "training_summary_", {}))
    label = label or summary.get("label")
    if label is None:
        raise DataError(
            "the model does not say which column it was trained on: name it (label=, --label)"
        )
    batch = batch or summary.get("batch")
    whole = read_expression(data, label=label, **reading)
    known = whole.labels(label).isin([str(one) for one in fitted.classes_]).to_numpy()
    if not known.any():
        found = whole.labels(label).dropna().unique()
        raise DataError(
            f"{data} has none of the model's classes in {label!r}: the model has "
            f"{some(fitted.classes_)}, the data have {some(found)}"
        )
    result = train(
        whole.select_samples(known),
        label,
        batch=batch,
        available=available,
        max_genes=max_genes,
        budget=budget,
        n_jobs=n_jobs,
        say=say,
        progress=progress,
    )
    return Shrunk(
        model=result.model,
        n_genes=len(result.genes),
        n_genes_before=int(fitted.genes_.sum()),
        accuracy=result.balanced_accuracy,
        standard_error=result.standard_error,
        accuracy_before=summary.get("balanced_accuracy"),
    )
