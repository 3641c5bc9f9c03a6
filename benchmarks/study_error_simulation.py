"""How often the error asked for is exceeded, by simulation: the error control itself.

    python benchmarks/study_error_simulation.py [--out DIR] [--quick]

A world has samples of a few classes with a confidence each and a probability of a right
label that rises with it: as it says (calibrated), 5 points below it (too sure), or the
same for all samples (no information). Some held-out samples are drawn from it, the
threshold for a target error is chosen on them as `optirank train` does (fixed-sequence
testing, 80 % confidence), and the true error of the labels above it is known. Beside it
the lowest of all thresholds whose pointwise bound passes, and no control. Written to
error_simulation.csv: of 1000 draws, how many give labels, and in how many of these the
true error is above the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from studies import collect, options

from optirank.model.confidence import ErrorControl, fit_error_control

if TYPE_CHECKING:
    from numpy.typing import NDArray

DRAWS = 1000
N_CLASSES = 3
HELD_OUT = (50, 200, 1000)
TARGETS = (0.02, 0.05, 0.1)
WORLDS = ("calibrated", "too sure", "no information")
N_TRUE = 20_000  # samples of the world, by which the true error is known


def main() -> None:
    args = options(__doc__)
    draws = 20 if args.quick else DRAWS
    rows = [row for world in WORLDS for row in simulate(world, draws)]
    table = collect([{"error_simulation": rows}], args, 1)["error_simulation"]
    print(table.to_string(index=False))


def simulate(world: str, draws: int) -> Iterator[dict]:
    """The rows of one world: draws that give labels, and those that exceed
    the target.
    """
    random = np.random.default_rng(0)
    confidence, error, _ = draw(world, N_TRUE, random)
    falling = np.argsort(-confidence, kind="stable")
    sorted_confidence = confidence[falling]
    mean_error = np.cumsum(error[falling]) / np.arange(1, N_TRUE + 1)
    for n_samples in HELD_OUT:
        counts = {(target, rule): [0, 0] for target in TARGETS for rule in RULES}
        for _ in range(draws):
            drawn, chance, classes = draw(world, n_samples, random)
            right = random.random(n_samples) >= chance
            control = fit_error_control(drawn, right, classes)
            for (target, rule), (given, exceeded) in counts.items():
                threshold = RULES[rule](control, target)
                if threshold is None:
                    continue
                n_above = np.searchsorted(-sorted_confidence, -threshold, side="right")
                true_error = mean_error[max(n_above, 1) - 1]
                counts[target, rule] = [given + 1, exceeded + (true_error > target)]
        for (target, rule), (given, exceeded) in counts.items():
            yield {
                "world": world,
                "held_out": n_samples,
                "target": target,
                "rule": rule,
                "draws": draws,
                "given": given,
                "exceeded": int(exceeded),
            }


def draw(
    world: str, n_samples: int, random: np.random.Generator
) -> tuple[NDArray, NDArray, NDArray]:
    """Confidences, probabilities of a wrong label, and classes of some samples."""
    confidence = 1.0 - 0.6 * random.beta(0.35, 1.5, n_samples)
    error = {
        "calibrated": 1.0 - confidence,
        "too sure": np.minimum(1.0, 1.05 - confidence),
        "no information": np.full(n_samples, 0.06),
    }[world]
    return confidence, error, random.integers(0, N_CLASSES, n_samples)


def in_sequence(control: ErrorControl, target: float) -> float | None:
    """The threshold of the model: tests from the most confident samples down."""
    try:
        return control.at(target)[0]
    except ValueError:
        return None


def lowest_passing(control: ErrorControl, target: float) -> float | None:
    """The lowest threshold whose own bound passes, whatever fails above it."""
    passing = np.flatnonzero(control.bounds <= target)
    return float(control.thresholds[passing[-1]]) if len(passing) else None


def no_control(control: ErrorControl, target: float) -> float | None:
    """All labels are given."""
    return 0.0


RULES = {
    "fixed sequence": in_sequence,
    "lowest that passes": lowest_passing,
    "none": no_control,
}


if __name__ == "__main__":
    main()
