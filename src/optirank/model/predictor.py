"""The panels of a model, and the model over the columns of some data, which scores
block after block.

A panel model has votes: ``z = W c``, where c are the centred ranks of the panel's genes
among themselves, ``c_j = sum over l of sign(x_j - x_l) / 2k``. A gene that is missing
takes its votes away, and nothing stands in for it.

The paper's classifiers rank relative to a reference set of their own per class, with an
intercept: ``z_c = w_c . r(x; gamma_c) + b_c``. Ranks are taken among the reference
genes that are there; a gene with a weight that is missing has its mean rank in
training, or one half where that is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optirank._util.words import counted, note, some, warn
from optirank.data.genes import GeneMatch, match_genes
from optirank.model.confidence import Calibration, ErrorControl
from optirank.model.likeness import Likeness
from optirank.panel.votes import vote_scores
from optirank.ranks.scoring import (
    check_ties,
    probabilities,
    score_rows,
)

if TYPE_CHECKING:
    from optirank.model.model import Model

MAX_MISSING = 0.5  # share of the genes or weights of a class of the paper's classifiers
_LOST = 0.05  # of the held-out accuracy: more is said


@dataclass(frozen=True, eq=False)
class References:
    """Reference sets of the rows of a linear model, and what goes with them."""

    weights: NDArray[np.float64]  # (rows, genes): gamma
    intercept: NDArray[np.float64]  # (rows,)
    ties: str
    mean_ranks: NDArray[np.float64] | None = None  # (rows, genes): of training

    def __post_init__(self) -> None:
        weights = self.weights
        if weights.min() < 0 or weights.max() > 1 or not weights.any(axis=1).all():
            raise ValueError(
                "reference weights lie outside [0, 1], or are all zero in a row"
            )
        n_rows = len(weights)
        if self.intercept.shape != (n_rows,) or not np.isfinite(self.intercept).all():
            raise ValueError(f"the intercepts are not {n_rows} finite numbers")
        check_ties(self.ties)

    def stand_ins(self, present: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Ranks (rows, genes) that stand in for genes that are missing."""
        if self.mean_ranks is not None:
            return self.mean_ranks
        _, offset = check_ties(self.ties)
        half = 0.5 - offset / self.weights[:, present].sum(axis=1)
        return np.repeat(half[:, None], len(present), axis=1)


@dataclass(frozen=True, eq=False)
class SizedPanel:
    """A panel of k genes with its weights, and what held-out samples say of them.

    Attributes
    ----------
    genes : names of the genes.
    columns : their positions in the training data.
    coef : (rows, k); one row for two classes, else one per class.
    references : reference sets of the rows; None for votes among the panel's genes.
    calibration, error_control, likeness : see these classes; None where not measured.
    missing : shares of the genes that are missing, and the held-out balanced accuracy
        without them; the first is of no missing gene.
    """

    genes: NDArray[np.object_]
    columns: NDArray[np.intp]
    coef: NDArray[np.float64]
    references: References | None = None
    calibration: Calibration | None = None
    error_control: ErrorControl | None = None
    likeness: Likeness | None = None
    missing: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        n_genes = len(self.genes)
        if not n_genes or len(set(self.genes.tolist())) < n_genes:
            raise ValueError("a panel has no genes, or a gene more than once")
        if len(set(self.columns.tolist())) != n_genes:
            raise ValueError("the genes do not have a column of the training data each")
        shares = [share for share, _ in self.missing]
        if shares != sorted(set(shares)):
            raise ValueError("the accuracies with missing genes are no rising table")

    def probabilities(
        self, scores: NDArray, *, calibrated: bool = True
    ) -> NDArray[np.float64]:
        """Probabilities (n, classes) of scores.

        Without a calibration they are the softmax of the scores for votes, and logistic
        functions divided by their sum for one problem per class.
        """
        if calibrated and self.calibration is not None:
            return self.calibration.probabilities(scores)
        softmax = self.references is None and scores.ndim == 2
        return probabilities(scores, offset=-np.inf if softmax else 0.0)

    def expected_accuracy(self, share_missing: float) -> float:
        """Held-out accuracy with such a share of genes missing; NaN if not measured.

        Between the shares that were measured, and down to one gene, it is linear in the
        logarithm of the number of genes that are there. One gene has no order, so its
        accuracy is that of guessing.
        """
        if not self.missing:
            return float("nan")
        shares, accuracies = np.array(self.missing).T
        logs = np.log(np.maximum(1.0, len(self.genes) * (1.0 - shares)))
        log_there = np.log(max(1.0, len(self.genes) * (1.0 - share_missing)))
        guessing = 1.0 / max(2, len(self.coef))
        return float(
            np.interp(log_there, [0.0, *logs[::-1]], [guessing, *accuracies[::-1]])
        )


