"""Calibration on another platform: confidences of the panel model against how often it is right.

    python benchmarks/study_calibration.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets a model of 100 genes as `optirank train` makes it, calibrated on its
held-out samples; written to calibration.csv: the expected calibration error on the query (ten bins
of equal width), the mean confidence and the share of right labels. Probabilities are those of equal
shares of the classes, so the same figures with the classes of the query counted equally stand
beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from studies import Rows, options, over_pairs, predicted, trained

from optirank_lab.benchmark.statistics import calibration_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask


def main() -> None:
    table = over_pairs(study, options(__doc__))["calibration"]
    numbers = ["calibration_error", "confidence", "accuracy"]
    print(table[numbers].mean().round(3).to_string())


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """The row of one pair."""
    prediction = predicted(trained(reference), query)
    truth = np.asarray(query.labels)
    return {
        "calibration": [
            calibration_row(prediction.labels, prediction.confidence, truth)
        ]
    }


def calibration_row(labels: NDArray, confidence: NDArray, truth: NDArray) -> dict:
    """Calibration error, confidence and accuracy of some labels."""
    right = labels == truth
    _, codes, counts = np.unique(truth, return_inverse=True, return_counts=True)
    weights = 1.0 / counts[codes]
    return {
        "n_query": len(truth),
        "calibration_error": calibration_error(confidence, right),
        "confidence": confidence.mean(),
        "accuracy": right.mean(),
        "confidence_classes_equal": np.average(confidence, weights=weights),
        "accuracy_classes_equal": np.average(right, weights=weights),
    }


if __name__ == "__main__":
    main()
