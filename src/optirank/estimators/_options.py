"""Checks of estimators' options, before any work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.transformer import reference_positions
from optirank.solver.sizes import is_number

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    Member = tuple[float, float, float]  # n_reference, l1, l2


def check_options(estimator: BaseEstimator, choices: dict[str, tuple]) -> None:
    """Refuse penalties, tolerances and options that make no sense, naming value and remedy."""
    for name in ("l1", "l2", "l1s", "l2s"):
        given = getattr(estimator, name, ())
        for value in given if _several(given) else [given]:
            if not is_number(value) or not 0 <= value < np.inf:
                raise ValueError(
                    f"{name}={given!r}: {value!r} is no penalty, use finite numbers of at least 0"
                )
    if not is_number(estimator.tol) or not 0 < estimator.tol < 1:
        raise ValueError(f"tol={estimator.tol!r}: use a number between 0 and 1, such as 1e-5")
    for name in ("max_iter", "path_step"):
        value = getattr(estimator, name, 1)
        if not is_number(value) or not 1 <= value < np.inf:
            raise ValueError(f"{name}={value!r}: use a finite number of at least 1")
    for name, allowed in choices.items():
        value = getattr(estimator, name)
        if value not in allowed:
            raise ValueError(
                f"{name}={value!r} is not known: use one of {', '.join(map(repr, allowed))}"
            )
    weight = estimator.class_weight
    if weight is not None and weight != "balanced" and not isinstance(weight, dict):
        raise ValueError(
            f"class_weight={weight!r}: use 'balanced', None or a dict of one weight per class"
        )
    platforms = getattr(estimator, "n_platforms", 0)
    if isinstance(platforms, bool) or not isinstance(platforms, int | np.integer) or platforms < 0:
        raise ValueError(f"n_platforms={platforms!r}: use a count of at least 0")


def check_shared_reference(estimator: BaseEstimator, sides: tuple[str, ...]) -> None:
    """Refuse options that one reference set for all classes does not have."""
    if not isinstance(estimator.shared_reference, bool | np.bool_):
        raise ValueError(
            f"shared_reference={estimator.shared_reference!r}: use True (one reference set for all "
            "classes) or False (one per class)"
        )
    if not estimator.shared_reference:
        return
    algorithm = getattr(estimator, "algorithm", "alternating")
    given = [("algorithm", algorithm, "alternating"), *(("side", side, "best") for side in sides)]
    for name, value, needed in given:
        if value != needed:
            raise ValueError(
                f"{name}={value!r} with shared_reference=True: one reference set for all classes "
                f"has {name}={needed!r} alone, use that or shared_reference=False"
            )


def check_whole_panel(estimator: BaseEstimator) -> None:
    """Refuse options that a model of the whole panel does not have."""
    if not isinstance(estimator.whole_panel, bool | np.bool_):
        raise ValueError(f"whole_panel={estimator.whole_panel!r}: use True or False")
    for name in ("integral", "refit"):
        if estimator.whole_panel and not getattr(estimator, name, True):
            raise ValueError(
                f"{name}=False with whole_panel=True: the weights of the whole panel are fitted to "
                f"convergence at a set, use {name}=True or whole_panel=False"
            )


def candidate_mask(estimator: BaseEstimator, n_genes: int) -> NDArray | None:
    """Mask of the genes that may be in the reference, None for all; n_features_in_ is known."""
    given = estimator.reference_candidates
    if given is None:
        return None
    names = getattr(estimator, "feature_names_in_", None)
    mask = np.zeros(n_genes, dtype=bool)
    mask[reference_positions(given, n_genes, names, "reference_candidates")] = True
    if not mask.any():
        raise ValueError(
            "reference_candidates is empty: name at least one gene, or use None for all genes"
        )
    return mask


def averaged_members(n_reference: object, l1: object, l2: object) -> list[Member]:
    """The settings of the models that are averaged: one, or one per entry of the sequences."""
    given = {"n_reference": n_reference, "l1": l1, "l2": l2}
    lengths = {name: len(value) for name, value in given.items() if _several(value)}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        words = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise ValueError(
            f"{words}: sequences name one value per averaged model, so use equal lengths of at "
            "least 1"
        )
    count = next(iter(lengths.values()), 1)
    columns = [value if _several(value) else [value] * count for value in given.values()]
    return list(zip(*columns, strict=True))


def _several(value: object) -> bool:
    return isinstance(value, list | tuple | np.ndarray)
