"""What carries over to another platform: `optirank train` against fits without any tuning.

    python benchmarks/study_transfer.py --out DIR [--budget 120] [--pairs nki_er,golub_leukemia]
    python benchmarks/study_transfer.py --out DIR --report

For each ordered pair of real data sets (see transfer_pairs.py) models are trained on the one and
label the other; the figure is the balanced accuracy over all common classes. Compared are:

- untuned: ``OptirankClassifier(n_reference=0.2, l1=1e-3, l2=1e-3)`` on the 1000 genes of best t
  statistics
- ranks: scikit-learn's balanced logistic regression on ranks divided by d, the same genes
- rank-lr: ``RankLogisticRegression(l1=1e-3, l2=1e-3)``, the same genes
- lr (only if named by --methods): ``ElasticNetLogisticRegression(l1=1e-3, l2=0.1)``, same genes, on
  log values if the training set has counts (and the query could), else on values as they are
- small (only if named by --methods): the first setting of ``--prefer genes``, the same genes
- average: the default of `optirank train` without its search, the same genes
- train: `optirank train` with the time allowed by --budget, on all genes

Each result is one JSON file below DIR, so that a study can be interrupted. The report prints the
table of docs/transfer.md and draws its figure.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from optirank.estimators.logistic import ElasticNetLogisticRegression
from optirank.workflow.grids import make_grids, one_panel_grids
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from transfer_pairs import Pair, both_sides, labels_of, pairs

from optirank import OptirankClassifier, RankLogisticRegression
from optirank._util.files import write_text
from optirank.model import Predictor
from optirank.preprocessing import select_markers
from optirank.preprocessing._statistics import is_counts
from optirank.tuning.platforms import platforms_for
from optirank.workflow.train import train

GENES = 1000
METHODS = ("untuned", "ranks", "rank-lr", "average", "train")


def dense(X) -> np.ndarray:
    """The values as an array."""
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def averaged(y: np.ndarray) -> OptirankClassifier:
    """The default of training for these labels."""
    average = make_grids("auto", len(np.unique(y)))[0].average
    sizes, l1s, l2s = zip(*average.members, strict=True)
    platforms = platforms_for(len(y))
    return OptirankClassifier(sizes, l1s, l2s, side=average.side, n_platforms=platforms)


def small(y: np.ndarray) -> OptirankClassifier:
    """The default of training for these labels where few genes are preferred."""
    grid = one_panel_grids(len(np.unique(y)))[-1]
    size, l1, l2, _ = grid.settings[0]
    options = {"shared_reference": True, "whole_panel": True}
    return OptirankClassifier(size, l1, l2, n_platforms=platforms_for(len(y)), **options)


def fit(method: str, data, query, budget: float) -> tuple[np.ndarray, int]:
    """Labels of the query, and the number of genes that they need."""
    y = labels_of(data)
    if method == "train":
        result = train(data, "cell_type", budget=budget, n_jobs=2)
        predictor = Predictor(result.model, query.gene_names)
        return predictor.predict(query.X).labels, len(result.genes)
    genes = select_markers(data.X, y, min(GENES, data.n_genes))
    X, Q = dense(data.X[:, genes]), dense(query.X[:, genes])
    if method == "ranks":
        model = LogisticRegression(class_weight="balanced", max_iter=2000)
        model.fit(rankdata(X, axis=1) / len(genes), y)
        return model.predict(rankdata(Q, axis=1) / len(genes)), len(genes)
    total = 1e4 if is_counts(X) and Q.min() >= 0 else None
    models = {
        "untuned": OptirankClassifier(0.2, 1e-3, 1e-3),
        "rank-lr": RankLogisticRegression(1e-3, 1e-3),
        "lr": ElasticNetLogisticRegression(1e-3, 0.1, target_sum=total),
        "average": averaged(y),
        "small": small(y),
    }
    model = models[method].fit(X, y)
    return model.predict(Q), int(model.genes_.sum())


def run(pair: Pair, method: str, budget: float, folder: Path) -> None:
    """Measure one pair and method, unless it is there."""
    name = method if method != "train" else f"train {budget:g}s"
    path = folder / f"{pair.train}--{pair.test}--{name.replace(' ', '-')}.json"
    if path.exists():
        return
    data, query = both_sides(pair)
    start, cpu = time.perf_counter(), time.process_time()
    labels, n_genes = fit(method, data, query, budget)
    found = {
        "train": pair.train,
        "test": pair.test,
        "tissue": pair.tissue,
        "bulk": pair.bulk,
        "method": name,
        "score": float(balanced_accuracy_score(labels_of(query), labels)),
        "n_genes": n_genes,
        "share": n_genes / min(GENES, data.n_genes),
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
    }
    write_text(path, json.dumps(found))
    print(f"{pair.train} -> {pair.test}, {name}: {found['score']:.3f}, {n_genes} genes", flush=True)


def report(folder: Path) -> None:
    """The table of means, the pairs, and the figure."""
    table = pd.DataFrame([json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))])
    table["pair"] = table["train"] + " -> " + table["test"]
    scores = table.pivot_table(index="pair", columns="method", values="score").dropna()
    kept = table[table["pair"].isin(scores.index)]
    bulk = kept.drop_duplicates("pair").set_index("pair")["bulk"]
    lines = [
        "| | mean | single cells | bulk | worst pair | least above ranks | genes | CPU s |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for method, one in kept.groupby("method"):
        values = scores[method]
        figures = (values.mean(), values[~bulk].mean(), values[bulk].mean(), values.min())
        above = (values - scores["ranks"]).min()
        cells = [f"{one:.3f}" for one in figures] + [f"{above:+.3f}"]
        cells += [f"{100 * one['share'].median():.0f} %", f"{one['cpu_seconds'].sum():.0f}"]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    print(f"{len(scores)} pairs\n\n" + "\n".join(lines) + "\n")
    print(scores.round(3).to_string())
    draw(scores, folder / "transfer.png")


def draw(scores: pd.DataFrame, path: Path) -> None:
    """Every pair as a line: the untuned fit, and how far the others are from it."""
    import matplotlib.pyplot as plt

    order = scores.sort_values("untuned").index
    _, ax = plt.subplots(figsize=(7, 0.24 * len(order) + 1.2), layout="constrained")
    markers = {"untuned": "o", "ranks": "x", "rank-lr": "+"}
    for method in scores:
        style = markers.get(method, "D")
        ax.plot(scores.loc[order, method], range(len(order)), style, label=method, alpha=0.8)
    ax.set_yticks(range(len(order)), order, fontsize=7)
    ax.set_xlabel("balanced accuracy on the other platform")
    ax.grid(axis="y", alpha=0.2)
    ax.legend(frameon=False)
    plt.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--pairs", default="", help="training sets, all where not given")
    parser.add_argument("--report", action="store_true", help="only read what is there")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in given.pairs.split(",") if name]
    if not given.report:
        warnings.simplefilter("ignore", UserWarning)
        for pair in pairs():
            if wanted and pair.train not in wanted:
                continue
            for method in given.methods.split(","):
                run(pair, method, given.budget, given.out)
    report(given.out)


if __name__ == "__main__":
    main()
