"""The paper's synthetic data with and without the shift: which part of the lead the
shift explains.

    python benchmarks/study_synthetic.py [--out DIR] [--jobs N] [--quick]

1000 samples of 50 genes, of which ten define the labels by their ranks among themselves
and 40 shift together by tau = 0.2, or not at all (tau = 0: the same samples and labels
before the shift). 700 samples train, settings chosen by five folds, 300 test; ten seeds
(one with --quick). Ranks among all genes are a fixed reference set of all genes
(rank-lr); optirank learns the reference set; "true reference set" is told the ten
genes. Written to synthetic.csv.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from studies import Rows, collect, options

from optirank import OptirankClassifierCV, PanelClassifier
from optirank._util.metrics import balanced_accuracy
from optirank._util.workers import one_blas_thread
from optirank.datasets import make_unstable_ranks

SEEDS = 10
TAUS = (0.0, 0.2)
PENALTIES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the reference set, as a share of the genes
LR = "lr (values)"
RANK_LR = "rank-lr (fixed reference set: all genes)"
OPTIRANK = "optirank (learned reference set)"
PANEL = "panel, best held-out size"
TRUE_SET = "true reference set"
METHODS = (LR, RANK_LR, OPTIRANK, PANEL, TRUE_SET)


def main() -> None:
    args = options(__doc__)
    work = [(seed, tau) for seed in range(1 if args.quick else SEEDS) for tau in TAUS]
    parts = Parallel(n_jobs=args.jobs, return_as="generator")(
        delayed(study)(*draw) for draw in work
    )
    table = collect(parts, args, len(work))["synthetic"]
    wide = table.pivot_table(
        index="method", columns="tau", values="balanced_accuracy", sort=False
    )
    print(wide.round(3).to_string())


def study(seed: int, tau: float) -> Rows:
    """One row per method."""
    rows = [
        {"seed": seed, "tau": tau, "method": method, "balanced_accuracy": score}
        for method, score in accuracies(METHODS, seed, tau=tau).items()
    ]
    return {"synthetic": rows}


def accuracies(methods: Sequence[str], seed: int, **point: float) -> dict[str, float]:
    """Balanced accuracy of each method on the test samples of one data set."""
    data = make_unstable_ranks(**point, random_state=seed)
    X, new, y, truth = train_test_split(
        data.X, data.y, test_size=0.3, stratify=data.y, random_state=seed
    )
    scores = {}
    with one_blas_thread():
        for method in methods:
            genes = data.reference if method == TRUE_SET else slice(None)
            model = fitted(method, X[:, genes], y)
            scores[method] = balanced_accuracy(truth, model.predict(new[:, genes]))
    return scores


def fitted(method: str, X: NDArray, y: NDArray) -> Any:
    """A classifier with its settings chosen by five folds."""
    if method == LR:
        penalties = {"C": [1 / (2 * len(y) * l2) for l2 in PENALTIES]}
        model = LogisticRegression(class_weight="balanced", max_iter=5000)
        return GridSearchCV(model, penalties, scoring="balanced_accuracy").fit(X, y)
    if method == PANEL:
        curve = PanelClassifier().fit(X, y).held_out_.curve()
        best, _, _ = max(curve, key=lambda row: (row[1], -row[0]))
        return PanelClassifier(best).fit(X, y)
    sizes = SIZES if method == OPTIRANK else (1.0,)
    search = OptirankClassifierCV(sizes, l1s=(0.0,), l2s=PENALTIES, selection="best")
    with warnings.catch_warnings():
        # The ends of the grids are often best: the warning is expected
        warnings.filterwarnings("ignore", message="the best setting has")
        return search.fit(X, y)


if __name__ == "__main__":
    main()
