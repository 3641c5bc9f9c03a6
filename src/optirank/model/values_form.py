"""How a linear classifier on values (ElasticNetLogisticRegression) is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.model.archive import Arrays, ModelFileError
from optirank.model.forms import (
    MAX_ENTRIES,
    Document,
    Form,
    describe_extras,
    describe_parameters,
    member,
    rebuild_classes,
    rebuild_extras,
    rebuild_names,
    rebuild_panel,
    rebuild_parameters,
)
from optirank.model.values import encode_array

if TYPE_CHECKING:
    from numpy.typing import NDArray


def describe_values(model: Any) -> tuple[Document, dict[str, NDArray]]:
    """The weights of the genes that have one, the names of all, and what the model carries."""
    panel = np.flatnonzero((model.coef_ != 0).any(axis=0))
    names = getattr(model, "feature_names_in_", None)
    document = {
        "parameters": describe_parameters(model),
        "classes": encode_array(model.classes_),
        "n_features": int(model.n_features_in_),
        "n_panel": len(panel),
        "genes": None if names is None else names.tolist(),
    }
    document |= describe_extras(model)
    arrays = {
        "panel": panel.astype(np.int32),
        "coef": model.coef_[:, panel],
        "intercept": model.intercept_,
        "objective": model.objective_,
        "n_iter": model.n_iter_.astype(np.int64),
    }
    if hasattr(model, "mean_ranks_"):
        arrays["means"] = model.mean_ranks_[:, panel]
    return document, arrays


def rebuild_values(cls: type, document: Document, arrays: Arrays) -> Any:
    """The classifier, all its columns in place."""
    model = rebuild_parameters(cls, document)
    classes = rebuild_classes(document)
    n_features, n_panel = (member(document, key, int) for key in ("n_features", "n_panel"))
    n_rows = 1 if len(classes) == 2 else len(classes)
    if not 0 <= n_panel <= n_features or n_features < 1 or n_rows * n_features > MAX_ENTRIES:
        raise ModelFileError(f"{n_rows} rows of {n_panel} out of {n_features} genes are no model")
    total = model.target_sum
    if total is not None and (type(total) not in (int, float) or not 0 < total < np.inf):
        raise ModelFileError(f"target_sum={total!r} is not a positive number")
    names = rebuild_names(document, n_features)
    panel = rebuild_panel(arrays, n_panel, n_features)
    model.n_features_in_ = n_features
    if names is not None:
        model.feature_names_in_ = names
    model.classes_ = classes
    model.coef_ = np.zeros((n_rows, n_features))
    model.coef_[:, panel] = arrays.take("coef", ("float64",), (n_rows, n_panel))
    model.intercept_ = arrays.take("intercept", ("float64",), (n_rows,))
    model.objective_ = arrays.take("objective", ("float64",), (n_rows,))
    model.n_iter_ = arrays.take("n_iter", ("int64",), (n_rows,))
    counted = 0.0 if model.target_sum is None else 1.0
    model.reference_weights_ = np.full((n_rows, n_features), counted)
    model.reference_ = model.reference_weights_ > 0
    model.genes_ = (model.reference_ | (model.coef_ != 0)).any(axis=0)
    if "means" in arrays:
        model.mean_ranks_ = np.zeros((n_rows, n_features))
        model.mean_ranks_[:, panel] = arrays.take("means", ("float64",), (n_rows, n_panel))
    rebuild_extras(model, document, n_rows)
    return model


VALUES = Form(
    "ElasticNetLogisticRegression", "optirank.estimators.logistic", describe_values, rebuild_values
)
