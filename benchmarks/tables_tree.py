"""The table of the study of trees: falling back to a coarser label or withholding it."""

from __future__ import annotations

import pandas as pd
from tables import read, table

from optirank._util.words import percent

ERROR = 0.05  # of the labels given
COVERAGE = 0.9  # share of the samples that have a label


@table
def tree() -> pd.DataFrame:
    """What can be given at one error, and what is right of one share, by tissue."""
    curve = read("tree")
    errors = read("tree_error")
    at_coverage = curve[curve["coverage"].round(4) == COVERAGE]
    at_error = errors[errors["error"].round(4) == ERROR]
    records = []
    for tissue, rows in at_error.groupby("tissue"):
        given = _by_labels(rows, "most_given")
        right = _by_labels(at_coverage[at_coverage["tissue"] == tissue], "right")
        better = (given["tree"] > given["flat"]).sum()
        worse = (given["tree"] < given["flat"]).sum()
        records.append(
            {
                "tissue": tissue,
                "pairs": str(len(given)),
                f"given at {ERROR:.0%} error, flat": percent(given["flat"].mean()),
                "tree": percent(given["tree"].mean()),
                "better / worse": f"{better} / {worse}",
                f"right of {COVERAGE:.0%} given, flat": percent(right["flat"].mean()),
                "tree ": percent(right["tree"].mean()),
            }
        )
    return pd.DataFrame(records)


def _by_labels(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """One line per pair, one column per way to give labels."""
    return rows.pivot(index="pair", columns="labels", values=value)
