"""The results that the paper prints, from paper.csv: one row per number.

The columns are ``table`` (the label of the table in the paper's source), ``scenario``
("single" or "multi" where a task has two sources), ``task``, ``classifier``,
``measure``, ``value`` and ``plus_minus`` as printed, ``rank`` among the classifiers,
and ``bold``: "yes" where the paper finds the classifier not significantly worse than
the best by its paired t-test.
"""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

ACCURACY = "balanced accuracy (%)"
COSINE = "cosine to the true reference set"
GENES = "genes"
SECONDS = "seconds per fit"
SPARSEST = "sparsest (% of fits)"
ACCURACY_TABLES = {
    "": "summary-results-simple_tasks",
    "single": "summary-results-single_source",
    "multi": "summary-results-multiple_sources",
}


def published() -> pd.DataFrame:
    """All numbers of the paper's tables, as text."""
    path = files("optirank_lab.data").joinpath("paper.csv")
    with path.open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#", dtype=str, keep_default_na=False)


def printed(value: str, plus_minus: str = "", bold: str = "") -> str:
    """A number as the paper prints it, in Markdown: ``**93.0 ± 1.9**``."""
    text = f"{value} ± {plus_minus}" if plus_minus else value
    return f"**{text}**" if bold == "yes" else text
