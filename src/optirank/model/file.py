"""The model file: a zip of ``model.json`` and arrays, from which nothing can run.

``model.json`` has names, numbers and lists of them. A table of numbers is an array of
its own, whose name says where it belongs, such as ``panels/100/coef``. Each part of a
model has a function that writes it and one that reads it, key by key, and checks itself
that it makes sense. A file is a model if writing what was read gives the same document:
so an entry more, or of another type, is refused.

The name of a model is that of a file ``NAME.optirank`` without its ending, shipped with
optirank or in the folder ``OPTIRANK_MODELS``. Nothing is downloaded.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import logging
import os
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import optirank
from optirank._util.files import write_bytes
from optirank._util.names import printable, some
from optirank.model.archive import Archive, refuse_if, write_archive
from optirank.model.card import Card, ClassCounts, JudgedSet
from optirank.model.confidence import Calibration, ErrorControl
from optirank.model.likeness import FurtherGenes, Likeness
from optirank.model.model import Model
from optirank.model.predictor import References, SizedPanel
from optirank.model.tree import Tree

logger = logging.getLogger(__name__)
VARIABLE = "OPTIRANK_MODELS"
SUFFIX = ".optirank"
SHIPPED = Path(str(files("optirank") / "models"))
SCHEMA = 1
_FORMAT = "optirank-model"
_LABEL_CHARACTERS = 1 << 22  # of all labels, padded to the longest: 16 MiB
_CURVES = ("thresholds", "errors", "bounds", "least", "kept")  # of the error control


class ModelFileError(ValueError):
    """A model file that cannot be opened; the message names the file and what is
    wrong.
    """


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
    model = _model_of(model)
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists: name another file, or replace it (overwrite=True)"
        )
    write_bytes(path, to_bytes(model))


def _model_of(thing: Any) -> Model:
    """A model, that of a result such as a training's, or that of an estimator."""
    found = getattr(thing, "model", thing)
    return found if isinstance(found, Model) else Model.from_estimator(thing)


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
            model = _read_model(Archive(file))
        except Exception as error:  # what is wrong with a file may be anything
            damaged = f"it is damaged ({error!r})"
            what = str(error) if type(error) is ValueError else damaged
            raise ModelFileError(
                f"cannot open the model file {path}: {printable(what, 400)}"
            ) from error
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return replace(model, digest=digest)


def as_model(model: Any) -> Model:
    """A model; that of a result, in a file, of a name or of a fitted estimator."""
    if isinstance(model, str | os.PathLike):
        return load(model)
    return _model_of(model)


def model_digest(model: Model) -> str:
    """The SHA-256 of a model's file: the one it was read from, or would be
    written to.
    """
    return model.digest or hashlib.sha256(to_bytes(model)).hexdigest()


def to_bytes(model: Model) -> bytes:
    """The content of a model's file; ValueError for one that could not be opened."""
    header = {"format": _FORMAT, "schema": SCHEMA, "optirank": optirank.__version__}
    try:
        document, arrays = _write_model(model)
        content = write_archive(header | document, arrays)
        _read_model(Archive(io.BytesIO(content)))
    except Exception as error:  # as for a damaged file
        raise ValueError(f"this model cannot be saved: {error!r}") from error
    return content


def _write_model(model: Model) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """The document and the arrays of a model; what it does not have is left out."""
    kind = model.classes.dtype
    document: dict[str, Any] = {
        "label_type": "str" if kind.kind == "U" else kind.name,
        "classes": model.classes.tolist(),
        "n_genes": model.n_genes,
        "n_features": model.n_features,
        "terms": dict(model.terms),
        "card": asdict(model.card),
        "panels": {},
    }
    arrays: dict[str, NDArray] = {}
    for size, panel in sorted(model.panels.items()):
        document["panels"][size], of_panel = _write_panel(panel)
        arrays |= {f"panels/{size}/{name}": of_panel[name] for name in of_panel}
    if model.further is not None:
        document["further"] = model.further.genes.tolist()
        arrays["further"] = model.further.means
    if model.tree is not None:
        document["tree"] = asdict(model.tree)
    # JSON has neither tuples nor NaN
    return json.loads(json.dumps(document), parse_constant=lambda _: None), arrays


def _write_panel(panel: SizedPanel) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """The entries and the arrays of a panel."""
    document: dict[str, Any] = {
        "genes": panel.genes.tolist(),
        "columns": panel.columns.tolist(),
        "missing": panel.missing,
    }
    arrays: dict[str, NDArray] = {"coef": panel.coef}
    if (references := panel.references) is not None:
        intercept = references.intercept.tolist()
        document["references"] = {"ties": references.ties, "intercept": intercept}
        arrays["reference_weights"] = references.weights
        if references.mean_ranks is not None:
            arrays["mean_ranks"] = references.mean_ranks
    if panel.calibration is not None:
        document["calibration"] = asdict(panel.calibration)
    if (control := panel.error_control) is not None:
        curves = {name: getattr(control, name).tolist() for name in _CURVES}
        document["error_control"] = curves | {"n_samples": control.n_samples}
    if (likeness := panel.likeness) is not None:
        medians = likeness.medians.tolist()
        document["likeness"] = {"medians": medians, "n_samples": likeness.n_samples}
        arrays["profiles"] = likeness.profiles
    return document, arrays


