"""What confidences are worth on another platform: calibration and error control.

    python benchmarks/study_confidence.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets a model of 100 genes as `optirank train` makes it,
calibrated on its held-out samples, labels the query.

calibration     the expected calibration error on the query (ten bins of equal width),
                the mean confidence and the share of right labels, as they are and after
                learning from the query (`predict --adapt`); and with the classes of the
                query counted equally, since probabilities are those of equal shares
error_control   `predict --target-error`: labels given, and how many of them are wrong
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from studies import Rows, labelled, options, over_pairs, trained

from optirank_lab.benchmark.statistics import calibration_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank import Model
    from optirank.workflow.labels import Labels
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

TARGETS = (0.01, 0.02, 0.05, 0.1)
FEWEST_TO_ADAPT = 10


def main() -> None:
    tables = over_pairs(study, options(__doc__))
    numbers = ["calibration_error", "confidence", "accuracy"]
    print(tables["calibration"].groupby("adapted")[numbers].mean().round(3).to_string())
    control = tables["error_control"]
    control = control.assign(error=control["n_wrong"] / control["n_given"])
    print(control.groupby("target")["error"].describe().round(3).to_string())


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """The rows of one pair."""
    return confidence_rows(trained(reference), query)


def confidence_rows(model: Model, query: Set) -> Rows:
    """Calibration and error control of a model on a query."""
    truth = np.asarray(query.labels).astype(str)
    plain = labelled(model, query)
    calibration = [calibration_row(plain, truth) | {"adapted": False}]
    if len(truth) >= FEWEST_TO_ADAPT:
        adapted = labelled(model, query, adapt=True)
        calibration.append(calibration_row(adapted, truth) | {"adapted": True})
    control = [*error_control_rows(model, query, plain, truth)]
    return {"calibration": calibration, "error_control": control}


def calibration_row(labels: Labels, truth: NDArray) -> dict:
    """Calibration error, confidence and accuracy of some labels."""
    right = labels.classes[labels.chosen].astype(str) == truth
    weights = equal_class_weights(truth)
    confidence = labels.confidence
    return {
        "n_query": len(truth),
        "calibration_error": calibration_error(confidence, right),
        "confidence": confidence.mean(),
        "accuracy": right.mean(),
        "confidence_classes_equal": np.average(confidence, weights=weights),
        "accuracy_classes_equal": np.average(right, weights=weights),
    }


def error_control_rows(
    model: Model, query: Set, plain: Labels, truth: NDArray
) -> Iterator[dict]:
    """Labels given at each target error, and how many of them are wrong."""
    wrong = plain.classes[plain.chosen].astype(str) != truth
    weights = equal_class_weights(truth)
    for target in TARGETS:
        given = np.zeros(len(truth), dtype=bool)
        can_be_shown = _can_be_shown(model, target)
        if can_be_shown:
            given = ~labelled(model, query, target_error=target).withheld
        error = np.nan
        if given.any():
            error = np.average(wrong[given], weights=weights[given])
        yield {
            "target": target,
            "can_be_shown": can_be_shown,
            "n_query": len(truth),
            "n_wrong_of_all": int(wrong.sum()),
            "n_given": int(given.sum()),
            "n_wrong": int((wrong & given).sum()),
            "error_classes_equal": error,
        }


def _can_be_shown(model: Model, target: float) -> bool:
    """Whether the held-out samples are enough to show such an error."""
    control = model.panel.error_control
    if control is None:
        return False
    try:
        control.at(target)
    except ValueError:
        return False
    return True


def equal_class_weights(truth: NDArray) -> NDArray:
    """Weights of samples by which all classes count the same."""
    _, codes, counts = np.unique(truth, return_inverse=True, return_counts=True)
    return 1.0 / counts[codes]


if __name__ == "__main__":
    main()
