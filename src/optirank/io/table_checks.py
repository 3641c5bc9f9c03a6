"""What can be wrong with the values of a table: words, gaps, clinical
columns, dates.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.names import some
from optirank._util.scales import value_scale
from optirank.io.data import DataError

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("optirank.datasets")

_MISSING = ("", "na", "nan", "n/a", "null", "none", ".", "-")
# Words of clinical columns; no gene has such a symbol
_CLINICAL = re.compile(
    r"(^|[\W_])(age|ihc|percent|pct|bmi|weight|height|size|score|stage|grade|status|"
    r"survival|time|event|months|days|years|dose)([\W_]|$)|%",
    re.IGNORECASE,
)
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec"
_DATE = re.compile(
    rf"\d{{1,2}}-({_MONTHS})(-\d+)?|({_MONTHS})-\d{{1,2}}", re.IGNORECASE
)
_MANY = 20  # genes that tell what is usual; clinical columns are fewer
_FEWEST_SAMPLES = 5  # of fewer, whole numbers among logarithms are often chance
# Logarithms of genes lie closer together than this factor, and have medians below 20,
# the log2 of a million
_FACTOR = 3.0
_HIGHEST_MEDIAN = 20.0


def numbers_of(
    frame: pd.DataFrame, columns: list[int], header: list[str], path: Path
) -> np.ndarray:
    """The columns as numbers, NaN where a value is missing; words are refused.

    ``frame`` has the names of the lines in column 0; its columns are positions in
    ``header``.
    """
    import pandas as pd

    parsed = {}
    for k in columns:
        if frame[k].dtype.kind in "iuf":
            continue
        text = frame[k].astype(str).str.strip()
        parsed[k] = pd.to_numeric(text, errors="coerce")
        wrong = (parsed[k].isna() & ~text.str.lower().isin(_MISSING)).to_numpy()
        if wrong.any():
            _refuse_words(frame, k, wrong, header, path)
    if not parsed:
        return frame[columns].to_numpy()
    values = [parsed.get(k, frame[k]) for k in columns]
    return pd.concat(values, axis=1).to_numpy(dtype=float)


def _refuse_words(
    frame: pd.DataFrame, column: int, wrong: np.ndarray, header: list[str], path: Path
) -> None:
    row = int(np.flatnonzero(wrong)[0])
    remedy = "correct it"
    if wrong.all():
        remedy = (
            "if that column describes the lines, name it (annotations=, --annotations)"
        )
    raise DataError(
        f"{path}: line {frame[0].iloc[row]!r} (number {row + 1} below the header), "
        f"column {header[column]!r} holds {frame[column].iloc[row]!r}, which is not a "
        f"number: {remedy}"
    )


def complete_genes(values: np.ndarray, path: Path) -> np.ndarray:
    """Positions of the genes without missing values."""
    if values.dtype.kind != "f":
        return np.arange(values.shape[1])
    complete = np.flatnonzero(np.isfinite(values).all(axis=0))
    if not len(complete):
        raise DataError(f"{path}: every gene has a missing value: fill them in")
    return complete


def refuse_missing(
    values: np.ndarray, genes: np.ndarray, samples: np.ndarray, path: Path
) -> None:
    """Refuse missing and infinite values, with the names of all their genes."""
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    missing = ~np.isfinite(values)
    counts = missing.sum(axis=0)
    named = [f"{genes[j]} ({counts[j]})" for j in np.flatnonzero(counts)]
    in_sample = missing.any(axis=1)
    first = samples[int(np.flatnonzero(in_sample)[0])]
    verb = "has" if len(named) == 1 else "have"
    raise DataError(
        f"{path}: {len(named)} of {len(genes)} genes {verb} missing or infinite "
        f"values, in {int(in_sample.sum())} of {len(samples)} samples (first "
        f"{first!r}): {some(named, 20)}; fill them in, or leave these genes out "
        "(drop_missing=True, --drop-missing-genes)"
    )


def warn_of_dates(genes: Iterable[str], path: Path) -> None:
    """Warn of gene names that a spreadsheet turned into dates."""
    dates = tuple(name for name in genes if _DATE.fullmatch(str(name)))
    if dates:
        _warn_of_dates(dates, path)


@functools.cache  # a file that is read again says it once
def _warn_of_dates(dates: tuple[str, ...], path: Path) -> None:
    logger.warning(
        "%s: %s look like gene names that a spreadsheet turned into dates (1-Mar was "
        "MARCH1, 2-Sep was SEPT2): restore them, or they match no other data",
        path,
        some(dates),
    )


def refuse_clinical(
    values: np.ndarray,
    genes: np.ndarray,
    known: Iterable[str],
    path: Path,
    genes_in: str,
) -> None:
    """Refuse columns that look like clinical data among genes: by their name or scale.

    Nothing is refused with fewer than five samples, in which every whole number looks
    clinical, and never a gene that is ``known``, such as one of a model's panel.
    """
    if len(values) < _FEWEST_SAMPLES:
        return
    spared = {name.casefold() for name in known}
    odd = {j for j, name in enumerate(genes) if _CLINICAL.search(str(name))}
    odd |= _unlike_the_others(values)
    names = [str(genes[j]) for j in sorted(odd)]
    names = [name for name in names if name.casefold() not in spared]
    if not names:
        return
    where = "columns" if genes_in == "columns" else "lines"
    option = f"--annotations {','.join(names[:3])}"
    remedy = f"name them as annotations (annotations={names[:3]!r}, {option})"
    if genes_in == "rows":
        remedy = "remove these lines"
    raise DataError(
        f"{path}: the {where} {some(names)} look like clinical data among the genes "
        f"(by their name, or by values unlike those of the others): {remedy}; if they "
        "are genes, say so (any_scale=True, --all-genes)"
    )


def _unlike_the_others(values: np.ndarray) -> set[int]:
    """Positions of a few columns that are on another scale than logarithms
    around them.
    """
    largest = np.abs(values).max(axis=0)
    median = np.median(np.abs(values), axis=0)
    # Most columns must look like logarithms; a few may be clinical ones
    usual = largest <= np.quantile(largest, 0.8)
    if values.shape[1] < _MANY or value_scale(values[:, usual]) != "log":
        return set()
    top = max(median[usual].max(), 1.0)
    whole = (values == np.rint(values)).all(axis=0)
    high = median > max(_FACTOR * top, _HIGHEST_MEDIAN)
    unlike = np.flatnonzero(high | (whole & (median > top)))
    if len(unlike) > _MANY:  # they are genes on a linear scale
        return set()
    return set(unlike.tolist())
