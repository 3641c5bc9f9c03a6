"""Held-out scores of panels of every size: the accuracy along the path, and the size
to choose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.metrics import (
    balanced_accuracy,
    error_of_counts,
    standard_error,
)
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.elimination import Panel

AUTO_FROM = 100  # genes: with half of them missing, as good as 30 to 50 that are there
MISSING = (0.1, 0.3, 0.5, 0.7)  # shares of a panel's genes to leave out
N_DRAWS = 3  # of the genes to leave out


@dataclass(frozen=True)
class HeldOut:
    """Scores of samples by panels that were found without them."""

    rows: NDArray  # positions of the held-out samples
    codes: NDArray  # their classes, as numbers
    fold: NDArray  # the fold of each
    scores: dict[int, NDArray]
    """By size: (n, rows); -inf for a class that the fold's training part lacks."""
    with_fewer: dict[tuple[int, float], NDArray]
    """By size and share of genes missing: classes given, (draws, n)."""
    panels: dict[tuple[int, int], Panel] = field(default_factory=dict)
    """By size and fold: the panel that was found without the fold; weights of a class
    that its training part lacks are NaN."""

    def curve(self) -> list[tuple[int, float, float]]:
        """Size, balanced accuracy, its standard error over the folds."""
        rows = []
        for size, scores in sorted(self.scores.items()):
            labels = best_class(scores)
            of_folds = [
                self._accuracy(size, labels, self.fold == fold)
                for fold in np.unique(self.fold)
            ]
            error = standard_error(np.array(of_folds)[np.isfinite(of_folds)])
            rows.append((size, self._accuracy(size, labels), float(error)))
        return rows

    def error_of_counts(self, size: int) -> float:
        """The standard error of the balanced accuracy by the number of samples."""
        labels, known = best_class(self.scores[size]), self._known(size)
        sizes = np.bincount(self.codes[known])
        right = np.bincount(
            self.codes[known & (labels == self.codes)], None, len(sizes)
        )
        return error_of_counts(right[sizes > 0], sizes[sizes > 0])

    def with_missing(self, size: int) -> list[tuple[float, float]]:
        """Shares of the panel's genes that are missing, with the balanced accuracy."""
        rows = [(0.0, self._accuracy(size, best_class(self.scores[size])))]
        for share in MISSING:
            of_draws = [
                self._accuracy(size, labels) for labels in self.with_fewer[size, share]
            ]
            rows.append((share, float(np.mean(of_draws))))
        return rows

    def _accuracy(
        self, size: int, labels: NDArray, among: NDArray | bool = True
    ) -> float:
        """Balanced accuracy of the samples whose class their fold could learn."""
        known = self._known(size) & among
        return balanced_accuracy(self.codes[known], labels[known])

    def _known(self, size: int) -> NDArray:
        """The samples whose class their fold could learn."""
        scores = self.scores[size]
        own = scores[np.arange(len(scores)), self.codes * (scores.shape[1] > 1)]
        return np.isfinite(own)


def deal_folds(
    codes: NDArray, hashes: NDArray, is_informative: NDArray, n_folds: int
) -> tuple[NDArray, int]:
    """The fold of each sample, and how many samples are equal to another one.

    Samples in the order of their classes and hashes are dealt out over the folds, so
    that each fold has its share of every class, whatever the order of the samples.
    Samples of equal hash are in one fold: else a model would have seen what it is
    judged on. Where they are not informative, with few genes that differ, samples may
    be equal by chance, and each counts alone. Fewer folds serve classes that are all
    small; with 0 folds no sample is held out (-1).
    """
    order = np.lexsort([codes, hashes])
    is_first = np.ones(len(order), bool)
    same = hashes[order][1:] == hashes[order][:-1]
    is_first[1:] = ~(same & is_informative[order][1:])
    group = np.empty(len(order), np.intp)
    group[order] = np.cumsum(is_first) - 1
    n_repeated = int((np.bincount(group)[group] > 1).sum())
    if not n_folds:
        return np.full(len(codes), -1), n_repeated
    firsts = order[is_first]
    largest = int(np.bincount(codes[firsts]).max())
    if largest < 2:
        raise ValueError(
            "every class has a single sample, or copies of one: held-out samples need "
            "at least two"
        )
    fold_of_group = np.empty(len(firsts), np.intp)
    by_class = np.argsort(codes[firsts], kind="stable")
    fold_of_group[by_class] = np.arange(len(firsts)) % min(n_folds, largest)
    return fold_of_group[group], n_repeated


class HeldOutScores:
    """Gathers the scores of held-out samples fold by fold."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._scores: dict[int, NDArray] = {}
        self._with_fewer: dict[tuple[int, float], NDArray] = {}
        self._panels: dict[tuple[int, int], Panel] = {}

    def add(self, size: int, test: NDArray, scores: NDArray) -> None:
        """Scores of the held-out samples of a fold by all genes of a panel."""
        empty = np.full((self._n, scores.shape[1]), np.nan)
        self._scores.setdefault(size, empty)[test] = scores

    def add_panel(self, size: int, fold: int, panel: Panel) -> None:
        """The panel that gave these scores."""
        self._panels[size, fold] = panel

    def add_with_fewer(
        self, size: int, share: float, draw: int, test: NDArray, labels: NDArray
    ) -> None:
        """Classes that are given without some of the genes."""
        empty = np.zeros((N_DRAWS, self._n), np.intp)
        self._with_fewer.setdefault((size, share), empty)[draw, test] = labels

    def add_unknown(self, size: int, test: NDArray, unknown: NDArray) -> None:
        """A fold without two classes, or a gene that varies, to learn from:
        no scores.
        """
        self.add(size, test, unknown)
        for share in MISSING:
            self.add_with_fewer(size, share, 0, test, np.zeros(len(test), np.intp))

    def held_out(self, rows: NDArray, codes: NDArray, fold: NDArray) -> HeldOut:
        """All samples that a fold held out."""
        out = fold >= 0
        scores = {size: of_size[out] for size, of_size in self._scores.items()}
        fewer = {key: labels[:, out] for key, labels in self._with_fewer.items()}
        return HeldOut(rows[out], codes[out], fold[out], scores, fewer, self._panels)


def choose_size(held_out: HeldOut) -> int:
    """The smallest size within one standard error of the best.

    It is the smallest of at least 100 genes, which do without some of them, where one
    of these is good enough. The standard error over the folds is at least that of the
    counts: where all folds are right by chance, it would be zero.
    """
    curve = held_out.curve()
    largest, best, error = max(curve, key=lambda row: (row[1], -row[0]))
    error = max(error, held_out.error_of_counts(largest))
    good = [size for size, accuracy, _ in curve if accuracy >= best - error]
    return min([size for size in good if size >= AUTO_FROM] or good)
