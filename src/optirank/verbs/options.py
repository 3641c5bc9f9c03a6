"""What a user may ask of a training, a design and a prediction, each option in one
place, with its default; and what every result has.

The parameter of the same name in `optirank.tl` has the same default; the commands in
`optirank.cli` spell the options, and pass those that are given.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from optirank.model import Model

File = str | os.PathLike[str]
Genes = File | Sequence[File]
METHODS = ("panel", "optirank")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What a user may ask of a training: parameters of :func:`optirank.tl.train`.

    ``label`` are the columns of the labels, from coarse to fine, a tuple also where one
    is given. Genes are names, patterns, and files that list some. ``query_genes`` are
    the genes of the data to be labelled later; ``n_genes`` is a number, or None or
    "auto", by held-out accuracy; ``n_jobs`` are threads, -1 for all processors.
    """

    label: str | Sequence[str]
    batch: str | None = None
    query_genes: Sequence[str] | None = None
    n_genes: Any = None
    include: Genes = ()
    exclude: Genes = ()
    tree: Mapping[str, str] | File | None = None
    ontology: Mapping[str, str] | File | None = None
    mapping: Mapping[str, str] | None = None
    method: str = "panel"
    name: str = ""
    description: str = ""
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if not self.label or not all(self.label):
            raise ValueError(f"label={self.label!r}: name each column of labels")
        labels = (self.label,) if isinstance(self.label, str) else tuple(self.label)
        object.__setattr__(self, "label", labels)
        if len(self.label) > 1 and self.tree is not None:
            raise ValueError(
                f"the columns {', '.join(self.label)} are a tree of labels already: "
                "leave out the tree, or all but the finest column"
            )
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r}: use one of {', '.join(METHODS)}")
        is_number = isinstance(self.n_genes, Integral) and int(self.n_genes) >= 2
        if self.n_genes not in ("auto", None) and not is_number:
            raise ValueError(f"{self.n_genes!r} genes: give at least 2 (n_genes=)")
        if self.method != "panel" and (
            self.include or self.n_genes not in ("auto", None)
        ):
            raise ValueError(
                f"method={self.method!r} chooses its genes itself: leave out include= "
                "and n_genes=, or use the panel method"
            )


@dataclass(frozen=True, kw_only=True)
class DesignOptions(TrainingOptions):
    """What a user may ask of a design: parameters of :func:`optirank.tl.design`.

    ``n_genes`` of None are 100, or those of the list.
    """

    gene_list: Genes = ()
    min_mean: float | None = None
    max_mean: float | None = None
    per_class: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per_class < 0:
            raise ValueError(f"{self.per_class} genes per class: give at least 0")
        low = 0.0 if self.min_mean is None else self.min_mean
        high = math.inf if self.max_mean is None else self.max_mean
        if not 0 <= low <= high:
            raise ValueError(
                f"means from {low:g} to {high:g} (min_mean=, max_mean=) leave no gene: "
                "give counts per 10,000 of at least 0, the smaller one first"
            )


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """How labels are given: parameters of :func:`optirank.tl.annotate`."""

    clusters: str | None = None
    adapt: bool = False
    target_error: float | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.adapt not in (True, False):
            raise ValueError(f"adapt={self.adapt!r}: use True or False")
        if self.threshold is not None and self.target_error is not None:
            raise ValueError("give a threshold or a target error, not both")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ValueError(
                f"threshold={self.threshold!r}: use a share between 0 and 1"
            )
        if self.target_error is not None and not 0 < self.target_error < 1:
            raise ValueError(
                f"target_error={self.target_error!r}: use a share between 0 and 1"
            )

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        return {
            name: value
            for name, value in values.items()
            if value is not None and value is not False
        }


DEFAULTS = PredictOptions()


class Result:
    """What a verb gives: a model, what there is to say, tables, and a page.

    Attributes
    ----------
    model : the model that was made or used; a result can be given wherever a model can.
    notes : sentences for the reader.
    warnings : sentences that need attention; they are not among the notes.
    """

    model: Model
    notes: list[str]
    warnings: list[str]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        raise NotImplementedError
