"""What estimators take as X, an array, a sparse matrix or a data frame whose names are
matched, and as weights of classes.
"""

from __future__ import annotations

from collections import Counter
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import validate_data

from optirank._util.words import some

POSITIVE = Interval(Real, 0, None, closed="neither")
CLASS_WEIGHT = [StrOptions({"balanced"}), dict, None]


def weights_of_classes(given: dict, classes: NDArray) -> NDArray:
    """The weight of each class, 1 where the dict has no entry."""
    labels = classes.tolist()
    if unknown := [label for label in given if label not in labels]:
        raise ValueError(
            f"class_weight names {unknown[0]!r}, which is not a class of y: the "
            f"classes are {some(labels, 20)}"
        )
    positive = {label: [POSITIVE] for label in given}
    validate_parameter_constraints(positive, given, "class_weight")
    return np.array([float(given.get(label, 1.0)) for label in labels])


_SPARSE: Any = ("csr", "csc")


def data_for_fitting(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """X and y as arrays, with scikit-learn's checks; sets ``n_features_in_`` and
    the names.
    """
    refuse_anndata(X)
    checked: Any = validate_data(estimator, X, y, accept_sparse=_SPARSE)
    return checked


def data_for_scoring(
    estimator: Any, X: Any, needed: NDArray
) -> tuple[Any, NDArray[np.intp]]:
    """The values to score, and the columns among them that hold the needed genes
    (positions).

    Columns of a data frame are matched with ``feature_names_in_`` by their names: they
    may have another order, others may stand among them, and only the needed genes must
    be there.
    """
    refuse_anndata(X)
    names = getattr(estimator, "feature_names_in_", None)
    columns = getattr(X, "columns", None)
    if names is None or columns is None or list(columns) == list(names):
        values = validate_data(estimator, X, accept_sparse=_SPARSE, reset=False)
        return values, needed
    part = _columns_by_name(X, names[needed], type(estimator).__name__)
    return check_array(part, accept_sparse=_SPARSE), np.arange(len(needed))


def refuse_anndata(X: Any) -> None:
    """A TypeError for an AnnData, which is not a matrix, that names what takes one."""
    if any(kind.__name__ == "AnnData" for kind in type(X).__mro__):
        raise TypeError(
            "X is an AnnData, and estimators take a matrix or a data frame: use "
            "optirank.tl.train(adata, label=...) and optirank.tl.annotate, or adata.X"
        )


def _columns_by_name(frame: Any, genes: NDArray, estimator: str) -> Any:
    """The columns of a data frame with these names, in their order."""
    counts = Counter(frame.columns)
    missing = [str(gene) for gene in genes if gene not in counts]
    if missing:
        raise ValueError(
            f"X lacks {len(missing)} of the {len(genes)} genes that this {estimator} "
            f"needs: {some(missing, 5, quoted=True)}. Give a data frame with these "
            "columns, or train on the genes that there are"
        )
    repeated = [gene for gene in genes if counts[gene] > 1]
    if repeated:
        raise ValueError(
            f"X has {counts[repeated[0]]} columns named {repeated[0]!r}: keep one of "
            "them"
        )
    return frame[list(genes)]
