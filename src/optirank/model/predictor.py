"""Labels, confidences and probabilities of new samples, block by block, from the panel's genes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.model.genes import MAX_MISSING, bind, without_lacking
from optirank.model.linear import carried, panel_ranks
from optirank.model.query import Adaptation, match_prevalences
from optirank.ranks.scoring import best_class, worth_compiling

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from optirank.model.confidence import ErrorControl, Withholding
    from optirank.model.genes import ClassLoss
    from optirank.model.novelty import Novelty
    from optirank.model.query import ValueSummary


def free_word(classes: Iterable, *words: str) -> str:
    """The first of some words that no class is called; the last one is numbered where all are."""
    taken = {str(label) for label in classes}
    more = (f"{words[-1]} {k}" for k in count(2))
    return next(word for word in chain(words, more) if word not in taken)


def withheld_word(classes: Iterable) -> str:
    """The word for a label that is withheld, "unassigned" where no class is called so."""
    return free_word(classes, "unassigned", "withheld")


def mixed_word(classes: Iterable) -> str:
    """The word for a cluster of mixed labels, "heterogeneous" where no class is called so."""
    return free_word(classes, "heterogeneous", "mixed")


@dataclass(frozen=True)
class Prediction:
    """What a model says of some samples."""

    classes: NDArray
    scores: NDArray  # (n,) for two classes, (n, classes) for more
    probabilities: NDArray  # (n, classes)
    chosen: NDArray  # (n,): positions in classes

    @property
    def labels(self) -> NDArray:
        """The class of each sample."""
        return self.classes[self.chosen]

    @property
    def confidence(self) -> NDArray:
        """The probability of each sample's label."""
        return self.probabilities[np.arange(len(self.chosen)), self.chosen]

    def table(self, index: Iterable | None = None) -> pd.DataFrame:
        """label, confidence and ``probability_<class>``, one line per sample."""
        import pandas as pd

        columns = {"label": self.labels, "confidence": self.confidence}
        for label, column in zip(self.classes, self.probabilities.T, strict=True):
            columns[f"probability_{label}"] = column
        return pd.DataFrame(columns, index=None if index is None else list(index))


