"""Local data sets: every .h5ad file of a folder is one, named as the file; whether it is fit."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from optirank._util.names import some
from optirank.datasets.anndata_files import stored_source
from optirank.datasets.data import ExpressionData, duplicates
from optirank.datasets.errors import DataError, MissingExtraError
from optirank.datasets.reading import OpenExpression, open_expression, read_expression
from optirank.datasets.registry import find_entry
from optirank.preprocessing.scales import value_scale

LABEL = "cell_type"
_FEW = 5  # samples of a class: fewer cannot be in every fold


@dataclass(frozen=True)
class LocalSet:
    """A data set in a folder; ``problem`` says why it cannot be used, or is empty."""

    name: str
    path: Path
    n_samples: int = 0
    n_genes: int = 0
    classes: dict[str, int] = field(default_factory=dict)
    platform: str = ""
    source: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def cache_folder() -> Path:
    """Return the folder where data sets go when none is named."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "optirank"


def data_folder(data: str | Path | None = None) -> Path:
    """Return the folder of local data sets: the one given, else OPTIRANK_DATA, else the cache."""
    if data is not None:
        return Path(data)
    return Path(os.environ.get("OPTIRANK_DATA") or cache_folder())


def local_paths(data: str | Path | None = None) -> dict[str, Path]:
    """Return the .h5ad files of the folder by name."""
    folder = data_folder(data)
    if not folder.is_dir():
        if data is not None or os.environ.get("OPTIRANK_DATA"):
            raise FileNotFoundError(f"{folder} is not a folder of data sets")
        return {}
    return {path.stem: path for path in sorted(folder.glob("*.h5ad"))}


def describe(path: Path) -> LocalSet:
    """Return what a file holds, without reading its matrix."""
    try:
        with open_expression(path) as opened:
            obs = opened.obs
            if LABEL not in obs.columns:
                problem = f"no column {LABEL!r}: there are {some(obs.columns)}"
                return LocalSet(path.stem, path, *opened.matrix.shape, problem=problem)
            counts = obs[LABEL].value_counts()
            classes = {str(name): int(count) for name, count in counts.items() if count}
            platform = some(obs["platform"].unique(), 2) if "platform" in obs.columns else ""
            source = stored_source(path)
            return LocalSet(path.stem, path, *opened.matrix.shape, classes, platform, source)
    except (DataError, MissingExtraError, OSError) as error:
        return LocalSet(path.stem, path, problem=str(error))


def local_sets(data: str | Path | None = None) -> list[LocalSet]:
    """Return the data sets of the folder, those that cannot be read with their problem."""
    return [describe(path) for path in local_paths(data).values()]


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


def load_dataset(name: str, data: str | Path | None = None, **options) -> ExpressionData:
    """Load a data set of the folder ``data`` (else OPTIRANK_DATA, else the cache).

    ``obs`` has the labels in ``cell_type``, and ``dataset`` and ``platform``. Options are those of
    `read_expression`, such as ``genes`` to read only some; ``label`` defaults to "cell_type".
    """
    return read_expression(find_path(name, data), **{"label": LABEL, **options})


@dataclass
class Check:
    """What was found: ``errors`` make a set unusable, ``notes`` are good to know."""

    path: Path
    n_samples: int = 0
    n_genes: int = 0
    n_classes: int = 0
    values: str = ""
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing makes the set unusable."""
        return not self.errors


def check(path: str | Path, **options) -> Check:
    """Read a file in blocks and check it; options as for `read_expression`."""
    result = Check(Path(path))
    try:
        with open_expression(path, **options) as opened:
            result.n_samples, result.n_genes = opened.matrix.shape
            _check_names(opened, result)
            _check_labels(opened, result, options.get("label") or LABEL)
            _check_values(opened, result)
    except (DataError, OSError) as error:
        result.errors.append(str(error))
    return result


def _check_names(opened: OpenExpression, result: Check) -> None:
    if not opened.n_samples or not len(opened.gene_names):
        result.errors.append(f"{opened.n_samples} samples and {len(opened.gene_names)} genes")
    twice = duplicates(opened.gene_names)
    if twice:
        result.notes.append(f"{len(twice)} gene names occur more than once: {some(twice)}")
    if opened.obs.index.has_duplicates:
        result.notes.append("some sample names occur more than once")
    for column in ("dataset", "platform"):
        if column not in opened.obs.columns:
            result.notes.append(f"no column {column!r}")


def _check_labels(opened: OpenExpression, result: Check, label: str) -> None:
    if label not in opened.obs.columns:
        result.errors.append(f"no column {label!r}: there are {some(opened.obs.columns, 20)}")
        return
    labels = opened.obs[label]
    if labels.isna().any():
        result.notes.append(f"{int(labels.isna().sum())} samples have no label")
    counts = labels.value_counts()
    counts = counts[counts > 0]
    result.n_classes = len(counts)
    if len(counts) < 2:
        result.notes.append(f"one class only: {some(counts.index)}")
    small = counts[counts < _FEW]
    if len(small):
        names = [f"{name} ({count})" for name, count in small.items()]
        result.notes.append(f"classes of fewer than {_FEW} samples: {some(names)}")


def _check_values(opened: OpenExpression, result: Check) -> None:
    negative, empty = False, 0
    for block in opened.blocks(block_size=2048):
        values = block.X if isinstance(block.X, np.ndarray) else block.X.data
        if not np.isfinite(values).all():
            result.errors.append("some values are missing or infinite: ranks need numbers")
            return
        result.values = result.values or value_scale(block.X)
        negative = negative or bool((values < 0).any())
        empty += int((np.asarray(abs(block.X).sum(axis=1)).ravel() == 0).sum())
    if negative:
        result.values += ", some negative"
    if empty:
        result.notes.append(f"{empty} samples without any expression")
