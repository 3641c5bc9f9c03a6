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

from optirank._util.matrices import value_scale
from optirank._util.names import some
from optirank.io.data import DataError

if TYPE_CHECKING:
    import pandas as pd

    from optirank.io.table_files import Table

logger = logging.getLogger("optirank.datasets")

_MISSING = ("", "na", "nan", "n/a", "null", "none", ".", "-")
_UNDETECTED = ("undetermined", "undet", "undetected", "no ct", "nd")
# Numbers that stand for missing values; no expression value is as low as -99
_CODES = (-9.0, -99.0, -999.0, -9999.0, -99999.0)
# Probes of Affymetrix (also gene arrays), Illumina and Agilent
_PROBE = re.compile(
    r"(AFFX-.+|\d+(_[a-z]+)*_at|\d{7,8}|TC\w{6,}\.hg\.\d+|ILMN_\d+|A_\d\d_P\d+)"
)
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
_FEWEST_CYCLES = 5.0  # no gene is detected earlier by qPCR


def numbers_of(
    frame: pd.DataFrame, columns: list[int], table: Table, *, cycles: bool = False
) -> np.ndarray:
    """The columns as numbers, NaN where a value is missing; words are refused.

    ``frame`` has the names of the lines in column 0; its columns are positions in the
    header. Columns that a missing value has left as text are written with the table's
    decimal mark. With ``cycles`` the values are Ct of qPCR, where "Undetermined" is
    infinite.
    """
    import pandas as pd

    values = frame[columns]
    parsed = {}
    for k in values.select_dtypes(exclude="number"):
        text = frame[k].astype(str).str.strip()
        if cycles:
            text = text.where(~text.str.lower().isin(_UNDETECTED), "inf")
        text = text.str.replace(table.decimal, ".", regex=False)
        is_number = pd.Series(pd.to_numeric(text, errors="coerce")).notna()
        wrong = ~(is_number | text.str.lower().isin(_MISSING)).to_numpy()
        if wrong.any():
            _refuse_words(frame, k, wrong, table)
        # Not pandas' numbers, whose last bit may differ from those of other columns
        parsed[k] = text.where(is_number, "nan").astype(float)
    if not parsed:
        return values.to_numpy()
    numbers = [parsed.get(k, frame[k]) for k in columns]
    return pd.concat(numbers, axis=1).to_numpy(dtype=float)


def _refuse_words(
    frame: pd.DataFrame, column: int, wrong: np.ndarray, table: Table
) -> None:
    row = int(np.flatnonzero(wrong)[0])
    remedy = "correct it"
    if str(frame[column].iloc[row]).strip().lower() in _UNDETECTED:
        remedy = (
            "if these are Ct values of qPCR, of which less is more, say so (invert=)"
        )
    elif wrong.all():
        remedy = "if that column describes the lines, name it (annotations=)"
    raise DataError(
        f"{table.path}: line {frame[0].iloc[row]!r} (number {row + 1} below the "
        f"header), column {table.header[column]!r} holds {frame[column].iloc[row]!r}, "
        f"which is not a number: {remedy}"
    )


def missing_code(values: np.ndarray) -> float | None:
    """The number that stands for missing values, such as -999; None where none does.

    That is the lowest value: -9, -99, -999 and so on, where no other value is negative,
    or where it is -99 or less and no other is below a third of it. Among whole numbers,
    as counts are, -1 is one too.
    """
    code = float(np.min(values, where=np.isfinite(values), initial=0.0))
    if not code < 0:
        return None
    others = values[(values != code) & np.isfinite(values)]
    lowest = float(others.min()) if others.size else 0.0
    if code in _CODES and (lowest >= 0 or (code <= -99 and lowest > code / 3)):
        return code
    if code == -1 and lowest >= 0 and not np.any(others % 1):
        return code
    return None


