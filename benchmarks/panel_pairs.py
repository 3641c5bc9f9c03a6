"""Accuracy of the panel model on another platform, beside the same recipe in scikit-learn.

python benchmarks/panel_pairs.py DATA [OUT.csv]

For every ordered pair of sets in the folder DATA (sets of one tissue that share classes and genes):
the model as `optirank train --for QUERY` makes it, its smaller panels, and twenty lines of
scikit-learn (elimination with C = 0.1, the 3000 genes of best t statistic), at 20, 30, 50 and 100
genes, as they are and with the query's prevalences matched (`predict --adapt`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import sparse
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from optirank.benchmark.designs import RealTasks
from optirank.benchmark.tasks import find_pairs
from optirank.datasets import ExpressionData
from optirank.model import match_prevalences
from optirank.preprocessing.scales import log_values, value_scale
from optirank.tuning.scoring import balanced_accuracy
from optirank.workflow.train import TrainingOptions, train

SIZES = (20, 30, 50, 100)


def main() -> None:
    folder = Path(sys.argv[1])
    pairs, _ = find_pairs(folder)
    source = RealTasks(folder.resolve(), pairs)
    rows = Parallel(n_jobs=2, verbose=5)(delayed(evaluate)(source, pair) for pair in pairs)
    table = pd.DataFrame([row for part in rows for row in part])
    if len(sys.argv) > 2:
        table.to_csv(sys.argv[2], index=False)
    show(table)


def show(table: pd.DataFrame) -> None:
    """Means over pairs, and over tissues of their means."""
    keys = ["model", "adapted"]
    by_pair = table.pivot_table(index=keys, columns="genes", values="balanced_accuracy")
    by_tissue = (
        table.groupby([*keys, "genes", "tissue"])["balanced_accuracy"]
        .mean()
        .groupby(level=[0, 1, 2])
    ).mean()
    print(f"{table['pair'].nunique()} pairs of {table['tissue'].nunique()} tissues")
    print("Mean over pairs\n", by_pair.round(4).to_string())
    print("Mean over tissues\n", by_tissue.unstack().round(4).to_string())


def evaluate(source: RealTasks, pair) -> list[dict]:
    """The rows of one pair."""
    (design,) = source.designs(pair.name)
    reference, query = design.source, design.tests[pair.name]
    samples = np.array([f"s{k}" for k in range(len(reference.labels))], dtype=object)
    obs = pd.DataFrame({"label": reference.labels}, index=samples)
    genes = np.asarray(reference.genes, dtype=object)
    data = ExpressionData(sparse.csr_matrix(reference.raw), genes, samples, obs, pair.name)
    ours = train(data, TrainingOptions(label="label", n_genes=min(100, len(genes)))).model
    new = sparse.csr_matrix(query.raw)
    rows = []
    for size in (size for size in SIZES if size in ours.path_):
        small = ours.smaller(size)
        for model, (classes, scores) in {
            "optirank": (small.classes_, small.decision_function(new)),
            "scikit-learn": recipe(reference, query, size),
        }.items():
            for adapted in (False, True):
                z = match_prevalences(scores).apply(scores) if adapted else scores
                codes = (z > 0).astype(int) if z.ndim == 1 else z.argmax(axis=1)
                score = balanced_accuracy(np.asarray(query.labels), classes[codes])
                found = {"model": model, "genes": size, "adapted": adapted}
                rows.append(
                    {"pair": pair.name, "tissue": pair.tissue}
                    | found
                    | {"balanced_accuracy": score}
                )
    return rows


_panels: dict = {}


def recipe(reference, query, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The recipe in scikit-learn: classes and scores of the query."""
    key = id(reference)
    if key not in _panels:
        X, y = _logs(reference.raw), np.asarray(reference.labels)
        order = best_genes(X, y)
        _panels.clear()
        _panels[key] = X[:, order], y, order, panels(X[:, order], y)
    X, y, order, found = _panels[key]
    left = found[size]
    model = _fit(X[:, left], y)
    return model.classes_, model.decision_function(_ranks(_dense(query.raw)[:, order[left]]))


def panels(X: np.ndarray, y: np.ndarray) -> dict[int, np.ndarray]:
    """Genes left after each elimination."""
    left, found = np.arange(X.shape[1]), {}
    for size in (300, 200, 150, 100, 70, 50, 30, 20):
        while len(left) > size:
            weight = np.abs(_fit(X[:, left], y).coef_).max(axis=0)
            left = left[np.argsort(-weight)[: max(size, len(left) // 2)]]
        found[size] = left
    return found


def best_genes(X: np.ndarray, y: np.ndarray, n: int = 3000) -> np.ndarray:
    """Genes of the largest t statistic of any class against the rest."""
    places = []
    for c in np.unique(y):
        a, b = X[y == c], X[y != c]
        spread = np.sqrt(a.var(0) / len(a) + b.var(0) / len(b) + 1e-6)
        places.append(np.argsort(np.argsort(-np.abs((a.mean(0) - b.mean(0)) / spread))))
    return np.argsort(np.min(places, axis=0), kind="stable")[:n]


def _fit(X: np.ndarray, y: np.ndarray) -> LogisticRegression:
    model = LogisticRegression(C=0.1, class_weight="balanced", max_iter=1000, tol=1e-3)
    return model.fit(_ranks(X), y)


def _ranks(X: np.ndarray) -> np.ndarray:
    return rankdata(X, axis=1) / X.shape[1]


def _dense(X) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _logs(X) -> np.ndarray:
    X = _dense(X).astype(float)
    return log_values(X, value_scale(X))


if __name__ == "__main__":
    main()
