"""The product as users get it: `train`, then `predict`, from one set to another.

    python benchmarks/study_product.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets, models of all samples of the reference as `optirank
train` makes them (by default, with the size chosen by held-out samples; and with 100,
30 and 10 genes) label the whole query, as they are and after learning from it (`predict
--adapt`).

product         balanced accuracy; the expected calibration error (ten bins of equal
                width), the mean confidence and the share of right labels, also with the
                classes of the query counted equally, since probabilities are those of
                equal shares; the agreement, the likeness relative to the model's own, and whether
                there is an alarm
error_control   `predict --target-error` with 100 genes: labels given, and how many of
                them are wrong
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from studies import Rows, labelled, options, over_pairs, trained

from optirank._util.numbers import balanced_accuracy
from optirank_lab.benchmark.statistics import calibration_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank import Model
    from optirank.verbs.labels import Labels
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

TARGETS = (0.01, 0.02, 0.05, 0.1)
SIZES = ("auto", 100, 30, 10)
FEWEST_TO_ADAPT = 10


def main() -> None:
    tables = over_pairs(study, options(__doc__))
    numbers = ["balanced_accuracy", "calibration_error", "confidence", "accuracy"]
    keys = ["asked_for", "adapted"]
    print(tables["product"].groupby(keys)[numbers].mean().round(3).to_string())
    control = tables["error_control"]
    control = control.assign(error=control["n_wrong"] / control["n_given"])
    print(control.groupby("target")["error"].describe().round(3).to_string())


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """The rows of one pair."""
    truth = np.asarray(query.labels).astype(str)
    rows: list[dict] = []
    control: list[dict] = []
    for size in SIZES:
        model = trained(reference, size)
        plain = labelled(model, query)
        about = {"asked_for": str(size), "genes": model.n_genes}
        rows.append(about | {"adapted": False} | labels_row(plain, truth))
        if len(truth) >= FEWEST_TO_ADAPT:
            adapted = labelled(model, query, adapt=True)
            rows.append(about | {"adapted": True} | labels_row(adapted, truth))
        if size == 100:
            control = [*error_control_rows(model, query, plain, truth)]
    return {"product": rows, "error_control": control}


def labels_row(labels: Labels, truth: NDArray) -> dict:
    """How right some labels are, and what the product says of them."""
    given = labels.classes[labels.chosen].astype(str)
    return {
        "balanced_accuracy": balanced_accuracy(truth, given),
        "agreement": labels.record.get("agreement"),
        "likeness": labels.record["likeness"],
        "alarm": bool(labels.warnings),
    } | calibration_row(labels, truth)


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
