"""The section of the independent test in docs: what is registered (registration.toml),
what the sets at hand give, and, from results/independent.csv, what was measured.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from tables import RESULTS, across_platforms, read, tissues_of
from tables_rivals import NEAREST_MEAN, curve_of, rivals_of
from tables_use import error_control_of, missing_of, product_of, with_errors

from optirank_lab.benchmark.curve import PANEL, TOOLS
from optirank_lab.benchmark.statistics import (
    FEWEST_VALUES,
    over_tissues,
    t_interval,
)
from optirank_lab.benchmark.tasks import SAME_PLATFORM, UNKNOWN_PLATFORM

REGISTRATION = Path(__file__).with_name("registration.toml")
BEGIN = "<!-- independent -->\n"
END = "<!-- end of independent -->\n"
PARTS = ("curve", "missing", "product", "error_control", "agreement")
TOO_FEW_PROBLEMS = "too few problems for an interval"
TARGET = 0.05  # error asked for
DIGITS = 9  # of a mean that is compared with limits: rounding must not decide
NOT_RUN = "This test has not been run yet.\n"
RULE = (
    "Each value is a mean over problems; pairs of one problem are averaged first, and "
    "problems that share samples count once.\n"
    "Intervals are 95 %, by Student's t.\n"
)

Parts = dict[str, pd.DataFrame]
Statistic = Callable[[Parts], pd.Series]  # one value per problem, in points


def panel_minus(method: str, k: str) -> Statistic:
    """The panel minus a method, both with k genes."""

    def differences(parts: Parts) -> pd.Series:
        rows = parts["curve"]
        wide = rows.pivot_table(
            index="pair", columns=["method", "k"], values="balanced_accuracy"
        )
        if (method, k) not in wide:
            return pd.Series(dtype=float)
        return over_tissues(wide[PANEL, k] - wide[method, k], tissues_of(rows))

    return differences


def adapted_minus_plain(parts: Parts) -> pd.Series:
    """The panel of 100 after learning from the query, minus as it is."""
    rows = parts["product"]
    rows = rows[rows["asked_for"] == "100"]
    wide = rows.pivot_table(index="pair", columns="adapted", values="balanced_accuracy")
    return over_tissues((wide[True] - wide[False]).dropna(), tissues_of(rows))


def half_missing(parts: Parts) -> pd.Series:
    """The panel of 100 without half of its genes, minus the nearest class mean so."""
    rows = parts["missing"]
    rows = rows[(rows["genes"] == 100) & (rows["missing"] == 0.5)]
    wide = rows.pivot_table(index="pair", columns="model", values="balanced_accuracy")
    return over_tissues(wide[PANEL] - wide[NEAREST_MEAN], tissues_of(rows))


def agreement_auc(parts: Parts) -> pd.Series:
    """How well agreement tells queries of the problem from those of others, by
    problem, of those that can be checked.
    """
    rows = parts["agreement"]
    rows = rows[rows["kind"].isin(["right", "wrong"]) & (rows["size"] == 300)]
    by_problem = {}
    column = "tissue" if "tissue" in rows else "organ"  # of the sets at hand
    for problem, part in rows.groupby(column):
        part = part.dropna(subset=["agreement"])
        if part["kind"].nunique() == 2:
            right = part["kind"] == "right"
            by_problem[problem] = roc_auc_score(right, part["agreement"])
    return pd.Series(by_problem, dtype=float)


def error_of_control(parts: Parts) -> pd.Series:
    """Share of the labels given that are wrong, where 5 % were asked for."""
    rows = with_errors(parts["error_control"])
    rows = rows[(rows["target"] == TARGET) & (rows["n_given"] > 0)]
    return rows.groupby("tissue")["error"].mean()


def calibration_error(parts: Parts) -> pd.Series:
    """Expected calibration error of the panel of 100."""
    rows = parts["product"]
    rows = rows[(rows["asked_for"] == "100") & ~rows["adapted"]]
    return rows.groupby("tissue")["calibration_error"].mean()


STATISTICS: dict[str, tuple[str, Statistic]] = {
    "panel_100_minus_nearest_mean_100": ("curve", panel_minus(NEAREST_MEAN, "100")),
    "panel_30_minus_nearest_mean_30": ("curve", panel_minus(NEAREST_MEAN, "30")),
    "adapted_minus_plain": ("product", adapted_minus_plain),
    "panel_minus_nearest_mean_half_missing": ("missing", half_missing),
    "agreement_auc": ("agreement", agreement_auc),
    "error_where_5_percent_was_asked": ("error_control", error_of_control),
    "calibration_error": ("product", calibration_error),
}
"""By the names of registration.toml: the part of the rows, and the values of it."""


class Hypothesis(NamedTuple):
    """What is said of independent data before the test is run."""

    kind: str  # primary or secondary
    statistic: str
    what: str
    holds_if: str  # "low": the interval is above the limit; "mean", "mean below"
    limit: float
    then: str
    otherwise: str

    def holds(self, mean: float, low: float) -> bool:
        """Whether it holds, by the mean over problems and the end of its interval."""
        if self.holds_if == "low":
            return low > self.limit
        if self.holds_if == "mean":
            return mean >= self.limit
        return mean <= self.limit

    @property
    def condition(self) -> str:
        """When it holds, in words."""
        number = f"{self.limit:+g}" if self.what.endswith("points") else f"{self.limit}"
        return {
            "low": f"interval above {number}",
            "mean": f"at least {number}",
            "mean below": f"at most {number}",
        }[self.holds_if]


def hypotheses() -> list[Hypothesis]:
    """Those of registration.toml, in order."""
    tables = tomllib.loads(REGISTRATION.read_text("utf-8"))["hypothesis"]
    return [
        Hypothesis(
            otherwise=table["else"], **{k: table[k] for k in table if k != "else"}
        )
        for table in tables
    ]


def section(path: Path = RESULTS / "independent.csv") -> dict[str, pd.DataFrame | str]:
    """Sentences and tables of the section, by what stands above them."""
    if not path.is_file():
        words = (
            "What is registered, before the test is run; what follows from each "
            "outcome is in the registration.\n"
        )
        return {words + RULE: verdicts(), NOT_RUN: ""}
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
        tables["No pair is across platforms, so no hypothesis can be judged.\n"] = ""
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
        _what_was_run(curve) + RULE: verdicts(parts),
        "Mean over problems by number of genes:\n": _curve_table(curve),
        "The panel of 100 genes beside each method:\n": rivals_of(curve),
        "Genes missing from the query:\n": missing_of(parts["missing"]),
        "Models as `train` makes them:\n": product_of(parts["product"]),
        "Error control:\n": error_control_of(parts["error_control"]),
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
    """The rows of each part, without the columns of others.

    Problems that share samples are one group, which stands in the place of a problem.
    """
    rows = rows.assign(tissue=rows.get("group", rows["tissue"]).fillna(rows["tissue"]))
    parts = {
        name: rows[rows["part"] == name].dropna(axis=1, how="all") for name in PARTS
    }
    product = parts["product"]
    adapted = product["adapted"].astype(str) == "True"
    asked_for = product["asked_for"].astype(str).str.removesuffix(".0")
    parts["product"] = product.assign(adapted=adapted, asked_for=asked_for)
    return parts


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


def verdicts(parts: Parts | None = None) -> pd.DataFrame:
    """What is registered and what the sets at hand gave; where the test was run, what
    it gave, whether the hypothesis holds, and what follows.
    """
    at_hand = {name: across_platforms(read(name)) for name in PARTS}
    records = []
    for hypothesis in hypotheses():
        record = {
            "hypothesis": f"{hypothesis.what} ({hypothesis.kind})",
            "holds if": hypothesis.condition,
            "sets at hand": _mean_with_interval(hypothesis, at_hand)[0],
        }
        if parts is not None:
            text, mean, low = _mean_with_interval(hypothesis, parts)
            holds = hypothesis.holds(round(mean, DIGITS), round(low, DIGITS))
            follows = hypothesis.then if holds else hypothesis.otherwise
            judged = not np.isnan(low if hypothesis.holds_if == "low" else mean)
            record["measured"] = text
            record["verdict"] = (
                ("holds" if holds else "does not hold") if judged else "–"
            )
            record["so"] = follows if judged else "–"
        records.append(record)
    return pd.DataFrame(records)


def _mean_with_interval(
    hypothesis: Hypothesis, parts: Parts
) -> tuple[str, float, float]:
    """The mean of a statistic with its interval over problems, as text; the mean and
    the lower end.
    """
    nan = float("nan")
    part, statistic = STATISTICS[hypothesis.statistic]
    by_problem = pd.Series(dtype=float) if parts[part].empty else statistic(parts)
    if by_problem.empty:
        return "not measured", nan, nan
    in_points = hypothesis.what.endswith("points")
    by_problem = by_problem * (100 if in_points else 1)
    number = "{:+.1f}" if in_points else "{:.3f}"
    mean = float(by_problem.mean())
    if len(by_problem) < FEWEST_VALUES:
        return f"{number.format(mean)} ({TOO_FEW_PROBLEMS})", mean, nan
    low, high = t_interval(by_problem)
    ends = " to ".join(number.format(end) for end in (low, high))
    return f"{number.format(mean)} ({ends})", mean, low


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