class Predictor:
    """A model made ready for data whose columns are known; give it block after block.

    Parameters
    ----------
    model : a fitted linear classifier on ranks, or a search whose best one is.
    genes : the names of the data's columns; None when they are those of the training data.
    max_missing : the share of a class's genes, and of its weights, that may be missing, see
        ``optirank.model.genes`` for what stands in for them.
    drop_classes : whether to leave out the classes that lack more, instead of refusing; ``notes``
        then says which. Samples of these classes get the label of another.
    other_names : other names that the data have for their columns, by kind; where genes are missing
        that are found by them, that is said.
    adapt : whether ``predict`` shifts the scores to where the query's samples lie, see
        ``optirank.model.query``. What it is given is then the whole query, and labels depend
        on the other samples in it. Block by block, use ``match_prevalences`` and ``from_scores``.
    compiled : whether to use compiled loops; None uses them once there is enough to predict to be
        worth loading numba, and NumPy before. Both give the same up to the last few bits.

    Attributes
    ----------
    model : the model that predicts, without classes that were left out.
    left_out : what the classes lack that were left out.
    bound : the model over the data's columns, with ``bound.match`` (how each gene was found) and
        ``bound.losses`` (what each class lacks).
    novelty : the model's out-of-distribution score, None where it has none.
    """

    def __init__(
        self,
        model: Any,
        genes: Iterable[str] | None = None,
        *,
        max_missing: float = MAX_MISSING,
        drop_classes: bool = False,
        other_names: Mapping[str, Iterable[str]] | None = None,
        adapt: bool = False,
        compiled: bool | None = None,
    ) -> None:
        genes = None if genes is None else list(genes)
        self.left_out: tuple[ClassLoss, ...] = ()
        self._control: ErrorControl | None = carried(model, "error_control_")
        if drop_classes:
            model, self.left_out = without_lacking(model, genes, max_missing)
        self.model = model
        self.max_missing = max_missing
        self.bound = bind(model, genes, max_missing, other_names)
        self.compiled = compiled
        self.adapt = adapt
        self.novelty: Novelty | None = carried(model, "novelty_")
        self._seen = 0
        self._calibration = carried(model, "calibration_")

    @property
    def classes(self) -> NDArray:
        """The labels."""
        return self.bound.parts.classes

    @property
    def columns(self) -> NDArray:
        """The columns of the data that are looked at."""
        return self.bound.columns

    def notes(self) -> list[str]:
        """What there is to say about classes left out and the genes."""
        notes = self.bound.notes()
        if self.left_out:
            what = (
                "1 class is"
                if len(self.left_out) == 1
                else f"{len(self.left_out)} classes are"
            )
            notes.insert(
                0,
                f"{what} LEFT OUT, more than {self.max_missing:.0%} of their genes or weights are "
                f"missing: {some(self.left_out)}; their samples get the label of another class",
            )
        return notes

    def query_notes(
        self, values: ValueSummary | None = None, adaptation: Adaptation | None = None
    ) -> list[str]:
        """How a query differs from the training data, by its values and by its scores."""
        trained = (carried(self.model, "training_summary_") or {}).get("values")
        notes = values.notes(trained) if values is not None else []
        told = adaptation.note(self.adapt) if adaptation is not None else None
        return notes if told is None else [*notes, told]

    def narrowed(self) -> Predictor:
        """The same for data of which only ``columns`` were read, in that order."""
        q = len(self.bound.columns)
        narrow = copy.copy(self)
        narrow.bound = replace(self.bound, columns=np.arange(q), n_columns=q)
        return narrow

    def scores(self, X: Any) -> NDArray:
        """Scores of the samples (rows) of X, as the model's ``decision_function`` has them."""
        X, compiled = self._prepared(X)
        found = self.bound.rows.scores(X, self.columns, compiled)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Any) -> Prediction:
        """Labels, confidences and probabilities of the samples (rows) of X."""
        scores = self.scores(X)
        return self.from_scores(
            match_prevalences(scores).apply(scores) if self.adapt else scores
        )

    def from_scores(self, scores: NDArray) -> Prediction:
        """Labels, confidences and probabilities of samples whose scores are known."""
        link = self.bound.parts if self._calibration is None else self._calibration
        return Prediction(
            self.classes, scores, link.probabilities(scores), best_class(scores)
        )

    def likeness(self, X: Any, chosen: NDArray) -> NDArray:
        """How much samples look like the class they are given, see ``optirank.model.novelty``."""
        if self.novelty is None:
            raise ValueError(
                "the model has no out-of-distribution score, so unknown samples cannot be told: "
                "train it with optirank train, or give a threshold instead"
            )
        X, compiled = self._prepared(X)
        here = self.bound.parts.positions[self.bound.match.present]
        _, known, read = np.intersect1d(self.novelty.genes, here, return_indices=True)
        ranks = panel_ranks(X, self.columns[read], compiled)
        return self.novelty.score(ranks, chosen, known)

    def withholding(self, target_error: float | None = None) -> Withholding | None:
        """The threshold of confidence for a target error, by default that of the training.

        None where none is asked for, here or in training.
        """
        control = self._control
        if target_error is None and (control is None or control.target_error is None):
            return None
        why = None
        if control is None:
            why = "the model stores no errors of held-out samples"
        elif self.left_out:
            why = "the model without some of its classes was never judged"
        if why is not None:
            target = control.target_error if target_error is None else target_error
            raise ValueError(
                f"target error {target:g}: {why}; give a threshold instead"
            )
        return control.at(target_error)

    def _prepared(self, X: Any) -> tuple[Any, bool]:
        """X as an array of numbers or a CSR or CSC matrix, and whether to use compiled loops."""
        if hasattr(X, "tocsr"):
            X = X if X.format in ("csr", "csc") else X.tocsr()
        else:
            X = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
            X = X if X.dtype.kind in "biuf" else X.astype(np.float64)
        if X.ndim != 2 or X.shape[1] != self.bound.n_columns:
            raise ValueError(
                f"X has shape {X.shape}, but {self.bound.n_columns} columns were announced"
            )
        self._seen += X.shape[0]  # blocks of one file count together
        if self.compiled is not None:
            return X, self.compiled
        return X, worth_compiling(self._seen, len(self.bound.parts.coef))
