"""Votes of pairs of genes: what a pair says, mean votes, and shares of votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.ranks.scoring import by_class

if TYPE_CHECKING:
    from numpy.typing import NDArray


def is_vote(model: Any) -> bool:
    """Whether a fitted model is a vote of pairs of genes (k-TSP)."""
    return hasattr(model, "signs_") and hasattr(model, "pairs_")


def pair_votes(first: NDArray, second: NDArray, signs: NDArray, ties: str) -> NDArray:
    """Votes of pairs (a, b) by the values of both genes, samples x pairs.

    1 for the class, -1 for the rest: the sign where ``x_a > x_b``, else its opposite. With
    ``ties="average"`` a pair of equal values has the vote 0.
    """
    votes = np.where(first > second, signs, -signs)
    return np.where(first == second, 0.0, votes) if ties == "average" else votes


def tie_break(k: int | NDArray) -> float | NDArray:
    """The part of the votes weighted by scores that decides between equal votes.

    Mean votes of at most k pairs that differ do so by ``1 / k^2`` or more.
    """
    return 1.0 / (4.0 * k**2)


def vote_shares(scores: NDArray, k: int) -> NDArray:
    """Probabilities from mean votes of at most k pairs, one column per class.

    The shares of votes ``(1 + score) / 2``, divided by their sum for more than two classes. A class
    of score minus infinity, which the training samples of a fold lacked, has probability 0.
    """
    shares = 1.0 + by_class(scores) / (1.0 + 2.0 * tie_break(k))  # above 0, in the scores' order
    shares = np.maximum(shares, 0.0)
    return shares / shares.sum(axis=1, keepdims=True)
