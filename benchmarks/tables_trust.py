"""Tables of agreement: right, wrong and scrambled queries, and what the alarm does."""

from __future__ import annotations

import pandas as pd
from sklearn.metrics import roc_auc_score
from tables import percent, read, table

from optirank.verbs.checks import is_alarm
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
    return with_alarms(rows if chosen_on.all() else rows[~chosen_on])


def of_sets(rows: pd.DataFrame) -> pd.DataFrame:
    """Without the shipped models."""
    return rows[rows["kind"].isin(KINDS) & ~rows["reference"].str.contains("-")]


def with_alarms(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with the likeness relative to the model's own, and the alarm."""
    relative = rows["likeness"] / rows["likeness_of_model"]
    known = rows["agreement"].astype(object).where(rows["agreement"].notna(), None)
    told = zip(known, relative, rows["genes_missing"], strict=True)
    alarms = [is_alarm(*of_query) for of_query in told]
    return rows.assign(relative=relative, alarm=alarms)


@table
def agreement_alarms() -> pd.DataFrame:
    """The alarm by size and kind of the query, and how well each figure tells right
    from wrong.
    """
    lines = []
    for size, of_size in judging().groupby("size", sort=False):
        checked = of_size["agreement"].notna()
        line = {"samples": str(size)}
        for kind, name in KINDS.items():
            own = of_size["kind"] == kind
            for where, title in ((checked, ""), (~checked, ", not checked")):
                part = of_size.loc[own & where, "alarm"]
                line[f"{name}{title}"] = f"{int(part.sum())} of {len(part)}"
        for column, title in (("agreement", "agreement"), ("relative", "likeness")):
            told = of_size[checked & of_size["kind"].isin(["right", "wrong"])]
            auc = roc_auc_score(told["kind"] == "right", told[column])
            line[f"AUC, {title}"] = f"{auc:.3f}"
        lines.append(line)
    return pd.DataFrame(lines)


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


@table
def agreement_models() -> pd.DataFrame:
    """The shipped models on sets of their organ and of others."""
    rows = read("agreement").query("size == @WHOLE")
    shipped = with_alarms(rows[rows["reference"].str.contains("-")])
    lines = []
    for name, part in shipped.groupby("reference"):
        line = {"model": str(name)}
        for kind in ("same organ", "wrong"):
            own = part[part["kind"] == kind]
            n_checked = int(own["agreement"].notna().sum())
            line[f"{kind}: sets"] = str(len(own))
            line[f"{kind}: checked"] = str(n_checked)
            line[f"{kind}: alarms"] = str(int(own["alarm"].sum()))
        lines.append(line)
    return pd.DataFrame(lines)
