"""The card of a model: what it is for, what it was trained on, and how good it is.

Every field is a plain value or a dictionary of such, which `optirank.model.file` writes
by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ClassCounts:
    """How the samples of a data set that are of a class, or are not, were labelled."""

    right: int  # of the n samples of the class, those that got its label
    n: int
    false: int = 0  # of the other samples, those that got its label
    n_others: int = 0

    @property
    def sensitivity(self) -> float:
        """Share of the samples of the class that got its label; NaN without any."""
        return self.right / self.n if self.n else float("nan")

    @property
    def specificity(self) -> float:
        """Share of the other samples that did not get its label; NaN without any."""
        return 1.0 - self.false / self.n_others if self.n_others else float("nan")


@dataclass(frozen=True)
class JudgedSet:
    """Samples of another source that judged the model, or one trained without them."""

    name: str
    classes: dict[str, ClassCounts]
    platform: str = ""
    left_out: bool = True  # of the training; else a set that was never in it
    terms: str = ""  # of use


@dataclass(frozen=True)
class Card:
    """What is known of a model.

    Attributes
    ----------
    name, description, tissue, species : of the model, where its maker said so.
    method : "panel", "optirank", or the class of the estimator.
    source, label, batch : the data, the column of the labels, and that of the sources.
    terms : terms of use of the training data.
    sources : of each input file its SHA-256, or its size and date.
    labels_sha256 : SHA-256 of the labels that the training used.
    n_samples, class_counts, n_genes_of_file, n_folds : of the training.
    values : the scale of the training data's values, see
        `optirank.model.likeness.ValueCounter`; empty where it is not known.
    balanced_accuracy, standard_error, interval : of held-out samples; None where
        there were none.
    held_out : each class among the held-out samples.
    curve : sizes of panels with their balanced accuracy on held-out samples and its
        standard error.
    judged : other sources that judged the model.
    baselines : balanced accuracies of simple rivals on the same sets, by their names.
    command, versions, notes : how the model was made.
    """

    name: str = ""
    description: str = ""
    tissue: str = ""
    species: str = ""
    method: str = ""
    source: str = ""
    label: str = ""
    batch: str = ""
    terms: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    labels_sha256: str = ""
    n_samples: int = 0
    class_counts: dict[str, int] = field(default_factory=dict)
    n_genes_of_file: int = 0
    n_folds: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    balanced_accuracy: float | None = None
    standard_error: float | None = None
    interval: tuple[float, ...] = ()
    held_out: dict[str, ClassCounts] = field(default_factory=dict)
    curve: tuple[tuple[int, float, float], ...] = ()
    judged: tuple[JudgedSet, ...] = ()
    baselines: dict[str, float] = field(default_factory=dict)
    command: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
