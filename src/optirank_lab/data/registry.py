"""Data sets by name: those registered (registry.toml, stand_ins.toml) and the files of a folder.

registry.toml has the paper's own sets, stand_ins.toml public ones that stand in for them. Labels of
different sources are brought to common names by the tables in labels.toml. Every .h5ad file of the
data folder is a local set, named as the file.
"""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import numpy as np

from optirank._util.names import some
from optirank._util.scales import value_scale
from optirank.io.data import DataError, ExpressionData, MissingExtraError, duplicates
from optirank.io.reading import open_expression, read_expression, stored_source

AUTHORS_ARCHIVE = "https://github.com/paolamalsot/optirank"
STAND_INS = "stand-ins"
LABEL = "cell_type"
_FEW = 5  # samples of a class: fewer cannot be in every fold


@dataclass(frozen=True)
class RemoteFile:
    """A file with a public address; ``sha256`` is None where it is not known for certain."""

    name: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Entry:
    """What is known of a data set, and how its files are read (``read``, see registry.toml)."""

    name: str
    title: str
    accession: str
    organism: str
    modality: str
    technology: str
    source: str
    licence: str
    read: dict = field(repr=False)
    labels: str = ""
    paper: str = ""
    note: str = ""
    by_hand: str = ""
    n_samples: int | None = None
    n_genes: int | None = None
    aliases: list[str] = field(default_factory=list)
    files: tuple[RemoteFile, ...] = ()
    stand_in: bool = False
    untried: bool = False  # the addresses or the reading could not be tried

    @property
    def way(self) -> str:
        """How it is obtained."""
        if not self.files:
            return "by hand"
        return "fetch, not tried" if self.untried else "fetch"


@functools.cache
def registry() -> dict[str, Entry]:
    """Return all entries by name."""
    paper, others = _table("registry.toml"), _table("stand_ins.toml")
    repositories = others.pop("repositories")
    entries = {
        name: _entry(name, {"untried": True, **one}, {}) for name, one in paper.items()
    }
    for name, one in others.items():
        entries[name] = _entry(name, {"stand_in": True, **one}, repositories)
    return entries


def stand_ins() -> list[Entry]:
    """The public sets that stand in for the paper's own."""
    return [entry for entry in registry().values() if entry.stand_in]


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
    common, own = tables["common"], tables["sets"].get(dataset, {})

    @functools.cache
    def common_name(label: object) -> object:
        if label is None or label != label:
            return np.nan
        text = str(label).strip()
        plain = " ".join(text.lower().replace("_", " ").split())
        return own.get(text, common.get(plain, plain)) or np.nan

    return np.array([common_name(label) for label in labels], dtype=object)


@functools.cache
def _table(name: str) -> dict:
    return tomllib.loads(files("optirank_lab.data").joinpath(name).read_text("utf-8"))


def _entry(name: str, table: dict, repositories: dict[str, dict]) -> Entry:
    listed = table.get("files", ())
    held = [repositories[file["repo"]] for file in listed if "repo" in file]
    where = {}
    if held:
        where["source"] = (
            f"https://github.com/{held[0]['address']}/tree/{held[0]['commit']}"
        )
        where["licence"] = f"{held[0]['licence']} (of the repository); see source"
    remote = tuple(_remote(file, repositories) for file in listed)
    return Entry(**{"name": name, **where, **table, "files": remote})


def _remote(file: dict, repositories: dict[str, dict]) -> RemoteFile:
    """A file with its address; one of a repository is pinned to a commit."""
    if "repo" not in file:
        url = file["url"]
        return RemoteFile(
            file.get("name", url.rpartition("/")[2]), url, file.get("sha256")
        )
    where = repositories[file["repo"]]
    base = f"https://raw.githubusercontent.com/{where['address']}/{where['commit']}"
    name = f"{where['address'].replace('/', '+')}__{file['path'].rpartition('/')[2]}"
    return RemoteFile(name, f"{base}/{quote(file['path'])}", file.get("sha256"))


