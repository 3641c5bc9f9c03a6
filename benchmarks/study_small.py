"""Few training samples: the panel model beside linear classifiers on the ranks of all
candidates.

    python benchmarks/study_small.py [--data DIR] [--out DIR] [--jobs N] [--quick]

The four tasks of the benchmark within one set of bulk profiles: each set is cut into
four parts, two of which (24 to 90 samples) train and one tests, once per part. Five
seeds of the cut (one with --quick). All classifiers get the 3000 genes of best t
statistic; those on ranks have the panel's penalty and no intercept, the penalty on log
values is chosen by cross-validation. Written to small.csv.
"""

from __future__ import annotations

from pathlib import Path

from joblib import Parallel, delayed
from studies import Rows, collect, dense, options

from optirank._util.numbers import balanced_accuracy
from optirank._util.work import one_blas_thread
from optirank.estimators.panel_classifier import PanelClassifier
from optirank_lab.benchmark.designs import RealTasks, genes_of_best_t
from optirank_lab.benchmark.rivals import LinearOnRanks, TunedLogisticRegression
from optirank_lab.benchmark.tasks import built_in, choose

TASKS = ["nci60_p53", "tcga_tumours9", "tcga_crc-cms", "tcga_crc-msi"]
SEEDS = 5
CANDIDATES = 3000


def main() -> None:
    args = options(__doc__)
    seeds = range(1 if args.quick else SEEDS)
    work = [(name, seed) for name in TASKS for seed in seeds]
    parts = (delayed(study)(args.data.resolve(), *one) for one in work)
    found = Parallel(n_jobs=args.jobs, return_as="generator")(parts)
    table = collect(found, args, len(work))["small"]
    wide = table.pivot_table(
        index="task", columns="method", values="balanced_accuracy", sort=False
    )
    print(wide.round(3).to_string())


def study(data: Path, name: str, seed: int) -> Rows:
    """One row per method and part of the cut."""
    (design,) = RealTasks(data, choose(built_in(), [name]), seed=seed).designs(name)
    rows = []
    for split in design.whole_splits(4):
        reference, query = (
            design.source.take(split.train),
            design.source.take(split.test),
        )
        genes = genes_of_best_t(reference, CANDIDATES)
        reference, query = (
            reference.take(slice(None), genes),
            query.take(slice(None), genes),
        )
        ranked, values = (
            (dense(one.raw), dense(one.values)) for one in (reference, query)
        )
        models = {
            "panel of 100": (PanelClassifier(100), 0),
            "panel, size chosen": (PanelClassifier(), 0),
            "LR on ranks": (LinearOnRanks(), 0),
            "SVM on ranks": (LinearOnRanks("hinge"), 0),
            "LR on log values": (TunedLogisticRegression(), 1),
        }
        same = {
            "task": name,
            "seed": seed,
            "part": split.part,
            "n_train": len(reference.labels),
        }
        with one_blas_thread():
            for method, (model, sees) in models.items():
                model.fit((ranked, values)[0][sees], reference.labels)
                labels = model.predict((ranked, values)[1][sees])
                n_genes = (
                    int(model.genes_.sum()) if hasattr(model, "genes_") else len(genes)
                )
                score = balanced_accuracy(query.labels, labels)
                found = {
                    "method": method,
                    "n_genes": n_genes,
                    "balanced_accuracy": score,
                }
                rows.append(same | found)
    return {"small": rows}


if __name__ == "__main__":
    main()