def _read_model(archive: Archive) -> Model:
    """The model in a file; ValueError, or another error, for anything else."""
    document = archive.document()
    name, schema, version = (
        document.pop(key, None) for key in ("format", "schema", "optirank")
    )
    refuse_if(name != _FORMAT, "model.json does not say that it is an optirank model")
    refuse_if(
        schema != SCHEMA,
        f"it has schema version {schema}, written by optirank {version!r}; this is "
        f"optirank {optirank.__version__}, which reads version {SCHEMA}: update "
        "optirank, or train the model again",
    )
    classes = _read_classes(document["classes"], document["label_type"])
    n_classes = len(classes)
    further = tree = None
    if "further" in document:
        genes = np.array([str(gene) for gene in document["further"]], dtype=object)
        means = archive.array("further", np.float16, (n_classes, len(genes)))
        further = FurtherGenes(genes, means)
    if "tree" in document:
        part = document["tree"]
        parents = {label: str(above) for label, above in part["parents"].items()}
        tree = Tree(parents, tuple(str(level) for level in part["levels"]))
    model = Model(
        classes=classes,
        n_genes=int(document["n_genes"]),
        panels={
            int(size): _read_panel(part, archive, f"panels/{size}", n_classes)
            for size, part in document["panels"].items()
        },
        n_features=int(document["n_features"]),
        card=_read_card(document["card"]),
        further=further,
        tree=tree,
        terms={label: str(term) for label, term in document["terms"].items()},
    )
    refuse_if(bool(archive.left), f"{archive.left[:1]} does not belong there")
    written, _ = _write_model(model)
    for name in sorted(document.keys() | written.keys()):
        texts = {
            json.dumps(entries.get(name), allow_nan=False, sort_keys=True)
            for entries in (written, document)
        }
        refuse_if(len(texts) > 1, f"{name!r} is not as optirank writes it")
    return model


def _read_classes(labels: list[Any], type_name: str) -> NDArray:
    """The labels, as an array of the type that the file names."""
    dtype = np.dtype(type_name)
    refuse_if(
        dtype.kind not in "UObiuf" or dtype.name != type_name,
        f"the classes are of unknown type {type_name!r}",
    )
    texts = [str(label) for label in labels]
    longest = max(map(len, texts), default=0)
    refuse_if(
        longest * len(labels) > _LABEL_CHARACTERS,
        f"{len(labels)} labels of up to {longest} characters: together at most "
        f"{_LABEL_CHARACTERS} are allowed",
    )
    return np.array(texts if dtype.kind in "UO" else labels, dtype)


def _read_panel(
    part: dict[str, Any], archive: Archive, place: str, n_classes: int
) -> SizedPanel:
    """A panel, with what it has beyond its weights."""
    genes = np.array([str(gene) for gene in part["genes"]], dtype=object)
    shape = (1 if n_classes == 2 else n_classes, len(genes))
    references = calibration = error_control = likeness = mean_ranks = None
    if "references" in part:
        if f"{place}/mean_ranks.npy" in archive.left:
            mean_ranks = archive.array(f"{place}/mean_ranks", np.float64, shape)
        references = References(
            archive.array(f"{place}/reference_weights", np.float64, shape),
            np.array(part["references"]["intercept"], np.float64),
            str(part["references"]["ties"]),
            mean_ranks,
        )
    if "calibration" in part:
        slope, offset, n_samples = (
            part["calibration"][name] for name in ("slope", "offset", "n_samples")
        )
        calibration = Calibration(float(slope), float(offset), int(n_samples))
    if "error_control" in part:
        curves = (np.array(part["error_control"][name], float) for name in _CURVES)
        error_control = ErrorControl(*curves, int(part["error_control"]["n_samples"]))
    if "likeness" in part:
        likeness = Likeness(
            archive.array(f"{place}/profiles", np.float32, (n_classes, len(genes))),
            np.array(part["likeness"]["medians"], np.float32),
            int(part["likeness"]["n_samples"]),
        )
    return SizedPanel(
        genes,
        np.array(part["columns"], np.intp),
        archive.array(f"{place}/coef", np.float64, shape),
        references,
        calibration,
        error_control,
        likeness,
        tuple((float(share), _number(accuracy)) for share, accuracy in part["missing"]),
    )


def _number(value: Any) -> float:
    """A number that may be NaN, which JSON lacks."""
    return float("nan") if value is None else float(value)


def _read_card(part: dict[str, Any]) -> Card:
    """The card of a model."""
    texts = ("name", "description", "tissue", "species", "method", "source", "label",
             "batch", "terms", "labels_sha256", "command")  # fmt: skip
    counts = ("n_samples", "n_genes_of_file", "n_folds")
    figures = ("balanced_accuracy", "standard_error")
    values = part["values"] and {
        "scale": str(part["values"]["scale"]),
        "zeros": float(part["values"]["zeros"]),
        "negative": float(part["values"]["negative"]),
    }
    return Card(
        **{name: str(part[name]) for name in texts},
        **{name: int(part[name]) for name in counts},
        **{name: float(part[name]) for name in figures if part[name] is not None},
        sources={name: str(digest) for name, digest in part["sources"].items()},
        class_counts={name: int(n) for name, n in part["class_counts"].items()},
        values=values,
        interval=tuple(float(end) for end in part["interval"]),
        held_out=_read_counts(part["held_out"]),
        curve=tuple(
            (int(size), _number(accuracy), _number(error))
            for size, accuracy, error in part["curve"]
        ),
        judged=tuple(
            JudgedSet(
                str(judged["name"]),
                _read_counts(judged["classes"]),
                str(judged["platform"]),
                bool(judged["left_out"]),
                str(judged["terms"]),
            )
            for judged in part["judged"]
        ),
        baselines={name: float(share) for name, share in part["baselines"].items()},
        versions={name: str(version) for name, version in part["versions"].items()},
        notes=tuple(str(note) for note in part["notes"]),
    )


def _read_counts(part: dict[str, Any]) -> dict[str, ClassCounts]:
    """How samples were labelled, by class."""
    names = ("right", "n", "false", "n_others")
    return {
        label: ClassCounts(*(int(counts[name]) for name in names))
        for label, counts in part.items()
    }


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
