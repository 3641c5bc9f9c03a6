"""The paper's synthetic experiment on its own protocol, by many more data sets.

    python benchmarks/study_synthetic.py [--out DIR] [--jobs N] [--quick]

1000 samples of 50 genes, of which ten define the labels by their ranks among themselves
and 40 shift together by tau = 0.2. 30 % test; settings are chosen by five folds of the
others, by the best validation score as the paper does here and by the rule of one
standard error. What is run (`EXPERIMENTS`):

folded   the default point and the three sweeps with the paper's penalties; labels by
         weights +-(|N(0,1)| + 1)
normal   the default point with weights +-(N(0,1) + 1), as the paper prints
weaker   the default point, with penalties of 1e-5 and 1e-6 too
still    the same with tau = 0: the same samples and labels before the shift

100 data sets at the default point and without shift, 20 along the sweeps (one with
--quick, and no sweep but tau). Each fit is stored in OUT/synthetic-units as soon as it
is done, and the same command goes on from there. Written to synthetic.csv: one row per
experiment, data set, rule and classifier.

`default_search.csv` has `OptirankClassifierCV()` with nothing set, on the first 20 data
sets of the default point.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import chain

from joblib import Parallel, delayed
from studies import Rows, collect, options

from optirank import OptirankClassifierCV
from optirank._util.numbers import balanced_accuracy
from optirank._util.work import one_blas_thread
from optirank_lab.benchmark import engine, results
from optirank_lab.benchmark.synthetic import (
    EXTENDED_GRID,
    PAPER_GRID,
    SWEEPS,
    Point,
    Settings,
)
from optirank_lab.benchmark.work import _cosine as cosine

DATA_SETS = 100
ALONG_SWEEPS = 20
SEARCHED = 20  # data sets of the search with nothing set
POINT = Settings(repeats=DATA_SETS, sweeps=(), grid=PAPER_GRID)
EXPERIMENTS = {
    "folded": POINT,
    "normal": replace(POINT, base=Point(weights="normal")),
    "weaker": replace(POINT, grid=EXTENDED_GRID),
    "still": replace(POINT, grid=EXTENDED_GRID, base=Point(tau=0.0)),
}
ALL_SWEEPS = replace(POINT, repeats=ALONG_SWEEPS, sweeps=tuple(SWEEPS))
RULES = ("best", "one_se")


def main() -> None:
    args = options(__doc__, add_only)
    wanted = args.only.split(",") if args.only else [*EXPERIMENTS, "sweeps", "search"]
    for name, settings in experiments(args.quick).items():
        if name in wanted:
            run(name, settings, args)
    parts = [synthetic_rows(args)]
    n_sets = 0
    if "search" in wanted:
        n_sets = 1 if args.quick else min(args.data_sets or SEARCHED, SEARCHED)
        parallel = Parallel(n_jobs=args.jobs, return_as="generator")
        parts = chain(parts, parallel(delayed(searched)(k) for k in range(n_sets)))
    tables = collect(parts, args, 1 + n_sets)
    keys = ["experiment", "rule", "classifier"]
    means = tables["synthetic"].groupby(keys, sort=False)["balanced_accuracy"].mean()
    print(means.unstack().round(4).to_string())


def add_only(parser: argparse.ArgumentParser) -> None:
    """The option of this study."""
    names = ", ".join([*EXPERIMENTS, "sweeps", "search"])
    parser.add_argument("--only", help=f"some of {names}, separated by commas")
    parser.add_argument("--data-sets", type=int, help="fewer data sets per experiment")


def experiments(quick: bool) -> dict[str, Settings]:
    """What is run, by name."""
    every = EXPERIMENTS | {"sweeps": ALL_SWEEPS}
    if not quick:
        return every
    few = {name: replace(settings, repeats=1) for name, settings in every.items()}
    return few | {"sweeps": replace(few["sweeps"], sweeps=("tau",))}


def folder(name: str, args: argparse.Namespace) -> results.Storage:
    """Where the fits of an experiment are stored; sweeps share the default point."""
    place = "folded" if name == "sweeps" else name
    return results.Storage(args.out / "synthetic-units" / place, "synthetic")


def run(name: str, settings: Settings, args: argparse.Namespace) -> None:
    """Fit what is not stored yet."""
    if args.data_sets:
        settings = replace(settings, repeats=args.data_sets)
    plan = settings.plan()
    n_done = 0

    def show(*_: object) -> None:
        nonlocal n_done
        n_done += 1
        print(f"\r{name}: {n_done} of {len(plan.units)}", end="", file=sys.stderr)

    storage = folder(name, args)
    with storage.open(settings.grid, settings.seed):
        work = engine.Work(settings, settings.grid)
        failed = engine.run(plan, work, storage, jobs=args.jobs, progress=show)
    print(file=sys.stderr)
    if failed:
        sys.exit("\n".join(f"{task}: {reason}" for task, reason in failed.items()))


def synthetic_rows(args: argparse.Namespace) -> Rows:
    """One row per experiment, data set, rule and classifier, of all that is stored."""
    rows: list[dict] = []
    for name, settings in experiments(quick=False).items():
        storage = folder(name, args)
        if name != "sweeps" and storage.folder.is_dir():
            points = {point.key: point for point in ALL_SWEEPS.points()}
            points |= {point.key: point for point in settings.points()}
            rows += experiment_rows(name, storage, points)
    return {"synthetic": rows}


def experiment_rows(
    name: str, storage: results.Storage, points: dict[str, Point]
) -> Iterator[dict]:
    """The rows of one experiment."""
    for rule in RULES:
        for row in results.collect(storage, rule).scores.to_dict("records"):
            point = asdict(points[row["kind"]])
            yield {
                "experiment": name,
                **{key: point[key] for key in ("n_genes", "n_perturbed", "tau")},
                "data_set": int(row["title"].split()[-1]),
                "rule": rule,
                "classifier": row["classifier"],
                "balanced_accuracy": row["test"],
                "cosine": row["cosine"],
                "setting": row["setting"],
            }


def searched(number: int) -> Rows:
    """`OptirankClassifierCV()` with nothing set, on one data set."""
    source = replace(POINT, repeats=SEARCHED)
    (design,) = source.designs(f"{Point().key}-r{number}")
    final = design.splits[-1]
    train, test = (design.source.take(rows) for rows in (final.train, final.test))
    search = OptirankClassifierCV()
    with one_blas_thread(), warnings.catch_warnings():
        # The penalties of the paper end above the best ones
        warnings.filterwarnings("ignore", message="the best setting has")
        search.fit(train.raw, train.labels)
    row = {
        "data_set": number + 1,
        "balanced_accuracy": balanced_accuracy(test.labels, search.predict(test.raw)),
        "cosine": cosine(search.best_estimator_.reference_[0], design.truth),
        "setting": str(search.best_params_),
    }
    return {"default_search": [row]}


if __name__ == "__main__":
    main()
