"""A model of fewer classes, made from one of more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.panel import panel_arrays
from optirank.model.linear import linear_model, linear_parts
from optirank.model.missing import MAX_MISSING, ClassLoss, lacking_classes

if TYPE_CHECKING:
    from collections.abc import Iterable


def subset(model: Any, classes: Iterable) -> Any:
    """The model restricted to some of its classes, which it then chooses among.

    Each class of a model of three or more has a problem of its own, against the rest, so the others
    can be left out without training again; the scores of those kept do not change. With two
    classes kept, the score is half the difference of theirs: the label is that of the higher score
    as before. A calibration is then dropped, since it was of the single scores.

    Parameters
    ----------
    model : a fitted linear classifier on ranks of three classes or more.
    classes : at least two of its labels; their order does not matter.

    Returns
    -------
    A fitted estimator of the same class; the model given is left as it is.
    """
    from sklearn.base import clone

    fitted = linear_model(model)
    parts = linear_parts(fitted)
    if parts.n_problems == 1:
        one, other = parts.classes.tolist()
        raise ValueError(
            f"this model tells {one!r} from {other!r} by one score: it has "
            "no classes to leave out; only models of three classes or more have one score per class"
        )
    kept = _positions(parts.classes, classes)
    rows = np.arange(parts.n_rows).reshape(parts.n_problems, -1)[kept].ravel()
    signs = np.ones(len(rows))
    if len(kept) == 2:  # the first class's rows count against
        rows = np.roll(rows, parts.rows_per_problem)
        signs[parts.rows_per_problem :] = -1.0

    small = clone(fitted)
    small.n_features_in_ = fitted.n_features_in_
    if hasattr(fitted, "feature_names_in_"):
        small.feature_names_in_ = fitted.feature_names_in_
    small.classes_ = fitted.classes_[kept]
    small._panel = panel_arrays(fitted).take(rows, signs)
    small.intercept_ = fitted.intercept_[rows] * signs
    for name in ("objective_", "n_iter_"):
        if hasattr(fitted, name):
            setattr(small, name, getattr(fitted, name)[rows])
    small.path_ = [fitted.path_[row] for row in rows] if fitted.path_ else []
    if hasattr(fitted, "training_summary_"):
        small.training_summary_ = fitted.training_summary_ | {"subset_of": fitted.classes_.tolist()}
    if hasattr(fitted, "calibration_") and len(kept) > 2:
        small.calibration_ = fitted.calibration_.subset(kept)
    return small


def without_lacking(
    model: Any, genes: Iterable[str] | None, max_missing: float = MAX_MISSING
) -> tuple[Any, tuple[ClassLoss, ...]]:
    """The model without the classes that lack too many of their genes, and what these lack.

    Where fewer than two classes would stay, the model is given back as it is.
    """
    lacking = lacking_classes(model, genes, max_missing)
    gone = [loss.label for loss in lacking]
    kept = [label for label in linear_model(model).classes_.tolist() if label not in gone]
    if not lacking or len(kept) < 2:
        return model, ()
    return subset(model, kept), lacking


def _positions(known: np.ndarray, classes: Iterable) -> np.ndarray:
    """Where the classes asked for are among those known, in the model's order."""
    asked = list(classes) if not isinstance(classes, str) else [classes]
    if strange := [label for label in asked if label not in known.tolist()]:
        raise ValueError(f"the model has no class {strange[0]!r}: its classes are {known.tolist()}")
    if len(set(asked)) < max(2, len(asked)):
        raise ValueError(f"classes={asked!r}: give at least two different classes of the model")
    return np.array([k for k, label in enumerate(known.tolist()) if label in asked])