class MissingGenesError(ValueError):
    """The data have too few of a model's genes."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model over the columns of some data; see :meth:`optirank.Model.bind`.

    Attributes
    ----------
    model : the model that predicts.
    match : how each gene of the panel was found.
    columns : the columns of the data that are looked at.
    n_columns : the number of columns of the data.
    compiled : whether to use compiled loops; None where there are samples enough.
    """

    model: Model
    match: GeneMatch
    columns: NDArray[np.intp]
    n_columns: int
    compiled: bool | None = None

    @property
    def panel(self) -> SizedPanel:
        """The panel of the model."""
        return self.model.panel

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Scores of the samples (rows) of X: (n,) for two classes, else (n,
        classes).
        """
        X = self._matrix(X)
        panel = self.panel
        present = self.match.present
        coef = panel.coef[:, present]
        references = panel.references
        if references is None:
            scores = vote_scores(X, self.columns, coef, compiled=self.compiled)
        else:
            means = references.stand_ins(present)
            stand_ins = np.where(present, 0.0, panel.coef * means)
            base = references.intercept + stand_ins.sum(axis=1)
            gamma = references.weights[:, present]
            scores = score_rows(
                X, coef, gamma, base, references.ties, self.columns, self.compiled
            )
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def say(self) -> None:
        """Note which genes are missing, and what it cost held-out samples to lack so
        many at random; warn where their accuracy is then nearer to guessing than to
        that with all genes.
        """
        for text in self.match.notes():
            note(text)
        share = 1.0 - float(self.match.present.mean())
        whole = self.panel.expected_accuracy(0.0)
        without = self.panel.expected_accuracy(share)
        cost = (
            f"without so many of its genes the model's held-out accuracy was "
            f"{without:.1%}, with all of them {whole:.1%}"
        )
        if without - 1.0 / len(self.model.classes) < whole - without:
            warn(f"{cost}: these labels are little more than guesses")
        elif whole - without > _LOST:
            note(f"{cost}: labels are less certain")

    def _matrix(self, X: Any) -> Any:
        """X as an array of numbers or a CSR or CSC matrix, of the columns announced."""
        if hasattr(X, "tocsr"):
            X = X if X.format in ("csr", "csc") else X.tocsr()
        else:
            X = np.asarray(X)
            X = X if X.dtype.kind in "biuf" else X.astype(np.float64)
        if X.ndim != 2 or X.shape[1] != self.n_columns:
            raise ValueError(
                f"X has shape {X.shape}, but {self.n_columns} columns were announced"
            )
        return X


def bind(
    model: Model,
    genes: Iterable[str] | None = None,
    *,
    compiled: bool | None = None,
) -> Predictor:
    """The model made ready for data with these genes: a `Predictor`.

    Parameters
    ----------
    genes : the names of the data's columns; None when they are those of the
        training data.
    compiled : whether to use compiled loops; None uses them where there are samples
        enough to be worth loading numba. Both give the same up to the last few
        bits.
    """
    panel = model.panel
    if genes is None:
        match = GeneMatch(tuple(panel.genes.tolist()), panel.columns)
        return Predictor(model, match, panel.columns, model.n_features, compiled)
    names = list(genes)
    match = match_genes(panel.genes.tolist(), names)
    lacking = _lacking(panel, match.present, model.score_classes)
    if lacking:
        raise MissingGenesError(_too_few(match, lacking))
    columns = match.columns[match.present]
    return Predictor(model, match, columns, len(names), compiled)


def _too_few(match: GeneMatch, lacking: list[str]) -> str:
    """Which genes are missing, for which classes, and what to do."""
    n_present = int(match.present.sum())
    remedy = (
        "check that the gene names are of the same kind as the model's, or name "
        "another column (gene_column=)"
    )
    if n_present:
        remedy += ", or train again on the genes that are present (query=)"
    return (
        f"{n_present or 'none'} of the model's {len(match.genes)} genes are present, "
        f"too few for {counted(len(lacking), 'class', 'classes')}: {some(lacking)}. "
        f"Missing genes: {some(match.missing)}. Please {remedy}."
    )


def _lacking(
    panel: SizedPanel, present: NDArray[np.bool_], score_classes: NDArray
) -> list[str]:
    """Classes that cannot be told by the genes that are there."""
    weights = np.abs(panel.coef)
    if panel.references is None:  # a gene alone has no rank
        without = ~weights[:, present].any(axis=1) | (present.sum() < 2)
    else:
        gamma = panel.references.weights
        needed = (weights > 0) | (gamma > 0)
        share_genes = (needed & ~present).sum(axis=1) / np.maximum(
            needed.sum(axis=1), 1
        )
        total = weights.sum(axis=1)
        share_weights = weights[:, ~present].sum(axis=1) / np.where(total, total, 1.0)
        empty = ~gamma[:, present].any(axis=1)
        without = empty | (np.maximum(share_genes, share_weights) > MAX_MISSING)
    return [str(label) for label in score_classes[without]]
