"""How a vote of pairs of genes (TopScoringPairsClassifier) is stored."""

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
    rebuild_parameters,
)
from optirank.model.values import encode, encode_array

if TYPE_CHECKING:
    from numpy.typing import NDArray


def describe_pairs(model: Any) -> tuple[Document, dict[str, NDArray]]:
    """The pairs with their signs and scores, and the names of all genes."""
    names = getattr(model, "feature_names_in_", None)
    document = {
        "parameters": describe_parameters(model),
        "classes": encode_array(model.classes_),
        "n_features": int(model.n_features_in_),
        "n_pairs": len(model.pairs_),
        "genes": None if names is None else names.tolist(),
    }
    document |= describe_extras(model)
    arrays = {
        "k": model.k_.astype(np.int64),
        "pairs": model.pairs_.astype(np.int64),
        "signs": model.signs_,
        "scores": model.scores_,
    }
    return document, arrays


def rebuild_pairs(cls: type, document: Document, arrays: Arrays) -> Any:
    """The classifier."""
    parameters = {"ties": encode("min")} | member(document, "parameters", dict)  # as it once was
    model = rebuild_parameters(cls, document | {"parameters": parameters})
    if model.ties not in ("average", "min"):
        raise ModelFileError(f"ties={model.ties!r} is not a way to vote")
    classes = rebuild_classes(document)
    n_features, n_pairs = (member(document, key, int) for key in ("n_features", "n_pairs"))
    n_problems = 1 if len(classes) == 2 else len(classes)
    if not n_problems <= n_pairs <= n_problems * n_features or n_features > MAX_ENTRIES:
        raise ModelFileError(f"{n_pairs} pairs of {n_features} genes are no model")
    names = rebuild_names(document, n_features)
    k = arrays.take("k", ("int64",), (n_problems,))
    pairs = arrays.take("pairs", ("int64",), (n_pairs, 2))
    if k.min() < 1 or k.sum() != n_pairs:
        raise ModelFileError("the numbers of pairs of the classes do not add up")
    if pairs.min() < 0 or pairs.max() >= n_features:
        raise ModelFileError("a pair has a gene that is not there")
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise ModelFileError("a pair compares a gene with itself")
    signs = arrays.take("signs", ("float64",), (n_pairs,))
    if not np.isin(signs, (-1.0, 1.0)).all():
        raise ModelFileError("a pair votes neither for its class nor for the rest")
    model.n_features_in_ = n_features
    if names is not None:
        model.feature_names_in_ = names
    model.classes_, model.k_, model.pairs_, model.signs_ = classes, k, pairs, signs
    model.scores_ = arrays.take("scores", ("float64",), (n_pairs,))
    if not ((model.scores_ >= 0) & (model.scores_ <= 1 + 1e-9)).all():
        raise ModelFileError("the score of a pair lies outside [0, 1]")
    model.genes_ = np.zeros(n_features, dtype=bool)
    model.genes_[pairs] = True
    rebuild_extras(model, document, n_problems)
    return model


PAIRS = Form(
    "TopScoringPairsClassifier", "optirank.estimators.top_pairs", describe_pairs, rebuild_pairs
)
