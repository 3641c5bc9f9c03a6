"""Model files of schema 3, which optirank 0.1 wrote: they open, and predict as they
did.

A panel model of schema 3 has an intercept, and mean ranks that stand in for missing
genes: it is read as a model with reference sets, each of which is the whole panel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optirank.model.archive import (
    Archive,
    Document,
    ModelFileError,
    decode,
    member,
    read_classes,
)
from optirank.model.card import (
    Card,
    ClassCounts,
    CurvePoint,
    HeldOutClass,
    JudgedSet,
    from_plain,
    to_plain,
)
from optirank.model.confidence import Calibration, ErrorControl
from optirank.model.likeness import Likeness
from optirank.model.model import Model
from optirank.model.values import ValueShares
from optirank.model.weights import References, SizedPanel
from optirank.ranks.relative import TIES

_LINEAR = (
    "OptirankClassifier",
    "RankLogisticRegression",
    "AnovaRankLogisticRegression",
)
_MAX_ENTRIES = 1 << 24  # weights over all rows and genes: 128 MiB
_TEXTS = (
    "name",
    "description",
    "tissue",
    "species",
    "method",
    "source",
    "label",
    "batch",
    "unknown_types",
    "checksum",
    "command",
)


def read_schema_3(document: Document, archive: Archive) -> Model:
    """The model in a file of schema 3."""
    name = document.get("class")
    if name == "PanelClassifier":
        return _read_panel_model(document, archive)
    if name == "OptirankClassifierCV":
        best = member(document, "best", dict)
        return _read_linear_model(best, archive, "OptirankClassifier")
    if name in _LINEAR:
        return _read_linear_model(document, archive, str(name))
    raise ModelFileError(f"it holds a model of class {name!r}, which is not known")


def _read_panel_model(document: Document, archive: Archive) -> Model:
    classes, names = _common(document)
    n_rows = 1 if len(classes) == 2 else len(classes)
    sizes = member(document, "sizes", list)
    own = member(document, "n_panel", int)
    if not all(type(size) is int and 1 <= size <= len(names) for size in sizes):
        raise ModelFileError("the sizes of the panels are not numbers of genes")
    if len(set(sizes)) < len(sizes) or own != max(sizes, default=0):
        raise ModelFileError("the model's own panel is not the largest of its panels")
    if n_rows * sum(sizes) > _MAX_ENTRIES:
        raise ModelFileError(f"panels of {sum(sizes)} genes are more than a model has")
    of_sizes = member(document, "of_sizes", dict)
    panels = {}
    for size in sizes:
        columns = _positions(archive.take(f"genes_{size}", "int32", size), len(names))
        coef = archive.take(f"coef_{size}", "float64", n_rows, size)
        intercept = archive.take(f"intercept_{size}", "float64", n_rows)
        means = archive.take(f"mean_ranks_{size}", "float64", size)
        references = References(
            weights=np.ones((n_rows, size)),
            intercept=intercept,
            mean_ranks=np.tile(means, (n_rows, 1)),
            ties="average",
            softmax=True,
        )
        stored = document if size == own else of_sizes.get(str(size), {})
        panels[size] = SizedPanel(
            names[columns],
            columns,
            coef,
            references,
            **_measured(stored, columns, len(classes)),
        )
    return Model(classes, own, panels, len(names), _card(document))


def _read_linear_model(document: Document, archive: Archive, method: str) -> Model:
    classes, names = _common(document)
    parameters = member(document, "parameters", dict)
    ties = decode(parameters.get("ties", "average"))
    if ties not in TIES:
        raise ModelFileError(f"ties={ties!r} is not a way to rank ties")
    n_rows = member(document, "n_rows", int)
    n_genes = member(document, "n_panel", int)
    fits = n_rows in ((1, 2) if len(classes) == 2 else (len(classes),))
    if not fits or not 1 <= n_genes <= len(names):
        raise ModelFileError(
            f"{n_rows} rows of {n_genes} genes do not fit {len(classes)} classes"
        )
    columns = _positions(archive.take("panel", "int32", n_genes), len(names))
    coef = archive.take("coef", "float64", n_rows, n_genes)
    weights = archive.take("reference", "float64", n_rows, n_genes)
    if weights.min() < 0 or weights.max() > 1 or not weights.any(axis=1).all():
        raise ModelFileError(
            "reference weights lie outside [0, 1], or are all zero in a row"
        )
    means = None
    if "mean_ranks" in archive:
        means = archive.take("mean_ranks", "float64", n_rows, n_genes)
    references = References(
        weights=weights,
        intercept=archive.take("intercept", "float64", n_rows),
        mean_ranks=means,
        ties=str(ties),
        softmax=False,
    )
    for unused, kind in (("objective", "float64"), ("n_iter", "int64")):
        archive.take(unused, kind, n_rows)
    panel = SizedPanel(
        names[columns],
        columns,
        coef,
        references,
        **_measured(document, columns, len(classes)),
    )
    card = _card(document)
    if not card.method:
        card = from_plain(Card, to_plain(card) | {"method": method})
    return Model(classes, n_genes, {n_genes: panel}, len(names), card)


def _common(document: Document) -> tuple[NDArray, NDArray[np.object_]]:
    """The classes, and the names of the training data's columns."""
    classes = read_classes(decode(document.get("classes")))
    n_features = member(document, "n_features", int)
    if not 1 <= n_features <= _MAX_ENTRIES // len(classes):
        raise ModelFileError(f"{len(classes)} classes and {n_features} genes: no model")
    names = document.get("genes")
    if names is None:
        names = [f"x{column}" for column in range(n_features)]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the gene names are not a list of strings")
    if len(names) != n_features or len(set(names)) < len(names):
        raise ModelFileError(f"{len(names)} names, not {n_features} different ones")
    return classes, np.array(names, dtype=object)


