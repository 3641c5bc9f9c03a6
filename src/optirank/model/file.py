"""The model file: a zip of ``model.json`` and arrays, read without trust.

A model file may come from someone else. Nothing in it can run: there is no pickle, and
only plain values are built. Sizes are checked before memory is allocated: those of the
file and its members, the number of values in the JSON text, and of each array, whose
type and shape the reader knows beforehand.

``model.json`` has names, numbers and lists of them. A table of numbers is an array of
its own, and its place in the document has its name, such as ``panels/100/coef``. Each
part of a model has a function that reads it, key by key, and checks itself that it
makes sense. A file is a model if writing what was read gives the same document: so an
entry more, or of another type, is refused.

The name of a model is that of a file ``NAME.optirank`` without its ending, shipped with
optirank or in the folder ``OPTIRANK_MODELS``. Nothing is downloaded.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import logging
import math
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

import optirank
from optirank._util.files import replacing
from optirank._util.words import printable, some
from optirank.model.card import Card, ClassCounts, JudgedSet
from optirank.model.confidence import Calibration, ErrorControl
from optirank.model.likeness import FurtherGenes, Likeness
from optirank.model.model import Model
from optirank.model.panels import References, SizedPanel
from optirank.model.tree import Tree

logger = logging.getLogger(__name__)
VARIABLE = "OPTIRANK_MODELS"
SUFFIX = ".optirank"
SHIPPED = Path(str(files("optirank") / "models"))
SCHEMA = 1
_FORMAT = "optirank-model"
_FILE_BYTES = 1 << 28  # a model of 20 classes and 1000 genes takes less than 1 MiB
_JSON_BYTES = 1 << 24  # of its document: the names of half a million genes
_JSON_VALUES = 1 << 21  # an empty list of two characters takes 60 bytes of memory
_HEADER_BYTES = 1 << 12  # NumPy writes 128 for an array of plain numbers
_ENTRIES = 1 << 24  # of an array: 128 MiB of weights
_DOCUMENT = "model.json"
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
    model = as_model(model)
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists: name another file, or replace it (overwrite=True)"
        )
    content = to_bytes(model)
    with replacing(path) as temporary:
        temporary.write_bytes(content)


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
            model = _read_model(_Archive(file))
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
    found = getattr(model, "model", model)
    return found if isinstance(found, Model) else Model.from_estimator(model)


def model_digest(model: Model) -> str:
    """The SHA-256 of a model's file: the one it was read from, or would be
    written to.
    """
    return model.digest or hashlib.sha256(to_bytes(model)).hexdigest()


def to_bytes(model: Model) -> bytes:
    """The content of a model's file: the same model gives the same bytes."""
    header = {"format": _FORMAT, "schema": SCHEMA, "optirank": optirank.__version__}
    document, arrays = _write_model(model)
    text = json.dumps(header | document, allow_nan=False, separators=(",", ":"))
    _refuse_if(len(text) > _JSON_BYTES, f"{_DOCUMENT} has {len(text)} bytes")
    members = {_DOCUMENT: text.encode("ascii")}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in members.items():
            info = zipfile.ZipInfo(name)  # of 1980, whenever it is written
            info.external_attr = 0o644 << 16
            archive.writestr(info, member, zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _write_model(model: Model) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """The document and the arrays of a model."""
    kind = model.classes.dtype
    parts = {
        "label_type": "str" if kind.kind == "U" else kind.name,
        "classes": model.classes,
        "n_genes": model.n_genes,
        "n_features": model.n_features,
        "card": asdict(model.card),
        "panels": dict(sorted(model.panels.items())),
        "further": model.further,
        "tree": model.tree,
        "terms": model.terms,
    }
    arrays: dict[str, NDArray] = {}
    document = json.dumps(_plain(parts, arrays))
    # JSON has neither tuples nor NaN
    return json.loads(document, parse_constant=lambda _: None), arrays


def _plain(part: Any, arrays: dict[str, NDArray], *path: str) -> Any:
    """A part of a model as JSON holds it; what it does not have is left out.

    Tables are put among ``arrays``, by their path.
    """
    if is_dataclass(part):
        part = {field.name: getattr(part, field.name) for field in fields(part)}
    if isinstance(part, Mapping):
        return {
            str(name): _plain(value, arrays, *path, str(name))
            for name, value in part.items()
            if value is not None
        }
    if isinstance(part, np.ndarray) and part.ndim > 1:
        arrays["/".join(path)] = part
        return "/".join(path)
    return part.tolist() if isinstance(part, np.ndarray) else part


def _refuse_if(wrong: bool | np.bool_, what: str) -> None:
    """A ValueError that says what is wrong with a file."""
    if wrong:
        raise ValueError(what)


class _Archive:
    """An open model file, which gives out its document and its arrays, each once.

    ``left`` are the names of those that nobody asked for yet.
    """

    def __init__(self, file: IO[bytes]) -> None:
        size = file.seek(0, io.SEEK_END)
        _refuse_if(size > _FILE_BYTES, f"it has {size} bytes, more than {_FILE_BYTES}")
        self._zip = zipfile.ZipFile(file)
        self.left = self._zip.namelist()
        _refuse_if(
            len(set(self.left)) < len(self.left), "it holds members of the same name"
        )

    def document(self) -> dict[str, Any]:
        """The document, plain values by name."""
        text = self._take(_DOCUMENT, _JSON_BYTES)
        n_values = text.count(b",") + text.count(b"[") + text.count(b"{")
        _refuse_if(
            n_values > _JSON_VALUES,
            f"{_DOCUMENT} has {n_values} values, more than {_JSON_VALUES}",
        )
        document = json.loads(text)
        _refuse_if(not isinstance(document, dict), f"{_DOCUMENT} is not an object")
        return document

    def array(
        self, name: str, dtype: type[np.generic], shape: tuple[int, ...]
    ) -> NDArray:
        """The array of this name, of finite numbers of this type and shape."""
        n_entries = math.prod(shape)
        _refuse_if(n_entries > _ENTRIES, f"array {name!r} has {n_entries} entries")
        n_bytes = n_entries * np.dtype(dtype).itemsize
        content = io.BytesIO(self._take(f"{name}.npy", n_bytes + _HEADER_BYTES))
        np.lib.format.read_magic(content)
        header = np.lib.format.read_array_header_1_0(content, _HEADER_BYTES)
        _refuse_if(
            header != (shape, False, np.dtype(dtype)),
            f"array {name!r} has shape, order by columns and type {header}, expected "
            f"{(shape, False, np.dtype(dtype))}",
        )
        values = content.read()
        _refuse_if(len(values) != n_bytes, f"array {name!r} is not as long as it says")
        array = np.frombuffer(values, dtype).reshape(shape).copy()
        _refuse_if(
            not np.isfinite(array).all(), f"array {name!r} has NaN or infinite values"
        )
        return array

    def _take(self, name: str, limit: int) -> bytes:
        """A member's bytes, ``limit`` at most."""
        _refuse_if(name not in self.left, f"it lacks {name}")
        self.left.remove(name)
        info = self._zip.getinfo(name)
        _refuse_if(
            info.file_size > limit,
            f"{name} has {info.file_size} bytes, more than {limit}",
        )
        _refuse_if(
            info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
            f"{name} is compressed in a way whose size cannot be bounded",
        )
        with self._zip.open(info) as member:
            return member.read(limit)


def _read_model(archive: _Archive) -> Model:
    """The model in a file; ValueError, or another error, for anything else."""
    document = archive.document()
    name, schema, version = (
        document.pop(key, None) for key in ("format", "schema", "optirank")
    )
    _refuse_if(name != _FORMAT, "model.json does not say that it is an optirank model")
    _refuse_if(
        schema != SCHEMA,
        f"it has schema version {schema}, written by optirank {version!r}; this is "
        f"optirank {optirank.__version__}, which reads version {SCHEMA}: update "
        "optirank, or train the model again",
    )
    classes = _read_classes(document["classes"], document["label_type"])
    n_classes = len(classes)
    further = tree = None
    if "further" in document:
        genes = np.array([*map(str, document["further"]["genes"])], dtype=object)
        means = archive.array("further/means", np.float16, (n_classes, len(genes)))
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
    _refuse_if(bool(archive.left), f"{archive.left[:1]} does not belong there")
    written, _ = _write_model(model)
    for name in sorted(document.keys() | written.keys()):
        texts = {
            json.dumps(entries.get(name), allow_nan=False, sort_keys=True)
            for entries in (written, document)
        }
        _refuse_if(len(texts) > 1, f"{name!r} is not as optirank writes it")
    return model


def _read_classes(labels: list[Any], type_name: str) -> NDArray:
    """The labels, as an array of the type that the file names."""
    dtype = np.dtype(type_name)
    _refuse_if(
        dtype.kind not in "UObiuf" or dtype.name != type_name,
        f"the classes are of unknown type {type_name!r}",
    )
    texts = [str(label) for label in labels]
    longest = max(map(len, texts), default=0)
    _refuse_if(
        longest * len(labels) > _LABEL_CHARACTERS,
        f"{len(labels)} labels of up to {longest} characters: together at most "
        f"{_LABEL_CHARACTERS} are allowed",
    )
    return np.array(texts if dtype.kind in "UO" else labels, dtype)


def _read_panel(
    part: dict[str, Any], archive: _Archive, place: str, n_classes: int
) -> SizedPanel:
    """A panel, with what it has beyond its weights."""
    genes = np.array([*map(str, part["genes"])], dtype=object)
    shape = (1 if n_classes == 2 else n_classes, len(genes))
    measured: dict[str, Any] = {}
    if "references" in part:
        inner, where = part["references"], f"{place}/references"
        measured["references"] = References(
            weights=archive.array(f"{where}/weights", np.float64, shape),
            intercept=np.array(inner["intercept"], np.float64),
            ties=str(inner["ties"]),
            mean_ranks=archive.array(f"{where}/mean_ranks", np.float64, shape)
            if "mean_ranks" in inner
            else None,
        )
    if "calibration" in part:
        inner = part["calibration"]
        measured["calibration"] = Calibration(
            float(inner["slope"]), float(inner["offset"]), int(inner["n_samples"])
        )
    if "error_control" in part:
        inner = part["error_control"]
        curves = {name: np.array(inner[name], np.float64) for name in _CURVES}
        n_samples = int(inner["n_samples"])
        measured["error_control"] = ErrorControl(**curves, n_samples=n_samples)
    if "likeness" in part:
        inner, where = part["likeness"], f"{place}/likeness/profiles"
        measured["likeness"] = Likeness(
            archive.array(where, np.float32, (n_classes, len(genes))),
            np.array(inner["medians"], np.float32),
            int(inner["n_samples"]),
        )
    return SizedPanel(
        genes=genes,
        columns=np.array(part["columns"], np.intp),
        coef=archive.array(f"{place}/coef", np.float64, shape),
        missing=tuple(
            (float(share), _number(accuracy)) for share, accuracy in part["missing"]
        ),
        **measured,
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
    values = {"scale": str, "zeros": float, "negative": float}
    plain: dict[str, Any] = {
        **{name: str(part[name]) for name in texts},
        **{name: int(part[name]) for name in counts},
        **{name: _number(part[name]) for name in figures if name in part},
    }
    return Card(
        **plain,
        sources={name: str(digest) for name, digest in part["sources"].items()},
        class_counts={name: int(n) for name, n in part["class_counts"].items()},
        values={
            name: kind(part["values"][name])
            for name, kind in values.items()
            if part["values"]
        },
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
    read = {}
    for label, counts in part.items():
        right, n, false, n_others = (int(counts[name]) for name in names)
        _refuse_if(
            not (0 <= right <= n and 0 <= false <= n_others),
            f"counts of labels that cannot be: {counts}",
        )
        read[label] = ClassCounts(right, n, false, n_others)
    return read


def known_models() -> dict[str, Path]:
    """The models that can be called by name, sorted; one of the user's folder wins."""
    folders = [SHIPPED, *map(Path, filter(None, [os.environ.get(VARIABLE)]))]
    paths = {
        path.stem: path for folder in folders for path in folder.glob(f"*{SUFFIX}")
    }
    return dict(sorted(paths.items()))


def find_model(name: str | os.PathLike[str]) -> Path:
    """The file of a model that is given as a file or by name; a file wins,
    with a note.
    """
    path = Path(name)
    models = known_models()
    named = models.get(os.fspath(name))
    if path.is_file():
        if named is not None:
            logger.warning("the file %s is used, not the model of this name", path)
        return path
    if named is not None:
        return named
    close = difflib.get_close_matches(path.stem, models, n=3, cutoff=0.5)
    hint = f"close names are {some(close)}" if close else f"there are {some(models)}"
    raise FileNotFoundError(
        f"{os.fspath(name)!r} is neither a model file nor the name of a model; {hint} "
        "(optirank models)"
    )
