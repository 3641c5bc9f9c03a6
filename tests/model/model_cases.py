"""Models as if fitted, for the tests of the model room, and ways to take model files apart."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from optirank import (
    AnovaRankLogisticRegression,
    OptirankClassifier,
    RankLogisticRegression,
)
from optirank.model import ModelFileError, load

CLASSES = (OptirankClassifier, RankLogisticRegression, AnovaRankLogisticRegression)
LABELS = {
    "str": lambda k: np.array([f"type {i}" for i in range(k)]),
    "object": lambda k: np.array([f"Zelle {i} ä" for i in range(k)], dtype=object),
    "int": lambda k: np.arange(k) * 3 - 1,
    "int8": lambda k: np.arange(k, dtype=np.int8),
    "float": lambda k: np.arange(k) / 2,
    "bool": lambda k: np.array([False, True]),
}


def make_model(
    seed: int = 0,
    n_classes: int = 3,
    n_genes: int = 12,
    *,
    labels: str = "str",
    sides: int = 1,
    integral: bool = True,
    named: bool = True,
    ties: str = "average",
    cls: type = OptirankClassifier,
    n_weights: int | None = None,
    means: bool = False,
):
    """A model with random weights and reference sets, and all that fitting leaves behind."""
    rng = np.random.default_rng(seed)
    model = cls(ties=ties)
    model.classes_ = LABELS[labels](2 if labels == "bool" else n_classes)
    n_rows = (1 if len(model.classes_) == 2 else len(model.classes_)) * sides
    if cls is OptirankClassifier:
        model.set_params(side="both" if sides == 2 else "best", integral=integral)
    size = max(1, n_genes // 4)
    model.coef_ = np.zeros((n_rows, n_genes))
    model.reference_weights_ = np.zeros((n_rows, n_genes))
    for w, gamma in zip(model.coef_, model.reference_weights_, strict=True):
        weighted = rng.choice(n_genes, min(n_genes, n_weights or size), replace=False)
        w[weighted] = rng.normal(size=len(weighted))
        gamma[rng.choice(n_genes, size, replace=False)] = 1.0
        if not integral:
            gamma *= rng.uniform(0.1, 1.0, size=n_genes)
    model.intercept_ = rng.normal(size=n_rows)
    model.reference_ = model.reference_weights_ > 0
    model.objective_ = rng.uniform(size=n_rows)
    model.n_iter_ = rng.integers(1, 100, size=n_rows)
    model.path_ = [[{"stage": "end", "objective": 0.1 + row}] for row in range(n_rows)]
    model.genes_ = (model.reference_ | (model.coef_ != 0)).any(axis=0)
    model.n_features_in_ = n_genes
    if named:
        model.feature_names_in_ = np.array([f"GENE{j}" for j in range(n_genes)], dtype=object)
    if means:
        model.mean_ranks_ = rng.uniform(size=model.coef_.shape) * (model.coef_ != 0)
    return model


models = st.builds(
    make_model,
    st.integers(0, 10_000),
    st.integers(2, 5),
    st.integers(1, 30),
    labels=st.sampled_from(sorted(LABELS)),
    sides=st.sampled_from([1, 2]),
    integral=st.booleans(),
    named=st.booleans(),
    ties=st.sampled_from(["average", "min", "max"]),
    cls=st.sampled_from(CLASSES),
    means=st.booleans(),
)


def make_samples(seed: int, n: int, n_genes: int, density: float = 0.4) -> np.ndarray:
    """Samples with ties, zeros and negative values."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 8, size=(n, n_genes)).astype(float)
    return values * (rng.uniform(size=values.shape) < density)


def own_scores(model, X) -> np.ndarray:
    """The model's own scores, X being an array or sparse matrix without gene names."""
    if not hasattr(model, "feature_names_in_"):
        return model.decision_function(X)
    X = X.toarray() if hasattr(X, "toarray") else X
    return model.decision_function(pd.DataFrame(X, columns=model.feature_names_in_))


def assert_same_model(found, model) -> None:
    """The same class, parameters and fitted attributes, to the last bit."""
    assert type(found) is type(model)
    assert repr(found.get_params()) == repr(model.get_params())
    for one in (found, model):
        _ = one.coef_, one.genes_  # full-size arrays of a loaded model are made when asked for
    beside = {"_file"}  # the name of the file is for the card alone
    assert set(vars(found)) - beside == set(vars(model)) - beside
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray):
            other = getattr(found, name)
            assert other.dtype == value.dtype, name
            np.testing.assert_array_equal(other, value, err_msg=name)
        elif name.endswith("_"):
            assert getattr(found, name) == value, name


def unpack(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """The document and arrays of a model file."""
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("model.json"))
        with np.load(io.BytesIO(archive.read("arrays.npz")), allow_pickle=False) as stored:
            return document, dict(stored)


def pack(path: Path, document: object, arrays: dict[str, np.ndarray] | bytes) -> Path:
    """Write a model file of any document and arrays."""
    if not isinstance(arrays, bytes):
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        arrays = buffer.getvalue()
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", text)
        archive.writestr("arrays.npz", arrays)
    return path


def assert_refused(path: Path, message: str) -> None:
    """Opening the file fails with words that name it and what is wrong."""
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
