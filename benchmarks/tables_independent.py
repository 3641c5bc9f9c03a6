"""The section of the independent test in docs/evidence.md: what is expected, and, from
results/independent.csv, what was measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from tables import RESULTS, across_platforms, read, tissues_of
from tables_rivals import NEAREST_MEAN, curve_of, rivals_of
from tables_use import calibration_of, error_control_of, missing_of, with_errors

from optirank_lab.benchmark.curve import ALL, PANEL, TOOLS
from optirank_lab.benchmark.statistics import (
    FEWEST_VALUES,
    over_tissues,
    t_interval,
)
from optirank_lab.benchmark.tasks import SAME_PLATFORM, UNKNOWN_PLATFORM

BEGIN = "<!-- independent -->\n"
END = "<!-- end of independent -->\n"
PARTS = ("curve", "missing", "calibration", "error_control")
TOO_FEW_PROBLEMS = "too few problems for an interval"
TARGET = 0.05  # error asked for
DIGITS = 9  # of a mean that is compared with limits: rounding must not decide
NOT_RUN = "This test has not been run yet.\n"
RULE = (
    "Each statistic is a mean over problems; pairs of one problem are averaged first.\n"
    "The limits were chosen in view of the sets at hand, whose means and intervals "
    "(Student's t over tissues) stand beside them.\n"
    "An expectation is met if the mean lies within the limits.\n"
)

Parts = dict[str, pd.DataFrame]
Statistic = Callable[[Parts], pd.Series]  # one value per problem


def panel_minus(method: str, k: str, size: str = "100") -> Statistic:
    """The panel of some size minus a method with k genes, in points."""

    def differences(parts: Parts) -> pd.Series:
        rows = parts["curve"]
        wide = rows.pivot_table(
            index="pair", columns=["method", "k"], values="balanced_accuracy"
        )
        if (method, k) not in wide:
            return pd.Series(dtype=float)
        points = 100 * (wide[PANEL, size] - wide[method, k])
        return over_tissues(points, tissues_of(rows))

    return differences


def loss_by_missing_genes(parts: Parts) -> pd.Series:
    """Points that the panel of 100 loses without 30 % of its genes."""
    rows = parts["missing"]
    rows = rows[(rows["model"] == PANEL) & (rows["genes"] == 100)]
    wide = rows.pivot_table(index="pair", columns="missing", values="balanced_accuracy")
    return over_tissues(100 * (wide[0.0] - wide[0.3]), tissues_of(rows))


def calibration_error(parts: Parts) -> pd.Series:
    """Expected calibration error of the panel of 100."""
    rows = parts["calibration"]
    return rows[~rows["adapted"]].groupby("tissue")["calibration_error"].mean()


def share_kept(parts: Parts) -> pd.Series:
    """Share of the pairs with labels on which an error of 5 % is kept."""
    rows = with_errors(parts["error_control"])
    given = rows[(rows["target"] == TARGET) & (rows["n_given"] > 0)]
    return (given["error"] <= TARGET).groupby(given["tissue"]).mean()


class Expectation(NamedTuple):
    """A statistic, and the limits that its mean over problems is expected in."""

    name: str
    statistic: Statistic
    low: float
    high: float
    is_share: bool = False  # else points of accuracy


EXPECTATIONS = (
    Expectation(
        "panel of 100 minus regression on the ranks of all candidates, points",
        panel_minus("LR on ranks, best t", ALL),
        0,
        8,
    ),
    Expectation(
        "panel of 100 minus nearest class mean with all candidates, points",
        panel_minus(NEAREST_MEAN, ALL),
        -6,
        6,
    ),
    Expectation(
        "panel of 100 minus SingleR, points", panel_minus("SingleR", ALL), -9, 9
    ),
    Expectation(
        "panel of 30 minus panel of 100, points", panel_minus(PANEL, "100", "30"), -4, 0
    ),
    Expectation(
        "loss of the panel of 100 without 30 % of its genes, points",
        loss_by_missing_genes,
        -2,
        2,
    ),
    Expectation(
        "expected calibration error of the panel of 100",
        calibration_error,
        0,
        0.13,
        is_share=True,
    ),
    Expectation(
        "share of the pairs with labels on which an error of 5 % is kept",
        share_kept,
        0.5,
        1,
        is_share=True,
    ),
)
"""What is expected of independent data, in view of the intervals over the tissues at
hand; written down before the test is run, and not changed after."""


def section(path: Path = RESULTS / "independent.csv") -> dict[str, pd.DataFrame | str]:
    """Sentences and tables of the section, by what stands above them."""
    if not path.is_file():
        words = "What we expect, written down before the test is run.\n"
        return {words + RULE: expectations(), NOT_RUN: ""}
    first = path.read_text("utf-8").splitlines()[0]
    commit = re.search(r"\(commit (.*?)\)", first)
    rows = pd.read_csv(path, skiprows=1, dtype={"k": str}, low_memory=False)
    pairs = rows[rows["part"] == "pair"]
    across = across_platforms(rows)
    tables: dict[str, pd.DataFrame | str] = {
        f"Run at commit {commit[1] if commit else 'unknown'}. The pairs:\n": pair_table(
            pairs
        )
    }
    if len(across):
        tables |= measured(parts_of(across))
    else:
        tables["No pair is across platforms, so no expectation can be judged.\n"] = ""
    same = rows[rows["shift"] == SAME_PLATFORM]
    if len(same):
        tables |= {
            "Pairs of one platform, which count in no table above, by number of "
            "genes:\n": _curve_table(parts_of(same)["curve"]),
        }
    return tables


def measured(parts: Parts) -> dict[str, pd.DataFrame | str]:
    """The tables of pairs across platforms."""
    curve = parts["curve"]
    return {
        _what_was_run(curve) + RULE: expectations(parts),
        "Mean over problems by number of genes:\n": _curve_table(curve),
        "The panel of 100 genes beside each method:\n": rivals_of(curve, "problems"),
        "Genes missing from the query:\n": missing_of(parts["missing"]),
        "Calibration:\n": calibration_of(parts["calibration"], "problems"),
        "Error control:\n": error_control_of(parts["error_control"], "problems"),
    }


def _curve_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Means by method and number of genes; sizes that some pairs lack say so."""
    n_pairs = rows["pair"].nunique()
    with_size = rows.groupby("k")["pair"].nunique()
    names = {
        k: f"{k} ({n_own} of {n_pairs} pairs)"
        for k, n_own in with_size.items()
        if n_own < n_pairs
    }
    return curve_of(rows).rename(columns=names)


