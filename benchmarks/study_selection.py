"""What the choice of a setting costs: rules of selection, from the results of a benchmark run.

    python benchmarks/study_selection.py DIR

DIR is a folder of `optirank benchmark run` with the paper's grids. For each classifier with a grid,
the mean test balanced accuracy over tasks and the mean number of genes are printed by rule: the
paper's one-standard-error rule, the best validation score (of equal ones the fewest genes), the
same with most genes among equals, the one-standard-error rule within a part of optirank's grid, and
the setting that is best on the test set, which nobody can choose, as a bound. Rules other than the
paper's were looked at after the test scores were known.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from optirank.benchmark.storage import Storage
from optirank.tuning.selection import select

NAMES = ("ANrank-lr", "lr", "optirank", "rank-lr")


def most_genes(scores: np.ndarray, n_genes: np.ndarray) -> int:
    """The best mean validation score, of equal ones that with the most genes."""
    return int(np.lexsort((-n_genes.mean(axis=1), -scores.mean(axis=1).round(12)))[0])


def within(allowed: np.ndarray, scores: np.ndarray, n_genes: np.ndarray) -> int:
    """The one-standard-error rule among some settings."""
    there = np.flatnonzero(allowed)
    return int(there[select(scores[there], n_genes[there])])


def choices(name: str, group: list[dict]) -> dict[str, tuple[float, float]]:
    """Test score and number of genes by rule, means over the splits of one part."""
    settings = pd.DataFrame(group[0]["settings"])
    scores = np.array([unit["validation"] for unit in group]).T
    n_genes = np.array([unit["n_genes"] for unit in group]).T
    tests = np.array([next(iter(unit["test"].values())) for unit in group]).T
    chosen = {
        "one standard error": select(scores, n_genes),
        "best": select(scores, n_genes, "best"),
        "best, most genes": most_genes(scores, n_genes),
        "bound: best on the test set": int(tests.mean(axis=1).argmax()),
    }
    if name == "optirank":
        for least in (0.05, 0.2):
            allowed = (settings["n_reference"] >= least).to_numpy()
            chosen[f"one standard error, s/d >= {least}"] = within(allowed, scores, n_genes)
        allowed = (settings["l2"] >= 1e-2).to_numpy()
        chosen["one standard error, l2 >= 0.01"] = within(allowed, scores, n_genes)
    return {rule: (tests[k].mean(), n_genes[k].mean()) for rule, k in chosen.items()}


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    storage, rows = Storage(sys.argv[1]), []
    for key, design in storage.designs().items():
        stored = [one for one in storage.units(key) if "failed" not in one]
        units = {(one["split"], one["problem"], one["classifier"]): one for one in stored}
        parts = np.array(design["parts"])
        for name in NAMES:
            for positive in design["positives"]:
                for part in np.unique(parts):
                    splits = np.flatnonzero(parts == part).tolist()
                    group = [units.get((split, positive, name)) for split in splits]
                    if None not in group:
                        found = choices(name, group)
                        rows += [(name, rule, key, *one) for rule, one in found.items()]
    table = pd.DataFrame(rows, columns=["classifier", "rule", "design", "test", "genes"])
    means = table.groupby(["classifier", "rule", "design"], sort=False).mean()
    means = means.groupby(["classifier", "rule"], sort=False).mean()
    print("| classifier | rule | balanced accuracy (%) | genes |\n|---|---|--:|--:|")
    for (name, rule), row in means.sort_index(level=0, sort_remaining=False).iterrows():
        print(f"| {name} | {rule} | {100 * row['test']:.1f} | {row['genes']:.0f} |")


if __name__ == "__main__":
    main()
