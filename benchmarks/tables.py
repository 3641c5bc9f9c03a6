"""What the tables of the pages share: `TABLES` and `NUMBERS` by name, reading,
statistics.

A page marks a table by a comment line directly above it, such as
``<!-- results: curve -->``, and a number in a sentence by comments around it, such as
``<!--pairs-->48<!--/-->``; ``fill_tables.py`` writes both from the CSV files of
results/. Accuracies are balanced, in %. Intervals are 95 %, by Student's t over
problems (here also called tissues), since pairs of one problem are not independent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import pandas as pd

from optirank._util.words import in_percent as percent  # noqa: F401  used by tables_*.py
from optirank_lab.benchmark.statistics import PairedComparison, bootstrap_interval
from optirank_lab.benchmark.tasks import SAME_PLATFORM, SCALED_REFERENCE
from optirank_lab.data.registry import registry

RESULTS = Path(__file__).resolve().parent.parent / "results"
TIE = 1e-9  # accuracies that differ by less are the same
TABLES: dict[str, Callable[[], pd.DataFrame]] = {}
NUMBERS: dict[str, Callable[[], str]] = {}


def table(function: Callable[[], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
    """Enter a function into `TABLES` under its name; its values are text."""
    TABLES[function.__name__] = function
    return function


def number(function: Callable[[], str]) -> Callable[[], str]:
    """Enter a function into `NUMBERS` under its name, with hyphens."""
    NUMBERS[function.__name__.replace("_", "-")] = function
    return function


def read(name: str) -> pd.DataFrame:
    """The table of a CSV of results/."""
    return pd.read_csv(RESULTS / f"{name}.csv", comment="#", dtype={"k": str})


def across_platforms(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of pairs of two platforms, but for those trained on values that were
    standardised per gene.
    """
    return rows[~rows["shift"].isin([SAME_PLATFORM, SCALED_REFERENCE])]


@cache
def _modalities() -> dict[str, str]:
    """Single-cell or bulk, by the name of a set."""
    path = files("optirank_lab.data").joinpath("wide_sources.csv")
    with as_file(path) as table:
        wide = pd.read_csv(table).set_index("name")["modality"].to_dict()
    return wide | {name: entry.modality for name, entry in registry().items()}


def modality_of(name: str) -> str:
    """Whether a set is of single cells (imaging too) or of bulk profiles."""
    return "bulk" if _modalities()[name] == "bulk" else "single-cell"


def by_pairs(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean over pairs, and over tissues (of their means) with its interval."""
    records = []
    for key, part in rows.groupby(keys, sort=False):
        tissues = part.groupby("tissue")["balanced_accuracy"].mean()
        low, high = bootstrap_interval(tissues, tissues.index)
        records.append(
            dict(zip(keys, key, strict=True))
            | {
                "pairs": part["pair"].nunique(),
                "over pairs": part["balanced_accuracy"].mean(),
                "over tissues": tissues.mean(),
                "low": low,
                "high": high,
            }
        )
    return pd.DataFrame(records)


def against(first: pd.Series, second: pd.Series) -> str:
    """Pairs won, tied and lost."""
    gap = (first - second).dropna()
    return f"{(gap > TIE).sum()} / {(gap.abs() <= TIE).sum()} / {(gap < -TIE).sum()}"


def counts(won_tied_lost: tuple[int, int, int]) -> str:
    """Won, tied and lost as text."""
    return " / ".join(map(str, won_tied_lost))


def difference(comparison: PairedComparison) -> str:
    """A mean difference in points with its sign and interval."""
    mean = f"{100 * comparison.mean:+.1f}"
    if pd.isna(comparison.low):
        return f"{mean} (too few for an interval)"
    return f"{mean} ({100 * comparison.low:+.1f} to {100 * comparison.high:+.1f})"


def p_value(p: float) -> str:
    """A p value with two digits."""
    return f"{p:.2g}" if p >= 0.001 else "< 0.001"


def tissues_of(rows: pd.DataFrame) -> pd.Series:
    """The tissue of each pair."""
    return rows.drop_duplicates("pair").set_index("pair")["tissue"]


def tissue_mean(rows: pd.DataFrame, column: str) -> float:
    """Mean over tissues of a column; pairs of one tissue are averaged first."""
    return float(rows.groupby("tissue")[column].mean().mean())


def mean_over_tissues(rows: pd.DataFrame, keys: list[str]) -> pd.Series:
    """Mean over tissues of each group; pairs of one tissue are averaged first."""
    by_tissue = rows.groupby([*keys, "tissue"], sort=False)["balanced_accuracy"].mean()
    return by_tissue.groupby(level=keys, sort=False).mean()


def as_text(wide: pd.DataFrame, name: str) -> pd.DataFrame:
    """The index as a first column of that name."""
    frame = wide.rename_axis(index=name, columns=None).reset_index()
    return frame.astype({name: str})
