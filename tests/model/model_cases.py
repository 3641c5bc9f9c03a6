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
    PanelClassifier,
    RankLogisticRegression,
    load,
)
from optirank.estimators.panel_classifier import Panel
from optirank.model import ModelFileError

CLASSES = (OptirankClassifier, RankLogisticRegression, AnovaRankLogisticRegression)
LABELS = {
    "str": lambda k: np.array([f"type {i}" for i in range(k)]),
    "object": lambda k: np.array([f"Zelle {i} ä" for i in range(k)], dtype=object),
    "int": lambda k: np.arange(k) * 3 - 1,
    "float": lambda k: np.arange(k) / 2,
    "bool": lambda _: np.array([False, True]),
}


def make_model(
    seed: int = 0,
    n_classes: int = 3,
    n_genes: int = 12,
    *,
    labels: str = "str",
    named: bool = True,
    ties: str = "average",
    cls: type = OptirankClassifier,
    n_weights: int | None = None,
    means: bool = False,
):
    """A model with random weights and reference sets, and all that fitting leaves behind."""
    rng = np.random.default_rng(seed)
    model = cls(ties=ties)
    model.classes_ = LABELS[labels](n_classes)
    n_rows = 1 if len(model.classes_) == 2 else len(model.classes_)
    size = max(1, n_genes // 4)
    model.coef_ = np.zeros((n_rows, n_genes))
    model.reference_weights_ = np.zeros((n_rows, n_genes))
    for w, gamma in zip(model.coef_, model.reference_weights_, strict=True):
        weighted = rng.choice(n_genes, min(n_genes, n_weights or size), replace=False)
        w[weighted] = rng.normal(size=len(weighted))
        gamma[rng.choice(n_genes, size, replace=False)] = 1.0
    model.intercept_ = rng.normal(size=n_rows)
    model.reference_ = model.reference_weights_ > 0
    model.objective_ = rng.uniform(size=n_rows)
    model.n_iter_ = rng.integers(1, 100, size=n_rows)
    model.path_ = [[{"stage": "end", "objective": 0.1 + row}] for row in range(n_rows)]
    model.genes_ = (model.reference_ | (model.coef_ != 0)).any(axis=0)
    model.n_features_in_ = n_genes
    if named:
        model.feature_names_in_ = gene_names(n_genes)
    if means:
        model.mean_ranks_ = rng.uniform(size=model.coef_.shape) * (model.coef_ != 0)
    return model


def make_panel(
    seed: int = 0,
    n_classes: int = 3,
    n_genes: int = 30,
    *,
    sizes: tuple[int, ...] = (3, 6, 10),
    labels: str = "str",
    named: bool = True,
) -> PanelClassifier:
    """A panel model with random nested panels and weights."""
    rng = np.random.default_rng(seed)
    model = PanelClassifier(n_genes=max(sizes))
    model.classes_ = LABELS[labels](n_classes)
    rows = 1 if len(model.classes_) == 2 else len(model.classes_)
    order = rng.permutation(n_genes)
    model.path_ = {
        size: Panel(
            genes=np.sort(order[:size]),
            coef=rng.normal(size=(rows, size)),
            intercept=rng.normal(size=rows),
            mean_ranks=rng.uniform(size=size),
        )
        for size in sizes
    }
    own = model.path_[max(sizes)]
    model.panel_, model.intercept_, model.mean_ranks_ = (
        own.genes,
        own.intercept,
        own.mean_ranks,
    )
    model.coef_ = np.zeros((rows, n_genes))
    model.coef_[:, own.genes] = own.coef
    model.genes_ = np.isin(np.arange(n_genes), own.genes)
    model.n_features_in_ = n_genes
    if named:
        model.feature_names_in_ = gene_names(n_genes)
    return model


def gene_names(n_genes: int) -> np.ndarray:
    return np.array([f"GENE{j}" for j in range(n_genes)], dtype=object)


own_models = st.builds(
    make_model,
    st.integers(0, 10_000),
    st.integers(2, 5),
    st.integers(1, 30),
    labels=st.sampled_from(sorted(LABELS)),
    named=st.booleans(),
    ties=st.sampled_from(["average", "min", "max"]),
    cls=st.sampled_from(CLASSES),
    means=st.booleans(),
)
panels = st.builds(
    make_panel,
    st.integers(0, 10_000),
    st.integers(2, 5),
    st.integers(10, 30),
    labels=st.sampled_from(sorted(LABELS)),
    named=st.booleans(),
)
models = own_models | panels
named_models = models.filter(lambda model: hasattr(model, "feature_names_in_"))


def make_samples(seed: int, n: int, n_genes: int, density: float = 0.4) -> np.ndarray:
    """Samples with ties, zeros and negative values."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 8, size=(n, n_genes)).astype(float)
    return values * (rng.uniform(size=values.shape) < density)


def as_input(model, X: np.ndarray):
    """Samples as the model's own methods take them without a warning."""
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pd.DataFrame(X, columns=names)


def weights_of(model) -> tuple[np.ndarray, np.ndarray, str]:
    """Weights, reference weights (rows x genes) and ties of a model."""
    if hasattr(model, "panel_"):
        return (
            model.coef_,
            np.tile(model.genes_ * 1.0, (len(model.coef_), 1)),
            "average",
        )
    return model.coef_, model.reference_weights_, model.ties


def assert_same_model(found, model) -> None:
    """The same class, parameters and fitted attributes, to the last bit."""
    assert type(found) is type(model)
    assert repr(found.get_params()) == repr(model.get_params())
    fitted = [
        {name for name in vars(one) if name.endswith("_")} for one in (found, model)
    ]
    assert fitted[0] == fitted[1]
    for name in fitted[1]:
        assert_same(getattr(found, name), getattr(model, name), name)


def assert_same(found, value, name: str) -> None:
    if isinstance(value, np.ndarray):
        assert found.dtype.kind == value.dtype.kind, name
        np.testing.assert_array_equal(found, value, err_msg=name)
    elif isinstance(value, dict):
        assert list(found) == list(value), name
        for key in value:
            assert_same(found[key], value[key], f"{name}[{key!r}]")
    elif hasattr(value, "__dataclass_fields__"):
        assert_same(vars(found), vars(value), name)
    else:
        assert repr(found) == repr(value), name


def unpack(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """The document and arrays of a model file."""
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("model.json"))
        members = {name: archive.read(name) for name in archive.namelist()}
    del members["model.json"]
    arrays = {
        name.removesuffix(".npy"): np.load(io.BytesIO(b)) for name, b in members.items()
    }
    return document, arrays


def pack(path: Path, document: object, arrays: dict[str, np.ndarray | bytes]) -> Path:
    """Write a model file of any document and arrays."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", text)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            if not isinstance(array, bytes):
                np.save(buffer, array)
            archive.writestr(
                f"{name}.npy", array if isinstance(array, bytes) else buffer.getvalue()
            )
    return path


def assert_refused(path: Path, message: str) -> None:
    """Opening the file fails with words that name it and what is wrong."""
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