@dataclass
class LocalSet:
    """A file of the data folder: ``errors`` make it unusable, ``notes`` are good to know."""

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
    """Return the folder of local data sets: the one given, else OPTIRANK_DATA, else the cache."""
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
    """Return what a file holds and whether it is fit; its matrix is read only for ``values``.

    Options are those of `read_expression`. An optional dependency that is missing is an error of
    the set, or raised where ``values`` are asked for.
    """
    found = LocalSet(path)
    try:
        with open_expression(path, **options) as opened:
            found.n_samples, found.n_genes = opened.X.shape
            obs = opened.obs
            found.platform = (
                some(obs["platform"].unique(), 2) if "platform" in obs else ""
            )
            found.source = stored_source(path) if path.suffix == ".h5ad" else {}
            _check_names(opened, found)
            _check_labels(opened, found, label)
            if values:
                _check_values(opened, found)
    except (DataError, OSError, MissingExtraError) as error:
        if values and isinstance(error, MissingExtraError):
            raise
        found.errors.append(str(error))
    return found


def find_path(name: str, data: str | Path | None = None) -> Path:
    """Return the file of a local data set, by its name or the alias of a registered one."""
    paths = local_paths(data)
    if name in paths:
        return paths[name]
    here = f"{data_folder(data)} has {some(paths, 20)}"
    try:
        entry = find_entry(name)
    except DataError:
        raise DataError(f"no data set is called {name!r}: {here}") from None
    if entry.name in paths:
        return paths[entry.name]
    raise DataError(
        f"{name!r} is not in {data_folder(data)}: run optirank datasets fetch {entry.name}; "
        f"optirank datasets info {entry.name} says where to get it"
    )


def load_dataset(
    name: str, data: str | Path | None = None, **options
) -> ExpressionData:
    """Load a data set of the folder ``data`` (else OPTIRANK_DATA, else the cache).

    ``obs`` has the labels in ``cell_type``, and ``dataset`` and ``platform``. Options are those of
    `read_expression`, such as ``genes`` to read only some; ``label`` defaults to "cell_type".
    """
    return read_expression(find_path(name, data), **{"label": LABEL, **options})


def _check_names(opened: ExpressionData, found: LocalSet) -> None:
    if not opened.n_samples or not len(opened.gene_names):
        found.errors.append(
            f"{opened.n_samples} samples and {len(opened.gene_names)} genes"
        )
    twice = duplicates(opened.gene_names)
    if twice:
        found.notes.append(
            f"{len(twice)} gene names occur more than once: {some(twice)}"
        )
    if opened.obs.index.has_duplicates:
        found.notes.append("some sample names occur more than once")
    for column in ("dataset", "platform"):
        if column not in opened.obs.columns:
            found.notes.append(f"no column {column!r}")


def _check_labels(opened: ExpressionData, found: LocalSet, label: str) -> None:
    if label not in opened.obs.columns:
        found.errors.append(
            f"no column {label!r}: there are {some(opened.obs.columns, 20)}"
        )
        return
    labels = opened.obs[label]
    if labels.isna().any():
        found.notes.append(f"{int(labels.isna().sum())} samples have no label")
    counts = labels.value_counts()
    found.classes = {str(name): int(count) for name, count in counts.items() if count}
    if len(found.classes) < 2:
        found.notes.append(f"one class only: {some(found.classes)}")
    small = [
        f"{name} ({count})" for name, count in found.classes.items() if count < _FEW
    ]
    if small:
        found.notes.append(f"classes of fewer than {_FEW} samples: {some(small)}")


def _check_values(opened: ExpressionData, found: LocalSet) -> None:
    negative, empty = False, 0
    for block in opened.blocks(block_size=2048):
        values = block.X if isinstance(block.X, np.ndarray) else block.X.data
        if not np.isfinite(values).all():
            found.errors.append(
                "some values are missing or infinite: ranks need numbers"
            )
            return
        found.values = found.values or value_scale(block.X)
        negative = negative or bool((values < 0).any())
        empty += int((np.asarray(abs(block.X).sum(axis=1)).ravel() == 0).sum())
    if negative:
        found.values += ", some negative"
    if empty:
        found.notes.append(f"{empty} samples without any expression")
