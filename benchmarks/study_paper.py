"""The paper's own evaluation, on stand-ins of its tasks and on its synthetic data.

    python benchmarks/study_paper.py [--data DIR] [--out DIR] [--jobs N] [--quick]

Stand-ins (`stands_for` in tasks.toml): each class against the rest, the 1000 genes of
SingleCellNet's choice, settings chosen by the paper's rule over a part of its grid (3
sizes of the reference set, 2 l1 and 3 l2 penalties), two of its splits. Written to
paper_stand_ins.csv: the mean over classes and splits, its standard error, genes and
seconds per fit.

Synthetic data: the paper's default point with the penalties of the paper, and every
point of its three sweeps with weaker ones too; and the cosine of optirank's reference
set to the true one. Written to sweeps.csv.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from typing import Any

import pandas as pd
from studies import collect, options

from optirank_lab.benchmark import engine, results
from optirank_lab.benchmark.classifiers import BINARY
from optirank_lab.benchmark.designs import Profile, RealTasks
from optirank_lab.benchmark.synthetic import GRIDS, SWEEPS, Settings
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
REPEATS = 4  # data sets per point of a sweep: those of `optirank simulate`


def main() -> None:
    args = options(__doc__)
    for study in (stand_ins, sweeps):
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


def sweeps(args: argparse.Namespace) -> dict[str, list[dict]]:
    """One row per grid, point of a sweep and classifier."""
    rows = []
    for name, grid in GRIDS.items():
        settings = Settings(
            repeats=1 if args.quick else REPEATS,
            sweeps=() if args.quick or name == "paper" else tuple(SWEEPS),
            grid=grid,
        )
        with tempfile.TemporaryDirectory() as folder:
            storage = results.Storage(folder, "synthetic")
            work = engine.Work(settings, grid)
            scores = run(settings.plan(), work, storage, args.jobs)
        groups: Any = scores.groupby(["kind", "classifier"], sort=False)
        points = {("", 0.0): settings.base}
        for sweep in settings.sweeps:
            field = SWEEPS[sweep].field
            for point in settings.sweep_points(sweep):
                points[sweep, float(getattr(point, field))] = point
        by_point = dict(iter(groups))
        for (sweep, value), point in points.items():
            for classifier in dict.fromkeys(scores["classifier"]):
                part = by_point[point.key, classifier]
                rows.append(
                    {
                        "grid": name,
                        "sweep": sweep,
                        "value": value,
                        "classifier": classifier,
                        "data_sets": len(part),
                        "balanced_accuracy": part["test"].mean(),
                        "standard_error": part["test"].sem(),
                        "cosine": part["cosine"].astype(float).mean(),
                    }
                )
    return {"sweeps": rows}


def run(
    plan: engine.Plan, work: engine.Work, storage: results.Storage, jobs: int
) -> pd.DataFrame:
    """The scores of a plan at the settings that the paper's rule chooses."""
    for name, reason in plan.problems.items():
        print(f"{name} cannot be run: {reason}", file=sys.stderr)
    if not plan.units:
        return pd.DataFrame(columns=pd.Index(results.SCORES))
    seed = work.source.seed
    with storage.open(work.profile, seed):
        failed = engine.run(plan, work, storage, jobs=jobs)
    for task, reason in failed.items():
        sys.exit(f"{task}: {reason}")
    return results.collect(storage).scores


if __name__ == "__main__":
    main()
