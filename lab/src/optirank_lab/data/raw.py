"""The raw files of a data set: the texts and matrices in them, as the rules say."""

from __future__ import annotations

import contextlib
import re
import shutil
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any

import numpy as np
from anndata import AnnData
from rdata.parser import RObject

from optirank._util.files import replacing
from optirank.data.profiles import DataError, readable
from optirank.data.tables import open_text, read_table
from optirank_lab.data import rdata
from optirank_lab.data.conversion import read_expression
from optirank_lab.data.profiles import changed, made, obs_of, take_samples
from optirank_lab.data.registry import LABEL, Entry, bare_name

TUMOUR_CODE = "code"  # the column of obs with the label of a file of tumours
_R_FILES = (".rda", ".rdata")
_TCGA_SAMPLES = "TCGA-"  # how the columns of samples begin in tables of TCGA
_ENTREZ = "Entrez_Gene_Id"
_R_ATTRIBUTES = ("row.names", "names", "class")  # of a data frame, not its columns


class RawFiles:
    """The raw files of a set in a folder, each read once."""

    def __init__(self, entry: Entry, folder: Path) -> None:
        self.entry = entry
        self.folder = folder
        self._r_files: dict[str, dict[str, RObject]] = {}
        self._columns: dict[str, list[str | None]] = {}

    def paths(self, pattern: str) -> list[Path]:
        """Files by a pattern of their names, sorted.

        The registered files of the set come first: stand-ins share a folder, and
        files of two repositories may have one name.
        """
        registered = [
            self.folder / remote.name
            for remote in self.entry.files
            if fnmatch(bare_name(remote.name), pattern)
        ]
        matching = [path for path in registered if path.is_file()]
        if not matching:
            inside = self.folder.iterdir()
            matching = [path for path in inside if fnmatch(path.name, pattern)]
        if not matching:
            raise DataError(
                f"{self.folder} holds no {pattern}: see optirank-lab datasets info "
                f"{self.entry.name}"
            )
        return sorted(matching)

    def texts(self, reference: str) -> list[str | None]:
        """The texts that a reference to a member of a file names."""
        name, _, member = reference.partition(":")
        if Path(name).suffix.lower() in _R_FILES:
            return rdata.texts(rdata.find(self.r_file(name), member))
        if reference not in self._columns:
            self._columns[reference] = _read_column(self.paths(name)[0], member)
        return self._columns[reference]

    def r_file(self, name: str) -> dict[str, RObject]:
        """The objects of an R file."""
        if name not in self._r_files:
            self._r_files[name] = rdata.read_rdata(self.paths(name)[0])
        return self._r_files[name]


def read_parts(raw: RawFiles, data: Path) -> list[AnnData]:
    """Read the matrices of a set, one part per file.

    ``data`` is the folder of the sets that it may be a part of.
    """
    rules = raw.entry.read
    if rules.base:
        return [_part_of_set(raw.entry, data)]
    if rules.tumours:
        return [_tumours(raw, name, code) for name, code in rules.tumours.items()]
    if rules.r_list:
        return [_largest_matrix(raw.r_file(rules.r_list), rules.r_list)]
    if ":" in rules.matrix:
        name, _, member = rules.matrix.partition(":")
        matrix = rdata.matrix(rdata.find(raw.r_file(name), member))
        return [_profiles(matrix, rules.genes_in, name)]
    for archive in raw.entry.files:
        _unpack(raw.folder / archive.name, rules.unpack or rules.matrix)
    return [_matrix_file(path, raw.entry) for path in raw.paths(rules.matrix)]


def _read_column(path: Path, column: str) -> list[str | None]:
    """A column of a table as text, None where missing.

    A number is the place of the column in a table without header.
    """
    import pandas as pd

    by_place = column.isdigit()
    wanted: Any = [int(column)] if by_place else lambda name: name == column
    with readable(path):
        with open_text(path) as file:
            separator = max("\t,;", key=file.readline().count)
        frame = pd.read_csv(
            path,
            sep=separator,
            dtype=str,
            header=None if by_place else 0,
            usecols=wanted,
        )
    if frame.empty:
        raise DataError(f"{path} has no column {column!r}")
    values = frame.iloc[:, 0].tolist()
    return [value if isinstance(value, str) else None for value in values]


def _part_of_set(entry: Entry, data: Path) -> AnnData:
    """The samples of another set that have some labels."""
    rules = entry.read
    path = data / f"{rules.base}.h5ad"
    if not path.is_file():
        raise DataError(f"{entry.name} is made from {path}: fetch {rules.base} first")
    whole = read_expression(path, label=LABEL)
    return take_samples(whole, whole.obs[LABEL].isin(rules.base_labels).to_numpy())


def _matrix_file(path: Path, entry: Entry) -> AnnData:
    """A table or an .h5ad file, with the batch that its name says."""
    import pandas as pd

    rules = entry.read
    if path.suffix == ".h5ad":
        return _unscaled(path)
    with readable(path):
        frame = read_table(path).frame
    described = frame.columns.isin(rules.annotations)
    values = frame.loc[:, ~described].select_dtypes("number")
    obs = frame.loc[:, described]
    X, genes = values.to_numpy(), values.columns
    if rules.genes_in == "rows":
        X, genes, obs = X.T, frame.index, pd.DataFrame(index=values.columns)
    part = made(X, genes, obs, str(path))
    if rules.batch:
        match = re.search(rules.batch["pattern"], path.name)
        part.obs[rules.batch["column"]] = match[1] if match else path.name
    return part


