"""What single genes do for a panel: their loss, their replacement, and genes that would
help.

The score of a panel is a sum over pairs of genes. With
``A_g = sum over l of sign(x_g - x_l)`` and ``B_g = sum over l of w_l sign(x_g - x_l)``
over the k genes l of the panel, and ``S = sum over g of w_g A_g``, the scores are
``z = S / (2 k)``. It follows, without ranking anew:

- without gene g: ``(S - w_g A_g + B_g) / (2 (k - 1))``;
- with gene h, which has the weights of g, in its place:
  ``(S + w_g (A_h - A_g) + B_g - B_h) / (2 k)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from optirank._util.matrices import as_dense
from optirank.panel.elimination import L2, RankedSamples
from optirank.panel.samples import class_sums, places_in_sample
from optirank.panel.votes import mean_weights, ranked_scores, sort_groups, vote_scores
from optirank.ranks.scoring import best_class, by_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.elimination import Panel

N_MORE = 10  # genes that would help most
_N_CANDIDATES = 300  # that correlate most with a class: the best ten are among them
_SHORT_LIST = 5  # candidates per gene of which the replacement is chosen
_TOL = 1e-4  # of the gradient: labels, not weights, are wanted


def compare(
    values: NDArray, panel_values: NDArray, coef: NDArray
) -> tuple[NDArray, NDArray]:
    """Compare genes with all genes of a panel in each sample.

    Parameters
    ----------
    values : array of shape (n, genes)
        The genes to compare; those of the panel itself, or others.
    panel_values : array of shape (n, k)
    coef : array of shape (rows, k)
        Weights of the panel's genes; of no rows where only the wins are wanted.

    Returns
    -------
    wins minus losses, A of shape (n, genes), and the same by the weights of the
    opponents, B of shape (n, genes, rows).
    """
    n, k = panel_values.shape
    wins = np.empty(values.shape)
    weighted = np.empty((*values.shape, len(coef)))
    for row in range(n):
        order = np.argsort(panel_values[row], kind="stable")
        rising = panel_values[row][order]
        below = np.searchsorted(rising, values[row], side="left")
        not_above = np.searchsorted(rising, values[row], side="right")
        wins[row] = below - (k - not_above)
        sums = np.zeros((k + 1, len(coef)))
        np.cumsum(coef.T[order], axis=0, out=sums[1:])
        weighted[row] = sums[below] + sums[not_above] - sums[-1]
    return wins, weighted


def scores_without(values: NDArray, coef: NDArray) -> tuple[NDArray, NDArray]:
    """Scores (n, rows) of a panel, and those without each gene (n, k, rows)."""
    k = values.shape[1]
    wins, weighted = compare(values, values, coef)
    total = wins @ coef.T
    without = total[:, None, :] - wins[:, :, None] * coef.T + weighted
    return total / (2 * k), without / (2 * max(1, k - 1))


def of_known_classes(coef: NDArray, codes: NDArray) -> tuple[NDArray, NDArray]:
    """Weights of the classes that have some, and the classes of samples
    numbered anew.
    """
    known = ~np.isnan(coef).any(axis=1)
    if known.all():
        return coef, codes
    place = np.cumsum(known) - 1
    return coef[known], place[codes]


def margin_losses(values: NDArray, coef: NDArray, codes: NDArray) -> NDArray:
    """By how much the loss of each gene lowers the margin of each sample, (n, k).

    The margin is the score of the sample's class minus the highest score of another.
    Classes whose weights are NaN do not take part.
    """
    coef, codes = of_known_classes(coef, codes)
    scores, without = scores_without(values, coef)
    n, k, n_rows = without.shape
    whole = _margins(scores, codes)
    fewer = _margins(without.reshape(n * k, n_rows), np.repeat(codes, k))
    return whole[:, None] - fewer.reshape(n, k)


def loss_changes(values: NDArray, coef: NDArray, codes: NDArray) -> NDArray:
    """By how much the mean loss of the samples rises without each gene, (k,).

    Classes count equally; a gene whose change is not above 0 does nothing for these
    samples. Classes whose weights are NaN do not take part.
    """
    coef, codes = of_known_classes(coef, codes)
    scores, without = scores_without(values, coef)
    whole = _mean_loss(scores, codes)
    return np.array(
        [_mean_loss(without[:, g], codes) - whole for g in range(values.shape[1])]
    )


def replacements(
    values: NDArray, candidates: NDArray, coef: NDArray, codes: NDArray
) -> tuple[NDArray, NDArray]:
    """For each gene of a panel the best candidate to replace it.

    Of the candidates whose comparisons with the panel correlate most with the gene's
    own, the one with which the mean loss is lowest when it takes the gene's weights.

    Parameters
    ----------
    values : array of shape (n, k)
        The genes of the panel.
    candidates : array of shape (n, c)
        Genes outside the panel.
    coef : array of shape (rows, k)
    codes : array of shape (n,)

    Returns
    -------
    positions (k,) among the candidates, and the correlations (k,) of these with their
    genes.
    """
    k = values.shape[1]
    wins, weighted = compare(values, values, coef)
    wins_of_candidates, _ = compare(candidates, values, coef[:0])
    likeness = _correlations(wins, wins_of_candidates, codes)
    short_list = np.argsort(-likeness, axis=1, kind="stable")[:, :_SHORT_LIST]
    listed = np.unique(short_list)
    other_wins, other_weighted = compare(candidates[:, listed], values, coef)
    total = wins @ coef.T
    best = np.empty(k, np.intp)
    for g in range(k):
        losses = []
        for candidate in short_list[g]:
            at = np.searchsorted(listed, candidate)
            moved = np.outer(other_wins[:, at] - wins[:, g], coef[:, g])
            swapped = total + moved + weighted[:, g] - other_weighted[:, at]
            losses.append(_mean_loss(swapped / (2 * k), codes))
        best[g] = short_list[g][int(np.argmin(losses))]
    return best, likeness[np.arange(k), best]


def best_additions(
    wins: NDArray, scores: NDArray, codes: NDArray, n_more: int, l2: float
) -> NDArray:
    """Candidates that lower the mean loss most, one after the other.

    Each step takes the candidate whose own weights, by one step of Newton's method with
    the penalty ``l2``, lower the loss most, and adds its votes to the scores.

    Parameters
    ----------
    wins : array of shape (n, candidates)
        Centred ranks of the candidates among the panel.
    scores : array of shape (n, rows)
        Scores of the samples by the panel.
    codes : array of shape (n,)
    n_more : int
        How many are wanted.
    l2 : float
        The penalty against the mean loss.

    Returns
    -------
    Positions of the candidates, the best first.
    """
    weights = mean_weights(codes)
    z = by_class(scores) if scores.shape[1] > 1 else by_class(scores) / 2
    truth = np.zeros(z.shape)
    truth[np.arange(len(z)), codes] = 1.0
    wins = wins.astype(np.float32)  # half the time, and six digits
    squares = wins**2
    chosen: list[int] = []
    for _ in range(min(n_more, wins.shape[1])):
        shares = softmax(z, axis=1)
        errors = weights[:, None] * (shares - truth)
        spreads = weights[:, None] * shares * (1.0 - shares)
        slopes = (wins.T @ errors.astype(np.float32)).astype(np.float64)
        bends = squares.T @ spreads.astype(np.float32) + 2.0 * l2
        gains = (slopes**2 / (2.0 * bends)).sum(axis=1)
        gains[chosen] = -np.inf
        best = int(gains.argmax())
        chosen.append(best)
        z = z - np.outer(wins[:, best], slopes[best] / bends[best])
    return np.array(chosen, dtype=np.intp)


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
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
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

    Returns
    -------
    Positions of the genes, the best first, chosen with all samples; and the held-out
    samples by true class and label (classes, classes) when as many genes are added,
    each fold choosing its own.
    """
    pool = np.arange(X.shape[1]) if allowed is None else allowed
    pool = np.setdiff1d(pool, panel.genes)
    places = places_in_sample(X, n_threads)
    sums = class_sums(places, codes, n_classes, fold + 1)
    every_part = np.arange(len(sums.sizes))
    pool_of = {
        k: sums.best_genes(_N_CANDIDATES, every_part[every_part != k + 1], pool)
        for k in fold_panels
    }
    pool_of[-1] = sums.best_genes(_N_CANDIDATES, among=pool)
    read = np.unique(np.concatenate(list(pool_of.values())))
    values = as_dense(X[:, panel.genes])
    others = as_dense(X[:, read])
    wins, _ = compare(others, values, np.zeros((0, len(panel.genes))))
    wins /= 2 * (len(panel.genes) + 1)
    own = np.arange(len(panel.genes))

    def choose(rows: NDArray, genes: NDArray, coef: NDArray) -> NDArray:
        columns = np.searchsorted(read, genes)
        coef, known = of_known_classes(coef, codes[rows])
        scores = vote_scores(values[rows], own, coef, compiled=True)
        chosen = best_additions(wins[np.ix_(rows, columns)], scores, known, N_MORE, L2)
        return columns[chosen]

    groups = sort_groups(np.column_stack([values, others]), n_threads)
    samples = RankedSamples(
        groups, codes, np.ones(len(codes)), n_classes, n_threads=n_threads
    )
    counts = np.zeros((n_classes, n_classes))
    for k, fold_panel in fold_panels.items():
        train = np.flatnonzero(fold != k)
        test = np.flatnonzero(fold == k)
        test = test[np.isin(codes[test], codes[train])]
        added = choose(train, pool_of[k], fold_panel.coef)
        columns = np.concatenate([own, len(own) + added])
        coef = samples.of_all_classes(train, columns, _TOL)
        scores = ranked_scores(groups, test, columns, coef, n_threads)
        np.add.at(counts, (codes[test], best_class(scores)), 1.0)
    genes = read[choose(np.arange(len(codes)), pool_of[-1], panel.coef)]
    return genes, counts


def _margins(scores: NDArray, codes: NDArray) -> NDArray:
    """The score of each sample's class minus the highest score of another."""
    z = by_class(scores).copy()
    rows = np.arange(len(z))
    own = z[rows, codes]
    z[rows, codes] = -np.inf
    return own - z.max(axis=1)


def _mean_loss(scores: NDArray, codes: NDArray) -> float:
    """The mean logistic loss of samples, all classes counted equally."""
    z = by_class(scores) if scores.shape[1] > 1 else by_class(scores) / 2
    z = z - z.max(axis=1, keepdims=True)
    each = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), codes]
    return float(mean_weights(codes) @ each)


def _correlations(first: NDArray, second: NDArray, codes: NDArray) -> NDArray:
    """Correlations of the columns of two matrices, all classes counted equally."""
    weights = np.sqrt(mean_weights(codes))[:, None]
    scaled = []
    for values in (first, second):
        centred = weights * (values - (weights**2 * values).sum(axis=0))
        length = np.sqrt((centred**2).sum(axis=0))
        scaled.append(centred / np.where(length > 0, length, 1.0))
    return scaled[0].T @ scaled[1]
