"""Speed of preprocessing, of the analysis of variance and of SingleCellNet."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from optirank.estimators.singlecellnet import SingleCellNetClassifier, pair_correlations
from optirank.preprocessing import Downsample, LogCPM, SingleCellNetGenes, dataset_f_values


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Median time of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def sparse_counts(n: int, d: int, density: float, rng: np.random.Generator) -> sp.csr_array:
    """Counts of at least 1 at random places."""
    size = int(density * n * d)
    places = rng.integers(n, size=size), rng.integers(d, size=size)
    return sp.csr_array((rng.geometric(0.2, size=size).astype(np.float32), places), shape=(n, d))


def report(what: str, took: float, goal: float | None = None) -> None:
    """Print one figure, with its goal where there is one."""
    print(f"{what:<66} {took:7.2f} s" + (f"  (goal {goal:g} s)" if goal else ""))


def main() -> None:
    """Print the figures."""
    rng = np.random.default_rng(0)
    counts = sparse_counts(3000, 20_000, 0.05, rng)
    label, dataset = np.arange(3000) % 2, np.arange(3000) % 3
    dense = rng.normal(size=(3000, 2000))

    report(
        "ANOVA, 3000 samples x 20000 genes, sparse, 5 % filled",
        seconds(lambda: dataset_f_values(counts, label, dataset)),
        2,
    )
    report(
        "ANOVA, 3000 samples x 2000 genes, dense",
        seconds(lambda: dataset_f_values(dense, label, dataset)),
    )
    report("LogCPM, the same sparse counts", seconds(lambda: LogCPM().fit_transform(counts)))
    report("Downsample to 1500 counts", seconds(lambda: Downsample().fit_transform(counts)))
    report("SingleCellNetGenes", seconds(lambda: SingleCellNetGenes().fit(counts, label)))

    y = np.arange(2000) % 2
    rate = rng.gamma(0.5, 4, size=1000) * np.exp(np.outer(y, rng.normal(scale=0.3, size=1000)))
    cells = rng.poisson(rate).astype(np.float32)
    report(
        "correlations of 40000 pairs, 2000 samples",
        seconds(lambda: pair_correlations(cells[:, :200], y == 1)),
    )
    model = SingleCellNetClassifier(n_jobs=2, random_state=0)
    report(
        "SingleCellNetClassifier.fit, 2000 x 1000 genes, binary, n_jobs=2",
        seconds(lambda: model.fit(cells, y), repeats=1),
        6,
    )
    report("SingleCellNetClassifier.predict, the same", seconds(lambda: model.predict(cells), 1))


if __name__ == "__main__":
    main()
