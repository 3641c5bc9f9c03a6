"""One reference set for all classes against one per class, from one data set to another.

Over all pairs of real data sets with three common classes or more, both ways, on their common genes
(the 1000 most variable ones of the training set where there are more). The same search, over the
same grid and folds, chooses the settings of both kinds of model on the training set alone; the
other set tests them. Data: OPTIRANK_DATA, else ../shared/data beside the project.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from optirank import OptirankClassifier, OptirankClassifierCV
from optirank.datasets import load_dataset
from optirank.preprocessing import LogCPM
from optirank.tuning.selection import select

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
_PAIRS = (
    ("baron_h1", "segerstolpe_1000g"),
    ("baron_h1", "xin_980g"),
    ("segerstolpe_1000g", "xin_980g"),
    ("tm_10x_immune", "zilionis_mouse_immune"),
    ("kang_pbmc_ctrl", "kang_pbmc_stim"),
)
_GRID = {"n_references": (0.1, 0.2), "l1s": (1e-3, 3e-3), "l2s": (1e-3,), "cv": 3}
_N_GENES = 1000


def common(train: str, test: str, folder: str):
    """Values and labels of both sets over their common genes and classes."""
    sets = [load_dataset(name, data=folder) for name in (train, test)]
    genes = sorted(set(sets[0].gene_names) & set(sets[1].gene_names))
    labels = [one.labels("cell_type").to_numpy() for one in sets]
    classes = sorted(set(labels[0]) & set(labels[1]))
    found = []
    for one, label in zip(sets, labels, strict=True):
        kept = np.isin(label, classes)
        X = one.select_genes(genes).X[kept]
        found.append((X.toarray() if hasattr(X, "toarray") else np.asarray(X), label[kept]))
    X = found[0][0]
    counts = (X >= 0).all() and (np.floor(X) == X).all()
    spread = (LogCPM().fit_transform(X) if counts else X).var(axis=0)
    top = np.sort(np.argsort(-spread, kind="stable")[:_N_GENES])
    return [(X[:, top], y) for X, y in found]


def main() -> None:
    folder = os.environ.get("OPTIRANK_DATA", str(_BESIDE))
    if not Path(folder).is_dir():
        print("no real data sets here: set OPTIRANK_DATA to a folder of .h5ad files")
        return
    warnings.simplefilter("ignore", UserWarning)
    totals: dict[tuple[str, bool], list[tuple[float, int]]] = {}
    print(
        "| train -> test | rule | reference | setting | balanced accuracy | genes | search, CPU s |"
    )
    print("|---|---|---|---|--:|--:|--:|")
    for one, other in _PAIRS:
        for train, test in ((one, other), (other, one)):
            (X, y), (X_test, y_test) = common(train, test, folder)
            for shared in (False, True):
                start = time.process_time()
                search = OptirankClassifierCV(**_GRID, shared_reference=shared).fit(X, y)
                seconds = time.process_time() - start
                results = search.cv_results_
                scores, genes = (
                    np.column_stack([results[f"split{k}_{what}"] for k in range(_GRID["cv"])])
                    for what in ("test_score", "n_genes")
                )
                for rule in ("one_se", "best"):
                    params = results["params"][select(scores, genes, rule)]
                    params = {**params, "shared_reference": shared}
                    model = OptirankClassifier(**params).fit(X, y)
                    accuracy = balanced_accuracy_score(y_test, model.predict(X_test))
                    n_genes = int(model.genes_.sum())
                    totals.setdefault((rule, shared), []).append((accuracy, n_genes))
                    kind = "one for all" if shared else "one per class"
                    words = ", ".join(f"{params[key]:g}" for key in ("n_reference", "l1", "l2"))
                    print(
                        f"| {train} -> {test} | {rule} | {kind} | {words} | {accuracy:.3f} "
                        f"| {n_genes} of {X.shape[1]} | {seconds:.0f} |",
                        flush=True,
                    )
    for (rule, shared), rows in totals.items():
        accuracy, n_genes = np.mean(rows, axis=0)
        kind = "one for all" if shared else "one per class"
        print(f"| mean | {rule} | {kind} | | {accuracy:.4f} | {n_genes:.0f} | |")


if __name__ == "__main__":
    main()
