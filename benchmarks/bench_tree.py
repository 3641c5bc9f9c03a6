"""What a tree of labels costs in training and prediction, beside the same labels alone.

    python benchmarks/bench_tree.py [--quick]

Generated blood cells (`optirank example`): 1,500 are trained on, with folds and error
control; 20,000 are labelled in memory. CPU seconds, one thread, taking turns.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from optirank.io.reading import read_expression
from timing import QUICK, interleaved, line

from optirank.datasets.example import write_example
from optirank.verbs.labelling import label_profiles
from optirank.verbs.training import TrainingOptions, train

LABEL = "cell_type"
TREE = {
    "lymphocyte": "",
    "b cell": "lymphocyte",
    "t cell": "lymphocyte",
    "nk cell": "lymphocyte",
    "myeloid": "",
    "monocyte": "myeloid",
    "dendritic cell": "myeloid",
}
MOST = 1.1  # times the work without a tree


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sizes = (150, 100) if QUICK else (1_500, 20_000)
        write_example(Path(folder), *sizes)
        reference = read_expression(Path(folder) / "reference.h5ad", label=LABEL)
        query = read_expression(Path(folder) / "query.h5ad")
    flat = TrainingOptions(label=LABEL, n_jobs=1)
    tree = TrainingOptions(label=LABEL, tree=TREE, n_jobs=1)
    models = {
        "flat": train(reference, flat).model,
        "tree": train(reference, tree).model,
    }
    report(
        "train",
        interleaved(
            {
                "flat": lambda: train(reference, flat),
                "tree": lambda: train(reference, tree),
            },
            repeats=5,
        ),
    )
    report(
        "predict",
        interleaved(
            {
                "flat": lambda: label_profiles(query, models["flat"]),
                "tree": lambda: label_profiles(query, models["tree"]),
            },
            repeats=7,
        ),
    )


def report(what: str, seconds: dict[str, float]) -> None:
    """A line with the seconds of both and their ratio."""
    ratio = seconds["tree"] / seconds["flat"]
    figure = f"{ratio:.2f} ({seconds['flat']:.2f} s flat, {seconds['tree']:.2f} s)"
    line(f"{what}, with a tree over without", figure, f"at most {MOST}", ratio <= MOST)


if __name__ == "__main__":
    main()
