"""A model of fewer classes, made from one of more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optirank.model.linear import linear_model
from optirank.model.missing import MAX_MISSING, ClassLoss, lacking_classes

if TYPE_CHECKING:
    from collections.abc import Iterable


def subset(model: Any, classes: Iterable) -> Any:
    """The model restricted to some of its classes: ``model.subset(classes)``, of a search too.

    Parameters
    ----------
    model : a fitted linear classifier on ranks of three classes or more.
    classes : at least two of its labels; their order does not matter.

    Returns
    -------
    A fitted estimator of the same class; the model given is left as it is.
    """
    return linear_model(model).subset(classes)


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
