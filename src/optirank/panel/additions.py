"""Genes that would help a given panel most, and what they would gain on held-out
samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.panel.candidates import ClassSums
from optirank.panel.elimination import L2
from optirank.panel.gene_roles import best_additions, compare
from optirank.panel.softmax import fit_votes, mean_weights
from optirank.panel.sources import dense, places_in_sample
from optirank.panel.votes import centred, doubled_ranks_among, sort_groups, vote_scores
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.elimination import Panel

N_MORE = 10  # genes
_N_CANDIDATES = 300  # that correlate most with a class: the best ten are among them
_TOL = 1e-4  # of the gradient: labels, not weights, are wanted


@dataclass(frozen=True)
class Additions:
    """Genes to add to a panel.

    Attributes
    ----------
    genes : positions of the genes, the best first, chosen with all samples.
    counts : (classes, classes): held-out samples by true class and label when as many
        genes are added, each fold choosing its own.
    """

    genes: NDArray[np.intp]
    counts: NDArray[np.float64]


def best_more(
    X: Any,
    codes: NDArray,
    fold: NDArray,
    panel: Panel,
    fold_panels: Mapping[int, Panel],
    n_classes: int,
    *,
    allowed: NDArray | None = None,
    n_threads: int = 1,
) -> Additions:
    """The ten genes that would help a panel most.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, genes)
    codes, fold : arrays of shape (n,)
        The class of each sample, and the fold that held it out (-1: none).
    panel : Panel
        The panel, fitted on all samples.
    fold_panels : mapping of int to Panel
        The same genes with weights that were fitted without each fold.
    n_classes : int
    allowed : array of int, optional
        Positions of the genes that may be added; all others by default.
    n_threads : int
    """
    pool = np.arange(X.shape[1]) if allowed is None else allowed
    pool = np.setdiff1d(pool, panel.genes)
    parts = fold + 1
    sums = ClassSums(X.shape[1], n_classes, int(parts.max()) + 1)
    sums.add(places_in_sample(X, n_threads), codes, parts)
    every_part = np.arange(sums.n_parts)
    pool_of = {
        k: sums.best_genes(_N_CANDIDATES, every_part[every_part != k + 1], pool)
        for k in fold_panels
    }
    pool_of[-1] = sums.best_genes(_N_CANDIDATES, among=pool)
    read = np.unique(np.concatenate(list(pool_of.values())))
    values = dense(X[:, panel.genes])
    others = dense(X[:, read])
    wins, _ = compare(others, values, np.zeros((0, len(panel.genes))))
    wins /= 2 * (len(panel.genes) + 1)

    def choose(rows: NDArray, genes: NDArray, coef: NDArray) -> NDArray:
        columns = np.searchsorted(read, genes)
        everything = np.arange(values.shape[1])
        scores = vote_scores(values[rows], everything, coef, compiled=True)
        known = np.unique(codes[rows], return_inverse=True)[1]
        chosen = best_additions(wins[np.ix_(rows, columns)], scores, known, N_MORE, L2)
        return columns[chosen]

    counts = np.zeros((n_classes, n_classes))
    for k, fold_panel in fold_panels.items():
        train = np.flatnonzero(fold != k)
        test = np.flatnonzero(fold == k)
        present = np.unique(codes[train])
        test = test[np.isin(codes[test], present)]
        coef = fold_panel.coef[~np.isnan(fold_panel.coef).any(axis=1)]
        columns = choose(train, pool_of[k], coef)
        longer = np.column_stack([values, others[:, columns]])
        labels = _labels(longer, codes, train, test, n_threads)
        np.add.at(counts, (codes[test], labels), 1.0)
    genes = read[choose(np.arange(len(codes)), pool_of[-1], panel.coef)]
    return Additions(genes, counts)


def _labels(
    values: NDArray, codes: NDArray, train: NDArray, test: NDArray, n_threads: int
) -> NDArray:
    """Labels of some samples by a panel whose weights are fitted on others."""
    groups = sort_groups(values, n_threads)
    columns = np.arange(values.shape[1])
    present, known = np.unique(codes[train], return_inverse=True)
    fit = fit_votes(
        doubled_ranks_among(groups, train, columns, n_threads),
        known,
        len(present),
        mean_weights(known),
        l2=L2,
        tol=_TOL,
        n_threads=n_threads,
    )
    votes = centred(doubled_ranks_among(groups, test, columns, n_threads))
    return present[best_class(votes @ fit.coef.T)]
