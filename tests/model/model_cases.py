"""Models with random weights for the tests of the model room, and model files
taken apart.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

from optirank import Model, load
from optirank.model import Card, ModelFileError
from optirank.model.card import ClassCounts, JudgedSet
from optirank.model.confidence import fit_calibration, fit_error_control
from optirank.model.likeness import FurtherGenes, fit_likeness
from optirank.model.panels import References, SizedPanel
from optirank.ranks.scoring import panel_ranks

LABELS = {
    "str": lambda k: np.array([f"type {i}" for i in range(k)]),
    "object": lambda k: np.array([f"Zelle {i} ä" for i in range(k)], dtype=object),
    "int": lambda k: np.arange(k) * 3 - 1,
    "float": lambda k: np.arange(k) / 2,
    "bool": lambda _: np.array([False, True]),
}


def gene_names(n_genes: int) -> np.ndarray:
    return np.array([f"GENE{j}" for j in range(n_genes)], dtype=object)


def make_model(
    seed: int = 0,
    n_classes: int = 3,
    n_genes: int = 12,
    *,
    labels: str = "str",
    ties: str = "average",
    n_weights: int | None = None,
    means: bool = False,
) -> Model:
    """A model like the paper's: one reference set and one intercept per class."""
    rng = np.random.default_rng(seed)
    classes = LABELS[labels](n_classes)
    n_rows = 1 if len(classes) == 2 else len(classes)
    size = max(1, n_genes // 4)
    coef = np.zeros((n_rows, n_genes))
    gamma = np.zeros((n_rows, n_genes))
    for row in range(n_rows):
        weighted = rng.choice(n_genes, min(n_genes, n_weights or size), replace=False)
        coef[row, weighted] = rng.normal(size=len(weighted))
        gamma[row, rng.choice(n_genes, size, replace=False)] = 1.0
    columns = np.flatnonzero(((gamma > 0) | (coef != 0)).any(axis=0))
    mean_ranks = rng.uniform(size=(n_rows, len(columns))) if means else None
    references = References(
        weights=gamma[:, columns],
        intercept=rng.normal(size=n_rows),
        mean_ranks=mean_ranks,
        ties=ties,
    )
    panel = SizedPanel(
        gene_names(n_genes)[columns], columns, coef[:, columns], references
    )
    return Model(classes, len(columns), {len(columns): panel}, n_genes)


def make_panel(
    seed: int = 0,
    n_classes: int = 3,
    n_genes: int = 30,
    *,
    sizes: tuple[int, ...] = (3, 6, 10),
    labels: str = "str",
) -> Model:
    """A panel model with random nested panels and weights."""
    rng = np.random.default_rng(seed)
    classes = LABELS[labels](n_classes)
    n_rows = 1 if len(classes) == 2 else len(classes)
    order = rng.permutation(n_genes)
    panels = {}
    for size in sizes:
        columns = np.sort(order[:size])
        coef = rng.normal(size=(n_rows, size))
        panels[size] = SizedPanel(gene_names(n_genes)[columns], columns, coef)
    return Model(classes, max(sizes), panels, n_genes)


def with_weights(model: Model, coef: np.ndarray) -> Model:
    """The model with other weights of its own panel."""
    panel = replace(model.panel, coef=np.asarray(coef, dtype=float))
    return replace(model, panels={**model.panels, model.n_genes: panel})


def with_missing(model: Model, tables: dict[int, tuple]) -> Model:
    """The model with held-out accuracies by share of missing genes, for some sizes."""
    panels = {
        size: replace(panel, missing=tables.get(size, ()))
        for size, panel in model.panels.items()
    }
    return replace(model, panels=panels)


def full(model: Model) -> Model:
    """The model with everything that it can store beyond its weights."""
    rng = np.random.default_rng(0)
    n_samples = 60
    n_classes = len(model.classes)
    y = model.classes[np.arange(n_samples) % n_classes]
    scores = rng.normal(size=n_samples if n_classes == 2 else (n_samples, n_classes))
    X = make_samples(0, n_samples, model.n_features)
    panel = replace(
        model.panel,
        calibration=fit_calibration(scores, y, model.classes),
        error_control=fit_error_control(
            rng.uniform(size=n_samples), np.arange(n_samples) > 0, y
        ),
        likeness=fit_likeness(
            panel_ranks(X[:, model.panel.columns]), y, y, model.classes
        ),
        missing=((0.0, 0.95), (0.1, 0.94), (0.5, 0.9)),
    )
    labels = [str(label) for label in model.classes]
    card = Card(
        name="random",
        description="weights at random",
        method="panel",
        n_samples=n_samples,
        class_counts=dict.fromkeys(labels, 20),
        sources={"a.h5ad": "ab" * 32},
        labels_sha256="cd" * 32,
        values={"scale": "counts", "zeros": 0.5, "negative": 0.01},
        balanced_accuracy=0.9,
        standard_error=0.01,
        interval=(0.85, 0.94),
        held_out={label: ClassCounts(18, 20, 0, 40) for label in labels},
        curve=((3, 0.8, float("nan")), (10, 0.9, 0.01)),
        judged=(JudgedSet("second", {labels[0]: ClassCounts(8, 10, 1, 30)}, "arrays"),),
        baselines={"nearest mean": 0.88},
        versions={"optirank": "0.1.0"},
        notes=("a note with 'quotes' and ä",),
    )
    further = FurtherGenes(
        np.array([f"FURTHER{j}" for j in range(60)], dtype=object),
        rng.uniform(-0.5, 0.5, (n_classes, 60)).astype(np.float16),
    )
    panels = {**model.panels, model.n_genes: panel}
    return replace(model, panels=panels, card=card, further=further)


reference_models = st.builds(
    make_model,
    st.integers(0, 10_000),
    st.integers(2, 5),
    st.integers(1, 30),
    labels=st.sampled_from(sorted(LABELS)),
    ties=st.sampled_from(["average", "min", "max"]),
    means=st.booleans(),
)
panel_models = st.builds(
    make_panel,
    st.integers(0, 10_000),
    st.integers(2, 5),
    st.integers(10, 30),
    labels=st.sampled_from(sorted(LABELS)),
)
models = reference_models | panel_models


def make_samples(seed: int, n: int, n_genes: int, density: float = 0.4) -> np.ndarray:
    """Samples with ties, zeros and negative values."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 8, size=(n, n_genes)).astype(float)
    return values * (rng.uniform(size=values.shape) < density)


def as_frame(model: Model, X: np.ndarray) -> pd.DataFrame:
    """Samples with the names of the model's columns."""
    return pd.DataFrame(X, columns=gene_names(model.n_features))


def assert_same(value, expected, where: str = "model") -> None:
    """The same values of the same types, to the last bit, at any depth."""
    if isinstance(expected, np.ndarray):
        assert value.dtype.kind == expected.dtype.kind, where
        np.testing.assert_array_equal(value, expected, err_msg=where)
    elif is_dataclass(expected):
        assert type(value) is type(expected), where
        for part in fields(expected):
            if part.name != "digest":
                assert_same(
                    getattr(value, part.name),
                    getattr(expected, part.name),
                    f"{where}.{part.name}",
                )
    elif isinstance(expected, dict):
        assert list(value) == list(expected), where
        for key in expected:
            assert_same(value[key], expected[key], f"{where}[{key!r}]")
    else:
        assert repr(value) == repr(expected), where


def unpack(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    """The document and arrays of a model file."""
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("model.json"))
        members = {name: archive.read(name) for name in archive.namelist()}
    del members["model.json"]
    arrays = {
        name.removesuffix(".npy"): np.load(io.BytesIO(content))
        for name, content in members.items()
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
            content = array if isinstance(array, bytes) else buffer.getvalue()
            archive.writestr(f"{name}.npy", content)
    return path


def assert_refused(path: Path, message: str) -> None:
    """Opening the file fails with words that name it and what is wrong."""
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
