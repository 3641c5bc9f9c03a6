"""Data sets by name: those that are registered, and the files of a folder.

registry.toml has the paper's own sets, stand_ins.toml public ones that stand in for
them, wide.toml further public ones, for evidence on more problems. Labels of different
sources are brought to common names by the tables in labels.toml. Every .h5ad file of
the data folder is a local set, named as the file.
"""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import h5py
import numpy as np
from anndata import AnnData
from anndata.io import read_elem
from scipy.sparse import csr_matrix

from optirank._util.numbers import value_scale
from optirank._util.words import some
from optirank.data.opening import open_profiles
from optirank.data.passes import read_blocks
from optirank.data.profiles import (
    DataError,
    MissingExtraError,
    Profiles,
    readable,
    text_column,
)
from optirank_lab.data.conversion import read_expression
from optirank_lab.data.rules import ReadRules

AUTHORS_ARCHIVE = "https://github.com/paolamalsot/optirank"
PAPER = "paper"  # the groups of sets
STAND_INS = "stand-ins"
WIDE = "wide"
LABEL = "cell_type"
_FEW = 5  # samples of a class: fewer cannot be in every fold


@dataclass(frozen=True)
class RemoteFile:
    """A file with a public address; ``sha256`` is None where it is not known."""

    name: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Entry:
    """What is known of a data set, and how its files are read."""

    name: str
    title: str
    accession: str
    organism: str
    modality: str
    technology: str
    source: str
    licence: str  # a short name, such as MIT
    read: ReadRules = field(repr=False)
    licensor: str = ""  # whose licence it is, such as the repository of the files
    labels: str = ""
    paper: str = ""
    note: str = ""
    by_hand: str = ""
    n_samples: int | None = None
    n_genes: int | None = None
    aliases: tuple[str, ...] = ()
    files: tuple[RemoteFile, ...] = ()
    group: str = PAPER
    untried: bool = False  # the addresses or the reading could not be tried

    @property
    def way(self) -> str:
        """How it is obtained."""
        if not self.files:
            return "by hand"
        return "fetch, not tried" if self.untried else "fetch"

    @property
    def public(self) -> bool:
        """Whether it is none of the paper's own sets: its table has all its rules."""
        return self.group != PAPER

    @property
    def terms(self) -> str:
        """The terms of use: the licence, and whose it is."""
        return f"{self.licence} ({self.licensor})" if self.licensor else self.licence


@functools.cache
def registry() -> dict[str, Entry]:
    """Return all entries by name."""
    entries: dict[str, Entry] = {}
    for name, table in _table("registry.toml").items():
        entries[name] = make_entry(name, {"untried": True, **table}, {})
    repositories: dict[str, dict] = {}
    for group, file in ((STAND_INS, "stand_ins.toml"), (WIDE, "wide.toml")):
        tables = dict(_table(file))
        repositories |= tables.pop("repositories", {})
        for name, table in tables.items():
            entries[name] = make_entry(name, {"group": group, **table}, repositories)
    return entries


def group_of_sets(group: str) -> list[Entry]:
    """The sets of a group: `PAPER`, `STAND_INS` or `WIDE`."""
    return [entry for entry in registry().values() if entry.group == group]


def find_entry(name: str) -> Entry:
    """Return the entry of this name or alias, in any case."""
    wanted = name.lower()
    for entry in registry().values():
        if wanted == entry.name or wanted in entry.aliases:
            return entry
    raise DataError(
        f"no data set is registered as {name!r}: there are {some(registry(), 50)}"
    )


def harmonise(labels: Iterable[object], dataset: str | None = None) -> np.ndarray:
    """Return the common names of labels; NaN where there is none."""
    tables = _table("labels.toml")
    common_names = tables["common"]
    own_names = tables["sets"].get(dataset, {})

    @functools.cache
    def common_name(label: object) -> object:
        if label is None or label != label:
            return np.nan
        text = str(label).strip()
        plain = " ".join(text.lower().replace("_", " ").split())
        return own_names.get(text, common_names.get(plain, plain)) or np.nan

    return np.array([common_name(label) for label in labels], dtype=object)


