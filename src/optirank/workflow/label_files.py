"""Files of labels: .csv with a record beside it, .parquet, .h5ad or .zarr."""

from __future__ import annotations

import csv
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.files import replacing, write_text
from optirank.io.data import DataError, need

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.labels import Labels

SUFFIXES = (".csv", ".parquet", ".h5ad", ".zarr")
_ROWS = 200_000  # samples written together: memory follows them
_DIGITS = 4  # of confidences and probabilities in a CSV: more is noise
_TOP = 10**_DIGITS
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with these a spreadsheet starts a formula


def check_format(out: Path, query: Path, query_format: str) -> None:
    """Refuse, before any work, a format that labels cannot be written in."""
    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"{out}: labels are written as {', '.join(SUFFIXES)}: use such a name"
        )
    if suffix == ".parquet":
        need("pyarrow", "parquet", f"writing {out}")
    if suffix == ".zarr":
        need("anndata", "anndata", f"writing {out}")
        need("zarr", "anndata", f"writing {out}")
    if suffix == ".h5ad" and query_format != "h5ad":
        raise DataError(
            f"{out} would be a copy of the query with labels, but {query} is not an "
            ".h5ad: write the labels as .csv"
        )


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
    write_text(path, json.dumps(plain_record(labels.record), indent=1) + "\n")
    return path


def plain_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record in the types that JSON has."""
    plain = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            plain[name] = plain_record(value)
        else:
            plain[name] = value.tolist() if isinstance(value, np.ndarray) else value
    return plain


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
    import pandas as pd
    import zarr

    key = "optirank"
    write_elem = _write_elem()
    columns, probabilities = labels.fields(key)
    index = pd.Index(labels.names, dtype=str)
    obs = pd.DataFrame(columns, index=index)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(zarr|autosharding)")
        group = zarr.open_group(str(path), mode="w")
        group.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        write_elem(group, "obs", obs)
        write_elem(group, "var", pd.DataFrame(index=pd.Index([], dtype=str)))
        write_elem(group, "obsm", {f"{key}_proba": probabilities.set_axis(index)})
        write_elem(group, "uns", {key: labels.record})
        for name in ("layers", "obsp", "varm", "varp"):
            write_elem(group, name, {})


def _write_elem() -> Any:
    try:
        from anndata.io import write_elem
    except ImportError:  # anndata 0.10
        from anndata.experimental import write_elem
    return write_elem


def _escaped(text: str) -> str:
    """A text that a spreadsheet shows as it is."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _add_to_h5ad(labels: Labels, path: Path) -> None:
    """Add to a copy what :func:`optirank.tl.annotate` adds in memory."""
    need("anndata", "anndata", f"writing {path}")
    import h5py

    from optirank.workflow.labels import others_columns, outdated

    write_elem = _write_elem()
    key = "optirank"
    with h5py.File(path, "r+") as opened:
        file: Any = opened
        obs = file["obs"]
        had_ids = f"uns/{key}/cell_ontology" in file
        others = others_columns(key, obs, had_ids)
        columns, probabilities = labels.fields(key, others)
        removed = outdated(key, obs, columns, had_ids)
        for name in removed:
            del obs[name]
        for name, values in columns.items():
            write_elem(obs, name, values)
        before = [str(name) for name in obs.attrs["column-order"]]
        order = [name for name in before if name not in removed]
        order += [name for name in columns if name not in order]
        obs.attrs["column-order"] = np.array(order, dtype=h5py.string_dtype())
        for group in ("obsm", "uns"):
            if group not in file:
                write_elem(file, group, {})
        write_elem(file["obsm"], f"{key}_proba", probabilities)
        write_elem(file["uns"], key, labels.record)
