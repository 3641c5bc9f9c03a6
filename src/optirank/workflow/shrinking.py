"""A model that needs fewer genes: the same classes, trained again within a size."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optirank._util.names import some
from optirank.datasets.errors import DataError
from optirank.datasets.reading import read_expression
from optirank.model.linear import linear_model
from optirank.workflow.grids import panel_grids

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.result import TrainingResult


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
    result: TrainingResult
    """The training; its ``path`` has the held-out accuracy of panels of other sizes."""

    def curve(self) -> pd.DataFrame:
        """Held-out accuracy against panel size: settings that no smaller panel beats, and the one.

        Columns ``n_genes`` (mean over folds), ``score``, ``standard_error`` and ``selected``.
        """
        table = self.result.path.sort_values(["n_genes", "score"], ascending=[True, False])
        best = table["score"] > table["score"].cummax().shift(fill_value=float("-inf"))
        columns = ["n_genes", "score", "standard_error", "selected"]
        return table[best | table["selected"]][columns].reset_index(drop=True)


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
    device: str = "cpu",
    say: Any = None,
    progress: Any = None,
    **reading: Any,
) -> Shrunk:
    """Train a model of the same classes that needs at most ``max_genes`` genes.

    Several classes share one reference set, which makes one small panel for all of them.

    Parameters
    ----------
    model : a fitted model.
    data : a file of labelled profiles, as it was trained on.
    max_genes : the most genes of the new panel.
    label, batch : columns of the classes and of the sources; those of the training where not given.
    available, budget, n_jobs, device, say, progress : as in :func:`optirank.workflow.train.train`.
    reading : options of :func:`optirank.datasets.read_expression`.
    """
    from optirank.workflow.preparation import prepare
    from optirank.workflow.train import reading_seconds, train_prepared

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
    shared = len(fitted.classes_) > 2
    prepared = prepare(
        whole.select_samples(known),
        label,
        batch=batch,
        available=available,
        max_genes=None if shared else max_genes,
        seconds=reading_seconds(budget),
    )
    size = min(max_genes, len(prepared.genes))
    result = train_prepared(
        prepared,
        grids=panel_grids(size) if shared and len(prepared.classes) > 2 else None,
        panel_size=size if shared else None,
        budget=budget,
        n_jobs=n_jobs,
        device=device,
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
        result=result,
    )