def make_entry(name: str, table: dict, repositories: dict[str, dict]) -> Entry:
    """Make the entry of a set from its table in the registry.

    ``repositories`` are the tables of the repositories that its files name.
    """
    fields = dict(table)
    listed = fields.pop("files", ())
    rules = fields.pop("read")
    keys = dict.fromkeys(file["repo"] for file in listed if "repo" in file)
    sources = [repositories[key] for key in keys]
    if sources:
        first = sources[0]
        address = f"https://github.com/{first['address']}/tree/{first['commit']}"
        licences = dict.fromkeys(source["licence"] for source in sources)
        fields.setdefault("source", address)
        fields.setdefault("licence", ", ".join(licences))
        addresses = ", ".join(source["address"] for source in sources)
        fields.setdefault("licensor", f"of {addresses}")
    try:
        return Entry(
            **{
                "name": name,
                **fields,
                "aliases": tuple(fields.get("aliases", ())),
                "files": tuple(_remote(file, repositories) for file in listed),
                "read": ReadRules(**rules),
            }
        )
    except TypeError as error:
        raise DataError(f"the table of the data set {name} is wrong: {error}") from None


def bare_name(name: str) -> str:
    """The name of a raw file without that of its repository."""
    return name.rpartition("__")[2]


@functools.cache
def _table(name: str) -> dict:
    return tomllib.loads(files("optirank_lab.data").joinpath(name).read_text("utf-8"))


def _remote(file: dict, repositories: dict[str, dict]) -> RemoteFile:
    """A file with its address; one of a repository is pinned to a commit."""
    checksum = file.get("sha256")
    if "repo" not in file:
        url = file["url"]
        return RemoteFile(file.get("name", url.rpartition("/")[2]), url, checksum)
    where = repositories[file["repo"]]
    base = f"https://raw.githubusercontent.com/{where['address']}/{where['commit']}"
    owner = where["address"].replace("/", "+")
    name = f"{owner}__{file['path'].rpartition('/')[2]}"
    return RemoteFile(name, f"{base}/{quote(file['path'])}", checksum)


