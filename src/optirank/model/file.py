"""The model file: a zip of ``model.json`` and arrays, from which nothing can run.

``model.json`` holds the schema version, the version of optirank that wrote it, the
labels, the names of the genes, the sizes of the panels, what held-out samples say of
each and the card; each array (``.npy``) holds weights, for the genes of the panels
alone.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import optirank
from optirank._util.files import write_bytes
from optirank._util.names import printable
from optirank.model.archive import (
    Archive,
    Document,
    ModelFileError,
    decode,
    encode,
    member,
    read_classes,
    write_archive,
)
from optirank.model.card import Card, from_plain, to_plain
from optirank.model.catalogue import find_model
from optirank.model.confidence import Calibration, ErrorControl
from optirank.model.likeness import N_LEVELS, Likeness
from optirank.model.model import Model
from optirank.model.weights import References, SizedPanel
from optirank.ranks.relative import TIES

SCHEMA = 4
_FORMAT = "optirank-model"
_MAX_ENTRIES = 1 << 24  # weights over all rows and genes: 128 MiB
_CONTROL = ("thresholds", "errors", "bounds", "least", "kept")  # of an ErrorControl


def save(model: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model to a file that :func:`load` gives back.

    The same model gives the same bytes. The file is written under another name and
    renamed, so a reader never sees half of it.

    Parameters
    ----------
    model : a Model, or a fitted PanelClassifier, OptirankClassifier,
        OptirankClassifierCV, RankLogisticRegression or AnovaRankLogisticRegression.
    path : the file.
    overwrite : whether a file that exists may be replaced.

    Raises
    ------
    FileExistsError
        Where the file exists and ``overwrite`` is not given.
    TypeError
        For anything that has no weights on ranks, such as SingleCellNetClassifier.
    """
    path = Path(path)
    to_save = model if isinstance(model, Model) else _of_estimator(model)
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists: name another file, or replace it (overwrite=True)"
        )
    write_bytes(path, to_bytes(to_save))


def _of_estimator(estimator: Any) -> Model:
    """The model of an estimator, or a TypeError that says what can be saved."""
    if hasattr(estimator, "steps") or hasattr(estimator, "named_steps"):
        raise TypeError(
            "a Pipeline cannot be saved: save its last step, for instance "
            "optirank.save(pipeline[-1], path); a model file holds no other "
            "transformers"
        )
    best = getattr(estimator, "best_estimator_", None)
    if best is not None and hasattr(best, "named_steps"):
        raise TypeError(
            "a search over a Pipeline cannot be saved: save the last step of its best "
            "pipeline, optirank.save(search.best_estimator_[-1], path)"
        )
    try:
        return Model.from_estimator(estimator)
    except TypeError as error:
        raise TypeError(
            f"{error}. A model file holds no pickles, which could run code: fit it "
            "again from the data, or train a PanelClassifier"
        ) from error


def load(path: str | os.PathLike[str]) -> Model:
    """The model in a file written by :func:`save`, or a shipped one.

    No code of a file's can run.

    Parameters
    ----------
    path : a file, or the name of a model, such as ``"pancreas-human"``: ``optirank
        models`` lists them, with those in the folder that the variable
        ``OPTIRANK_MODELS`` names.

    Raises
    ------
    ModelFileError
        A ValueError that names the file and what is wrong with it.
    FileNotFoundError
        Where there is no such file, nor a model of this name.
    """
    path = find_model(path)
    with open(path, "rb") as file, _naming(path):
        model = _read(Archive(file))
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return replace(model, digest=digest)


def as_model(model: Any) -> Model:
    """A model, the one in a file or of a name, or that of a fitted estimator."""
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return load(model)
    return Model.from_estimator(model)


def model_digest(model: Model) -> str:
    """The SHA-256 of a model's file: the one it was read from, or would be
    written to.
    """
    return model.digest or hashlib.sha256(to_bytes(model)).hexdigest()


