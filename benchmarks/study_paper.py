"""The paper's own evaluation, on stand-ins of its tasks and on its synthetic data.

    python benchmarks/study_paper.py [--data DIR] [--out DIR] [--jobs N] [--quick]

Stand-ins (`stands_for` in tasks.toml): each class against the rest, the 1000 genes of
SingleCellNet's choice, settings chosen by the paper's rule over a part of its grid (3
sizes of the reference set, 2 l1 and 3 l2 penalties), two of its splits. Written to
paper_stand_ins.csv: the mean over classes and splits, its standard error, genes and
seconds per fit.

Synthetic data: the paper's default point, ten seeds, with the penalties of the paper
and with weaker ones too; and the cosine of optirank's reference set to the true one.
Written to paper_synthetic.csv.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split
from studies import collect, options

from optirank import OptirankClassifierCV
from optirank._util.metrics import balanced_accuracy
from optirank._util.workers import one_blas_thread
from optirank.datasets import make_unstable_ranks
from optirank_lab.benchmark import engine, results
from optirank_lab.benchmark.classifiers import BINARY
from optirank_lab.benchmark.designs import Profile, RealTasks
from optirank_lab.benchmark.tasks import built_in

CLASSIFIERS = ["optirank", "rank-lr", "ANrank-lr", "lr", "SCN", "rf"]
PART_OF_GRID = Profile(
    "part of the paper's grid",
    n_splits=2,
    grids={
        "n_reference": (0.05, 0.2, 1.0),
        "l1": (0.0, 1e-3),
        "l2": (1e-3, 1e-2, 1e-1),
    },
)
SEEDS = 10
SIZES = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the reference set, as a share of the genes
PENALTIES = {
    "paper": (1e-1, 1e-2, 1e-3, 1e-4, 0.0),
    "weaker": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 0.0),
}


def main() -> None:
    args = options(__doc__)
    for study in (synthetic, stand_ins):
        for table in collect([study(args)], args, 1).values():
            print(table.round(3).to_string(index=False))


def stand_ins(args: argparse.Namespace) -> dict[str, list[dict]]:
    """One row per stand-in, scenario and classifier."""
    tasks = tuple(task for task in built_in() if task.stands_for)
    source = RealTasks(args.data.resolve(), built_in())
    with tempfile.TemporaryDirectory() as folder:
        storage = results.Storage(folder)
        plan = engine.plan_real(
            source, tasks, {BINARY: CLASSIFIERS}, PART_OF_GRID, storage, named=False
        )
        scores = run(plan, engine.Work(source, PART_OF_GRID), storage, args.jobs)
    stands_for = {task.name: task.stands_for for task in tasks}
    rows = []
    groups: Any = scores.groupby(["task", "scenario", "classifier"], sort=False)
    for (task, scenario, classifier), part in groups:
        rows.append(
            {
                "task": task,
                "stands_for": stands_for[task],
                "scenario": scenario,
                "classifier": classifier,
                "problems": len(part),
                "balanced_accuracy": part["test"].mean(),
                "standard_error": part["test"].sem(),
                "n_genes": part["n_genes"].mean(),
                "fit_seconds": part["fit_seconds"].mean(),
            }
        )
    return {"paper_stand_ins": rows}


def synthetic(args: argparse.Namespace) -> dict[str, list[dict]]:
    """One row per seed and grid of penalties."""
    work = [
        (seed, grid) for seed in range(1 if args.quick else SEEDS) for grid in PENALTIES
    ]
    rows: Any = Parallel(n_jobs=args.jobs)(
        delayed(learned_reference)(seed, grid) for seed, grid in work
    )
    return {"paper_synthetic": rows}


def learned_reference(seed: int, grid: str) -> dict:
    """Accuracy of optirank on synthetic data, and its reference set beside the
    true one.
    """
    data = make_unstable_ranks(tau=0.2, random_state=seed)
    X, new, y, truth = train_test_split(
        data.X, data.y, test_size=0.3, stratify=data.y, random_state=seed
    )
    search = OptirankClassifierCV(
        SIZES, l1s=(0.0,), l2s=PENALTIES[grid], selection="best"
    )
    with one_blas_thread(), warnings.catch_warnings():
        # The penalties of the paper end above the best ones: that is the finding
        warnings.filterwarnings("ignore", message="the best setting has")
        search.fit(X, y)
    reference = search.best_estimator_.reference_[0]
    common = (reference & data.reference).sum()
    return {
        "seed": seed,
        "grid": grid,
        "balanced_accuracy": balanced_accuracy(truth, search.predict(new)),
        "cosine": common / np.sqrt(reference.sum() * data.reference.sum()),
    }


def run(
    plan: engine.Plan, work: engine.Work, storage: results.Storage, jobs: int
) -> pd.DataFrame:
    """The scores of a plan at the settings that the paper's rule chooses."""
    for name, reason in plan.problems.items():
        print(f"{name} cannot be run: {reason}", file=sys.stderr)
    if not plan.units:
        return pd.DataFrame(columns=pd.Index(results.SCORES))
    with storage.open(work.profile, work.source.seed):
        failed = engine.run(plan, work, storage, jobs=jobs)
    for task, reason in failed.items():
        sys.exit(f"{task}: {reason}")
    return results.collect(storage).scores


if __name__ == "__main__":
    main()
