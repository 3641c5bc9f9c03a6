"""Drills: how held-out samples are labelled when an assay, or another platform, does
worse than the reference.

Genes fail at random; another platform gives every gene a factor of its own. Every
sample is labelled by the panel that was found without its fold, so that neither genes
nor weights have seen it. A drill gives a table of counts: samples by true class (rows)
and label (columns).

Probes, primers and gene lengths give every gene its own factor, the same in all
samples. This is the largest difference between platforms, and the one that ranks within
a sample do not remove. A simulated platform draws such factors: their logarithms are
normal with mean 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from optirank._util.matrices import as_dense, value_scale
from optirank.panel.samples import uniform_numbers
from optirank.panel.votes import ranked_scores, sort_groups
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.elimination import Panel

FAILING = (0.1, 0.3, 0.5)  # shares of the genes
STRENGTHS = (1.0, 2.0)
"""Standard deviations of the genes' log factors on simulated platforms. Between real
sets the class means of genes differ by 0.8 to 1.1 from one sequencing technology to
another, and by 1.3 to 2.3 from sequencing to imaging."""
_DRAWS = 10  # of the genes that fail
_PLATFORMS = 3  # of each strength
_FEWEST = 2  # genes that are left: one has nothing to be compared with


def log_factors(n_genes: int, strength: float, number: int) -> NDArray[np.float64]:
    """Logarithms of the factors of all genes on a simulated platform, the same ones for
    its strength and number.
    """
    return strength * ndtri(uniform_numbers(n_genes, number))


def with_factors(values: NDArray, logs: NDArray, scale: str) -> NDArray:
    """Values as a platform with such factors might measure them, see `value_scale`.

    Of counts, a factor below 1 loses some. Zeros of non-negative data stay zeros: what
    was not detected has no value to scale.
    """
    factors = np.exp(logs)
    if scale == "counts":
        # NumPy promises the stream of RandomState alone to stay as it is
        stream = np.random.RandomState(0)
        left = stream.binomial(values.astype(np.int64), np.minimum(factors, 1.0))
        return left * np.maximum(factors, 1.0)
    if scale == "linear":
        return values * factors
    if values.min() < 0 or (values > 0).all():
        return values + logs
    # What is expressed stays above zero: at least a hundredth of the least positive
    # value
    lowest = np.min(values, initial=1.0, where=values > 0)
    return np.where(values > 0, np.maximum(values + logs, 0.01 * lowest), values)


class Drill:
    """How held-out samples were labelled under one condition.

    Attributes
    ----------
    kind : "as it is", "failing" or "platform".
    amount : the share of genes that failed, or the strength of the platform.
    counts : (classes, classes): samples by true class and label, mean over draws.
    lowest : (classes,): the lowest sensitivity of each class over the draws.
    """

    def __init__(self, kind: str, amount: float, *draws: NDArray) -> None:
        self.kind = kind
        self.amount = amount
        self.counts = np.mean(draws, axis=0)
        sizes = draws[0].sum(axis=1)
        sizes = np.where(sizes > 0, sizes, np.nan)
        self.lowest = np.min([draw.diagonal() / sizes for draw in draws], axis=0)


class HeldOutSamples:
    """Samples with the panels of their folds.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, genes)
        The samples, with all genes.
    codes, fold : arrays of shape (n,)
        The class of each sample as a number, and the fold that held it out.
    panels : mapping of int to Panel
        The panel that was found without each fold.
    n_classes : int
    """

    def __init__(
        self,
        X: Any,
        codes: NDArray,
        fold: NDArray,
        panels: Mapping[int, Panel],
        n_classes: int,
    ) -> None:
        self._codes = codes
        self._panels = dict(panels)
        self._n_classes = n_classes
        self._scale = value_scale(X)
        genes = np.unique(np.concatenate([p.genes for p in self._panels.values()]))
        self._values = as_dense(X[:, genes])
        self._groups = sort_groups(self._values)
        self._rows = {}  # of samples of classes that the fold could learn
        for k, panel in self._panels.items():
            rows = np.flatnonzero(fold == k)
            if len(panel.coef) > 1:
                rows = rows[~np.isnan(panel.coef[codes[rows], 0])]
            self._rows[k] = rows
        self._columns = {
            k: np.searchsorted(genes, panel.genes) for k, panel in self._panels.items()
        }

    def drills(self) -> Iterator[Drill]:
        """All drills, the samples as they are first."""
        yield Drill("as it is", 0.0, self.counts())
        for share in FAILING:
            lost = [self._lost_by_chance(share, seed) for seed in range(_DRAWS)]
            yield Drill("failing", share, *map(self.counts, lost))
        n_genes = self._values.shape[1]
        for strength in STRENGTHS:
            platforms = [
                with_factors(
                    self._values, log_factors(n_genes, strength, number), self._scale
                )
                for number in range(_PLATFORMS)
            ]
            draws = [self.counts(values=values) for values in platforms]
            yield Drill("platform", strength, *draws)

    def counts(
        self, lost: Mapping[int, NDArray] | None = None, values: NDArray | None = None
    ) -> NDArray[np.float64]:
        """Samples by true class and label.

        Parameters
        ----------
        lost : mapping of int to array, optional
            Positions of the genes of each fold's panel that fail.
        values : array of shape (n, genes of all panels), optional
            Other values of the samples than their own.
        """
        groups = self._groups if values is None else sort_groups(values)
        counts = np.zeros((self._n_classes, self._n_classes))
        for fold, rows in self._rows.items():
            columns, coef = self._columns[fold], self._panels[fold].coef
            if lost is not None:
                columns = np.delete(columns, lost[fold])
                coef = np.delete(coef, lost[fold], axis=1)
            labels = best_class(ranked_scores(groups, rows, columns, coef))
            np.add.at(counts, (self._codes[rows], labels), 1.0)
        return counts

    def _lost_by_chance(self, share: float, seed: int) -> dict[int, NDArray]:
        """A draw of the genes of each fold's panel that fail."""
        lost = {}
        for fold, panel in self._panels.items():
            n_genes = len(panel.genes)
            order = np.argsort(uniform_numbers(n_genes, seed))
            lost[fold] = order[: min(round(share * n_genes), max(0, n_genes - _FEWEST))]
        return lost


def confused_pairs(counts: NDArray) -> list[tuple[int, int, float, float]]:
    """Pairs of classes by how often one gets the label of the other.

    Of each pair: the two classes, the share of the first that is labelled as the
    second, and the share of the second that is labelled as the first; the largest share
    first, without pairs that are never confused.
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    pairs = []
    for first, second in itertools.combinations(range(len(shares)), 2):
        if shares[second, first] > shares[first, second]:
            first, second = second, first
        if shares[first, second] > 0:
            there, back = float(shares[first, second]), float(shares[second, first])
            pairs.append((first, second, there, back))
    return sorted(pairs, key=lambda pair: (-pair[2], -pair[3], pair[:2]))
