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

from joblib import Parallel, delayed
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


def main() -> None:
    args = options(__doc__)
    work = [(seed, tau) for seed in range(1 if args.quick else SEEDS) for tau in TAUS]
    found = Parallel(n_jobs=args.jobs, return_as="generator")(
        delayed(study)(*one) for one in work
    )
    table = collect(found, args, len(work))["synthetic"]
    wide = table.pivot_table(
        index="method", columns="tau", values="balanced_accuracy", sort=False
    )
    print(wide.round(3).to_string())


def study(seed: int, tau: float) -> Rows:
    """One row per method."""
    data = make_unstable_ranks(tau=tau, random_state=seed)
    X, new, y, truth = train_test_split(
        data.X, data.y, test_size=0.3, stratify=data.y, random_state=seed
    )
    grid = {"l1s": (0.0,), "l2s": PENALTIES, "selection": "best"}
    searches = {
        "lr (values)": GridSearchCV(
            LogisticRegression(class_weight="balanced", max_iter=5000),
            {"C": [1 / (2 * len(y) * l2) for l2 in PENALTIES]},
            scoring="balanced_accuracy",
        ),
        "rank-lr (fixed reference set: all genes)": OptirankClassifierCV(
            (1.0,), **grid
        ),
        "optirank (learned reference set)": OptirankClassifierCV(
            (0.2, 0.4, 0.6, 0.8, 1.0), **grid
        ),
        "panel, best held-out size": PanelClassifier(),
    }
    rows = []
    with one_blas_thread():
        for method, model in searches.items():
            model.fit(X, y)
            if method.startswith("panel"):
                curve = model.held_out_.curve()
                best, _, _ = max(curve, key=lambda row: (row[1], -row[0]))
                model = PanelClassifier(best).fit(X, y)
            rows.append((method, balanced_accuracy(truth, model.predict(new))))
        known = OptirankClassifierCV((1.0,), **grid).fit(X[:, data.reference], y)
        labels = known.predict(new[:, data.reference])
        rows.append(("true reference set", balanced_accuracy(truth, labels)))
    same = {"seed": seed, "tau": tau}
    return {
        "synthetic": [
            same | {"method": name, "balanced_accuracy": score} for name, score in rows
        ]
    }


if __name__ == "__main__":
    main()
