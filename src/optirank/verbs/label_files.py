"""Files in, files of labels out: .csv and .parquet with a record beside them, .h5ad,
.zarr.

Of several files each is labelled as if it were alone, and their labels are one table.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from optirank._util.files import check_outputs, file_digests, replacing, write_text
from optirank._util.numbers import Progress
from optirank.data.cluster import on_cluster
from optirank.data.opening import names_of_files, open_profiles
from optirank.data.profiles import DataError, need
from optirank.model.file import as_model
from optirank.verbs.labelling import label_profiles
from optirank.verbs.labels import Labels
from optirank.verbs.options import DEFAULTS, PredictOptions

_KEY = "optirank"  # of what is added to an AnnData
SUFFIXES = (".csv", ".parquet", ".h5ad", ".zarr")
_ROWS = 200_000  # samples written together: memory follows them
_TOP = 10_000  # of confidences and probabilities in a CSV: more digits are noise


def predict_file(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    model: Any,
    out: str | os.PathLike[str],
    options: PredictOptions = DEFAULTS,
    *,
    progress: Progress | None = None,
    dask: str | None = None,
    **reading: Any,
) -> Labels:
    """Label the samples of a file with a model or the file of one, and write the
    labels.

    ``out`` is ``.csv`` or ``.parquet`` (sample, label, confidence, one probability per
    class), ``.h5ad``, a copy of ``path`` with what :func:`optirank.tl.annotate` adds,
    or ``.zarr``, an AnnData with that alone. Of several files, each is labelled as if
    it were alone, and a column says which file a sample is from. ``dask`` is the
    address of a dask scheduler whose workers can read ``path``. ``reading`` are options
    of :func:`optirank.data.opening.open_profiles`.
    """
    files = [path] if isinstance(path, str | os.PathLike) else path
    paths = [Path(file) for file in files]
    out = Path(out)
    _check_files(paths, out)
    fitted = as_model(model)
    columns = [options.clusters] if options.clusters else []
    parts = []
    with on_cluster(dask) if dask else nullcontext():
        for file in paths:
            with open_profiles(
                file, label=columns, known_genes=fitted.genes.tolist(), **reading
            ) as profiles:
                parts.append(label_profiles(profiles, fitted, options, progress))
    asked = {name: value for name, value in reading.items() if value}
    inputs = paths
    if "samples" in asked:
        inputs = [*paths, Path(asked["samples"])]
        asked["samples"] = inputs[-1].name
    for part in parts:
        part.record["options"] |= asked
    labels = parts[0]
    if len(parts) > 1:
        labels = join_labels(parts, names_of_files(paths))
    labels.record["inputs"] = file_digests(inputs)
    suffix = out.suffix.lower()
    with replacing(out) as temporary:
        if suffix == ".csv":
            _write_csv(labels.samples, temporary)
        elif suffix == ".parquet":
            labels.samples.to_parquet(temporary, index=False)
        elif suffix == ".zarr":
            _write_zarr(labels, temporary)
        else:
            shutil.copyfile(paths[0], temporary)
            _add_to_h5ad(labels, temporary)
    return labels


def _check_files(paths: Sequence[Path], out: Path) -> None:
    """Refuse, before any work, formats that labels cannot be written in."""
    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"{out}: labels are written as {', '.join(SUFFIXES)}: use such a name"
        )
    if suffix == ".parquet":
        need("pyarrow", "parquet", f"writing {out}")
    if suffix == ".h5ad" and (len(paths) > 1 or paths[0].suffix.lower() != ".h5ad"):
        raise DataError(
            f"{out} would be a copy of the query with labels, and the query is not one "
            ".h5ad file: write the labels as .csv, .parquet or .zarr"
        )
    check_outputs({"the labels": out}, paths, force=True)


def join_labels(parts: Sequence[Labels], names: Sequence[str]) -> Labels:
    """The labels of several files as one; ``names`` are those of the files.

    The record has what is the same for all files, and the record of each.
    """
    first = parts[0]
    shared = ("model", "model_sha256", "optirank_version", "options", "classes")
    record = {key: first.record[key] for key in (*shared, "withheld_label")}
    record["query"] = ", ".join(names)
    record["files"] = {
        name: part.record for part, name in zip(parts, names, strict=True)
    }
    samples = _joined([part.samples for part in parts], names)
    if "alarm" in samples:
        samples["alarm"] = samples["alarm"].fillna("")
    clusters = first.clusters
    if clusters is not None:
        clusters = _joined([part.clusters for part in parts], names)
    return replace(
        first,
        source=", ".join(names),
        samples=samples,
        chosen=np.concatenate([part.chosen for part in parts]),
        notes=_with_names([part.notes for part in parts], names),
        warnings=_with_names([part.warnings for part in parts], names),
        missing=tuple(dict.fromkeys(gene for part in parts for gene in part.missing)),
        record=record,
        clusters=clusters,
        explanation=None,
        checks=None,
    )


def _joined(tables: Sequence[Any], names: Sequence[str]) -> pd.DataFrame:
    """Tables of several files as one, with a column for the file."""
    parts = [table.assign(file=name) for table, name in zip(tables, names, strict=True)]
    return pd.concat(parts, ignore_index=True)


def _with_names(sentences: Sequence[list[str]], names: Sequence[str]) -> list[str]:
    """Sentences about files; those that are the same for all are said once."""
    common = [text for text in sentences[0] if all(text in part for part in sentences)]
    return common + [
        f"{name}: {text}"
        for name, of_file in zip(names, sentences, strict=True)
        for text in of_file
        if text not in common
    ]


def record_path(out: Path) -> Path:
    """The file that says how the labels in another were made."""
    return out.with_name(f"{out.name}.json")


def write_record(labels: Labels, out: Path) -> Path:
    """Write how the labels in a file were made, beside it."""
    path = record_path(out)
    text = json.dumps(
        labels.record,
        indent=1,
        default=lambda value: (
            value.to_dict("records")
            if isinstance(value, pd.DataFrame)
            else value.tolist()
        ),
    )
    write_text(path, f"{text}\n")
    return path


def _write_csv(samples: pd.DataFrame, path: Path) -> None:
    """Write a table with four digits; looking digits up is faster than printing."""
    digits = np.array([f"{k / _TOP:.4f}" for k in range(_TOP + 1)], dtype=object)
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(samples.columns)
        for start in range(0, len(samples), _ROWS):
            columns = []
            for name in samples:
                values = samples[name].to_numpy()[start : start + _ROWS]
                if name == "likeness":  # not within 0 and 1
                    texts = np.char.mod("%.4f", values)
                    values = np.where(np.isnan(values), "", texts)
                elif values.dtype.kind == "f":
                    values = digits[np.rint(values * _TOP).astype(np.intp)]
                columns.append(values.tolist())
            writer.writerows(zip(*columns, strict=True))


def _write_zarr(labels: Labels, path: Path) -> None:
    """Write an AnnData without values: the samples with what tl.annotate adds."""
    from anndata import AnnData

    names = labels.samples["sample"].astype(str)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(zarr|autosharding|not unique)")
        adata = AnnData(obs=pd.DataFrame(index=pd.Index(names, name=None)))
        labels.annotate(adata.obs, adata.obsm, adata.uns, _KEY)
        adata.write_zarr(path)


def _add_to_h5ad(labels: Labels, path: Path) -> None:
    """Add to a copy of the query what :func:`optirank.tl.annotate` adds in memory."""
    import h5py
    from anndata.io import read_elem, write_elem

    with h5py.File(path, "r+") as opened:
        file: Any = opened
        obs = read_elem(file["obs"])
        obsm: dict[str, Any] = {}
        uns: dict[str, Any] = {}
        labels.annotate(obs, obsm, uns, _KEY)
        write_elem(file, "obs", obs)
        for group, elements in (("obsm", obsm), ("uns", uns)):
            if group not in file:
                write_elem(file, group, {})
            for name, element in elements.items():
                write_elem(file[group], name, element)
