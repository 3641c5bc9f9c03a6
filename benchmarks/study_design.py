"""Lists of equal length, judged on another platform: optirank's panels and other marker
lists.

    python benchmarks/study_design.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For at most four ordered pairs per tissue (sets of two platforms that share classes and
genes) and the two imaging pairs, every method makes lists of 10, 20, 50, 100 and 200
genes from at most 60 samples per class of the reference. Three classifiers are trained
on each list, on the same samples: the panel model, logistic regression and a random
forest on log values. At most 60 samples per class of the query judge them. Written to
design.csv, with the seconds that the lists took.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from studies import Rows, collect, dense, options, pairs_of, rows_of_pairs

from optirank._util.numbers import balanced_accuracy
from optirank.estimators.panel_classifier import PanelClassifier
from optirank_lab.baselines.marker_lists import RANKINGS, in_turns
from optirank_lab.benchmark.splits import at_most
from optirank_lab.benchmark.tasks import BenchmarkTask

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from optirank_lab.benchmark.sets import Set

SIZES = (10, 20, 50, 100, 200)
PER_CLASS = 60  # samples of either set
PER_TISSUE = 4  # pairs
OURS = "optirank"
IMAGING = {"gps_osmfish", "brain_merfish"}  # sets that were imaged
SMALL_PAIR = BenchmarkTask(  # fewer common genes than other pairs need
    name="gps_sc to gps_osmfish",
    title="gps_sc to gps_osmfish",
    shift="platform",
    tissue="mouse cortex",
    train=("gps_sc",),
    test="gps_osmfish",
    scheme="all",
)


def main() -> None:
    args = options(__doc__)
    pairs = chosen_pairs(pairs_of(args), args.data)
    rows = rows_of_pairs(study, pairs, args)
    table = collect(rows, args, len(pairs))["design"]
    keys = ["imaging", "classifier", "list"]
    wide = table.pivot_table(index=keys, columns="k", values="balanced_accuracy")
    print((100 * wide).round(1).to_string())


def chosen_pairs(pairs: Sequence[BenchmarkTask], data: Path) -> list[BenchmarkTask]:
    """At most four pairs of two platforms per tissue, and the imaging pairs."""
    kept: list[BenchmarkTask] = []
    for pair in pairs:
        of_tissue = [one for one in kept if one.tissue == pair.tissue]
        from_imaging = set(pair.train) & IMAGING
        if pair.across_platforms and not from_imaging and len(of_tissue) < PER_TISSUE:
            kept.append(pair)
    if all((data / f"{name}.h5ad").is_file() for name in SMALL_PAIR.sets):
        kept.append(SMALL_PAIR)
    return kept


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """One row per list, size and classifier."""
    rng = np.random.default_rng(0)
    reference = reference.take(at_most(reference.labels, PER_CLASS, rng))
    query = query.take(at_most(query.labels, PER_CLASS, rng))
    reference = replace(
        reference, raw=dense(reference.raw), values=dense(reference.values)
    )
    query = replace(query, raw=dense(query.raw), values=dense(query.values))
    sizes = [size for size in SIZES if size < len(reference.genes)]
    imaging = bool({pair.test} & IMAGING)
    rows = []
    for method, lists, seconds in all_lists(reference, sizes):
        for size, genes in lists.items():
            about = {"imaging": imaging, "list": method, "k": size, "seconds": seconds}
            for classifier, labels in judged(reference, query, genes):
                score = balanced_accuracy(query.labels, labels)
                rows.append(
                    about | {"classifier": classifier, "balanced_accuracy": score}
                )
    return {"design": rows}


def all_lists(
    reference: Set, sizes: list[int]
) -> list[tuple[str, dict[int, NDArray], float]]:
    """The lists of every method by their length, and the seconds that they took
    together.
    """
    start = time.perf_counter()
    path = (
        PanelClassifier(max(sizes), n_jobs=1).fit(reference.raw, reference.labels).path_
    )
    ours = {size: path[size].genes for size in sizes}
    found = [(OURS, ours, time.perf_counter() - start)]
    codes = np.unique(reference.labels, return_inverse=True)[1]
    for method, rank in RANKINGS.items():
        start = time.perf_counter()
        rankings = rank(reference.values, codes)
        lists = {size: in_turns(rankings, size) for size in sizes}
        found.append((method, lists, time.perf_counter() - start))
    return found


def judged(reference: Set, query: Set, genes: NDArray) -> list[tuple[str, NDArray]]:
    """Labels of the query by three classifiers that see the genes of a list alone."""
    classifiers: dict[str, tuple[Any, str]] = {
        "panel model": (PanelClassifier(len(genes), n_jobs=1), "raw"),
        "logistic regression": (
            make_pipeline(
                StandardScaler(),
                LogisticRegression(
                    C=0.1, class_weight="balanced", max_iter=300, tol=1e-3
                ),
            ),
            "values",
        ),
        "random forest": (
            RandomForestClassifier(
                50, class_weight="balanced", random_state=0, n_jobs=1
            ),
            "values",
        ),
    }
    found = []
    for name, (model, sees) in classifiers.items():
        model.fit(getattr(reference, sees)[:, genes], reference.labels)
        found.append((name, model.predict(getattr(query, sees)[:, genes])))
    return found


if __name__ == "__main__":
    main()
