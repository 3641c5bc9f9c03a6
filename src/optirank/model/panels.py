"""The panels of a model: their genes and weights, their scores, and what held-out
samples say of them.

A panel model has votes: ``z = W c``, where c are the centred ranks of the panel's genes
among themselves, ``c_j = sum over l of sign(x_j - x_l) / 2k``. A gene that is missing
takes its votes away, and nothing stands in for it.

The paper's classifiers rank relative to a reference set of their own per class, with an
intercept: ``z_c = w_c . r(x; gamma_c) + b_c``. Ranks are taken among the reference
genes that are there; a gene with a weight that is missing has its mean rank in
training, or one half where that is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optirank.model.confidence import Calibration, ErrorControl
from optirank.model.likeness import Likeness
from optirank.panel.votes import scores_of_ranks, vote_scores
from optirank.ranks.scoring import check_ties, probabilities, score_rows

MAX_MISSING = 0.5  # share of the genes or weights of a class of the paper's classifiers


@dataclass(frozen=True, eq=False)
class References:
    """Reference sets of the rows of a linear model, and what goes with them."""

    weights: NDArray[np.float64]  # (rows, genes): gamma
    intercept: NDArray[np.float64]  # (rows,)
    ties: str
    mean_ranks: NDArray[np.float64] | None = None  # (rows, genes): of training

    def __post_init__(self) -> None:
        weights = self.weights
        is_share = (weights >= 0) & (weights <= 1)
        if not is_share.all() or not weights.any(axis=1).all():
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
        if not np.isfinite(self.coef).all():
            raise ValueError("weights are NaN or infinite")
        if len(set(self.columns.tolist())) != n_genes:
            raise ValueError("the genes do not have a column of the training data each")
        shares = [share for share, _ in self.missing]
        if shares != sorted(set(shares)):
            raise ValueError("the accuracies with missing genes are no rising table")

    def scores(
        self,
        X: Any,
        present: NDArray[np.bool_],
        columns: NDArray[np.intp] | None = None,
        *,
        compiled: bool | None = None,
        ranks: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Scores of the samples (rows) of X: (n,) for two classes, else (n, classes).

        Parameters
        ----------
        X : array, CSR or CSC matrix.
        present : which genes of the panel X has.
        columns : their columns in X; None where X has these alone, in their order.
        compiled : whether to use compiled loops; None uses them where there are samples
            enough to be worth loading numba. Both give the same up to the last few
            bits.
        ranks : the centred ranks of these genes, where they are known already.
        """
        coef = self.coef[:, present]
        needed = np.arange(coef.shape[1]) if columns is None else columns
        if self.references is not None:
            means = self.references.stand_ins(present)
            stand_ins = np.where(present, 0.0, self.coef * means)
            base = self.references.intercept + stand_ins.sum(axis=1)
            gamma = self.references.weights[:, present]
            ties = self.references.ties
            scores = score_rows(X, coef, gamma, base, ties, needed, compiled)
        elif ranks is not None:
            scores = scores_of_ranks(ranks, coef)
        else:
            scores = vote_scores(X, needed, coef, compiled=compiled)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def undecided(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows of weights cannot tell their class by the genes that are there."""
        weights = np.abs(self.coef)
        if self.references is None:  # a gene alone has no rank
            return ~weights[:, present].any(axis=1) | (present.sum() < 2)
        gamma = self.references.weights
        needed = (weights > 0) | (gamma > 0)
        n_needed = np.maximum(needed.sum(axis=1), 1)
        total = weights.sum(axis=1)
        share_genes = (needed & ~present).sum(axis=1) / n_needed
        share_weights = weights[:, ~present].sum(axis=1) / np.where(total, total, 1.0)
        empty = ~gamma[:, present].any(axis=1)
        return empty | (np.maximum(share_genes, share_weights) > MAX_MISSING)

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
