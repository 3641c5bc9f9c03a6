"""The model file: a zip of ``model.json`` and arrays, from which nothing can run.

`Document`, `PanelEntry` and `ARRAYS` say all that a file holds. Weights are stored for
the genes of the panels alone.

The name of a model is that of a file ``NAME.optirank`` without its ending, shipped with
optirank or in the folder ``OPTIRANK_MODELS``. Nothing is downloaded.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import logging
import os
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

import optirank
from optirank._util.files import write_bytes
from optirank._util.names import printable, some
from optirank.model.archive import (
    Archive,
    ModelFileError,
    from_plain,
    refuse_if,
    to_plain,
    write_archive,
)
from optirank.model.card import Card
from optirank.model.confidence import Calibration, ErrorControl
from optirank.model.likeness import N_LEVELS, FurtherGenes, Likeness
from optirank.model.model import Model, References, SizedPanel
from optirank.model.tree import Terms, Tree
from optirank.ranks.relative import TIES

logger = logging.getLogger(__name__)
VARIABLE = "OPTIRANK_MODELS"
SUFFIX = ".optirank"
SHIPPED = Path(str(files("optirank") / "models"))
SCHEMA = 1
_FORMAT = "optirank-model"
_MAX_ENTRIES = 1 << 24  # weights over all rows and genes: 128 MiB
_LABEL_CHARACTERS = 1 << 22  # of all labels, padded to the longest: 16 MiB


class PanelEntry(TypedDict):
    """What ``model.json`` says of the panel of one size."""

    calibration: Calibration | None
    error_control: ErrorControl | None
    likeness_samples: int | None  # held-out samples; None without profiles and levels
    missing: tuple[tuple[float, float], ...]
    ties: str | None  # of reference sets; None for votes among the panel's genes


class _Optional(TypedDict, total=False):
    """What ``model.json`` holds of some models."""

    further: tuple[str, ...]  # names of genes outside the panel: see `FurtherGenes`
    tree: Tree  # of models with coarser labels
    terms: Terms  # of models whose labels have Cell Ontology terms


class Document(_Optional):
    """What ``model.json`` holds."""

    format: str
    schema: int
    optirank: str  # the version that wrote it
    classes: tuple[str | bool | int | float, ...]
    label_type: str  # NumPy's, of the classes
    n_features: int
    n_genes: int
    n_rows: int  # of weights
    genes: tuple[str, ...]  # of all panels
    panels: dict[str, PanelEntry]  # by size
    card: Card


# Arrays of the panel of k genes are named NAME_k; the first two are there once
ARRAYS = {
    "further": "float16",  # (classes, further genes): see `FurtherGenes`
    "columns": "int32",  # (genes,) in the training data
    "genes": "int32",  # (k,), positions among the genes
    "coef": "float64",  # (rows, k)
    "profiles": "float32",  # (classes, k): see `Likeness`
    "levels": "float32",  # (classes, 101)
    "reference": "float64",  # (rows, k): see `References`
    "intercept": "float64",  # (rows,)
    "mean_ranks": "float64",  # (rows, k), where training stored them
}


def save(model: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a model to a file that :func:`load` gives back.

    The same model gives the same bytes. The file is written under another name and
    renamed, so a reader never sees half of it.

    Parameters
    ----------
    model : a Model, the result of a training, or a fitted PanelClassifier,
        OptirankClassifier, OptirankClassifierCV, RankLogisticRegression or
        AnovaRankLogisticRegression.
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
    model = _within(model)
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
    with open(path, "rb") as file:
        try:
            model = _read(Archive(file))
        except Exception as error:
            # What is wrong with a file may be anything: 400 characters of it
            what = printable(str(error) or type(error).__name__, 400)
            raise ModelFileError(
                f"cannot open the model file {path}: {what}"
            ) from error
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return replace(model, digest=digest)


def as_model(model: Any) -> Model:
    """A model; that of a result, in a file, of a name or of a fitted estimator."""
    if isinstance(model, str | os.PathLike):
        return load(model)
    model = _within(model)
    return model if isinstance(model, Model) else Model.from_estimator(model)


def _within(thing: Any) -> Any:
    """The model of a result, such as that of a training; all else as it is."""
    found = getattr(thing, "model", None)
    return found if isinstance(found, Model) else thing


def model_digest(model: Model) -> str:
    """The SHA-256 of a model's file: the one it was read from, or would be
    written to.
    """
    return model.digest or hashlib.sha256(to_bytes(model)).hexdigest()


def to_bytes(model: Model) -> bytes:
    """The content of a model's file; ValueError for one that could not be opened."""
    document, arrays = _describe(model)
    try:
        content = write_archive(to_plain(document), arrays)
        _read(Archive(io.BytesIO(content)))
    except Exception as error:  # as for a damaged file
        raise ValueError(f"this model cannot be saved: {error}") from error
    return content


