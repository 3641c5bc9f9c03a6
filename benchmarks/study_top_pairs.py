"""k-TSP across platforms: how ties vote, how many pairs, and beside OptirankClassifier.

``python benchmarks/study_top_pairs.py --out DIR`` trains every setting below on one data set of
each ordered pair (``transfer_pairs.py``), with all classes at once, and scores it on the other
one. It writes ``top_pairs.csv`` and prints the tables of docs/top-pairs.md. Settings of k-TSP are
chosen on all tissues but one and judged on that one ("left out"). Everything is deterministic.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score
from threadpoolctl import threadpool_limits
from transfer_pairs import FOLDER, both_sides, labels_of, pairs

from optirank import OptirankClassifier, TopScoringPairsClassifier
from optirank.model import predict_samples
from optirank.workflow.train import train as run_training

CLASSICAL = {"k_max": 9, "choose_k": "cv", "ties": "min", "balance_rest": False}
SETTINGS: dict[str, dict] = {
    "classical, cv": CLASSICAL,
    "classical, variance rule": CLASSICAL | {"choose_k": "variance"},
    "classical, 9 pairs": CLASSICAL | {"choose_k": "max"},
    "ties abstain, 9 pairs": CLASSICAL | {"choose_k": "max", "ties": "average"},
    "and balanced rest, 9 pairs": {"k_max": 9},
    "default: and 13 pairs": {},
    "default, 17 pairs": {"k_max": 17},
    "default, 25 pairs": {"k_max": 25},
    "default, cv up to 17": {"k_max": 17, "choose_k": "cv"},
    "default, variance rule up to 17": {"k_max": 17, "choose_k": "variance"},
    "default, 100 genes": {"max_genes": 100},
}
TRAINED = {"train --method k-tsp": "accuracy", "the same, --prefer genes": "genes"}
OTHER = "OptirankClassifier"
_KINDS = ("arrays and bulk", "counts, 2 classes", "counts, more classes")


def fit_all(pair) -> list[dict]:
    """Balanced accuracy on the query, genes and CPU seconds of the fit, for every setting."""
    train, test = both_sides(pair)
    y, truth = labels_of(train), labels_of(test)
    kind = _KINDS[0] if pair.bulk else _KINDS[1 + (len(np.unique(y)) > 2)]
    models = {name: TopScoringPairsClassifier(**one) for name, one in SETTINGS.items()}
    rows = []
    fits = {
        name: lambda model=model: model.fit(train.X, y)
        for name, model in {**models, OTHER: OptirankClassifier(random_state=0)}.items()
    }
    for name, prefer in TRAINED.items():
        fits[name] = lambda prefer=prefer: trained(train, prefer)
    for name, fit in fits.items():
        start = time.process_time()
        model = fit()
        seconds = time.process_time() - start
        genes = test.gene_names if name in TRAINED else None
        labels = predict_samples(model, test.X, genes).labels
        accuracy = balanced_accuracy_score(truth, labels)
        row = {"train": pair.train, "test": pair.test, "tissue": pair.tissue, "kind": kind}
        counts = {"genes": int(model.genes_.sum()), "cpu_s": seconds}
        rows.append(row | {"model": name, "accuracy": accuracy} | counts)
    return rows


def trained(data, prefer: str):
    """The model of ``optirank train --method k-tsp``."""
    return run_training(data, "cell_type", method="k-tsp", prefer=prefer, budget=120).model


def left_out(table: pd.DataFrame) -> float:
    """Mean over tissues of the setting of k-TSP that is best on the other tissues."""
    mine = table[table["model"].isin(SETTINGS)]
    means = mine.pivot_table(index="tissue", columns="model", values="accuracy")
    found = []
    for tissue in means.index:
        chosen = means.drop(index=tissue).mean().idxmax()
        print(f"without {tissue}: {chosen}")
        found.append(means.loc[tissue, chosen])
    return float(np.mean(found))


def show(table: pd.DataFrame) -> None:
    """The tables, in Markdown."""
    kinds = [kind for kind in _KINDS if (table["kind"] == kind).any()]
    print("| model | " + " | ".join(f"{kind}: accuracy, genes" for kind in kinds) + " | tissues |")
    print("|---|" + "--:|" * (len(kinds) + 1))
    for name in [*SETTINGS, *TRAINED, OTHER]:
        mine = table[table["model"] == name]
        cells = [
            f"{part['accuracy'].mean():.3f}, {part['genes'].median():.0f}"
            for part in (mine[mine["kind"] == kind] for kind in kinds)
        ]
        tissues = mine.groupby("tissue")["accuracy"].mean().mean()
        print(f"| {name} | {' | '.join(cells)} | {tissues:.3f} |")
    wide = table.pivot_table(index=["kind", "train", "test"], columns="model", values="accuracy")
    genes = table.pivot_table(index=["kind", "train", "test"], columns="model", values="genes")
    mine = "default: and 13 pairs"
    print(f"\n| train -> test | k-TSP | genes | {OTHER} | genes |\n|---|--:|--:|--:|--:|")
    for index, row in wide.iterrows():
        cells = [f"{row[one]:.3f} | {genes.loc[index, one]:.0f}" for one in (mine, OTHER)]
        print(f"| {index[1]} -> {index[2]} | {cells[0]} | {cells[1]} |")
    print(f"\nleft out: {left_out(table):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    if not FOLDER.is_dir():
        print("no real data sets here: set OPTIRANK_DATA to a folder of .h5ad files")
        return
    out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        table = pd.DataFrame([row for pair in pairs() for row in fit_all(pair)])
    table.to_csv(out / "top_pairs.csv", index=False)
    show(table)


if __name__ == "__main__":
    main()
