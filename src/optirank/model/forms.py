"""How each class of estimator is stored in a model file, and built again from it.

A :class:`Form` says so for one class; a new estimator registers its own with :func:`register`. The
file names the class, and only registered ones are ever built: no name from a file is imported.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.estimators.panel import PanelArrays
from optirank.estimators.summary import TrainingSummary
from optirank.model.archive import Arrays, ModelFileError
from optirank.model.calibration import Calibration, is_old_calibration
from optirank.model.experience import Experience
from optirank.model.linear import linear_parts
from optirank.model.promises import Rejection
from optirank.model.values import (
    check_strings,
    decode,
    decode_array,
    encode,
    encode_array,
)
from optirank.ranks.definition import TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_ENTRIES = 1 << 25  # weights, over all rows and genes: a quarter of a gigabyte
_MAX_NAMELESS = 1 << 20  # genes that are only counted; names take room in the file themselves
_ROWS = (1, 2, 4)  # solutions of one problem: two sides, of each of the two classes left by subset

Document = dict[str, Any]


@dataclass(frozen=True)
class Form:
    """How one class is stored.

    ``describe(model)`` gives a JSON-able document and the arrays; ``rebuild(cls, document,
    arrays)`` checks both and gives the model back, a ValueError saying what is wrong.
    """

    name: str
    module: str
    describe: Callable[[Any], tuple[Document, dict[str, NDArray]]]
    rebuild: Callable[[type, Document, Arrays], Any]

    def load_class(self) -> type:
        """The class, imported."""
        return getattr(importlib.import_module(self.module), self.name)


FORMS: dict[str, Form] = {}

REFUSED = {
    "SingleCellNetClassifier": (
        "its random forest has no form without pickles, which could run code when a file is opened;"
        " fit it again from the data, or train an OptirankClassifier to share a model"
    ),
}


def register(form: Form) -> None:
    """Let models of a class be saved and loaded."""
    FORMS[form.name] = form


def form_of(model: Any) -> Form:
    """The form of a model's class, or a TypeError that says why there is none."""
    name = type(model).__name__
    form = FORMS.get(name)
    if form is not None and type(model) is form.load_class():
        return form
    why = REFUSED.get(name, f"known are {', '.join(sorted(FORMS))}")
    raise TypeError(f"a {name} cannot be saved: {why}")


def describe_parameters(model: Any) -> Document:
    """The parameters of an estimator as JSON, naming one that cannot be stored."""
    stored = {}
    for name, value in model.get_params(deep=False).items():
        try:
            stored[name] = encode(value)
        except TypeError as error:
            raise TypeError(f"the parameter {name} cannot be saved: {error}") from error
    return stored


def rebuild_parameters(cls: type, document: Document) -> Any:
    """An unfitted estimator; parameters that the file does not have keep their defaults."""
    stored = member(document, "parameters", dict)
    known = inspect.signature(cls).parameters
    if unknown := sorted(set(stored) - set(known)):
        raise ModelFileError(f"{cls.__name__} has no parameter {unknown[0]!r}")
    return cls(**{name: decode(value) for name, value in stored.items()})


def describe_linear(model: Any) -> tuple[Document, dict[str, NDArray]]:
    """A linear classifier on ranks: its panel's columns, and the names of all genes."""
    parts = linear_parts(model)
    names = parts.names
    gamma = parts.reference_weights
    document = {
        "parameters": describe_parameters(model),
        "classes": encode_array(parts.classes),
        "n_features": parts.n_features,
        "n_rows": parts.n_rows,
        "n_panel": len(parts.positions),
        "genes": None if names is None else names.tolist(),
        "path": encode(model.path_),
    }
    document |= describe_extras(model)
    arrays = {
        "panel": parts.positions.astype(np.int32),
        "coef": parts.coef,
        "reference": gamma > 0 if np.isin(gamma, (0.0, 1.0)).all() else gamma,
        "intercept": parts.intercept,
        "objective": np.asarray(model.objective_),
        "n_iter": np.asarray(model.n_iter_).astype(np.int64),
    }
    if parts.mean_ranks is not None:
        arrays["mean_ranks"] = parts.mean_ranks
    return document, arrays


def describe_extras(model: Any) -> Document:
    """What the model carries beyond its fit, as JSON."""
    return {
        key: to_plain(getattr(model, f"{key}_"))
        for key, (to_plain, _) in _EXTRAS.items()
        if hasattr(model, f"{key}_")
    }


