"""From the files of a registered data set to one .h5ad in the layout of a catalogue.

The table ``read`` of a registry entry says how, in the folder named as the set:

- unpack: members of the archives to take out; convert: an .rda file that R turns into a 10x folder
- matrix: names of the expression files, as a pattern; genes_in and annotations, for tables
- samples and samples_key: tables about the samples, and their column of names
- batch: a column taken from the name of the file; from, from_labels: samples of another set
- keep: the values a column may have; label: the column of labels
- drop_genes: a pattern; strip_version: of Ensembl ids; transform: of the values
"""

from __future__ import annotations

import logging
import re
import tarfile
import zipfile
from dataclasses import replace
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path

import numpy as np

from optirank._util.names import some
from optirank.datasets import tables
from optirank.datasets.anndata_files import readable
from optirank.datasets.data import ExpressionData, check_column
from optirank.datasets.errors import DataError
from optirank.datasets.labels import harmonise
from optirank.datasets.reading import read_expression
from optirank.datasets.registry import Entry

logger = logging.getLogger("optirank.datasets")


def build(entry: Entry, data: Path, label: str | None = None) -> ExpressionData:
    """Read the files in ``data/NAME`` as the entry says, with ``cell_type`` in common names."""
    read, home = entry.read, data / entry.name
    parts = [_tidy(part, read) for part in _parts(entry, data)]
    whole = _concatenate(parts)
    if "samples" in read:
        whole = _describe(whole, home, read)
    for column, values in read.get("keep", {}).items():
        check_column(whole.obs, column, f"the table about the samples of {entry.name}")
        whole = whole.select_samples(whole.obs[column].isin(values).to_numpy())
    return _label(whole, entry, label or read["label"])


def conversion(entry: Entry, data: Path) -> str | None:
    """Return the line that converts the set's .rda file with R, where that is still to be done."""
    if "convert" not in entry.read or (data / entry.name / "matrix.mtx").is_file():
        return None
    home = data / entry.name
    script = files("optirank.datasets").joinpath("convert_rda.R")
    return f"Rscript {script} {home / entry.read['convert']} {home}"


def _parts(entry: Entry, data: Path) -> list[ExpressionData]:
    read, home = entry.read, data / entry.name
    if "from" in read:
        base = data / f"{read['from']}.h5ad"
        if not base.is_file():
            raise DataError(f"{entry.name} is made from {base}: fetch {read['from']} first")
        whole = read_expression(base, label="cell_type")
        return [whole.select_samples(whole.obs["cell_type"].isin(read["from_labels"]).to_numpy())]
    if "convert" in read:
        line = conversion(entry, data)
        if line:
            raise DataError(f"{entry.name} has to be converted with R first: {line}")
        return [read_expression(home, format="10x_mtx")]
    if "unpack" in read:
        for archive in entry.files:
            _unpack(home / archive.name, read["unpack"], home)
    found = sorted(home.glob(read["matrix"]))
    if not found:
        raise DataError(
            f"{home} holds no {read['matrix']}: see optirank datasets info {entry.name}"
        )
    return [_read_one(path, read) for path in found]


def _read_one(path: Path, read: dict) -> ExpressionData:
    part = read_expression(
        path,
        format="table",
        genes_in=read["genes_in"],
        annotations=read.get("annotations", ()),
    )
    if "batch" in read:
        match = re.search(read["batch"]["pattern"], path.name)
        part.obs[read["batch"]["column"]] = match[1] if match else path.name
    return part


def _tidy(part: ExpressionData, read: dict) -> ExpressionData:
    """Sparse float32, genes that are genes, names without version."""
    from scipy.sparse import csr_matrix

    names = part.gene_names
    if "drop_genes" in read:
        kept = np.array([not re.search(read["drop_genes"], name) for name in names], dtype=bool)
        part = part.select_genes(np.flatnonzero(kept))
    X = part.X
    if read.get("transform") == "counts_from_log2":
        X = np.rint(np.exp2(X) - 1)
    names = part.gene_names
    if read.get("strip_version"):
        names = np.array([re.sub(r"^(ENS\w+)\.\d+$", r"\1", name) for name in names], dtype=object)
    part = replace(part, X=csr_matrix(X, dtype=np.float32), gene_names=names)
    if part.duplicated_genes:
        logger.warning(
            "%s: %d genes occur more than once, the first is kept",
            part.source,
            len(part.duplicated_genes),
        )
        part = part.merge_duplicates("first")
    return part


def _concatenate(parts: list[ExpressionData]) -> ExpressionData:
    import pandas as pd
    from scipy.sparse import vstack

    common = list(parts[0].gene_names)
    for part in parts[1:]:
        there = set(part.gene_names)
        common = [gene for gene in common if gene in there]
    parts = [part.select_genes(common) for part in parts]
    return ExpressionData(
        vstack([part.X for part in parts], format="csr"),
        parts[0].gene_names,
        np.concatenate([part.sample_names for part in parts]),
        pd.concat([part.obs for part in parts]),
        parts[0].source,
    )


def _describe(whole: ExpressionData, home: Path, read: dict) -> ExpressionData:
    import pandas as pd

    found = sorted(home.glob(read["samples"]))
    if not found:
        raise DataError(f"{home} holds no {read['samples']}, the table about the samples")
    table = pd.concat(
        [tables.read_annotations(path, key=read.get("samples_key")) for path in found]
    )
    known = np.isin(whole.sample_names.astype(str), table.index.to_numpy(dtype=str))
    if not known.any():
        raise DataError(
            f"{found[0]} names no sample of {whole.source}: it has {some(table.index, 3)}, the "
            f"data have {some(whole.sample_names, 3)}"
        )
    whole = whole.select_samples(known)
    fresh = whole.obs.drop(columns=[name for name in table.columns if name in whole.obs])
    return replace(whole, obs=fresh.join(table))


def _label(whole: ExpressionData, entry: Entry, label: str) -> ExpressionData:
    original = whole.labels(label)
    named = harmonise(original, entry.name)
    kept = np.array([isinstance(name, str) for name in named], dtype=bool)
    if not kept.any():
        raise DataError(f"no sample of {entry.name} is left with a label in {label!r}")
    obs = whole.obs.drop(columns=["cell_type"], errors="ignore").assign(
        cell_type=named,
        cell_type_original=original.to_numpy(),
        dataset=entry.name,
        platform=entry.technology,
    )
    return replace(whole, obs=obs).select_samples(kept)


def _unpack(archive: Path, pattern: str, home: Path) -> None:
    """Write the members of a .tar or .zip that match, under their bare names, unless there."""
    if not archive.is_file():
        return
    with readable(archive):
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as pack:
                for member in pack.infolist():
                    _write_member(member.filename, pattern, home, lambda m=member: pack.read(m))
            return
        with tarfile.open(archive) as pack:
            for member in pack:
                if member.isfile():
                    _write_member(
                        member.name, pattern, home, lambda m=member: pack.extractfile(m).read()
                    )


def _write_member(name: str, pattern: str, home: Path, content) -> None:
    target = home / Path(name).name
    if fnmatch(target.name, pattern) and not target.exists():
        partial = target.with_name(f".{target.name}.part")
        partial.write_bytes(content())
        partial.replace(target)
