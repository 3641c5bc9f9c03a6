"""The shares of the classes that probabilities suppose, where these are not equal.

A model's probabilities are those of a query in which every class is equally frequent. With shares
``pi_k`` of K classes they become ``p_k pi_k / sum_m p_m pi_m`` (Bayes' rule), and the label is then
the most probable class: a prior that is chosen may move labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.panel import carried
from optirank.model.linear import linear_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRIORS = ("balanced", "training")
Prior = str | Mapping[Any, float]


def class_shares(model: Any, prior: Prior) -> dict[Any, float] | None:
    """The share of each class of a model; None where all count the same.

    Parameters
    ----------
    model : a fitted linear classifier on ranks.
    prior : ``"balanced"``; ``"training"``, the shares of the classes in the training data; or a
        mapping from every class (itself, or as text) to its share, or to a number of samples.
    """
    if isinstance(prior, str):
        if prior == "balanced":
            return None
        if prior != "training":
            raise ValueError(
                f"prior={prior!r} is not known: use 'balanced', 'training' or a mapping of classes "
                "to shares"
            )
        prior = _training_counts(model)
    classes = linear_model(model).classes_.tolist()
    given = {str(label): share for label, share in prior.items()}
    if missing := [label for label in classes if str(label) not in given]:
        raise ValueError(
            f"the prior has no share for {len(missing)} of the {len(classes)} classes, such as "
            f"{missing[0]!r}: give one for every class of the model, 0 for those that are absent"
        )
    if unknown := sorted(set(given) - set(map(str, classes))):
        raise ValueError(
            f"the prior has a share for {unknown[0]!r}, which is not a class of the model: its "
            f"classes are {classes}"
        )
    shares = {label: _number(label, given[str(label)]) for label in classes}
    total = sum(shares.values())
    if total <= 0:
        raise ValueError("the shares of the prior are all 0: give some class a positive one")
    return {label: share / total for label, share in shares.items()}


def with_shares(probabilities: NDArray, shares: NDArray) -> NDArray:
    """Balanced probabilities (n, classes) under other shares of the classes."""
    each = probabilities * shares
    total = each.sum(axis=1, keepdims=True)
    equal = np.tile(shares / shares.sum(), (len(each), 1))  # only classes of share 0 were possible
    return np.divide(each, total, out=equal, where=total > 0)


def _training_counts(model: Any) -> Mapping[Any, float]:
    counts = (carried(model, "training_summary_") or {}).get("class_counts")
    if not isinstance(counts, dict):
        raise ValueError(
            "prior='training': the model does not know how many samples of each class it was "
            "trained on; give the shares themselves"
        )
    kept = set(
        map(str, linear_model(model).classes_.tolist())
    )  # a subset knows the counts of all classes
    return {label: count for label, count in counts.items() if str(label) in kept}


def _number(label: Any, share: Any) -> float:
    try:
        number = float(share)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < np.inf:
        raise ValueError(f"the prior share of {label!r} is {share!r}: use a number of at least 0")
    return number
