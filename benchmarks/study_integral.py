"""What integrality costs: ``integral=False`` beside the default, on the anchors and on real pairs.

``python benchmarks/study_integral.py --out docs/figures`` writes ``integral_anchors.csv`` and
``integral_pairs.csv`` and prints the tables of docs/solver.md. The paper says that ending with a
set costs nothing in accuracy and little in time, and gives slightly sparser models.

Data are found as in study_sides.py. Accuracies and objectives are deterministic; times are CPU
seconds of this process, the least of a few fits of each kind taking turns.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit
from study_sides import ANCHORS, FRACTIONS, PENALTIES, anchor, markdown, real_pairs
from threadpoolctl import threadpool_limits
from timing import interleaved

from optirank import OptirankClassifier
from optirank.ranks.orders import order_samples
from optirank.solver.bpcd import solve_bpcd
from optirank.solver.problem import Problem, sample_weights

WAYS = {"set": True, "fractional": False}
N_SPLITS = 3  # of an anchor's samples, 70 % for training
TASKS = ("golub -> armstrong", "nki -> expo")


def fit(X: NDArray, y: NDArray, n_reference: float, l1: float, l2: float, way: str):
    """A model that ends with a set, or one that stays fractional."""
    return OptirankClassifier(n_reference, l1, l2, integral=WAYS[way]).fit(X, y)


def counts(model: OptirankClassifier) -> dict[str, int]:
    """Genes of the reference, with a weight, and of either kind."""
    return {
        "reference": int(model.reference_.sum()),
        "weights": int((model.coef_ != 0).sum()),
        "genes": int(model.genes_.sum()),
    }


def published() -> list[dict]:
    """The settings of the anchors."""
    with (ANCHORS / "published.csv").open() as file:
        return list(csv.DictReader(file))


def on_anchors() -> pd.DataFrame:
    """A row for each setting and way: objective, accuracies, genes, CPU seconds."""
    rows = []
    for line in published():
        X, y = anchor(line["problem"])
        setting = int(line["s"]), float(line["lambda_1"]), float(line["lambda_2"])
        splits = list(StratifiedShuffleSplit(N_SPLITS, test_size=0.3, random_state=0).split(X, y))
        works = {way: lambda way=way: fit(X, y, *setting, way) for way in WAYS}  # noqa: B023
        times = interleaved(works, repeats=2)
        for way in WAYS:
            model = works[way]()
            held_out = [
                balanced_accuracy_score(
                    y[test], fit(X[train], y[train], *setting, way).predict(X[test])
                )
                for train, test in splits
            ]
            rows.append(
                {
                    "problem": line["problem"],
                    "l1": setting[1],
                    "s_over_d": float(line["s_over_d"]),
                    "d": X.shape[1],
                    "way": way,
                    "objective": model.objective_[0],
                    "training": balanced_accuracy_score(y, model.predict(X)),
                    "held_out": np.mean(held_out),
                    **counts(model),
                    "cpu_s": times[way],
                }
            )
    return pd.DataFrame(rows)


def on_pairs() -> pd.DataFrame:
    """A row for each real pair, setting and way."""
    rows = []
    for pair in real_pairs():
        if pair.task not in TASKS:
            continue
        for l1, l2 in PENALTIES:
            for fraction in FRACTIONS:
                works = {
                    way: lambda way=way: fit(pair.X, pair.y, fraction, l1, l2, way)  # noqa: B023
                    for way in WAYS
                }
                times = interleaved(works, repeats=2)
                for way in WAYS:
                    model = works[way]()
                    rows.append(
                        {
                            "task": pair.task,
                            "l1": l1,
                            "l2": l2,
                            "s_over_d": fraction,
                            "d": pair.X.shape[1],
                            "way": way,
                            "objective": model.objective_[0],
                            "held_out": balanced_accuracy_score(
                                pair.y_test, model.predict(pair.X_test)
                            ),
                            **counts(model),
                            "cpu_s": times[way],
                        }
                    )
    return pd.DataFrame(rows)


def along_the_path() -> pd.DataFrame:
    """Of the paper's algorithm: iterations at lambda_p = 0, and on the path after it.

    The problems of 200 genes at most, where the whole path takes seconds.
    """
    rows = []
    for line in published():
        X, y = anchor(line["problem"])
        if X.shape[1] > 200:
            continue
        problem = Problem(
            order_samples(X),
            y,
            sample_weights(y),
            int(line["s"]),
            float(line["lambda_1"]),
            float(line["lambda_2"]),
        )
        path = solve_bpcd(problem).path
        relaxed = path[0]["iterations"]
        total = sum(entry["iterations"] for entry in path)
        rows.append(
            {
                "problem": line["problem"],
                "l1": float(line["lambda_1"]),
                "s_over_d": float(line["s_over_d"]),
                "iterations": relaxed,
                "with the path": total,
                "ratio": round(total / relaxed, 2),
            }
        )
    return pd.DataFrame(rows)


def compare(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Set beside fractional: means over the other settings, geometric ones of ratios."""
    rest = [
        name for name in ("problem", "task", "l1", "l2", "s_over_d", "d") if name in table.columns
    ]
    wide = table.pivot(index=rest, columns="way")
    ratio = wide["objective", "set"] / wide["objective", "fractional"]
    out = pd.DataFrame({"objective, set / fractional": np.log(ratio)}, index=wide.index)
    out["time, set / fractional"] = np.log(wide["cpu_s", "set"] / wide["cpu_s", "fractional"])
    for measure in ("training", "held_out", "reference", "weights", "genes"):
        if measure in table.columns:
            for way in WAYS:
                out[f"{measure}, {way}"] = wide[measure, way]
    out = out.groupby(by, sort=False).mean()
    for name in out.columns[:2]:
        out[name] = np.exp(out[name])
    genes = [
        name for name in out.columns if name.split(",")[0] in ("reference", "weights", "genes")
    ]
    return out.round(3).assign(**{name: out[name].round(0).astype(int) for name in genes})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder written to")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        print_integral(chosen.out)


def print_integral(out: Path) -> None:
    anchors = on_anchors()
    anchors.round(5).to_csv(out / "integral_anchors.csv", index=False)
    print(f"\nanchors\n{markdown(compare(anchors, ['l1', 's_over_d']))}", flush=True)
    print(f"\n{markdown(compare(anchors, ['l1']))}", flush=True)
    pairs = on_pairs()
    pairs.round(5).to_csv(out / "integral_pairs.csv", index=False)
    print(f"\nreal pairs\n{markdown(compare(pairs, ['task', 'l1', 's_over_d']))}", flush=True)
    path = along_the_path()
    mean = np.exp(np.log(path["ratio"]).mean())
    print(f"\nbpcd, iterations at lambda_p = 0 and in all\n{markdown(path)}")
    print(f"geometric mean of the ratio: {mean:.2f}")


if __name__ == "__main__":
    main()
