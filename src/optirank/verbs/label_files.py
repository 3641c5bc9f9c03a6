"""Files in, files of labels out: .csv with a record beside it, .parquet, .h5ad, .zarr.

Of several files each is labelled as if it were alone, and their labels are one table.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.files import check_outputs, file_digest, replacing, write_text
from optirank._util.names import valid_text
from optirank.data.cluster import on_cluster
from optirank.data.errors import DataError, need
from optirank.data.opening import check_path, open_profiles
from optirank.model.file import as_model
from optirank.verbs.labels import Labels
from optirank.verbs.options import DEFAULTS, PredictOptions
from optirank.verbs.predict import label_profiles
from optirank.verbs.sources import names_of_files

if TYPE_CHECKING:
    from optirank._util.matrices import Progress

_KEY = "optirank"  # of what is added to an AnnData
SUFFIXES = (".csv", ".parquet", ".h5ad", ".zarr")
_ROWS = 200_000  # samples written together: memory follows them
_DIGITS = 4  # of confidences and probabilities in a CSV: more is noise
_TOP = 10**_DIGITS
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with these a spreadsheet starts a formula


def predict_file(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    model: Any,
    out: str | os.PathLike[str],
    options: PredictOptions = DEFAULTS,
    *,
    spreadsheet: bool = False,
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
    of `optirank.data.opening.open_profiles`.
    """
    files = [path] if isinstance(path, str | os.PathLike) else path
    paths = [Path(file) for file in files]
    out = Path(out)
    _check_files(paths, out)
    fitted = as_model(model)
    names = names_of_files(paths)
    columns = [options.clusters] if options.clusters else []
    known = {"label": columns, "known_genes": fitted.genes.tolist()}
    parts = []
    with on_cluster(dask):
        for file in paths:
            with open_profiles(file, **known, **reading) as profiles:
                parts.append(label_profiles(profiles, fitted, options, progress))
    labels = join_labels(parts, names)
    given: dict[str, Any] = {name: value for name, value in reading.items() if value}
    if "samples" in given:
        given["samples"] = Path(given["samples"]).name
    labels.record["options"] |= given
    inputs = [*paths, *map(Path, filter(None, [reading.get("samples")]))]
    labels.record["inputs"] = {
        valid_text(path.name): file_digest(path) for path in inputs
    }
    write_labels(labels, out, paths[0], spreadsheet=spreadsheet)
    return labels


def _check_files(paths: list[Path], out: Path) -> None:
    """Refuse, before any work, files that are not there and formats that labels cannot
    be written in.
    """
    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"{out}: labels are written as {', '.join(SUFFIXES)}: use such a name"
        )
    if suffix == ".parquet":
        need("pyarrow", "parquet", f"writing {out}")
    if suffix == ".h5ad" and len(paths) > 1:
        raise DataError(
            f"{out} would be a copy of one query, and there are {len(paths)}: write "
            "the labels as .csv, .parquet or .zarr"
        )
    check_outputs({"the labels": out}, paths, force=True)
    for path in paths:
        check_path(path)
        if suffix == ".h5ad" and path.suffix.lower() != ".h5ad":
            raise DataError(
                f"{out} would be a copy of the query with labels, but {path} is not "
                "an .h5ad: write the labels as .csv"
            )


