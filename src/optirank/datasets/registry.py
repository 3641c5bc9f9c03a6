"""The registry of the paper's data sets, read from registry.toml."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass, field
from importlib.resources import files

from optirank._util.names import some
from optirank.datasets.errors import DataError


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
    labels: str
    read: dict = field(repr=False)
    note: str = ""
    by_hand: str = ""
    n_samples: int | None = None
    aliases: tuple[str, ...] = ()
    files: tuple[RemoteFile, ...] = ()

    @property
    def way(self) -> str:
        """How it is obtained: fetched, fetched and converted with R, or by hand."""
        if not self.files:
            return "by hand"
        return "fetch, convert with R" if "convert" in self.read else "fetch"


@functools.cache
def registry() -> dict[str, Entry]:
    """Return all entries by name."""
    text = files("optirank.datasets").joinpath("registry.toml").read_text("utf-8")
    return {name: _entry(name, table) for name, table in tomllib.loads(text).items()}


def find_entry(name: str) -> Entry:
    """Return the entry of this name or alias, in any case."""
    wanted = name.lower()
    for entry in registry().values():
        if wanted == entry.name or wanted in entry.aliases:
            return entry
    raise DataError(f"no data set is registered as {name!r}: there are {some(registry(), 20)}")


def _entry(name: str, table: dict) -> Entry:
    table = dict(table)
    remote = tuple(RemoteFile(**file) for file in table.pop("files", ()))
    return Entry(name=name, files=remote, aliases=tuple(table.pop("aliases", ())), **table)
