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

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from optirank._util.numbers import as_dense, value_scale
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


class Drill(NamedTuple):
    """How held-out samples were labelled under one condition.

    Attributes
    ----------
    kind : "as it is", "failing" or "platform".
    amount : the share of genes that failed, or the strength of the platform.
    draws : samples by draw, true class and label.
    """

    kind: str
    amount: float
    draws: NDArray[np.float64]

    @property
    def counts(self) -> NDArray[np.float64]:
        """(classes, classes): samples by true class and label, mean over draws."""
        return self.draws.mean(axis=0)

    @property
    def sensitivity(self) -> NDArray[np.float64]:
        """(draws, classes): the share of each class that is labelled right; NaN
        without samples.
        """
        sizes = self.draws.sum(axis=2)
        right = np.diagonal(self.draws, axis1=1, axis2=2)
        return right / np.where(sizes > 0, sizes, np.nan)


def run_drills(
    X: Any, codes: NDArray, fold: NDArray, panels: Mapping[int, Panel], n_classes: int
) -> list[Drill]:
    """All drills, the samples as they are first, the strongest platform last.

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
    genes = np.unique(np.concatenate([panel.genes for panel in panels.values()]))
    values = as_dense(X[:, genes])
    scale = value_scale(X)

    def label_counts(
        groups: NDArray, share_lost: float = 0.0, seed: int = 0
    ) -> NDArray:
        """Sorted samples by true class and label, without some genes of each panel."""
        counts = np.zeros((n_classes, n_classes))
        for k, panel in panels.items():
            rows = np.flatnonzero(fold == k)
            if len(panel.coef) > 1:  # the others are of classes it could not learn
                rows = rows[~np.isnan(panel.coef[codes[rows], 0])]
            n_genes = len(panel.genes)
            n_lost = min(round(share_lost * n_genes), max(0, n_genes - _FEWEST))
            left = np.sort(np.argsort(uniform_numbers(n_genes, seed))[n_lost:])
            columns = np.searchsorted(genes, panel.genes)[left]
            labels = best_class(
                ranked_scores(groups, rows, columns, panel.coef[:, left])
            )
            np.add.at(counts, (codes[rows], labels), 1.0)
        return counts

    groups = sort_groups(values)
    drills = [Drill("as it is", 0.0, label_counts(groups)[None])]
    for share in FAILING:
        draws = [label_counts(groups, share, seed) for seed in range(_DRAWS)]
        drills.append(Drill("failing", share, np.array(draws)))
    for strength in STRENGTHS:
        draws = []
        for number in range(_PLATFORMS):
            logs = log_factors(len(genes), strength, number)
            groups = sort_groups(with_factors(values, logs, scale))
            draws.append(label_counts(groups))
        drills.append(Drill("platform", strength, np.array(draws)))
    return drills