def _unscaled(path: Path) -> AnnData:
    """The values of an .h5ad file before genes were scaled: scanpy's ``raw``."""
    import anndata

    with readable(path), warnings.catch_warnings():
        # anndata warns of an older layout, which it reads
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        adata = anndata.read_h5ad(path)
    raw = adata.raw
    return made(raw.X, raw.var_names, obs_of(adata), path.name)


def _profiles(matrix: rdata.RMatrix, genes_in: str, source: str) -> AnnData:
    """A matrix as profiles, samples in rows; what has no names is numbered."""
    import pandas as pd

    values = matrix.values
    rows = _names_or_numbers(matrix.row_names, values.shape[0])
    columns = _names_or_numbers(matrix.column_names, values.shape[1])
    if genes_in == "rows":
        values = values.T
        samples = columns
        genes = rows
    else:
        samples = rows
        genes = columns
    obs = pd.DataFrame(index=pd.Index(samples, dtype=object))
    return made(values, genes, obs, source)


def _names_or_numbers(names: Sequence[str | None] | None, count: int) -> np.ndarray:
    if names is None:
        names = numbered(count)
    return np.array(names, dtype=object)


def numbered(count: int) -> list[str]:
    """Names for what has none: s0, s1, and so on."""
    return [f"s{number}" for number in range(count)]


def _largest_matrix(objects: dict[str, RObject], source: str) -> AnnData:
    """The largest matrix of an R list, with the table of its samples.

    So are the sets that SingleCellNet offers.
    """
    import pandas as pd

    matrices, frames = _matrices_and_frames(objects)
    if not matrices or not frames:
        raise DataError(f"{source} holds no matrix with a table of its samples")
    largest = max(matrices, key=lambda matrix: np.prod(matrix.values.shape))
    data = _profiles(largest, "rows", source)
    for frame in frames:
        members = rdata.members(frame)
        columns = {name: rdata.texts(item) for name, item in members.items()}
        for names in columns.values():
            if set(names) >= set(data.obs_names):
                kept = {
                    name: values
                    for name, values in columns.items()
                    if name not in _R_ATTRIBUTES
                }
                about = pd.DataFrame(kept, index=pd.Index(names, dtype=object))
                return changed(data, obs=about.loc[data.obs_names])
    raise DataError(f"no table of {source} names all of its {data.n_obs} samples")


def _matrices_and_frames(
    objects: dict[str, RObject],
) -> tuple[list[rdata.RMatrix], list[RObject]]:
    """The matrices and data frames of nested lists."""
    matrices: list[rdata.RMatrix] = []
    frames: list[RObject] = []
    waiting = list(objects.values())
    while waiting:
        item = waiting.pop()
        inside = rdata.members(item)
        if "row.names" in inside:
            frames.append(item)
        elif "dim" in inside or "Dim" in inside:
            matrices.append(rdata.matrix(item))
        else:
            waiting += inside.values()
    return matrices, frames


def _tumours(raw: RawFiles, name: str, code: str) -> AnnData:
    """One tumour type of cBioPortal: genes in rows by symbol or Entrez id.

    Line 2 repeats the label and is left out. Of several lines of one gene the larger
    value per sample is taken.
    """
    import pandas as pd

    path = raw.paths(name)[0]
    with readable(path):
        frame = pd.read_csv(path, skiprows=[1], dtype={0: str})
    samples = [column for column in frame.columns if column.startswith(_TCGA_SAMPLES)]
    key_column = str(frame.columns[0])
    keys = frame[key_column].tolist()
    if key_column == _ENTREZ:
        keys = _symbols_of_entrez(raw, keys)
    symbols = pd.Series(keys, index=frame.index, dtype=object)
    named = symbols.notna().to_numpy()
    values = frame.loc[named, samples].groupby(symbols[named]).max()
    matrix = rdata.RMatrix(values.to_numpy(), list(values.index), list(samples))
    part = _profiles(matrix, "rows", path.name)
    obs = obs_of(part).assign(**{TUMOUR_CODE: code})
    return changed(part, obs=obs)


def _symbols_of_entrez(raw: RawFiles, keys: list[Any]) -> list[str | None]:
    """The symbols of Entrez ids, which tables write like ``100130426.0``."""
    table = raw.entry.read.entrez
    ids = raw.texts(f"{table}:entrez_gene_id")
    symbols = dict(zip(ids, raw.texts(f"{table}:symbol"), strict=True))
    return [symbols.get(str(int(float(key)))) for key in keys]


def _unpack(archive: Path, pattern: str) -> None:
    """Write the members of a .tar or .zip that match beside it, unless they are there.

    They are written under their bare names, so no member can leave the folder.
    """
    if not archive.is_file():
        return
    with readable(archive), contextlib.ExitStack() as stack:
        members: dict[str, Callable[[], IO[bytes] | None]] = {}
        if zipfile.is_zipfile(archive):
            pack = stack.enter_context(zipfile.ZipFile(archive))
            for entry in pack.infolist():
                members[entry.filename] = lambda entry=entry: pack.open(entry)
        elif tarfile.is_tarfile(archive):
            tar = stack.enter_context(tarfile.open(archive))
            for member in tar:
                members[member.name] = lambda member=member: tar.extractfile(member)
        for name, open_member in members.items():
            target = archive.parent / Path(name).name
            if not fnmatch(target.name, pattern) or target.exists():
                continue
            content = open_member()
            if content is None:  # a folder or a link
                continue
            with replacing(target) as temporary, temporary.open("wb") as file:
                shutil.copyfileobj(content, file)