def complete_genes(values: np.ndarray, path: Path) -> np.ndarray:
    """Positions of the genes without missing values."""
    if values.dtype.kind != "f":
        return np.arange(values.shape[1])
    complete = np.flatnonzero(np.isfinite(values).all(axis=0))
    if not len(complete):
        raise DataError(f"{path}: every gene has a missing value: fill them in")
    return complete


def refuse_missing(
    values: np.ndarray,
    genes: np.ndarray,
    samples: np.ndarray,
    path: Path,
    code: float | None = None,
) -> None:
    """Refuse missing and infinite values, with the names of all their genes.

    ``code`` is a number that stands for missing values.
    """
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    missing = ~np.isfinite(values)
    counts = missing.sum(axis=0)
    named = [f"{genes[j]} ({counts[j]})" for j in np.flatnonzero(counts)]
    in_sample = missing.any(axis=1)
    first = samples[int(np.flatnonzero(in_sample)[0])]
    verb = "has" if len(named) == 1 else "have"
    coded = "" if code is None else f" ({code:g} stands for a missing one)"
    raise DataError(
        f"{path}: {len(named)} of {len(genes)} genes {verb} missing or infinite "
        f"values{coded}, in {int(in_sample.sum())} of {len(samples)} samples (first "
        f"{first!r}): {some(named, 20)}; fill them in, or leave these genes out "
        "(drop_missing=True)"
        + ("" if code is None else "; if it is a value, say so (any_scale=True)")
    )


@functools.cache  # a file that is read again says it once
def _warn_once(message: str, *values: object) -> None:
    logger.warning(message, *values)


def warn_of_dates(genes: Iterable[str], path: Path) -> None:
    """Warn of gene names that a spreadsheet turned into dates."""
    dates = [name for name in genes if _DATE.fullmatch(str(name))]
    if dates:
        _warn_once(
            "%s: %s look like gene names that a spreadsheet turned into dates (1-Mar "
            "was MARCH1, 2-Sep was SEPT2): restore them, or they match no other data",
            path,
            some(dates),
        )


def warn_of_probes(
    genes: np.ndarray, known: Iterable[str], path: Path, platform: str
) -> None:
    """Warn of probes of arrays, save where a model knows some of them."""
    found = [bool(_PROBE.fullmatch(str(name))) for name in genes]
    if 2 * sum(found) <= len(found) or len(found) < _MANY:
        return
    if set(known).isdisjoint(genes):
        page = "https://www.ncbi.nlm.nih.gov/geo/query/acc.cgi?acc="
        _warn_once(
            "%s: %s are probes of an array and no genes: they match only data of the "
            "same array; for genes, give a table of two columns, probe and symbol, "
            "made from the platform's table%s (homologs=)",
            path,
            some(genes[:3]),
            f" ({page}{platform})" if platform else "",
        )


def refuse_clinical(
    values: np.ndarray,
    genes: np.ndarray,
    known: Iterable[str],
    path: Path,
    in_rows: bool,
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
    where = "lines" if in_rows else "columns"
    remedy = f"name them as annotations (annotations={names[:3]!r})"
    if in_rows:
        remedy = "remove these lines"
    raise DataError(
        f"{path}: the {where} {some(names)} look like clinical data among the genes "
        f"(by their name, or by values unlike those of the others): {remedy}; if they "
        "are genes, say so (any_scale=True)"
    )


def warn_of_cycles(values: np.ndarray, path: Path) -> None:
    """Warn of values that may be Ct of qPCR: 5 to 50, mostly above any logarithm."""
    if value_scale(values) != "log" or values.min() < _FEWEST_CYCLES:
        return
    if np.median(values) > _HIGHEST_MEDIAN:
        _warn_once(
            "%s: half of the values are above %g and none above 50, as those of Ct "
            "(qPCR), of which less is more: labels would be reversed; if they are, say "
            "so (invert=)",
            path,
            _HIGHEST_MEDIAN,
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