def to_bytes(model: Model) -> bytes:
    """The content of a model's file; ValueError for one that could not be opened."""
    document, arrays = _describe(model)
    content = write_archive(document, arrays)
    try:
        _read(Archive(io.BytesIO(content)))
    except Exception as error:  # as for a damaged file
        raise ValueError(f"this model cannot be saved: {error}") from error
    return content


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in the error of whatever a damaged one leads to."""
    try:
        yield
    except Exception as error:
        # What is wrong with a file may be anything: 400 characters of it
        what = printable(str(error) or type(error).__name__, 400)
        raise ModelFileError(f"cannot open the model file {path}: {what}") from error


def _describe(model: Model) -> tuple[Document, dict[str, NDArray]]:
    """The document and the arrays of a model."""
    genes = list(model.path_genes)
    place = {gene: position for position, gene in enumerate(genes)}
    columns = np.zeros(len(genes), np.int32)
    arrays: dict[str, NDArray] = {"columns": columns}
    panels: Document = {}
    for size in sorted(model.panels):
        panel = model.panels[size]
        positions = np.array([place[gene] for gene in panel.genes], np.int32)
        columns[positions] = panel.columns
        arrays[f"genes_{size}"] = positions
        single = panel.coef.astype(np.float32)
        exact = bool((single == panel.coef).all())
        arrays[f"coef_{size}"] = single if exact else panel.coef.astype(np.float64)
        panels[str(size)] = _describe_panel(panel) | {"n_rows": len(panel.coef)}
        panels[str(size)]["single_precision"] = exact
        arrays |= _arrays_beside_weights(panel, size)
    document = {
        "format": _FORMAT,
        "schema": SCHEMA,
        "optirank": optirank.__version__,
        "classes": encode(model.classes),
        "n_features": int(model.n_features),
        "n_genes": int(model.n_genes),
        "genes": genes,
        "panels": panels,
        "card": to_plain(model.card),
    }
    return document, arrays


def _describe_panel(panel: SizedPanel) -> Document:
    """What held-out samples say of a panel, and how its rows are ranked."""
    control = panel.error_control
    described: Document = {
        "calibration": panel.calibration and to_plain(panel.calibration),
        "error_control": None,
        "likeness_samples": panel.likeness and panel.likeness.n_samples,
        "missing": to_plain(panel.missing),
        "references": None,
    }
    if control is not None:
        columns = {name: getattr(control, name).tolist() for name in _CONTROL}
        described["error_control"] = columns | {
            "n_samples": control.n_samples,
            "target_error": control.target_error,
        }
    if panel.references is not None:
        described["references"] = {
            "ties": panel.references.ties,
            "softmax": panel.references.softmax,
            "mean_ranks": panel.references.mean_ranks is not None,
        }
    return described


def _arrays_beside_weights(panel: SizedPanel, size: int) -> dict[str, NDArray]:
    arrays: dict[str, NDArray] = {}
    if panel.likeness is not None:
        arrays[f"profiles_{size}"] = panel.likeness.profiles.astype(np.float32)
        arrays[f"levels_{size}"] = panel.likeness.levels.astype(np.float32)
    if panel.references is not None:
        arrays[f"reference_{size}"] = panel.references.weights.astype(np.float64)
        arrays[f"intercept_{size}"] = panel.references.intercept.astype(np.float64)
        if panel.references.mean_ranks is not None:
            arrays[f"mean_ranks_{size}"] = panel.references.mean_ranks
    return arrays


def _read(archive: Archive) -> Model:
    """The model in an archive."""
    document = archive.document()
    schema = document.get("schema")
    if document.get("format") != _FORMAT or type(schema) is not int:
        raise ModelFileError("model.json does not say that it is an optirank model")
    if schema == 3:
        from optirank.model.schema3 import read_schema_3

        model = read_schema_3(document, archive)
    elif schema == SCHEMA:
        model = _read_model(document, archive)
    else:
        raise ModelFileError(
            f"it has schema version {schema}, written by optirank "
            f"{document.get('optirank')!r}; this is optirank {optirank.__version__}, "
            f"which reads versions 3 and {SCHEMA}: update optirank, or train the model "
            "again"
        )
    if archive.left:
        raise ModelFileError(
            f"it holds {min(archive.left)!r}, which does not belong there"
        )
    return model


def _read_model(document: Document, archive: Archive) -> Model:
    classes = read_classes(decode(document.get("classes")))
    genes = _read_genes(document)
    n_features = member(document, "n_features", int)
    columns = archive.take("columns", "int32", len(genes)).astype(np.intp)
    if len(genes) and (columns.min() < 0 or columns.max() >= n_features):
        raise ModelFileError("a gene's column is not one of the training data")
    if len(np.unique(columns)) < len(genes):
        raise ModelFileError("two genes have the same column of the training data")
    described = member(document, "panels", dict)
    panels = {}
    for text, panel in described.items():
        if not text.isdecimal() or not isinstance(panel, dict):
            raise ModelFileError("the sizes of the panels are not numbers of genes")
        size = int(text)
        panels[size] = _read_panel(panel, archive, size, classes, genes, columns)
    n_genes = member(document, "n_genes", int)
    if n_genes not in panels:
        raise ModelFileError(f"it has no panel of {n_genes} genes, the model's own")
    card = from_plain(Card, member(document, "card", dict))
    return Model(classes, n_genes, panels, n_features, card)


def _read_genes(document: Document) -> NDArray[np.object_]:
    names = member(document, "genes", list)
    if not names or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the gene names are not a list of strings")
    if len(set(names)) < len(names):
        raise ModelFileError("a gene name is there more than once")
    return np.array(names, dtype=object)


def _read_panel(
    described: Document,
    archive: Archive,
    size: int,
    classes: NDArray,
    genes: NDArray[np.object_],
    columns: NDArray[np.intp],
) -> SizedPanel:
    n_classes = len(classes)
    n_rows = member(described, "n_rows", int)
    if n_rows not in ((1, 2) if n_classes == 2 else (n_classes,)):
        raise ModelFileError(f"{n_rows} rows of weights do not fit {n_classes} classes")
    if not 1 <= size <= len(genes) or n_rows * size > _MAX_ENTRIES:
        raise ModelFileError(f"a panel of {size} genes does not fit {len(genes)} genes")
    positions = archive.take(f"genes_{size}", "int32", size).astype(np.intp)
    if positions.min() < 0 or positions.max() >= len(genes):
        raise ModelFileError("a panel has a gene that is not in the list of genes")
    if len(np.unique(positions)) < size:
        raise ModelFileError("a panel has the same gene twice")
    kind = "float32" if member(described, "single_precision", bool) else "float64"
    coef = archive.take(f"coef_{size}", kind, n_rows, size).astype(np.float64)
    return SizedPanel(
        genes=genes[positions],
        columns=columns[positions],
        coef=coef,
        references=_read_references(described, archive, size, n_rows),
        calibration=_read_calibration(described),
        error_control=_read_error_control(described),
        likeness=_read_likeness(described, archive, size, n_classes),
        missing=_read_missing(described),
    )


def _read_references(
    described: Document, archive: Archive, size: int, n_rows: int
) -> References | None:
    stored = described.get("references")
    if stored is None:
        return None
    ties = member(stored, "ties", str)
    if ties not in TIES:
        raise ModelFileError(f"ties={ties!r} is not a way to rank ties")
    weights = archive.take(f"reference_{size}", "float64", n_rows, size)
    check_reference_weights(weights)
    means = None
    if member(stored, "mean_ranks", bool):
        means = archive.take(f"mean_ranks_{size}", "float64", n_rows, size)
    return References(
        weights=weights,
        intercept=archive.take(f"intercept_{size}", "float64", n_rows),
        mean_ranks=means,
        ties=ties,
        softmax=member(stored, "softmax", bool),
    )


def check_reference_weights(weights: NDArray) -> None:
    """Refuse reference weights that are none."""
    if weights.min() < 0 or weights.max() > 1 or not weights.any(axis=1).all():
        raise ModelFileError(
            "reference weights lie outside [0, 1], or are all zero in a row"
        )


def _read_calibration(described: Document) -> Calibration | None:
    stored = described.get("calibration")
    return None if stored is None else from_plain(Calibration, stored, "calibration")


def _read_error_control(described: Document) -> ErrorControl | None:
    stored = described.get("error_control")
    if stored is None:
        return None
    columns = {
        name: np.array(from_plain(tuple[float, ...], stored.get(name), name))
        for name in _CONTROL
    }
    target = stored.get("target_error")
    return ErrorControl(
        **columns,
        n_samples=member(stored, "n_samples", int),
        target_error=from_plain(float, target) if target is not None else None,
    )


def _read_likeness(
    described: Document, archive: Archive, size: int, n_classes: int
) -> Likeness | None:
    n_samples = described.get("likeness_samples")
    if n_samples is None:
        return None
    return Likeness(
        profiles=archive.take(f"profiles_{size}", "float32", n_classes, size),
        levels=archive.take(f"levels_{size}", "float32", n_classes, N_LEVELS),
        n_samples=member(described, "likeness_samples", int),
    )


def _read_missing(described: Document) -> tuple[tuple[float, float], ...]:
    rows = from_plain(tuple[tuple[float, ...], ...], described.get("missing"))
    shares = [row[0] for row in rows]
    if any(len(row) != 2 for row in rows) or shares != sorted(set(shares)):
        raise ModelFileError("the accuracies with missing genes are no rising table")
    return tuple((row[0], row[1]) for row in rows)
