"""The section of the independent test in docs/evidence.md, from
results/independent.csv.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
from tables import RESULTS
from tables_rivals import rivals_of
from tables_use import calibration_of, error_control_of, missing_of

BEGIN = "<!-- independent -->\n"
END = "<!-- end of independent -->\n"
NOT_RUN = "This test has not been run yet.\n"


def section(path: Path = RESULTS / "independent.csv") -> dict[str, pd.DataFrame | str]:
    """Sentences and tables of the section, by what stands above them."""
    if not path.is_file():
        return {NOT_RUN: ""}
    first = path.read_text("utf-8").splitlines()[0]
    commit = re.search(r"commit ([^;]*)", first)
    rows = pd.read_csv(path, comment="#", dtype={"k": str}, low_memory=False)
    parts = {
        name: part.dropna(axis=1, how="all") for name, part in rows.groupby("part")
    }
    curve = parts["curve"]
    n_pairs = curve["pair"].nunique()
    n_problems = curve["tissue"].nunique()
    what = (
        f"Run at commit {commit[1] if commit else 'unknown'}: {n_pairs} pairs of "
        f"{n_problems} problems.\nPairs of one problem are averaged first.\n"
    )
    calibration = parts["calibration"].assign(adapted=_flags(parts["calibration"]))
    return {
        what: rivals_of(curve, "problems"),
        "Genes missing from the query:\n": missing_of(parts["missing"]),
        "Calibration:\n": calibration_of(calibration, "problems"),
        "Error control:\n": error_control_of(parts["error_control"]),
    }


def _flags(rows: pd.DataFrame) -> pd.Series:
    return rows["adapted"].astype(str) == "True"