def parts_of(rows: pd.DataFrame) -> Parts:
    """The rows of each part, without the columns of others."""
    parts = {
        name: rows[rows["part"] == name].dropna(axis=1, how="all") for name in PARTS
    }
    adapted = parts["calibration"]["adapted"].astype(str) == "True"
    return parts | {"calibration": parts["calibration"].assign(adapted=adapted)}


def _what_was_run(curve: pd.DataFrame) -> str:
    """Pairs and problems, and what lacks."""
    n_problems = curve["tissue"].nunique()
    lines = [f"{curve['pair'].nunique()} pairs of {n_problems} problems are measured."]
    if n_problems < FEWEST_VALUES:
        lines.append(f"These are {TOO_FEW_PROBLEMS}.")
    unknown = curve.loc[curve["shift"] == UNKNOWN_PLATFORM, "pair"].nunique()
    if unknown:
        lines.append(
            f"The platforms of {unknown} of these pairs are not known: they count as "
            "across platforms."
        )
    lacking = [name for name in TOOLS if name not in set(curve["method"])]
    if lacking:
        lines.append(f"Not run: {', '.join(lacking)}.")
    if "note" in curve:
        failed = curve[curve["balanced_accuracy"].isna() & curve["note"].notna()]
        lines += [
            f"{row['method']} failed on {row['pair']}: {row['note']}."
            for row in failed.to_dict("records")
        ]
    return "\n".join(lines) + "\n"


def expectations(parts: Parts | None = None) -> pd.DataFrame:
    """What is expected and what the sets at hand gave; where the test was run, what it
    gave, and whether the expectation is met.
    """
    at_hand = {name: across_platforms(read(name)) for name in PARTS}
    records = []
    for expectation in EXPECTATIONS:
        limits = (expectation.low, expectation.high)
        record = {
            "mean over problems": expectation.name,
            "expected": f"{expectation.low:g} to {expectation.high:g}",
            "sets at hand": _mean_with_interval(expectation, at_hand),
        }
        if parts is not None:
            mean = round(expectation.statistic(parts).mean(), DIGITS)
            met = "met" if limits[0] <= mean <= limits[1] else "not met"
            record["measured"] = _mean_with_interval(expectation, parts)
            record["verdict"] = "–" if pd.isna(mean) else met
        records.append(record)
    return pd.DataFrame(records)


def _mean_with_interval(expectation: Expectation, parts: Parts) -> str:
    """The mean of a statistic with its interval over problems, as text."""
    by_problem = expectation.statistic(parts)
    if by_problem.empty:
        return "not measured"
    number = "{:.3f}" if expectation.is_share else "{:+.1f}"
    mean = number.format(by_problem.mean())
    if len(by_problem) < FEWEST_VALUES:
        return f"{mean} ({TOO_FEW_PROBLEMS})"
    limits = t_interval(by_problem)
    if expectation.is_share:
        limits = (max(0.0, limits[0]), min(1.0, limits[1]))
    return f"{mean} ({' to '.join(map(number.format, limits))})"


def pair_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What each pair consists of."""
    return pd.DataFrame(
        {
            "pair": row["pair"],
            "problem": row["tissue"],
            "platforms": _PLATFORMS.get(row["shift"], "two"),
            "reference samples": f"{row['n_reference']:.0f}",
            "query samples": f"{row['n_query']:.0f}",
            "classes": row["classes"],
            "dropped (samples in reference and query)": row["dropped"]
            if isinstance(row["dropped"], str) and row["dropped"]
            else "–",
            "common genes": f"{row['n_genes']:.0f}",
        }
        for row in rows.to_dict("records")
    )


_PLATFORMS = {SAME_PLATFORM: "one", UNKNOWN_PLATFORM: "unknown"}
