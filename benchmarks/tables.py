"""The tables of the pages, each from the CSV files of results/: `TABLES` names them all."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from optirank.benchmark.statistics import bootstrap_interval

DEFAULTS = (2.0, 0.1)  # strength of simulated platforms and last l2 of the panel model
TIE = 1e-9  # accuracies that differ by less are the same


def by_pairs(
    table: pd.DataFrame, keys: list[str], value: str = "balanced_accuracy"
) -> pd.DataFrame:
    """Mean over pairs, and over tissues with a 95 % interval (tissues drawn with replacement)."""
    rows = []
    for key, part in table.groupby(keys, sort=False):
        tissues = part.groupby("tissue")[value].mean()
        low, high = bootstrap_interval(tissues, tissues.index)
        rows.append(
            dict(zip(keys, key if isinstance(key, tuple) else (key,), strict=True))
            | {"pairs": part["pair"].nunique(), "over pairs": part[value].mean()}
            | {"over tissues": tissues.mean(), "low": low, "high": high}
        )
    return pd.DataFrame(rows)


def against(one: pd.Series, other: pd.Series) -> str:
    """Pairs won, tied and lost."""
    gap = (one - other).dropna()
    return f"{(gap > TIE).sum()} won, {(gap.abs() <= TIE).sum()} tied, {(gap < -TIE).sum()} lost"


def chosen_without(table: pd.DataFrame) -> pd.DataFrame:
    """Per tissue: the setting that is best over the other tissues, and how it does on this one."""
    wide = table.pivot_table(
        index="tissue", columns=["strength", "l2"], values="balanced_accuracy", sort=True
    )
    rows = []
    for tissue in wide.index:
        best = wide.drop(index=tissue).mean().idxmax()
        rows.append(
            {
                "tissue": tissue,
                "strength": best[0],
                "l2": best[1],
                "chosen without it": wide.loc[tissue, best],
                "defaults": wide.loc[tissue, DEFAULTS],
                "best in hindsight": wide.loc[tissue].max(),
            }
        )
    found = pd.DataFrame(rows)
    means = found[["chosen without it", "defaults", "best in hindsight"]].mean()
    return pd.concat([found, pd.DataFrame([{"tissue": "mean"} | means.to_dict()])])


TABLES: dict[str, Callable[[], pd.DataFrame]] = {}
