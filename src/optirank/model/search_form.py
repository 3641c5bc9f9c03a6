"""How a search over settings (OptirankClassifierCV) is stored: its best model, and its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.model.archive import Arrays, ModelFileError
from optirank.model.forms import (
    Document,
    Form,
    describe_extras,
    describe_linear,
    describe_parameters,
    member,
    rebuild_linear,
    rebuild_parameters,
)
from optirank.model.linear import linear_model
from optirank.model.values import decode, encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FOUND = ("best_params_", "best_index_", "best_score_", "folds_")
_ADOPTED = ("_panel", "intercept_", "objective_", "n_iter_")


def describe_search(model: Any) -> tuple[Document, dict[str, NDArray]]:
    """The best model as it would be stored itself, and what the search found."""
    best = linear_model(model)
    document, arrays = describe_linear(best)
    document |= describe_extras(model)
    found: dict[str, Any] = {name: getattr(model, name) for name in _FOUND}
    results = model.cv_results_
    per_class = isinstance(model.best_index_, dict)
    found["cv_results_"] = (
        {label: _without_params(one) for label, one in results.items()}
        if per_class
        else _without_params(results)
    )
    try:
        parameters = describe_parameters(model)
    except TypeError as error:
        raise TypeError(f"{error}; model.best_estimator_ can be saved instead") from error
    return {"parameters": parameters, "search": encode(found), "best": document}, arrays


def rebuild_search(cls: type, document: Document, arrays: Arrays) -> Any:
    """The search, with its best model fitted."""
    from optirank.estimators.optirank import OptirankClassifier

    model = rebuild_parameters(cls, document)
    best = rebuild_linear(OptirankClassifier, member(document, "best", dict), arrays)
    found = decode(document.get("search"))
    if not isinstance(found, dict) or set(found) != {*_FOUND, "cv_results_"}:
        raise ModelFileError("the results of the search are incomplete")
    for name in _FOUND:
        setattr(model, name, found[name])
    results = found["cv_results_"]
    if not isinstance(results, dict):
        raise ModelFileError("the results of the search are no table")
    if isinstance(found["best_index_"], dict):
        model.cv_results_ = {label: _with_params(one) for label, one in results.items()}
    else:
        model.cv_results_ = _with_params(results)
    model.best_estimator_ = best
    model.classes_ = best.classes_
    model.n_features_in_ = best.n_features_in_
    if hasattr(best, "feature_names_in_"):
        model.feature_names_in_ = best.feature_names_in_
    for name in _ADOPTED:
        setattr(model, name, getattr(best, name))
    return model


def _without_params(results: dict) -> dict:
    """The results without the ``param_...`` arrays, which repeat ``params``."""
    return {key: value for key, value in results.items() if not key.startswith("param_")}


def _with_params(results: Any) -> dict:
    """The results in scikit-learn's shape: the ``param_...`` arrays come before ``params``."""
    params = results.get("params") if isinstance(results, dict) else None
    if not isinstance(params, list) or not params or not all(isinstance(p, dict) for p in params):
        raise ModelFileError("the results of the search have no settings")
    full: dict = {}
    for key, value in results.items():
        if key == "params":
            for name in params[0]:
                values = [setting.get(name) for setting in params]
                full[f"param_{name}"] = np.ma.masked_array(values, mask=False, dtype=object)
        full[key] = value
    return full


SEARCH = Form(
    "OptirankClassifierCV", "optirank.estimators.optirank_cv", describe_search, rebuild_search
)
