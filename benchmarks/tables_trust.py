"""The table of agreement: right and wrong queries."""

from __future__ import annotations

import pandas as pd
from tables import percent, read, table

from optirank_lab.data.registry import STAND_INS, group_of_sets

KINDS = {
    "right": "right tissue",
    "wrong": "another tissue",
    "scrambled": "gene names permuted",
}
WHOLE = 300  # samples of a query, at most
ENDS = (0.25, 0.45, 0.65, 0.85, 1.0)  # of steps of agreement


def judging() -> pd.DataFrame:
    """Queries that the rule was not chosen on: a set is none of the stand-ins."""
    rows = of_sets(read("agreement"))
    stand_ins = {entry.name for entry in group_of_sets(STAND_INS)}
    chosen_on = rows["reference"].isin(stand_ins) & rows["query"].isin(stand_ins)
    return rows if chosen_on.all() else rows[~chosen_on]


def of_sets(rows: pd.DataFrame) -> pd.DataFrame:
    """Without the shipped models."""
    return rows[rows["kind"].isin(KINDS) & ~rows["reference"].str.contains("-")]


@table
def agreement_accuracy() -> pd.DataFrame:
    """Right and wrong queries by their agreement, and the accuracy of the right."""
    return pd.DataFrame(
        {
            "agreement": name,
            "right tissue": percent(right),
            "another tissue": percent(wrong),
            "balanced accuracy": percent(accuracy),
        }
        for name, (right, wrong, accuracy) in steps().items()
    )


def steps() -> dict[str, tuple[float, float, float]]:
    """Shares of checked right and wrong queries in each step of agreement, and the
    mean accuracy of the right ones.
    """
    rows = judging().query("size == @WHOLE").dropna(subset="agreement")
    found = {}
    start = -1.0
    for end in ENDS:
        inside = rows["agreement"].between(start, end, inclusive="right")
        right = rows["kind"] == "right"
        wrong = rows["kind"] == "wrong"
        name = f"{start:g} to {end:g}" if found else f"below {end:g}"
        found[name] = (
            float(inside[right].mean()),
            float(inside[wrong].mean()),
            float(rows.loc[inside & right, "accuracy"].mean()),
        )
        start = end
    return found
