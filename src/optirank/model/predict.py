"""Labels, confidences and probabilities of new samples, block by block, from the panel's genes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.estimators.panel import carried, plain_probabilities
from optirank.model.missing import MAX_MISSING, bind
from optirank.model.prior import Prior, class_shares, with_shares
from optirank.model.query import QueryMeter
from optirank.model.subsets import without_lacking
from optirank.ranks.scoring import best_class, by_class, worth_compiling

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from optirank.model.experience import Experience
    from optirank.model.missing import ClassLoss

UNASSIGNED = "unassigned"
_OTHERWISE = "withheld"


def withheld_word(classes: Iterable) -> str:
    """The word for a label that is withheld: "unassigned", or another where a class is called so.

    A class may be called "unassigned" in the training data; then the word is "withheld", and
    "withheld 2", "withheld 3" and so on where there is a class of that name too.
    """
    taken = {str(label) for label in classes}
    more = (f"{_OTHERWISE} {k}" for k in count(2))
    return next(word for word in chain((UNASSIGNED, _OTHERWISE), more) if word not in taken)


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

    def labels_above(self, threshold: float, otherwise: Any = None) -> NDArray:
        """Labels where the confidence reaches a threshold, elsewhere the word for withheld ones."""
        labels = self.labels.astype(object)
        otherwise = withheld_word(self.classes) if otherwise is None else otherwise
        labels[self.confidence < threshold] = otherwise
        return labels

    def table(self, index: Iterable | None = None, threshold: float | None = None) -> pd.DataFrame:
        """label, confidence and ``probability_<class>``, one line per sample."""
        import pandas as pd

        labels = self.labels if threshold is None else self.labels_above(threshold)
        columns = {"label": labels, "confidence": self.confidence}
        for label, column in zip(self.classes, self.probabilities.T, strict=True):
            columns[f"probability_{label}"] = column
        return pd.DataFrame(columns, index=None if index is None else list(index))


class Predictor:
    """A model made ready for data whose columns are known; give it block after block.

    Parameters
    ----------
    model : a fitted linear classifier on ranks, or a search whose best one is.
    genes : the names of the data's columns; None when they are those of the training data.
    max_missing : the share of a class's genes that may be missing, see
        ``optirank.model.missing`` for what stands in for them.
    drop_classes : whether to leave out the classes that lack more, instead of refusing; ``notes``
        then says which. Samples of these classes get the label of another.
    other_names : other names that the data have for their columns, by kind; where genes are missing
        that are found by them, that is said.
    calibrated : whether to use the model's ``calibration_``, where it has one. It changes
        probabilities and no label.
    prior : the shares of the classes that probabilities suppose: ``"balanced"``, the default, with
        labels by the highest score; ``"training"``; or a mapping from every class to its share.
        With the latter two the label is the most probable class, see ``optirank.model.prior``.
    adapt : whether to shift the scores to where the query's samples lie, see
        ``optirank.model.adaptation``. What is given to ``predict`` is then the whole query, and
        labels depend on the other samples in it.
    compiled : whether to use compiled loops; None uses them once there is enough to predict to be
        worth loading numba, and NumPy before. Both give the same up to the last few bits.

    Attributes
    ----------
    classes : the labels.
    model : the model that predicts, without classes that were left out.
    left_out : what the classes lack that were left out.
    columns : the columns of the data that are looked at.
    bound : the model over these columns, with ``bound.match`` (how each gene was found) and
        ``bound.losses`` (what each class lacks).
    """

    def __init__(
        self,
        model: Any,
        genes: Iterable[str] | None = None,
        *,
        max_missing: float = MAX_MISSING,
        drop_classes: bool = False,
        other_names: Mapping[str, Iterable[str]] | None = None,
        calibrated: bool = True,
        prior: Prior = "balanced",
        adapt: bool = False,
        compiled: bool | None = None,
    ) -> None:
        shares = class_shares(model, prior)
        genes = None if genes is None else list(genes)
        self.left_out: tuple[ClassLoss, ...] = ()
        if drop_classes:
            model, self.left_out = without_lacking(model, genes, max_missing)
        self.model = model
        self.max_missing = max_missing
        self.bound = bind(model, genes, max_missing, other_names)
        self.compiled = compiled
        self.adapt = adapt
        self.experience: Experience | None = carried(model, "experience_")
        if adapt and self.experience is None:
            raise ValueError(
                "the model does not know the scores of held-out samples, so it cannot adapt to a "
                "query: train it with this version of optirank, or predict without adapting"
            )
        self._seen = 0
        self._calibration = carried(model, "calibration_") if calibrated else None
        self._shares = None
        if shares is not None:
            self._shares = np.array([shares[label] for label in self.classes.tolist()])
            if not self._shares.any():
                raise ValueError("the prior leaves only classes of share 0: give others a share")

    @property
    def classes(self) -> NDArray:
        """The labels."""
        return self.bound.parts.classes

    @property
    def columns(self) -> NDArray:
        """The columns of the data that are looked at."""
        return self.bound.columns

    def notes(self) -> list[str]:
        """What there is to say about classes left out, the genes and the shares of the classes."""
        notes = self.bound.notes()
        if self._shares is not None:
            pairs = zip(self.classes, self._shares / self._shares.sum(), strict=True)
            shown = some(f"{label} {share:.1%}" for label, share in pairs)
            notes.append(f"labels and probabilities assume these shares of the classes: {shown}")
        if self.left_out:
            what = "1 class is" if len(self.left_out) == 1 else f"{len(self.left_out)} classes are"
            notes.insert(
                0,
                f"{what} LEFT OUT, more than {self.max_missing:.0%} of their genes or weights are "
                "missing: "
                f"{some(self.left_out)}; their samples get the label of another class",
            )
        return notes

    def narrowed(self) -> Predictor:
        """The same for data of which only ``columns`` were read, in that order."""
        q = len(self.bound.columns)
        narrow = object.__new__(Predictor)
        narrow.__dict__ |= self.__dict__
        narrow.bound = replace(self.bound, columns=np.arange(q), n_columns=q)
        return narrow

    def scores(self, X: Any) -> NDArray:
        """Scores of the samples (rows) of X, as the model's ``decision_function`` has them."""
        X = _matrix(X)
        if X.ndim != 2 or X.shape[1] != self.bound.n_columns:
            raise ValueError(
                f"X has shape {X.shape}, but {self.bound.n_columns} columns were announced"
            )
        self._seen += X.shape[0]  # blocks of one file count together
        parts, compiled = self.bound.parts, self.compiled
        if compiled is None:
            compiled = worth_compiling(self._seen, parts.n_rows)
        problems = parts.average(self.bound.rows.scores(X, self.columns, compiled))
        return problems[:, 0] if parts.n_problems == 1 else problems

    def meter(self, n_samples: int) -> QueryMeter | None:
        """What measures a query of so many samples; None for a model that knows nothing of it.

        It is given blocks of the columns ``columns`` alone, and their scores.
        """
        if self.experience is None:
            return None
        return QueryMeter(self.bound, self.experience, n_samples)

    def predict(self, X: Any) -> Prediction:
        """Labels, confidences and probabilities of the samples (rows) of X."""
        scores = self.scores(X)
        if self.adapt:
            X = _matrix(X)
            meter = self.meter(X.shape[0])
            meter.add(X[:, self.columns], scores)
            scores = meter.report().adaptation.apply(scores)
        return self.from_scores(scores)

    def from_scores(self, scores: NDArray) -> Prediction:
        """Labels, confidences and probabilities of samples whose scores are known."""
        calibration = self._calibration
        if calibration is None:
            found = plain_probabilities(self.model, scores)
        else:
            found = calibration.probabilities(scores)
        chosen = best_class(scores)
        if self._shares is not None:
            found = with_shares(found, self._shares)
            best = found == found.max(axis=1, keepdims=True)
            chosen = np.where(best, by_class(scores), -np.inf).argmax(axis=1)
        return Prediction(self.classes, scores, found, chosen)


def predict_samples(
    model: Any, X: Any, genes: ArrayLike | None = None, *, max_missing: float = MAX_MISSING
) -> Prediction:
    """Labels, confidences and probabilities of the samples of X.

    A data frame's columns are found by name, whatever their order, as are those named by ``genes``;
    otherwise X must have the columns of the training data.
    """
    if genes is None and hasattr(X, "columns"):
        genes = X.columns
    return Predictor(model, genes, max_missing=max_missing).predict(X)


def _matrix(X: Any) -> Any:
    """X as an array of numbers or a CSR or CSC matrix."""
    if hasattr(X, "tocsr"):
        return X if X.format in ("csr", "csc") else X.tocsr()
    X = X.to_numpy() if hasattr(X, "to_numpy") else np.asarray(X)
    return X if X.dtype.kind in "biuf" else X.astype(np.float64)
