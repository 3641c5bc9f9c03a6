"""The weights of one panel of genes, and what held-out samples say of them.

A panel model has votes: ``z = W c``, where c are the centred ranks of the panel's genes
among themselves, ``c_j = sum over l of sign(x_j - x_l) / 2k``. A gene that is missing
takes its votes away, and nothing stands in for it.

The paper's classifiers rank relative to a reference set of their own per class, with an
intercept: ``z_c = w_c . r(x; gamma_c) + b_c``. Ranks are taken among the reference
genes that are there; a gene with a weight that is missing has its mean rank in
training, or one half where that is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optirank.model.confidence import Calibration, ErrorControl
from optirank.model.likeness import Likeness
from optirank.ranks.relative import check_ties
from optirank.ranks.scoring import probabilities


@dataclass(frozen=True, eq=False)
class References:
    """Reference sets of the rows of a linear model, and what goes with them."""

    weights: NDArray[np.float64]  # (rows, genes): gamma
    intercept: NDArray[np.float64]  # (rows,)
    mean_ranks: NDArray[np.float64] | None  # (rows, genes): of training
    ties: str

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

    def of_classes(self, kept: NDArray[np.intp], n_classes: int) -> SizedPanel:
        """The weights of some of the classes; what was measured on all of them goes."""
        if n_classes == 2:
            return SizedPanel(self.genes, self.columns, self.coef, self.references)
        coef = self.coef[kept]
        references = self.references
        if references is not None:
            means = references.mean_ranks
            references = replace(
                references,
                weights=references.weights[kept],
                intercept=references.intercept[kept],
                mean_ranks=None if means is None else means[kept],
            )
        elif len(kept) == 2:
            coef = coef[1:] - coef[:1]
        return SizedPanel(self.genes, self.columns, coef, references)
