"""A model on labelled data of another cohort: its labels against the true ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.names import some
from optirank.io.data import DataError, check_column, text_column
from optirank.model.linear import carried
from optirank.workflow.performance import Performance, check_prevalence, performance
from optirank.workflow.predict import PredictOptions, Progress, label_profiles

if TYPE_CHECKING:
    from optirank.io.data import Profiles
    from optirank.workflow.labels import Labelled


@dataclass(frozen=True, repr=False)
class Evaluation:
    """How a model does on labelled samples.

    Attributes
    ----------
    performance : the tables, of the samples whose true class the model has.
    label, source : the column of the true classes, and where the samples come from.
    samples : one line per such sample: ``sample``, ``label`` (true), ``predicted`` (before
        withholding), ``confidence``, ``withheld``.
    unknown : samples of each class that the model does not have; they are in no table.
    labelled : what the model says of all samples, with its notes and the missing genes.
    """

    model: Any
    performance: Performance
    label: str
    source: str
    samples: pd.DataFrame
    unknown: dict[str, int]
    labelled: Labelled

    def __repr__(self) -> str:
        found = self.performance
        accuracy = f"balanced accuracy {found.headline()}"
        return f"Evaluation on {self.source}: {found.n_samples} samples, {accuracy}"

    @property
    def notes(self) -> list[str]:
        """What there is to say about the query and the comparison."""
        return self.labelled.notes


def evaluate_profiles(
    profiles: Profiles,
    model: Any,
    label: str,
    options: PredictOptions | None = None,
    *,
    prevalence: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Label the samples of an open file or an AnnData and compare with its column ``label``.

    Samples without a true class are left out; those of classes that the model does not have are
    counted apart. ``prevalence`` are shares where the model will be used, for PPV and NPV.
    """
    check_column(profiles.obs, label, str(profiles.source))
    truth = text_column(profiles.obs, label, str(profiles.source)).to_numpy(
        dtype=object
    )
    labelled = label_profiles(profiles, model, options, progress)
    classes = labelled.classes
    given = np.array([isinstance(one, str) for one in truth])
    known = np.isin(truth, classes) & given
    if not known.any():
        raise DataError(
            f"{profiles.source}: no value of {label!r} is a class of the model: it has "
            f"{some(sorted(set(truth[given])))}, the model {some(classes)}"
        )
    if prevalence is not None:
        counts = dict(
            zip(*np.unique(truth[known].astype(str), return_counts=True), strict=True)
        )
        prevalence = check_prevalence(prevalence, classes, counts)
    result = performance(
        truth[known],
        classes[labelled.chosen[known]],
        labelled.probabilities[known],
        classes,
        labelled.withheld[known],
        prevalence,
    )
    names, counts = np.unique(truth[given & ~known].astype(str), return_counts=True)
    unknown = dict(zip(names.tolist(), counts.tolist(), strict=True))
    if unknown:
        hidden = labelled.withheld[given & ~known].mean()
        labelled.notes.append(
            f"{sum(unknown.values())} samples are of classes that the model does not have and are "
            f"in no table; {hidden:.0%} of their labels are withheld: {some(unknown)}"
        )
    trained_on = str(
        (carried(model, "training_summary_") or {}).get("source", "")
    ).split(", ")
    name = Path(str(profiles.source)).name
    if "." in name and name in trained_on:  # an AnnData has no name of its own
        labelled.notes.append(
            f"the model was trained on a file called {name}: is the test fair?"
        )
    if not given.all():
        labelled.notes.append(
            f"{(~given).sum()} samples have no {label} and are in no table"
        )
    samples = pd.DataFrame(
        {
            "sample": labelled.names[known],
            "label": truth[known],
            "predicted": classes[labelled.chosen[known]],
            "confidence": labelled.confidence[known],
            "withheld": labelled.withheld[known],
        }
    )
    return Evaluation(
        model, result, label, str(profiles.source), samples, unknown, labelled
    )