def rebuild_linear(cls: type, document: Document, arrays: Arrays) -> Any:
    """A linear classifier on ranks, which holds its panel's columns alone."""
    model = rebuild_parameters(cls, document)
    if model.ties not in TIES:
        raise ModelFileError(f"ties={model.ties!r} is not a way to rank ties")
    classes = rebuild_classes(document)
    n_features, n_rows, n_panel = (
        member(document, key, int) for key in ("n_features", "n_rows", "n_panel")
    )
    if not 1 <= n_panel <= n_features or n_rows < 1 or n_rows * n_features > MAX_ENTRIES:
        raise ModelFileError(f"{n_rows} rows of {n_panel} out of {n_features} genes are no model")
    n_problems = 1 if len(classes) == 2 else len(classes)
    if n_rows % n_problems or n_rows // n_problems not in _row_counts(model):
        raise ModelFileError(f"{n_rows} rows of weights do not fit {len(classes)} classes")
    names = rebuild_names(document, n_features)

    panel = rebuild_panel(arrays, n_panel, n_features)
    matrix = (n_rows, n_panel)
    coef = arrays.take("coef", ("float64",), matrix)
    gamma = arrays.take("reference", ("bool", "float64"), matrix).astype(np.float64)
    if gamma.min() < 0 or gamma.max() > 1:
        raise ModelFileError("reference weights lie outside [0, 1]")
    if not gamma.any(axis=1).all():
        raise ModelFileError("a row of the model has no reference genes")

    model.n_features_in_ = n_features
    if names is not None:
        model.feature_names_in_ = names
    model.classes_ = classes
    model.intercept_ = arrays.take("intercept", ("float64",), (n_rows,))
    model.objective_ = arrays.take("objective", ("float64",), (n_rows,))
    model.n_iter_ = arrays.take("n_iter", ("int64",), (n_rows,))
    model.path_ = decode(member(document, "path", list))
    means = arrays.take("mean_ranks", ("float64",), matrix) if "mean_ranks" in arrays else None
    model._panel = PanelArrays(panel, n_features, coef, gamma, means).trimmed()
    rebuild_extras(model, document, n_problems)
    if is_old_calibration(document.get("calibration")):
        _forget_confidences(model)
    return model


def rebuild_extras(model: Any, document: Document, n_problems: int) -> None:
    """Give the model back what it carried beyond its fit."""
    for key, (_, build) in _EXTRAS.items():
        if document.get(key) is not None:
            setattr(model, f"{key}_", build(document[key], n_problems))


def _forget_confidences(model: Any) -> None:
    """Drop what was derived from confidences that the first kind of calibration gave.

    Its labels and probabilities were others, so neither its threshold nor its record of held-out
    samples says how often labels are wrong now.
    """
    vars(model).pop("rejection_", None)
    if hasattr(model, "training_summary_"):
        model.training_summary_.pop("held_out", None)


def _row_counts(model: Any) -> set[int]:
    """How many rows one problem can have; an average has as many as its longest sequence."""
    given = [getattr(model, name, None) for name in ("n_reference", "l1", "l2")]
    averaged = max(len(one) if isinstance(one, list | tuple) else 1 for one in given)
    return {averaged * rows for rows in _ROWS}


def rebuild_panel(arrays: Arrays, n_panel: int, n_features: int) -> NDArray:
    """The positions of the panel's genes."""
    panel = arrays.take("panel", ("int32",), (n_panel,))
    if n_panel and (panel[0] < 0 or panel[-1] >= n_features or (np.diff(panel) <= 0).any()):
        raise ModelFileError("the panel's positions are not increasing positions of genes")
    return panel


def rebuild_classes(document: Document) -> NDArray:
    """The labels, two or more."""
    classes = decode_array(document.get("classes"))
    if len(classes) < 2 or len(np.unique(classes)) < len(classes):
        raise ModelFileError("the classes are not two or more distinct labels")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ModelFileError("a class is NaN or infinite")
    return classes


def rebuild_names(document: Document, n_features: int) -> NDArray | None:
    """The names of all genes, None where the training data had none."""
    names = document.get("genes")
    if names is None:
        if n_features > _MAX_NAMELESS:
            raise ModelFileError(
                f"{n_features} genes without names, more than the {_MAX_NAMELESS} allowed"
            )
        return None
    check_strings(names, "genes")
    if len(names) != n_features:
        raise ModelFileError(f"{len(names)} gene names for {n_features} genes")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))
        raise ModelFileError(
            f"the gene name {twice!r} is there more than once: genes need names of their own"
        )
    return np.array(names, dtype=object)


def member(document: Document, key: str, kind: type) -> Any:
    """An entry of the document, of the type it should have."""
    value = document.get(key)
    if type(value) is not kind:
        raise ModelFileError(f"model.json has no {key} of the right type")
    return value


def _rebuild_summary(stored: Any, _: int) -> dict:
    summary = decode(stored)
    if not isinstance(summary, dict):
        raise ModelFileError("the training summary is not a dictionary")
    return TrainingSummary(summary)


# What a model may carry beyond its fit: attribute without underscore -> (to JSON, from JSON).
_EXTRAS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, int], Any]]] = {
    "training_summary": (encode, _rebuild_summary),
    "calibration": (Calibration.to_plain, Calibration.from_plain),
    "rejection": (Rejection.to_plain, Rejection.from_plain),
    "experience": (Experience.to_plain, Experience.from_plain),
}

for _name, _module in (
    ("OptirankClassifier", "optirank.estimators.optirank"),
    ("RankLogisticRegression", "optirank.estimators.rank_logistic"),
    ("AnovaRankLogisticRegression", "optirank.estimators.anova_rank"),
):
    register(Form(_name, _module, describe_linear, rebuild_linear))