@dataclass
class LocalSet:
    """A file of the data folder: ``errors`` make it unusable, ``notes`` do not."""

    path: Path
    n_samples: int = 0
    n_genes: int = 0
    classes: dict[str, int] = field(default_factory=dict)
    platform: str = ""
    source: dict[str, str] = field(default_factory=dict)
    values: str = ""
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the set: that of its file."""
        return self.path.stem


def data_folder(data: str | Path | None = None) -> Path:
    """Return the folder of local sets: ``data``, else OPTIRANK_DATA, else the cache."""
    if data is not None:
        return Path(data)
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "optirank"
    )
    return Path(os.environ.get("OPTIRANK_DATA") or cache)


def local_paths(data: str | Path | None = None) -> dict[str, Path]:
    """Return the .h5ad files of the folder by name."""
    folder = data_folder(data)
    if not folder.is_dir():
        if data is not None or os.environ.get("OPTIRANK_DATA"):
            raise FileNotFoundError(f"{folder} is not a folder of data sets")
        return {}
    return {path.stem: path for path in sorted(folder.glob("*.h5ad"))}


def describe(
    path: Path, *, values: bool = False, label: str = LABEL, **options
) -> LocalSet:
    """Return what a file holds, and whether it can be used.

    Its matrix is read only for ``values``. Options are those of `read_expression`. An
    optional dependency that is missing is an error of the set, or raised where
    ``values`` are asked for.
    """
    local = LocalSet(path)
    try:
        with open_profiles(path, **options) as opened:
            local.n_samples = opened.n_samples
            local.n_genes = len(opened.genes)
            local.notes += opened.notes
            if "platform" in opened.obs:
                local.platform = some(opened.obs["platform"].unique(), 2)
            if path.suffix == ".h5ad":
                local.source = _stored_source(path)
            _check_names(opened, local)
            _check_labels(opened, local, label)
            if values:
                _check_values(opened, local)
    except (DataError, OSError, MissingExtraError) as error:
        if values and isinstance(error, MissingExtraError):
            raise
        local.errors.append(str(error))
    return local


def _stored_source(path: Path) -> dict[str, str]:
    """Where a .h5ad file says it comes from (``uns['source']``), if it says so."""
    with readable(path), h5py.File(path) as file:
        element: Any = file.get("uns/source")
        entries: Any = read_elem(element) if hasattr(element, "keys") else {}
    return {str(key): str(value) for key, value in entries.items()}


def find_path(name: str, data: str | Path | None = None) -> Path:
    """Return the file of a local set, by its name or the alias of a registered one."""
    paths = local_paths(data)
    if name in paths:
        return paths[name]
    try:
        entry = find_entry(name)
    except DataError:
        raise DataError(
            f"no data set is called {name!r}: {data_folder(data)} has {some(paths, 20)}"
        ) from None
    if entry.name in paths:
        return paths[entry.name]
    raise DataError(
        f"{name!r} is not in {data_folder(data)}: run optirank-lab datasets fetch "
        f"{entry.name}; optirank-lab datasets info {entry.name} says where to get it"
    )


def load_dataset(name: str, data: str | Path | None = None, **options) -> AnnData:
    """Load a data set of the folder ``data`` (else OPTIRANK_DATA, else the cache).

    ``obs`` has the labels in ``cell_type``, and ``dataset`` and ``platform``. Options
    are those of `read_expression`, such as ``genes`` to read only some; ``label``
    defaults to "cell_type".
    """
    return read_expression(find_path(name, data), **{"label": LABEL, **options})


def _check_names(opened: Profiles, local: LocalSet) -> None:
    if not opened.n_samples or not len(opened.genes):
        local.errors.append(f"{opened.n_samples} samples, {len(opened.genes)} genes")
    for column in ("dataset", "platform"):
        if column not in opened.obs.columns:
            local.notes.append(f"no column {column!r}")


def _check_labels(opened: Profiles, local: LocalSet, label: str) -> None:
    if label not in opened.obs.columns:
        local.errors.append(
            f"no column {label!r}: there are {some(opened.obs.columns, 20)}"
        )
        return
    labels = text_column(opened.obs, label, opened.source)
    n_missing = int(labels.isna().to_numpy().sum())
    if n_missing:
        local.notes.append(f"{n_missing} samples have no label")
    counts = labels.value_counts()
    local.classes = {str(name): int(count) for name, count in counts.items()}
    if len(local.classes) < 2:
        local.notes.append(f"one class only: {some(local.classes)}")
    small = [
        f"{name} ({count})" for name, count in local.classes.items() if count < _FEW
    ]
    if small:
        local.notes.append(f"classes of fewer than {_FEW} samples: {some(small)}")


def _check_values(opened: Profiles, local: LocalSet) -> None:
    has_negative = False
    n_empty = 0
    for block in read_blocks(opened, size=2048):
        X = block
        stored = X if isinstance(X, np.ndarray) else X.data
        if not np.isfinite(stored).all():
            local.errors.append(
                "some values are missing or infinite: ranks need numbers"
            )
            return
        local.values = local.values or value_scale(X)
        has_negative = has_negative or bool((stored < 0).any())
        totals = np.asarray(abs(X).sum(axis=1)).ravel()
        n_empty += int((totals == 0).sum())
    if has_negative:
        local.values += ", some negative"
    if n_empty:
        local.notes.append(f"{n_empty} samples without any expression")


def in_memory(data: AnnData) -> np.ndarray | csr_matrix:
    """The matrix of data that were read, not of an opened file."""
    if isinstance(data.X, np.ndarray):
        return data.X
    return csr_matrix(data.X)
