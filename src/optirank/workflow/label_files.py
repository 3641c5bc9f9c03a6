"""Files of labels: .csv with a record beside it, .parquet, or .h5ad."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.files import replacing, write_text
from optirank.io.data import DataError, need

if TYPE_CHECKING:
    from optirank.workflow.labels import Labels

FORMATS = (".csv", ".parquet", ".h5ad")
_DIGITS = 4  # of confidences and probabilities in a CSV: more is noise
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with these a spreadsheet starts a formula


def check_format(out: Path, query: Path, query_format: str) -> None:
    """Refuse, before any work, a format that labels cannot be written in."""
    suffix = out.suffix.lower()
    if suffix not in FORMATS:
        raise DataError(
            f"{out}: labels are written as {', '.join(FORMATS)}: use such a name"
        )
    if suffix == ".parquet":
        need("pyarrow", "parquet", f"writing {out}")
    if suffix == ".h5ad" and query_format != "h5ad":
        raise DataError(
            f"{out} would be a copy of the query with labels, but {query} is not an .h5ad: write "
            "the labels as .csv"
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
            labels.table().to_parquet(temporary, index=False)
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


def _write_csv(labels: Labels, path: Path, spreadsheet: bool) -> None:
    """Write the table with four digits; looking digits up is faster than printing."""
    top = 10**_DIGITS
    texts = [f"{number / top:.{_DIGITS}f}" for number in range(top + 1)]
    digits = np.array([*texts, ""], dtype=object)
    table = labels.table()
    columns = []
    for name in table.columns:
        values = table[name].to_numpy()
        is_share = values.dtype.kind == "f" and not ((values < 0) | (values > 1)).any()
        if is_share:  # or NaN
            places = np.rint(np.nan_to_num(values) * top).astype(np.int64)
            values = digits[np.where(np.isnan(values), top + 1, places)]
        elif spreadsheet:
            values = np.array([_escaped(str(value)) for value in values], dtype=object)
        columns.append(values.tolist())
    header = [_escaped(name) if spreadsheet else name for name in table.columns]
    with open(path, "x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(zip(*columns, strict=True))


def _escaped(text: str) -> str:
    """A text that a spreadsheet shows as it is."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _add_to_h5ad(labels: Labels, path: Path) -> None:
    """Add to a copy what :func:`optirank.tl.annotate` adds in memory."""
    need("anndata", "anndata", f"writing {path}")
    import h5py

    try:
        from anndata.io import write_elem
    except ImportError:  # anndata 0.10
        from anndata.experimental import write_elem

    key = "optirank"
    columns, probabilities = labels.fields(key)
    with h5py.File(path, "r+") as file:
        obs = file["obs"]
        for name, values in columns.items():
            write_elem(obs, name, values)
        order = [str(name) for name in obs.attrs["column-order"]]
        order += [name for name in columns if name not in order]
        obs.attrs["column-order"] = np.array(order, dtype=h5py.string_dtype())
        for group in ("obsm", "uns"):
            if group not in file:
                write_elem(file, group, {})
        write_elem(file["obsm"], f"{key}_proba", probabilities)
        write_elem(file["uns"], key, labels.record)