def _describe(model: Model) -> tuple[Document, dict[str, NDArray]]:
    """The document and the arrays of a model."""
    genes = model.path_genes
    place = {gene: position for position, gene in enumerate(genes)}
    columns = np.zeros(len(genes), ARRAYS["columns"])
    arrays: dict[str, NDArray] = {"columns": columns}
    panels: dict[str, PanelEntry] = {}
    for size in sorted(model.panels):
        panel = model.panels[size]
        positions = np.array([place[gene] for gene in panel.genes])
        columns[positions] = panel.columns
        likeness, references = panel.likeness, panel.references
        of_panel = {
            "genes": positions,
            "coef": panel.coef,
            "profiles": likeness and likeness.profiles,
            "levels": likeness and likeness.levels,
            "reference": references and references.weights,
            "intercept": references and references.intercept,
            "mean_ranks": references and references.mean_ranks,
        }
        for name, array in of_panel.items():
            if array is not None:
                arrays[f"{name}_{size}"] = array.astype(ARRAYS[name])
        panels[str(size)] = PanelEntry(
            calibration=panel.calibration,
            error_control=panel.error_control,
            likeness_samples=likeness and likeness.n_samples,
            missing=panel.missing,
            ties=references and references.ties,
        )
    document = Document(
        format=_FORMAT,
        schema=SCHEMA,
        optirank=optirank.__version__,
        classes=tuple(model.classes.tolist()),
        label_type="str"
        if model.classes.dtype.kind == "U"
        else model.classes.dtype.name,
        n_features=int(model.n_features),
        n_genes=int(model.n_genes),
        n_rows=len(model.panel.coef),
        genes=genes,
        panels=panels,
        card=model.card,
    )
    if model.further is not None:
        document["further"] = tuple(model.further.genes.tolist())
        arrays["further"] = model.further.means.astype(ARRAYS["further"])
    if model.tree is not None:
        document["tree"] = model.tree
    if model.terms is not None:
        document["terms"] = model.terms
    return document, arrays


def _read(archive: Archive) -> Model:
    """The model in an archive."""
    stored = archive.document()
    schema = stored.get("schema")
    refuse_if(
        stored.get("format") != _FORMAT or type(schema) is not int,
        "model.json does not say that it is an optirank model",
    )
    refuse_if(
        schema != SCHEMA,
        f"it has schema version {schema}, written by optirank "
        f"{stored.get('optirank')!r}; this is optirank {optirank.__version__}, "
        f"which reads version {SCHEMA}: update optirank, or train the model again",
    )
    document = from_plain(Document, stored, "model.json")
    classes = _read_classes(document)
    genes = np.array(document["genes"], dtype=object)
    refuse_if(
        not len(genes) or len(set(document["genes"])) < len(genes),
        "it has no genes, or a gene name more than once",
    )
    columns = archive.take("columns", ARRAYS["columns"], len(genes)).astype(np.intp)
    refuse_if(
        columns.min() < 0 or columns.max() >= document["n_features"],
        "a gene's column is not one of the training data",
    )
    refuse_if(
        len(np.unique(columns)) < len(genes),
        "two genes have the same column of the training data",
    )
    panels = {}
    for text, entry in document["panels"].items():
        size = int(text) if text.isdecimal() else 0
        n_entries = document["n_rows"] * size
        refuse_if(
            not 1 <= size <= len(genes) or n_entries > _MAX_ENTRIES,
            f"a panel of size {text!r} does not fit {len(genes)} genes",
        )
        panels[size] = _read_panel(
            entry, archive, size, document["n_rows"], len(classes), genes, columns
        )
    refuse_if(
        document["n_genes"] not in panels,
        f"it has no panel of {document['n_genes']} genes, the model's own",
    )
    further = _read_further(document, archive, len(classes))
    if archive.left:
        raise ModelFileError(
            f"it holds {min(archive.left)!r}, which does not belong there"
        )
    return Model(
        classes=classes,
        n_genes=document["n_genes"],
        panels=panels,
        n_features=document["n_features"],
        card=document["card"],
        further=further,
        tree=document.get("tree"),
        terms=document.get("terms"),
    )


def _read_further(
    document: Document, archive: Archive, n_classes: int
) -> FurtherGenes | None:
    """The genes outside the panel, where the model knows some."""
    names = document.get("further")
    if names is None:
        return None
    refuse_if(
        len(set(names)) < max(1, len(names)),
        "it has no further genes, or a name more than once",
    )
    refuse_if(
        n_classes * len(names) > _MAX_ENTRIES,
        f"{len(names)} further genes are too many",
    )
    means = archive.take("further", ARRAYS["further"], n_classes, len(names))
    return FurtherGenes(np.array(names, dtype=object), means)