def _positions(stored: NDArray, n_features: int) -> NDArray[np.intp]:
    positions = stored.astype(np.intp)
    outside = positions[0] < 0 or positions[-1] >= n_features
    if outside or (np.diff(positions) <= 0).any():
        raise ModelFileError("the panel's positions are not increasing ones of genes")
    return positions


def _measured(
    document: Document, columns: NDArray[np.intp], n_classes: int
) -> dict[str, Any]:
    """Calibration, error control and out-of-distribution score, as `SizedPanel` has."""
    measured: dict[str, Any] = {}
    calibration = _stored(document, "calibration")
    if calibration is not None:
        measured["calibration"] = Calibration(**calibration)
    control = _stored(document, "error_control")
    if control is not None:
        # The tests of schema 3 had no order: each bound is its own least
        bounds = np.asarray(control["bounds"])
        measured["error_control"] = ErrorControl(**control, least=bounds)
    novelty = _stored(document, "novelty")
    if novelty is not None:
        genes = np.asarray(novelty["genes"])
        profiles = np.asarray(novelty["profiles"], dtype=np.float32)
        if len(profiles) != n_classes or not np.array_equal(genes, columns):
            raise ModelFileError("the out-of-distribution score does not fit the model")
        levels = np.asarray(novelty["levels"], dtype=np.float32)
        n_samples = int(novelty["n_samples"])
        measured["likeness"] = Likeness(profiles, levels, n_samples)
    return measured


def _stored(document: Document, key: str) -> dict[str, Any] | None:
    if document.get(key) is None:
        return None
    stored = decode(document[key])
    if not isinstance(stored, dict):
        raise ModelFileError(f"the {key.replace('_', ' ')} is not a dictionary")
    return stored


def _card(document: Document) -> Card:
    """The card, from the untyped summary of schema 3; ValueError where it is none."""
    summary = _stored(document, "training_summary") or {}
    texts: dict[str, Any] = {name: str(summary.get(name) or "") for name in _TEXTS}
    counts = summary.get("n_held_out") or {}
    recall = summary.get("recall") or {}
    precision = summary.get("precision") or {}
    values = summary.get("values") or {}
    card = Card(
        **texts,
        n_samples=int(summary.get("n_samples") or 0),
        class_counts={
            str(name): int(n) for name, n in (summary.get("class_counts") or {}).items()
        },
        n_genes_of_file=int(summary.get("n_genes_of_file") or 0),
        n_folds=int(summary.get("n_folds") or 0),
        values=ValueShares(
            values.get("scale"),
            float(values.get("zeros") or 0.0),
            float(values.get("negative") or 0.0),
        ),
        balanced_accuracy=_number(summary.get("balanced_accuracy")),
        standard_error=_number(summary.get("balanced_accuracy_standard_error")),
        interval=tuple(
            float(end) for end in summary.get("balanced_accuracy_interval") or ()
        ),
        held_out={
            str(name): HeldOutClass(
                int(n),
                float(recall.get(name, np.nan)),
                float(precision.get(name, np.nan)),
            )
            for name, n in counts.items()
        },
        curve=tuple(
            CurvePoint(
                int(row["n_genes"]),
                float(row["balanced_accuracy"]),
                float(row["standard_error"]),
            )
            for row in summary.get("curve") or ()
        ),
        judged=tuple(_judged(entry) for entry in summary.get("sources") or ()),
        versions={
            str(name): str(number)
            for name, number in (summary.get("versions") or {}).items()
        },
        notes=tuple(str(note) for note in summary.get("notes") or ()),
    )
    return from_plain(Card, to_plain(card))


def _judged(entry: dict[str, Any]) -> JudgedSet:
    classes = {
        str(name): ClassCounts(int(right), int(n))
        for name, (right, n) in entry["classes"].items()
    }
    platform = str(entry.get("about") or "")
    left_out = bool(entry.get("trained", True))
    return JudgedSet(str(entry["name"]), classes, platform, left_out)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
