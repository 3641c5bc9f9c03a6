"""Drills: how held-out samples are labelled when an assay, or another platform, does
worse than the reference.

Genes fail, at random or those that a class can spare least; another platform gives
every gene a factor of its own; counts are thinned. Every sample is labelled by the
panel that was found without its fold, so that neither genes nor weights have seen it. A
drill gives a table of counts: samples by true class (rows) and label (columns).

Probes, primers and gene lengths give every gene its own factor, the same in all
samples. This is the largest difference between platforms, and the one that ranks within
a sample do not remove. A simulated platform draws such factors: their logarithms are
normal with mean 0. Held-out samples come from the platform of the training set; without
simulated ones, a score on them cannot tell a setting that works on other platforms.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.matrices import as_dense, value_scale
from optirank.panel.gene_roles import margin_losses
from optirank.panel.samples import some_rows
from optirank.panel.votes import ranked_scores, sort_groups
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.panel.elimination import Panel

FAILING = (0.1, 0.3, 0.5)  # shares of the genes
NEEDED = (1, 3)  # genes that a class needs most
STRENGTHS = (1.0, 2.0)
"""Standard deviations of the genes' log factors on simulated platforms. Between real
sets the class means of genes differ by 0.8 to 1.1 from one sequencing technology to
another, and by 1.3 to 2.3 from sequencing to imaging."""
THINNED = (1 / 3, 1 / 10)  # shares of the counts that are left
_DRAWS = 10  # of the genes that fail
_PLATFORMS = 3  # of each strength
_FOR_NEEDED = 50  # samples of a class and fold that tell which genes it needs most
_FEWEST = 2  # genes that are left: one has nothing to be compared with


def simulate_platforms(
    X: Any, strengths: Sequence[float], seed: int = 1, *, spread: float | None = None
) -> list[Any]:
    """Copies of the samples as other platforms might measure them, sparse ones in CSR
    form.

    ``strengths`` are standard deviations of the genes' log factors, relative to the
    ``spread`` of their log values (`log_spread`; other samples may tell it). The same
    seed gives the same platforms for any samples, up to the spread. Zeros of
    non-negative data stay zeros: what was not detected has no value to scale.
    """
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    X = X.astype(np.result_type(X.dtype, np.float32), copy=False)
    scale = value_scale(X)
    spread = log_spread(X) if spread is None else spread
    copies = []
    children = np.random.SeedSequence(seed).spawn(len(strengths))
    for own, child in zip(strengths, children, strict=True):
        factors = np.random.default_rng(child).normal(0.0, own * spread, X.shape[1])
        copies.append(_with_factors(X, factors.astype(X.dtype), scale))
    return copies


def log_spread(X: Any) -> float:
    """How far the genes' log values lie apart: the unit of the factors' strength.

    The logarithm is ``sign(x) log(1 + |x|)`` on linear scales; logarithms are taken as
    they are. With zeros among non-negative values it is the standard deviation over the
    genes of their means, since single values say more about what was detected than
    about how much. Otherwise it is that of all values: in ratios to a common reference
    the means of all genes are nearly equal, and their factors on another platform are
    not.
    """
    zeros = _has_zeros(X)
    if value_scale(X) != "log":
        X = _changed(X, lambda values: np.sign(values) * np.log1p(np.abs(values)))
    if zeros or sparse.issparse(X):
        return float(np.std(np.asarray(X.mean(axis=0))))
    return float(np.std(X))


def _with_factors(X: Any, factors: NDArray, scale: str) -> Any:
    """The samples with their genes multiplied by ``exp(factors)``."""
    zeros, shift = _has_zeros(X), factors[X.indices] if sparse.issparse(X) else factors

    def change(values: NDArray) -> NDArray:
        if scale != "log":
            return values * np.exp(shift)
        if not zeros:
            return values + shift
        lowest = np.min(values, initial=1.0, where=values > 0)
        # What is expressed stays above zero: at least a hundredth of the least positive
        # value
        return np.where(values > 0, np.maximum(values + shift, 0.01 * lowest), values)

    return _changed(X, change)


def _changed(X: Any, change: Any) -> Any:
    """A copy with its values changed; of a sparse matrix those that are stored."""
    if not sparse.issparse(X):
        return change(X)
    X = X.copy()
    X.data = change(X.data)
    return X


def _has_zeros(X: Any) -> bool:
    """Whether the values are at least 0, and some are 0."""
    values = X.data if sparse.issparse(X) else np.asarray(X)
    if not values.size or values.min() < 0:
        return False
    return values.size < np.prod(X.shape) or bool((values == 0).any())


class Drill:
    """How held-out samples were labelled under one condition.

    Attributes
    ----------
    kind : "as it is", "failing", "needed", "platform" or "thinned".
    amount : the share of genes that failed, the number of genes that were lost, the
        strength of the platform, or the share of counts that is left.
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
        self.codes = codes
        self.panels = dict(panels)
        self.n_classes = n_classes
        self.scale = value_scale(X)
        genes = np.unique(np.concatenate([p.genes for p in self.panels.values()]))
        self._values = as_dense(X[:, genes])
        self._groups = sort_groups(self._values)
        self._rows = {}  # of samples of classes that the fold could learn
        for k, panel in self.panels.items():
            rows = np.flatnonzero(fold == k)
            if len(panel.coef) > 1:
                rows = rows[~np.isnan(panel.coef[codes[rows], 0])]
            self._rows[k] = rows
        self._columns = {
            k: np.searchsorted(genes, panel.genes) for k, panel in self.panels.items()
        }

    def drills(self) -> Iterator[Drill]:
        """All drills, the samples as they are first."""
        yield Drill("as it is", 0.0, self.counts())
        for share in FAILING:
            lost = [self._lost_by_chance(share, seed) for seed in range(_DRAWS)]
            yield Drill("failing", share, *map(self.counts, lost))
        for number, counts in self._without_needed().items():
            yield Drill("needed", number, counts)
        for strength in STRENGTHS:
            yield Drill("platform", strength, *self._platforms(strength))
        if self.scale == "counts":
            for share in THINNED:
                # As a shallower measurement: each count is kept by chance
                values = self._drawn(share)
                yield Drill("thinned", share, self.counts(values=values))

    def of_folds(self, per_class: int) -> Iterator[tuple[NDArray, Panel, NDArray]]:
        """Of each fold: values of its panel's genes, the panel, and classes of the
        samples.

        At most so many samples per class, of classes that the fold could learn.
        """
        for fold, panel in self.panels.items():
            rows = self._rows[fold]
            rows = rows[some_rows(self.codes[rows], per_class)]
            yield (
                self._values[np.ix_(rows, self._columns[fold])],
                panel,
                self.codes[rows],
            )

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
        counts = np.zeros((self.n_classes, self.n_classes))
        for fold, rows in self._rows.items():
            gone = np.zeros(0, np.intp) if lost is None else lost[fold]
            labels = self._labels(groups, rows, fold, gone)
            np.add.at(counts, (self.codes[rows], labels), 1.0)
        return counts

    def _labels(
        self, groups: NDArray, rows: NDArray, fold: int, lost: NDArray
    ) -> NDArray:
        """Classes that the panel of a fold gives to samples without the genes that are
        lost; two genes are left at least, where there are two.
        """
        panel = self.panels[fold]
        k = len(panel.genes)
        left = np.setdiff1d(np.arange(k), lost[: max(0, k - _FEWEST)])
        columns = self._columns[fold][left]
        return best_class(ranked_scores(groups, rows, columns, panel.coef[:, left]))

    def _lost_by_chance(self, share: float, seed: int) -> dict[int, NDArray]:
        """A draw of the genes of each fold's panel that fail."""
        rng = np.random.default_rng(seed)
        sizes = {fold: len(panel.genes) for fold, panel in self.panels.items()}
        return {k: rng.permutation(n)[: round(share * n)] for k, n in sizes.items()}

    def _without_needed(self) -> dict[int, NDArray[np.float64]]:
        """For each class the genes are lost that its own samples need most."""
        shape = self.n_classes, self.n_classes
        counts = {number: np.zeros(shape) for number in NEEDED}
        for fold, panel in self.panels.items():
            codes = self.codes[self._rows[fold]]
            for code in np.unique(codes):
                rows = self._rows[fold][codes == code]
                few = self._values[np.ix_(rows[:_FOR_NEEDED], self._columns[fold])]
                costs = margin_losses(few, panel.coef, np.full(len(few), code))
                order = np.argsort(-costs.mean(axis=0), kind="stable")
                for number in NEEDED:
                    labels = self._labels(self._groups, rows, fold, order[:number])
                    np.add.at(counts[number][code], labels, 1.0)
        return counts

    def _platforms(self, strength: float) -> list[NDArray[np.float64]]:
        """Platforms that give every gene a factor; of counts, a factor below 1
        loses some.
        """
        strengths = [strength] * _PLATFORMS
        if self.scale != "counts":
            views = simulate_platforms(self._values, strengths, spread=1.0)
            return [self.counts(values=view) for view in views]
        ones = np.ones((1, self._values.shape[1]))
        factors = simulate_platforms(ones, strengths, spread=1.0)
        return [
            self.counts(values=self._drawn(np.minimum(own, 1)) * np.maximum(own, 1))
            for own in np.concatenate(factors)
        ]

    def _drawn(self, shares: float | NDArray) -> NDArray[np.float64]:
        """Counts of which each is kept with a probability."""
        rng = np.random.default_rng(0)
        counts = rng.binomial(self._values.astype(np.int64), shares)
        return counts.astype(np.float64)


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