def _read_classes(document: Document) -> NDArray:
    """The labels: two or more, different, as many as there are rows of weights."""
    labels = document["classes"]
    dtype = np.dtype(document["label_type"])
    refuse_if(
        dtype.kind not in "UObiuf" or dtype.name != document["label_type"],
        f"the classes are of unknown type {document['label_type']!r}",
    )
    longest = max((len(label) for label in labels if isinstance(label, str)), default=0)
    refuse_if(
        longest * len(labels) > _LABEL_CHARACTERS,
        f"{len(labels)} labels of up to {longest} characters: together at most "
        f"{_LABEL_CHARACTERS} are allowed",
    )
    try:
        classes = np.array(labels, dtype=dtype)
    except (ValueError, OverflowError):
        classes = np.array([], dtype=dtype)
    refuse_if(
        classes.tolist() != list(labels),
        f"the classes are not all of type {dtype.name!r}",
    )
    refuse_if(
        len(set(labels)) < max(2, len(labels)),
        "the classes are not two or more distinct labels",
    )
    n_rows = document["n_rows"]
    refuse_if(
        n_rows not in ((1, 2) if len(classes) == 2 else (len(classes),)),
        f"{n_rows} rows of weights do not fit {len(classes)} classes",
    )
    return classes


def _read_panel(
    entry: PanelEntry,
    archive: Archive,
    size: int,
    n_rows: int,
    n_classes: int,
    genes: NDArray[np.object_],
    columns: NDArray[np.intp],
) -> SizedPanel:
    """The panel of one size, with its arrays."""

    def take(name: str, *shape: int) -> NDArray:
        return archive.take(f"{name}_{size}", ARRAYS[name], *shape)

    positions = take("genes", size).astype(np.intp)
    refuse_if(
        positions.min() < 0 or positions.max() >= len(genes),
        "a panel has a gene that is not in the list of genes",
    )
    refuse_if(len(np.unique(positions)) < size, "a panel has the same gene twice")
    shares = [share for share, _ in entry["missing"]]
    refuse_if(
        shares != sorted(set(shares)),
        "the accuracies with missing genes are no rising table",
    )
    likeness = None
    if entry["likeness_samples"] is not None:
        profiles = take("profiles", n_classes, size)
        levels = take("levels", n_classes, N_LEVELS)
        likeness = Likeness(profiles, levels, entry["likeness_samples"])
    references = None
    if entry["ties"] is not None:
        refuse_if(
            entry["ties"] not in TIES,
            f"ties={entry['ties']!r} is not a way to rank ties",
        )
        weights = take("reference", n_rows, size)
        refuse_if(
            weights.min() < 0 or weights.max() > 1 or not weights.any(axis=1).all(),
            "reference weights lie outside [0, 1], or are all zero in a row",
        )
        means = None
        if f"mean_ranks_{size}" in archive.left:
            means = take("mean_ranks", n_rows, size)
        intercept = take("intercept", n_rows)
        references = References(weights, intercept, means, entry["ties"])
    return SizedPanel(
        genes=genes[positions],
        columns=columns[positions],
        coef=take("coef", n_rows, size),
        references=references,
        calibration=entry["calibration"],
        error_control=entry["error_control"],
        likeness=likeness,
        missing=entry["missing"],
    )


def known_models() -> dict[str, Path]:
    """The models that can be called by name, sorted; one of the user's folder wins."""
    folders = [SHIPPED]
    if given := os.environ.get(VARIABLE):
        folders.append(Path(given))
        if not folders[-1].is_dir():
            logger.warning(
                "note: %s names %s, which is no folder of models", VARIABLE, given
            )
    paths = {
        path.stem: path for folder in folders for path in folder.glob(f"*{SUFFIX}")
    }
    return dict(sorted(paths.items()))


def find_model(name: str | os.PathLike[str]) -> Path:
    """The file of a model that is given as a file or by name; a file wins,
    with a note.
    """
    path = Path(name)
    bare = path.name == os.fspath(name)
    if path.is_file():
        if bare and path.name in known_models():
            logger.warning(
                "note: the file %s is used, not the model of this name", path
            )
        return path
    models = known_models() if bare else {}
    if path.name in models:
        known = models[path.name]
        if known.parent != SHIPPED and (SHIPPED / known.name).is_file():
            logger.warning(
                "note: %s is used, not the shipped model of this name", known
            )
        return known
    if path.exists() or not bare:
        what = "is a folder, not a model file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"the model file {path} {what}")
    close = difflib.get_close_matches(path.stem, models, n=3, cutoff=0.5)
    hint = f"there are {some(models, 20)}"
    if close:
        hint = f"close names are {some(close)}"
    raise FileNotFoundError(
        f"{os.fspath(name)!r} is neither a file nor the name of a model; {hint} "
        "(optirank models)"
    )
