"""All six classifiers, untuned, from one platform to another on two pairs of real data sets.

nki_er -> expo_er with vdx_er as the auxiliary set of ANrank-lr, and baron_h1 ->
segerstolpe_1000g. One setting each (s/d 0.2, l1 0, l2 1e-3), none tuned. Data: OPTIRANK_DATA,
else ../shared/data beside the project.
"""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from optirank.benchmark.classifiers import get, names_for
from optirank.datasets import load_dataset
from optirank.preprocessing import LogCPM

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
_PAIRS = (("nki_er", "expo_er", "vdx_er"), ("baron_h1", "segerstolpe_1000g", None))


def _common(names: list[str], folder: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Values and labels of the sets over their common genes and classes."""
    sets = [load_dataset(name, data=folder) for name in names]
    genes = sorted(set.intersection(*(set(one.gene_names) for one in sets)))
    labels = [one.labels("cell_type").to_numpy() for one in sets]
    classes = set.intersection(*(set(label) for label in labels))
    out = []
    for one, label in zip(sets, labels, strict=True):
        kept = np.isin(label, list(classes))
        X = one.select_genes(genes).X[kept]
        out.append((X.toarray() if hasattr(X, "toarray") else np.asarray(X), label[kept]))
    return out


def _values(name: str, X: np.ndarray, counts: bool) -> np.ndarray:
    """lr and rf see log1p(CPM) of counts; ranks do not change under it."""
    return LogCPM().fit_transform(X) if counts and name in ("lr", "rf", "ANrank-lr") else X


def main() -> None:
    folder = os.environ.get("OPTIRANK_DATA", str(_BESIDE))
    if not Path(folder).is_dir():
        print("no real data sets here: set OPTIRANK_DATA to a folder of .h5ad files")
        return
    print("| train -> test | classifier | balanced accuracy | genes | fit, s |")
    print("|---|---|--:|--:|--:|")
    for train, test, auxiliary in _PAIRS:
        names = [train, test] + ([auxiliary] if auxiliary else [])
        data = _common(names, folder)
        counts = all((X >= 0).all() and (np.floor(X) == X).all() for X, _ in data)
        (X, y), (X_test, y_test) = data[:2]
        for name in names_for("binary"):
            classifier = get(name)
            params = {
                key: {"n_reference": 0.2, "l1": 0.0, "l2": 1e-3}.get(key, values[0])
                for key, values in classifier.grid.items()
            }
            if classifier.family is None:
                params |= {"random_state": 0, "n_jobs": 2}
            model = classifier.make(**params)
            more = {}
            if name == "ANrank-lr" and auxiliary:
                more = {"X_auxiliary": data[2][0], "y_auxiliary": data[2][1]}
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # ANrank-lr without a second data set
                model.fit(_values(name, X, counts), y, **more)
            seconds = time.perf_counter() - start
            score = balanced_accuracy_score(y_test, model.predict(_values(name, X_test, counts)))
            n_genes = classifier.n_genes(model)
            genes = f"{n_genes} of {X.shape[1]}"
            print(f"| {train} -> {test} | {name} | {score:.3f} | {genes} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
