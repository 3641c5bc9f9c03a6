"""The section of the independent test in docs/evidence.md: what is expected, and from
results/independent.csv what was measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from tables import RESULTS, across_platforms, tissue_mean, tissues_of
from tables_rivals import NEAREST_MEAN, curve_of, rivals_of
from tables_use import calibration_of, error_control_of, missing_of, with_errors

from optirank_lab.benchmark.rivals import ALL, PANEL, TOOLS
from optirank_lab.benchmark.statistics import FEWEST_TISSUES, compare
from optirank_lab.benchmark.tasks import SAME_PLATFORM

BEGIN = "<!-- independent -->\n"
END = "<!-- end of independent -->\n"
PATH = RESULTS / "independent.csv"
EXPECTED = "What we expect, written down before the test is run:\n"
NOT_RUN = "This test has not been run yet.\n"
Parts = dict[str, pd.DataFrame]


class Expectation(NamedTuple):
    """A statistic of the independent test and where it should lie."""

    words: str
    low: float
    high: float
    measure: Callable[[Parts], float]
    points: bool = True  # of accuracy; else a plain number


def minus(
    method: str, k: str = ALL, size: str = "100", of: str = PANEL
) -> Callable[[Parts], float]:
    """A method of some size minus another, mean over problems, in points."""

    def measure(parts: Parts) -> float:
        rows = parts["curve"]
        wide = rows.pivot_table(
            index="pair", columns=["method", "k"], values="balanced_accuracy"
        )
        if (method, k) not in wide:
            return float("nan")
        differences = compare(wide[of, size], wide[method, k], tissues_of(rows))
        return 100 * differences.mean

    return measure


def loss_by_missing_genes(parts: Parts) -> float:
    """The panel of 100 with 30 % of its genes missing minus with all, in points."""
    rows = parts["missing"]
    rows = rows[(rows["model"] == PANEL) & (rows["genes"] == 100)]
    wide = rows.pivot_table(index="pair", columns="missing", values="balanced_accuracy")
    return 100 * compare(wide[0.3], wide[0.0], tissues_of(rows)).mean


def mean_calibration_error(parts: Parts) -> float:
    """Expected calibration error of plain labels, mean over problems."""
    rows = parts["calibration"]
    return tissue_mean(rows[~rows["adapted"]], "calibration_error")


def share_kept(parts: Parts) -> float:
    """Share of the pairs with labels on which 5 % was kept, mean over problems."""
    rows = with_errors(parts["error_control"])
    given = rows[(rows["target"] == 0.05) & (rows["n_given"] > 0)]
    return tissue_mean(given.assign(kept=given["error"] <= 0.05), "kept")


# The limits are the 95 % intervals over the tissues at hand, rounded outwards; the last
# one, whose interval says nothing, is half of the pairs.
EXPECTATIONS = (
    Expectation(
        "panel of 100 minus regression on the ranks of all candidates",
        0,
        9,
        minus("LR on ranks, best t"),
    ),
    Expectation(
        "panel of 100 minus nearest class mean with all candidates",
        -8,
        5,
        minus(NEAREST_MEAN),
    ),
    Expectation("panel of 100 minus SingleR", -7, 11, minus("SingleR")),
    Expectation("panel of 30 minus panel of 100", -4, 1, minus(PANEL, "100", "30")),
    Expectation(
        "panel of 100, change by 30 % of its genes missing",
        -2,
        2,
        loss_by_missing_genes,
    ),
    Expectation(
        "expected calibration error", 0.04, 0.15, mean_calibration_error, points=False
    ),
    Expectation(
        "share of pairs with labels on which an error of 5 % is kept",
        0.5,
        1,
        share_kept,
        points=False,
    ),
)


def section(path: Path = PATH) -> dict[str, pd.DataFrame | str]:
    """Sentences and tables of the section, by what stands above them."""
    if not path.is_file():
        return {EXPECTED: expectations(None), NOT_RUN: ""}
    first = path.read_text("utf-8").splitlines()[0]
    commit = re.search(r"commit ([^;]*)", first)
    rows = pd.read_csv(path, comment="#", dtype={"k": str}, low_memory=False)
    all_parts = parts_of(rows)
    parts = parts_of(across_platforms(rows))
    if not parts:
        words = "All pairs are of one platform, so nothing can be said of others.\n"
        return {words: pairs_of(all_parts["pair"])}
    curve = parts["curve"]
    tables: dict[str, pd.DataFrame | str] = {
        _what_was_run(commit[1] if commit else "unknown", curve): expectations(parts),
        "The pairs:\n": pairs_of(all_parts["pair"]),
        "The panel of 100 genes beside each method:\n": rivals_of(curve, "problems"),
        "By number of genes:\n": curve_of(curve),
        "Genes missing from the query:\n": missing_of(parts["missing"]),
        "Calibration:\n": calibration_of(all_parts["calibration"], "problems"),
        "Error control:\n": error_control_of(parts["error_control"], "problems"),
    }
    one_platform = all_parts["curve"]
    one_platform = one_platform[one_platform["shift"] == SAME_PLATFORM]
    if len(one_platform):
        words = (
            "Pairs of one platform, which count in no other table but calibration:\n"
        )
        tables[words] = rivals_of(one_platform, "problems")
    return tables


def parts_of(rows: pd.DataFrame) -> Parts:
    """The rows of each part, without the columns of others."""
    parts = {
        str(name): part.dropna(axis=1, how="all") for name, part in rows.groupby("part")
    }
    if "calibration" in parts:
        flags = parts["calibration"]["adapted"].astype(str) == "True"
        parts["calibration"] = parts["calibration"].assign(adapted=flags)
    return parts


def _what_was_run(commit: str, curve: pd.DataFrame) -> str:
    """The commit, the pairs, and what lacks."""
    n_pairs = curve["pair"].nunique()
    n_problems = curve["tissue"].nunique()
    text = (
        f"Run at commit {commit}: {n_pairs} pairs of {n_problems} problems across "
        "platforms.\nPairs of one problem are averaged first.\n"
    )
    lacking = [name for name in TOOLS if name not in set(curve["method"])]
    if lacking:
        text += f"Not run: {', '.join(lacking)}.\n"
    if n_problems < FEWEST_TISSUES:
        text += f"Fewer than {FEWEST_TISSUES} problems are too few for intervals.\n"
    return text + "What was expected, and what was measured:\n"


def expectations(parts: Parts | None) -> pd.DataFrame:
    """What is expected, and whether it was met."""
    records = []
    for expectation in EXPECTATIONS:
        number = "{:+g}" if expectation.points else "{:g}"
        low, high = (number.format(n) for n in (expectation.low, expectation.high))
        record = {
            "mean over problems": expectation.words,
            "expected": f"{low} to {high}",
        }
        if parts is not None:
            value = expectation.measure(parts)
            met = expectation.low <= value <= expectation.high
            digits = "{:+.1f}" if expectation.points else "{:.3f}"
            known = value == value
            record["measured"] = digits.format(value) if known else "not run"
            record["met"] = ("yes" if met else "no") if known else "–"
        records.append(record)
    return pd.DataFrame(records)


def pairs_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Samples, classes and genes of each pair, with notes."""
    return pd.DataFrame(
        {
            "pair": row["pair"],
            "problem": row["tissue"],
            "platforms": row["shift"],
            "training samples": f"{row['n_train']:.0f}",
            "query": f"{row['n_query']:.0f}",
            "classes": row["classes"],
            "genes": f"{row['n_genes']:.0f}",
            "notes": row.get("note") if isinstance(row.get("note"), str) else "–",
        }
        for row in rows.to_dict("records")
    )
