"""How a linear classifier on values (ElasticNetLogisticRegression) is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.panel import PanelArrays
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
    """The weights of the genes that are needed, the names of all, and what the model carries."""
    panel = np.flatnonzero(model.genes_)
    names = getattr(model, "feature_names_in_", None)
    document = {
        "parameters": describe_parameters(model),
        "classes": encode_array(model.classes_),
        "n_features": int(model.n_features_in_),
        "n_rows": len(model.intercept_),
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
    """The classifier, which holds the columns of the genes that are needed alone."""
    model = rebuild_parameters(cls, document)
    classes = rebuild_classes(document)
    n_features, n_panel = (member(document, key, int) for key in ("n_features", "n_panel"))
    n_problems = 1 if len(classes) == 2 else len(classes)
    n_rows = document.get("n_rows", n_problems)
    if type(n_rows) is not int or n_rows not in (n_problems, len(classes)):
        raise ModelFileError(f"{n_rows!r} rows of weights do not fit {len(classes)} classes")
    if not 0 <= n_panel <= n_features or n_features < 1 or n_rows * n_features > MAX_ENTRIES:
        raise ModelFileError(f"{n_rows} rows of {n_panel} out of {n_features} genes are no model")
    total = model.target_sum
    if total is not None and (type(total) not in (int, float) or not 0 < total < np.inf):
        raise ModelFileError(f"target_sum={total!r} is not a positive number")
    if total is not None and n_panel < n_features:
        raise ModelFileError(f"{n_panel} of {n_features} genes, where all are in the total")
    names = rebuild_names(document, n_features)
    panel = rebuild_panel(arrays, n_panel, n_features)
    model.n_features_in_ = n_features
    if names is not None:
        model.feature_names_in_ = names
    model.classes_ = classes
    coef = arrays.take("coef", ("float64",), (n_rows, n_panel))
    model.intercept_ = arrays.take("intercept", ("float64",), (n_rows,))
    model.objective_ = arrays.take("objective", ("float64",), (n_rows,))
    model.n_iter_ = arrays.take("n_iter", ("int64",), (n_rows,))
    means = arrays.take("means", ("float64",), coef.shape) if "means" in arrays else None
    counted = np.full(coef.shape, 0.0 if total is None else 1.0)
    model._panel = PanelArrays(panel, n_features, coef, counted, means).trimmed()
    rebuild_extras(model, document, n_problems)
    return model


VALUES = Form(
    "ElasticNetLogisticRegression", "optirank.estimators.logistic", describe_values, rebuild_values
)
