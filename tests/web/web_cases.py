"""Files for the page, and what `optirank predict` says of them."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from optirank.model import Model
from optirank.model.tree import Tree
from optirank.verbs.label_files import predict_file
from optirank.verbs.labels import Labels
from optirank.verbs.options import PredictOptions

MODELS = (
    "blood-human",
    "breast-er-human",
    "colorectal-msi-human",
    "leukaemia-human",
    "lymphocytes-mouse",
    "pancreas-human",
)
LABELLING = {"threshold": "threshold", "target_error": "targetError"}
READING = {
    "genes_in": "genesIn",
    "gene_column": "geneColumn",
    "layer": "layer",
    "invert": "invert",
}


class Expected(NamedTuple):
    """What predict says: the labels and their file, or an error."""

    labels: Any = None
    csv: bytes = b""
    error: str = ""


def expected(path: Path, model: Model, options: dict[str, Any]) -> Expected:
    """What predict says of a file in the working directory."""
    asked = {name: value for name, value in options.items() if name in LABELLING}
    reading = {name: value for name, value in options.items() if name in READING}
    out = path.with_suffix(".out.csv")
    try:
        labels = predict_file(path.name, model, out, PredictOptions(**asked), **reading)
    except (ValueError, OSError) as error:
        return Expected(error=str(error))
    return Expected(labels, out.read_bytes())


def compare(ours: dict[str, Any], labels: Labels, atol: float) -> None:
    """The page and predict say the same: notes, alarms, probabilities, the record."""
    assert ours["notes"] == labels.notes
    assert ours["alarms"] == labels.warnings
    probabilities = np.ravel(labels.probabilities)
    np.testing.assert_allclose(ours["probabilities"], probabilities, atol=atol)
    record = json.loads(json.dumps(labels.record, default=np.ndarray.tolist))
    del record["inputs"]  # the page does not digest files
    agreements = [x.pop("agreement_by_label") for x in (ours["record"], record)]
    assert agreements[0] == pytest.approx(agreements[1], abs=1e-7)
    assert list(agreements[0]) == list(agreements[1])
    numbers = {name: x for name, x in record.items() if isinstance(x, float)}
    shown = {name: ours["record"].pop(name) for name in numbers}
    assert shown == pytest.approx(numbers, abs=1e-6)
    assert ours["record"] == {k: x for k, x in record.items() if k not in numbers}


def same_csv(ours: str, theirs: bytes) -> None:
    """Files of labels are equal; the last digit of a likeness may differ."""
    tables = [
        pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
        for text in (ours, theirs.decode())
    ]
    likeness = [
        table.pop("likeness").replace("", "nan").astype(float) for table in tables
    ]
    np.testing.assert_allclose(*likeness, atol=1.01e-4)
    pd.testing.assert_frame_equal(*tables)


def path_genes(model: Model) -> list[str]:
    """The genes of all panels of a model, those of its own first."""
    panels = [model.panel, *model.panels.values()]
    return [*dict.fromkeys(gene for panel in panels for gene in panel.genes)]


def cells(model: Model, n_samples: int = 12, seed: int = 0) -> pd.DataFrame:
    """Counts of samples like those of the classes in turn, with other genes beside."""
    rng = np.random.default_rng(seed)
    coef = model.panel.coef
    coef = np.vstack([-coef, coef]) if len(coef) == 1 else coef
    up = coef[np.arange(n_samples) % len(coef)]
    means = np.exp(1.0 + 2.0 * up / np.abs(coef).max())
    path = dict.fromkeys(
        gene for panel in model.panels.values() for gene in panel.genes
    )
    path = [gene for gene in path if gene not in set(model.genes)]
    names = [*model.genes, *path, *(f"other{k}" for k in range(40))]
    others = rng.gamma(1.0, 2.0, (1, len(names) - means.shape[1]))
    counts = rng.poisson(np.hstack([means, np.repeat(others, n_samples, axis=0)]))
    index = [f"sample {k}" for k in range(n_samples)]
    order = rng.permutation(len(names))
    return pd.DataFrame(counts, index=index, columns=names).iloc[:, order]


def as_h5ad(frame: pd.DataFrame, path: Path, storage: str, **more: Any) -> Path:
    """Write an AnnData with X stored in one of the ways."""
    values = frame.to_numpy(np.float32)
    kinds = {"dense": np.asarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}
    names = pd.Index([str(name) for name in frame.columns])
    data = anndata.AnnData(
        kinds[storage](values),
        obs=pd.DataFrame(index=frame.index),
        var=pd.DataFrame(index=names),
    )
    for name, value in more.items():
        setattr(data, name, value)
    data.write_h5ad(path, compression="gzip")
    return path


def with_tree(model: Model) -> Model:
    """The model with labels above those of its classes, and ids of some."""
    names = [str(name) for name in model.classes]
    parents = {"2": "", "first": "2", "1": ""}
    parents |= dict.fromkeys(names[:2], "first")
    parents |= dict.fromkeys(names[2:3], "2") | dict.fromkeys(names[3:], "1")
    terms = {"first": "CL:0000001", names[0]: "CL:0000002"}
    card = replace(model.card, name="with a tree")
    return replace(model, tree=Tree(parents, ("coarse",)), terms=terms, card=card)
