"""The model file: a zip of ``model.json`` and arrays, from which nothing can run.

``model.json`` holds the schema version, the version of optirank that wrote it, the class, its
parameters, the labels, the names of the training data's genes and what the model stores of its
training; each array (``.npy``) holds weights, for the genes of the panel alone. Only the classes
listed here are ever built: no name from a file is imported.
"""

from __future__ import annotations

import inspect
import io
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import optirank
from optirank._util.files import write_bytes
from optirank._util.names import printable
from optirank.model.archive import (
    Archive,
    ModelFileError,
    decode,
    encode,
    write_archive,
)
from optirank.model.catalogue import find_model
from optirank.model.confidence import Calibration, ErrorControl
from optirank.model.linear import linear_model, linear_parts
from optirank.model.novelty import Novelty
from optirank.ranks.relative import TIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA = 3
_FORMAT = "optirank-model"
_MAX_ENTRIES = 1 << 24  # weights over all rows and genes: 128 MiB

Document = dict[str, Any]


def save(model: Any, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a fitted model to a file that :func:`load` gives back.

    The same model gives the same bytes. The file is written under another name and renamed, so a
    reader never sees half of it.

    Parameters
    ----------
    model : PanelClassifier, OptirankClassifier, OptirankClassifierCV, RankLogisticRegression or
        AnovaRankLogisticRegression, fitted.
    path : the file.
    overwrite : whether a file that exists may be replaced.

    Raises
    ------
    FileExistsError
        Where the file exists and ``overwrite`` is not given.
    TypeError
        For a model that has no form in a file, such as SingleCellNetClassifier.
    """
    from sklearn.utils.validation import check_is_fitted

    name = type(model).__name__
    if name not in _FORMS or type(model) is not getattr(optirank, name):
        raise TypeError(
            f"a {name} cannot be saved: known are {', '.join(_FORMS)}. A model file holds no "
            "pickles, which could run code: fit it again from the data, or train a PanelClassifier"
        )
    check_is_fitted(model)
    path = Path(path)
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists: name another file, or replace it (overwrite=True)"
        )
    document, arrays = _FORMS[name][0](model)
    versions = {"format": _FORMAT, "schema": SCHEMA, "optirank": optirank.__version__}
    content = write_archive(versions | {"class": name} | document, arrays)
    try:
        _read(Archive(io.BytesIO(content)))  # what could not be opened is not written
    except Exception as error:  # as for a damaged file
        raise ValueError(f"this model cannot be saved: {error}") from error
    write_bytes(path, content)


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file written by :func:`save`, or a shipped one; no code of a file's can run.

    Parameters
    ----------
    path : a file, or the name of a model, such as ``"pancreas-human"``: ``optirank models`` lists
        them, with those in the folder that the variable ``OPTIRANK_MODELS`` names.

    Returns
    -------
    The fitted estimator, of the class that was saved. Its predictions equal those of the saved
    one bit for bit.

    Raises
    ------
    ModelFileError
        A ValueError that names the file and what is wrong with it.
    FileNotFoundError
        Where there is no such file, nor a model of this name.
    """
    path = find_model(path)
    with open(path, "rb") as file, _damage(path):
        return _read(Archive(file))


def read_summary(path: Path) -> dict[str, Any]:
    """What a model file says of itself, without building the model.

    The ``training_summary_``, with ``classes`` and ``n_panel``.
    """
    with open(path, "rb") as file, _damage(path):
        document = _document(Archive(file))
        summary = decode(document.get("training_summary", {}))
        classes = decode(document.get("classes"))
        return dict(summary) | {
            "classes": list(classes),
            "n_panel": document.get("n_panel"),
        }


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Name the file in the error of whatever a damaged one leads to."""
    try:
        yield
    except Exception as error:
        # What is wrong with a file may be anything: 400 characters of it
        what = printable(str(error) or type(error).__name__, 400)
        raise ModelFileError(f"cannot open the model file {path}: {what}") from error


def as_model(model: Any) -> Any:
    """The model itself, or the one in a file or of a name."""
    return load(model) if isinstance(model, str | os.PathLike) else model


def _document(archive: Archive) -> Document:
    """The document of an archive, of a schema that can be read."""
    document = archive.document()
    schema = document.get("schema")
    if document.get("format") != _FORMAT or type(schema) is not int:
        raise ModelFileError("model.json does not say that it is an optirank model")
    if schema != SCHEMA:
        raise ModelFileError(
            f"it has schema version {schema}, written by optirank {document.get('optirank')!r}; "
            f"this is optirank {optirank.__version__}, which reads version {SCHEMA}: update "
            "optirank, or train the model again"
        )
    return document


def _read(archive: Archive) -> Any:
    document = _document(archive)
    name = document.get("class")
    if not isinstance(name, str) or name not in _FORMS:
        raise ModelFileError(
            f"it holds a model of class {name!r}; known are {', '.join(_FORMS)}"
        )
    model = _FORMS[name][1](getattr(optirank, name), document, archive)
    if archive.left:
        raise ModelFileError(
            f"it holds {min(archive.left)!r}, which does not belong there"
        )
    return model


# What every form has


def _describe_common(model: Any) -> Document:
    """Parameters, labels, names of genes, and what the model stores beyond its fit."""
    parameters = {}
    for name, value in model.get_params(deep=False).items():
        try:
            parameters[name] = encode(value)
        except TypeError as error:
            raise TypeError(f"the parameter {name} cannot be saved: {error}") from error
    names = getattr(model, "feature_names_in_", None)
    document = {
        "parameters": parameters,
        "classes": encode(np.asarray(model.classes_)),
        "n_features": int(model.n_features_in_),
        "genes": None if names is None else np.asarray(names).tolist(),
    }
    return document | _describe_extras(vars(model))


def _describe_extras(attributes: dict[str, Any]) -> Document:
    """What a model stores beyond its fit."""
    document = {}
    for key, cls in _EXTRAS.items():
        stored = attributes.get(f"{key}_")
        if stored is not None and cls is not dict:
            stored = {field.name: getattr(stored, field.name) for field in fields(cls)}
        if stored is not None:
            document[key] = encode(dict(stored))
    return document


def _rebuild_common(cls: type, document: Document) -> Any:
    """An estimator with all that :func:`_describe_common` stores."""
    stored = _member(document, "parameters", dict)
    if unknown := sorted(set(stored) - set(inspect.signature(cls).parameters)):
        raise ModelFileError(f"{cls.__name__} has no parameter {unknown[0]!r}")
    model = cls(**{name: decode(value) for name, value in stored.items()})
    classes = decode(document.get("classes"))
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) < 2:
        raise ModelFileError("the classes are not two or more labels")
    if len(np.unique(classes)) < len(classes) or (classes != classes).any():
        raise ModelFileError("the classes are not distinct labels")
    n_features = _member(document, "n_features", int)
    if not 1 <= n_features <= _MAX_ENTRIES // len(classes):
        raise ModelFileError(
            f"{len(classes)} classes and {n_features} genes are no model"
        )
    model.classes_, model.n_features_in_ = classes, n_features
    if (names := document.get("genes")) is not None:
        if not isinstance(names, list) or not all(
            isinstance(name, str) for name in names
        ):
            raise ModelFileError("the gene names are not a list of strings")
        if len(names) != n_features:
            raise ModelFileError(f"{len(names)} gene names for {n_features} genes")
        name, times = Counter(names).most_common(1)[0]
        if times > 1:
            raise ModelFileError(f"the gene name {name!r} is there more than once")
        model.feature_names_in_ = np.array(names, dtype=object)
    vars(model).update(_rebuild_extras(document, len(classes), n_features))
    return model


def _rebuild_extras(
    document: Document, n_classes: int, n_features: int
) -> dict[str, Any]:
    """The attributes that :func:`_describe_extras` stores."""
    found = {}
    for key, kind in _EXTRAS.items():
        if document.get(key) is None:
            continue
        stored = decode(document[key])
        if not isinstance(stored, dict):
            raise ModelFileError(f"the {key.replace('_', ' ')} is not a dictionary")
        found[f"{key}_"] = stored if kind is dict else kind(**stored)
    summary = found.get(
        "training_summary_", {}
    )  # what a card computes with can be computed
    for one in summary.get("sources", ()):
        str(one["name"]), [right / n for right, n in one["classes"].values()]
    [
        (float(share), float(accuracy))
        for share, accuracy in summary.get("missing_genes", ())
    ]
    novelty = found.get("novelty_")
    if novelty is not None and (
        len(novelty.profiles) != n_classes or novelty.genes[-1] >= n_features
    ):
        raise ModelFileError("the out-of-distribution score does not fit the model")
    return found


def _take_panel(archive: Archive, name: str, size: int, n_features: int) -> NDArray:
    """The positions of a panel's genes."""
    panel = archive.take(name, "int32", size).astype(np.intp)
    if panel[0] < 0 or panel[-1] >= n_features or (np.diff(panel) <= 0).any():
        raise ModelFileError(
            "the panel's positions are not increasing positions of genes"
        )
    return panel


def _spread(columns: NDArray, panel: NDArray, n_features: int) -> NDArray:
    """The panel's columns among those of all genes, zero in the others."""
    full = np.zeros((len(columns), n_features), columns.dtype)
    full[:, panel] = columns
    return full


def _member(document: Document, key: str, kind: type) -> Any:
    """An entry of the document, of the type it should have."""
    value = document.get(key)
    if type(value) is not kind:
        raise ModelFileError(f"model.json has no {key} of the right type")
    return value


# The panel model: its nested panels


def _describe_panel(model: Any) -> tuple[Document, dict[str, NDArray]]:
    sizes = sorted(model.path_)
    document = _describe_common(model) | {"sizes": sizes, "n_panel": len(model.panel_)}
    document["of_sizes"] = {
        str(size): _describe_extras(one)
        for size, one in getattr(model, "of_sizes_", {}).items()
    }
    arrays = {}
    for size in sizes:
        panel = model.path_[size]
        arrays[f"genes_{size}"] = np.asarray(panel.genes).astype(np.int32)
        for name in ("coef", "intercept", "mean_ranks"):
            arrays[f"{name}_{size}"] = np.asarray(
                getattr(panel, name), dtype=np.float64
            )
    return document, arrays


def _rebuild_panel(cls: type, document: Document, archive: Archive) -> Any:
    from optirank.panel.elimination import Panel

    model = _rebuild_common(cls, document)
    d, n_classes = model.n_features_in_, len(model.classes_)
    rows = 1 if n_classes == 2 else n_classes
    sizes, own = _member(document, "sizes", list), _member(document, "n_panel", int)
    if not all(type(one) is int and 1 <= one <= d for one in sizes):
        raise ModelFileError("the sizes of the panels are not numbers of genes")
    if rows * sum(sizes) > _MAX_ENTRIES:
        raise ModelFileError(
            f"panels of {sum(sizes)} genes together are more than a model has"
        )
    if len(set(sizes)) < len(sizes) or own != max(sizes, default=0):
        raise ModelFileError("the model's own panel is not the largest of its panels")
    model.path_ = {
        size: Panel(
            genes=_take_panel(archive, f"genes_{size}", size, d),
            coef=archive.take(f"coef_{size}", "float64", rows, size),
            intercept=archive.take(f"intercept_{size}", "float64", rows),
            mean_ranks=archive.take(f"mean_ranks_{size}", "float64", size),
        )
        for size in sizes
    }
    of_sizes = _member(document, "of_sizes", dict)
    if not set(of_sizes) <= {str(size) for size in sizes if size < own}:
        raise ModelFileError(
            "what is stored of smaller panels is of panels that are not there"
        )
    if of_sizes:
        model.of_sizes_ = {
            int(size): _rebuild_extras(one, n_classes, d)
            for size, one in of_sizes.items()
        }
    return model._take(model.path_[own])


# Linear classifiers with reference sets of their own


def _describe_linear(model: Any) -> tuple[Document, dict[str, NDArray]]:
    parts = linear_parts(model)
    gamma = parts.reference_weights
    document = _describe_common(model) | {
        "n_rows": len(parts.coef),
        "n_panel": len(parts.positions),
        "path": encode(list(model.path_)),
    }
    arrays = {
        "panel": parts.positions.astype(np.int32),
        "coef": parts.coef,
        "reference": gamma,
        "intercept": parts.intercept,
        "objective": np.asarray(model.objective_, dtype=np.float64),
        "n_iter": np.asarray(model.n_iter_).astype(np.int64),
    }
    if parts.mean_ranks is not None:
        arrays["mean_ranks"] = parts.mean_ranks
    return document, arrays


def _rebuild_linear(cls: type, document: Document, archive: Archive) -> Any:
    model = _rebuild_common(cls, document)
    if model.ties not in TIES:
        raise ModelFileError(f"ties={model.ties!r} is not a way to rank ties")
    d, n_classes = model.n_features_in_, len(model.classes_)
    n_rows, n_panel = (_member(document, key, int) for key in ("n_rows", "n_panel"))
    if (
        n_rows not in ((1, 2) if n_classes == 2 else (n_classes,))
        or not 1 <= n_panel <= d
    ):
        raise ModelFileError(
            f"{n_rows} rows of {n_panel} out of {d} genes do not fit {n_classes} classes"
        )
    panel = _take_panel(archive, "panel", n_panel, d)
    coef = archive.take("coef", "float64", n_rows, n_panel)
    gamma = archive.take("reference", "float64", n_rows, n_panel)
    if gamma.min() < 0 or gamma.max() > 1 or not gamma.any(axis=1).all():
        raise ModelFileError(
            "reference weights lie outside [0, 1], or are all zero in a row"
        )
    model.coef_ = _spread(coef, panel, d)
    model.reference_weights_ = _spread(gamma, panel, d)
    model.reference_ = model.reference_weights_ > 0
    model.genes_ = (model.reference_ | (model.coef_ != 0)).any(axis=0)
    model.intercept_ = archive.take("intercept", "float64", n_rows)
    model.objective_ = archive.take("objective", "float64", n_rows)
    model.n_iter_ = archive.take("n_iter", "int64", n_rows)
    model.path_ = decode(_member(document, "path", list))
    if "mean_ranks" in archive:
        means = archive.take("mean_ranks", "float64", n_rows, n_panel)
        model.mean_ranks_ = _spread(means, panel, d)
    return model


# A search over settings: its best model, and its results

_FOUND = ("best_params_", "best_index_", "best_score_", "folds_", "cv_results_")


def _describe_search(model: Any) -> tuple[Document, dict[str, NDArray]]:
    best, arrays = _describe_linear(linear_model(model))
    found = {name: getattr(model, name) for name in _FOUND}
    found["cv_results_"] = {
        key: value
        for key, value in model.cv_results_.items()
        if not key.startswith("param_")
    }
    try:
        document = _describe_common(model)
    except TypeError as error:
        raise TypeError(
            f"{error}; model.best_estimator_ can be saved instead"
        ) from error
    return document | {"search": encode(found), "best": best}, arrays


def _rebuild_search(cls: type, document: Document, archive: Archive) -> Any:
    model = _rebuild_common(cls, document)
    best = _rebuild_linear(
        optirank.OptirankClassifier, _member(document, "best", dict), archive
    )
    found = decode(document.get("search"))
    if not isinstance(found, dict) or set(found) != set(_FOUND):
        raise ModelFileError("the results of the search are incomplete")
    results = found["cv_results_"]
    params = results.get("params") if isinstance(results, dict) else None
    if (
        not isinstance(params, list)
        or not params
        or not all(isinstance(p, dict) for p in params)
    ):
        raise ModelFileError("the results of the search have no settings")
    found["cv_results_"] = {
        f"param_{name}": np.ma.masked_array(
            [one.get(name) for one in params], dtype=object
        )
        for name in params[0]
    } | results
    for name, value in found.items():
        setattr(model, name, value)
    model._take(best)
    return model


# What a model may store beyond its fit: attribute without underscore -> its class.
_EXTRAS = {
    "training_summary": dict,
    "calibration": Calibration,
    "error_control": ErrorControl,
    "novelty": Novelty,
}

# How each class is stored: from a model to a document and arrays, and back
_FORMS = {
    "PanelClassifier": (_describe_panel, _rebuild_panel),
    "OptirankClassifier": (_describe_linear, _rebuild_linear),
    "OptirankClassifierCV": (_describe_search, _rebuild_search),
    "RankLogisticRegression": (_describe_linear, _rebuild_linear),
    "AnovaRankLogisticRegression": (_describe_linear, _rebuild_linear),
}
