"""The paper's experiments on real data, on stand-ins of its tasks.

    python benchmarks/study_paper.py [--data DIR] [--out DIR] [--jobs N] [--quick]

`optirank-lab benchmark run paper` as a study: each class against the rest, the 1000
genes of SingleCellNet's choice, the paper's grid of 250 settings, its splits, its
classifiers, and settings by its rule of one standard error (with --quick some
stand-ins, a part of the grid, 200 genes and three splits). Units are stored in
OUT/paper-units until the tables are written, and the same command goes on from there.
Written to

paper_stand_ins.csv   the test score, genes and seconds of each classifier on each
                      problem and split, at the setting chosen
paper_tests.csv       the paper's paired t-test of each two classifiers on each stand-in:
                      the share of problems and splits on which the row is better, p
"""

from __future__ import annotations

import argparse
import shutil
import sys
from itertools import count

import pandas as pd
from studies import options, write_tables

from optirank_lab.benchmark import engine, results
from optirank_lab.benchmark.classifiers import BINARY, PAPER_CLASSIFIERS
from optirank_lab.benchmark.designs import (
    PAPER,
    QUICK,
    RealTasks,
)
from optirank_lab.benchmark.statistics import paired_tests
from optirank_lab.benchmark.tasks import built_in, paper_tasks

COLUMNS = [
    "task",
    "scenario",
    "problem",
    "part",
    "split",
    "classifier",
    "test",
    "n_genes",
    "n_features",
    "n_train",
    "fit_seconds",
    "setting",
]


def main() -> None:
    args = options(__doc__)
    source = RealTasks(args.data.resolve(), built_in())
    units = args.out / "paper-units"
    scores = run(source, results.Storage(units), args)
    stands_for = {task.name: task.stands_for for task in source.tasks}
    rows = scores[COLUMNS].assign(stands_for=scores["task"].map(stands_for))
    tables = {"paper_stand_ins": rows, "paper_tests": tests_of(rows)}
    write_tables(tables, args)
    shutil.rmtree(units)
    keys = ["task", "scenario", "classifier"]
    means = rows.groupby(keys, sort=False)["test"].mean()
    print(means.unstack().round(3).to_string())


def tests_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The paired tests of the classifiers within each stand-in and scenario."""
    tests = paired_tests(rows.assign(group=rows["scenario"].fillna("")))
    return tests.rename(columns={"group": "scenario"})


def run(
    source: RealTasks, storage: results.Storage, args: argparse.Namespace
) -> pd.DataFrame:
    """The scores of all stand-ins whose data are there, at the settings chosen."""
    tasks = tuple(
        task
        for task in paper_tasks()
        if task.stands_for and (task.quick or not args.quick)
    )
    profile = QUICK if args.quick else PAPER
    chosen = {BINARY: [*PAPER_CLASSIFIERS]}
    plan = engine.plan_real(source, tasks, chosen, profile, storage, named=False)
    for name, reason in (plan.problems | plan.missing).items():
        print(f"{name} cannot be run: {reason}", file=sys.stderr)
    finished = count(1)

    def show(*_: object) -> None:
        text = f"\r{next(finished)} of {len(plan.units)} units"
        print(text, end="", file=sys.stderr, flush=True)

    with storage.open(profile, source.seed):
        work = engine.Work(source, profile)
        failed = engine.run(plan, work, storage, jobs=args.jobs, progress=show)
    print(file=sys.stderr)
    if failed:
        sys.exit("\n".join(f"{task}: {reason}" for task, reason in failed.items()))
    return results.collect(storage).scores


if __name__ == "__main__":
    main()