def join_labels(parts: Sequence[Labels], names: Sequence[str]) -> Labels:
    """The labels of several files as one; ``names`` are those of the files.

    The record has what is the same for all files, and the record of each.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    for part, name in zip(parts, names, strict=True):
        if list(part.classes) != list(first.classes):
            raise DataError(
                f"{name} lacks genes of other classes than {names[0]}, so that they "
                "cannot be in one table: label these files one by one"
            )
    shared = ("model", "model_sha256", "optirank_version", "options", "classes")
    record = {key: first.record[key] for key in (*shared, "withheld_label")}
    record["query"] = ", ".join(names)
    record["files"] = {
        name: part.record for part, name in zip(parts, names, strict=True)
    }
    missing = dict.fromkeys(gene for part in parts for gene in part.missing)
    per_sample = {
        entry.name: np.concatenate([getattr(part, entry.name) for part in parts])
        for entry in fields(Labels)
        if isinstance(getattr(first, entry.name), np.ndarray)
    }
    return replace(
        first,
        source=", ".join(names),
        notes=_prefixed([part.notes for part in parts], names),
        warnings=_prefixed([part.warnings for part in parts], names),
        missing=tuple(missing),
        record=record,
        explanation=None,
        trust=None,
        files=np.repeat(
            np.array(names, dtype=object), [len(part.chosen) for part in parts]
        ),
        **per_sample,
    )


def _prefixed(lines: Sequence[list[str]], names: Sequence[str]) -> list[str]:
    """Sentences about files; those that are the same for all are said once."""
    common = [line for line in lines[0] if all(line in other for other in lines[1:])]
    own = [
        f"{name}: {line}"
        for of_file, name in zip(lines, names, strict=True)
        for line in of_file
        if line not in common
    ]
    return [*common, *own]


def write_labels(
    labels: Labels, out: Path, query: Path, *, spreadsheet: bool = False
) -> None:
    """Write labels in the format the name says, whole or not at all.

    Beside a .csv or .parquet file, FILE.json says how its labels were made.
    ``spreadsheet`` puts an apostrophe before texts that a spreadsheet would run.
    """
    suffix = out.suffix.lower()
    with replacing(out) as temporary:
        if suffix == ".csv":
            _write_csv(labels, temporary, spreadsheet)
        elif suffix == ".parquet":
            _write_parquet(labels, temporary)
        elif suffix == ".zarr":
            _write_zarr(labels, temporary)
        else:
            shutil.copyfile(query, temporary)
            _add_to_h5ad(labels, temporary)


def record_path(out: Path) -> Path:
    """The file that says how the labels in another were made."""
    return out.with_name(f"{out.name}.json")


def write_record(labels: Labels, out: Path) -> Path:
    """Write how the labels in a file were made, beside it."""
    path = record_path(out)
    text = json.dumps(labels.record, indent=1, default=np.ndarray.tolist)
    write_text(path, f"{text}\n")
    return path


def _tables(labels: Labels) -> Iterator[pd.DataFrame]:
    """The table of labels, some samples at a time; at least one table."""
    n_samples = len(labels.chosen)
    for start in range(0, max(1, n_samples), _ROWS):
        yield labels.table(slice(start, start + _ROWS))


def _write_csv(labels: Labels, path: Path, spreadsheet: bool) -> None:
    """Write the table with four digits; looking digits up is faster than printing."""
    texts = [f"{number / _TOP:.{_DIGITS}f}" for number in range(_TOP + 1)]
    digits = np.array([*texts, ""], dtype=object)
    with open(path, "x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for number, table in enumerate(_tables(labels)):
            if number == 0:
                names = table.columns
                writer.writerow([_escaped(n) if spreadsheet else n for n in names])
            columns = [
                _texts(table[name].to_numpy(), digits, spreadsheet)
                for name in table.columns
            ]
            writer.writerows(zip(*columns, strict=True))


def _texts(values: np.ndarray, digits: np.ndarray, spreadsheet: bool) -> list[Any]:
    """The values of a column as they are written."""
    is_share = values.dtype.kind == "f" and not ((values < 0) | (values > 1)).any()
    if is_share:  # or NaN
        places = np.rint(np.nan_to_num(values) * _TOP).astype(np.int64)
        return digits[np.where(np.isnan(values), _TOP + 1, places)].tolist()
    if spreadsheet:
        return [_escaped(str(value)) for value in values]
    return values.tolist()


def _write_parquet(labels: Labels, path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    writer = None
    for table in _tables(labels):
        group = pyarrow.Table.from_pandas(table, preserve_index=False)
        if writer is None:
            writer = pyarrow.parquet.ParquetWriter(path, group.schema)
        writer.write_table(group)
    if writer is not None:
        writer.close()


def _write_zarr(labels: Labels, path: Path) -> None:
    """Write an AnnData without values: the samples with what tl.annotate adds."""
    from anndata import AnnData

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(zarr|autosharding|not unique)")
        adata = AnnData(obs=pd.DataFrame(index=labels.names.astype(str)))
        labels.annotate(adata.obs, adata.obsm, adata.uns, _KEY)
        adata.write_zarr(path)


def _escaped(text: str) -> str:
    """A text that a spreadsheet shows as it is."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _add_to_h5ad(labels: Labels, path: Path) -> None:
    """Add to a copy of the query what :func:`optirank.tl.annotate` adds in memory."""
    import h5py
    from anndata.io import read_elem, write_elem

    with h5py.File(path, "r+") as opened:
        file: Any = opened
        obs = read_elem(file["obs"])
        obsm: dict[str, Any] = {}
        uns = {_KEY: file.get(f"uns/{_KEY}", {})}
        labels.annotate(obs, obsm, uns, _KEY)
        write_elem(file, "obs", obs)
        for group, elements in (("obsm", obsm), ("uns", uns)):
            if group not in file:
                write_elem(file, group, {})
            for name, element in elements.items():
                write_elem(file[group], name, element)
