"""Adapting scores to a query: where another platform has moved the boundary between classes.

On another platform the order of the samples by a class's score mostly survives, but the scores
shift and shrink, so the trained boundary is at the wrong place. It is estimated anew from the
scores of the unlabelled query, in four steps that each guard against the failure of the one before:

1. *Which classes are there.* The mean ranks of the query are written as a mixture of the classes'
   mean ranks in training: ``min |sum_c p_c mu_c - m|^2`` over shares p.
2. *Where the boundary would be.* For each binary problem two normal components are fitted to the
   query's scores, starting from those of the held-out scores in training, with priors on the shift,
   the separation, the spreads and (by step 1) the shares. Two boundaries follow: the trained one at
   its relative place between the two means, and the point where the two densities are equal.
3. *How far to go.* From the trained boundary towards these two, one after the other, as long as the
   density of samples at the boundary does not rise. In a query of one class the mixture splits that
   class and the boundary would move into it, where the samples are: the walk stops at once. The
   offsets are the mean over four widths of the density's kernel.
4. *How much may change.* The offsets are shrunk until at most 5 % of the labels change, at most 2 %
   where most samples have one label, since then the query may be that one class, and at most a
   tenth of the samples of any label.

Below 40 samples nothing is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from optirank.model.experience import Experience

FEWEST = 40  # samples that tell where a boundary is
_SHIFT, _SCALE, _SCALE_SPREAD = 0.35, 0.8, 0.4  # priors, relative to the trained separation
_SHARE_STRENGTH = 12.0  # samples that the shares of step 1 count for
_SPREAD_STRENGTH = 8.0  # samples that the trained spreads count for
_OUTLIERS = 0.03
_WIDTHS = (0.15, 0.2, 0.3, 0.4)  # of the kernel, relative to the median margin
_STEPS = 10
_SLACK, _CERTAINTY = 0.01, 0.5  # the density may rise by this; standard errors added to it
_FEW_CHANGES, _CHANGES = 0.02, 0.05  # share of the labels that may change
_OF_LABEL = 0.1  # share of a label's samples that may change, one sample at least
_ONE_LABEL = (0.65, 0.75)  # share of the commonest label: from here fewer, from here the fewest


@dataclass(frozen=True)
class Components:
    """Two normal components of a problem's scores: of the samples outside and inside its class."""

    outside: float
    inside: float
    outside_spread: float
    inside_spread: float

    @property
    def separation(self) -> float:
        """Distance of the two means."""
        return self.inside - self.outside

    def equal_density(self) -> float:
        """The point between the means where both densities are the same."""
        points = np.linspace(self.outside, self.inside, 401)
        ahead = np.log(self.inside_spread / self.outside_spread)
        ahead -= 0.5 * ((points - self.outside) / self.outside_spread) ** 2
        ahead += 0.5 * ((points - self.inside) / self.inside_spread) ** 2
        behind = np.flatnonzero(ahead < 0)
        return float(points[behind[0]]) if behind.size else self.inside


@dataclass(frozen=True)
class Adaptation:
    """What the scores of a query say about its boundaries."""

    offsets: NDArray  # (problems,): subtracted from the scores
    shifts: NDArray  # (problems,): fitted shift of the boundary, relative to the separation
    scales: NDArray  # (problems,): fitted separation, relative to the trained one
    changed: float  # share of the labels that change
    n_samples: int  # that this is estimated from

    @property
    def possible(self) -> bool:
        """Whether there were samples enough to say anything."""
        return self.n_samples >= FEWEST

    def apply(self, scores: NDArray) -> NDArray:
        """The adapted scores, (n,) for two classes and (n, classes) for more."""
        return scores - (self.offsets[0] if scores.ndim == 1 else self.offsets)


def fit_adaptation(
    scores: ArrayLike, experience: Experience, shares: ArrayLike | None = None
) -> Adaptation:
    """Estimate the boundaries of a query from its scores.

    Parameters
    ----------
    scores : of the query's samples, (n,) for two classes, (n, classes) for more.
    experience : what the model remembers of held-out scores.
    shares : the estimated share of each class in the query (:func:`profile_shares`); equal ones
        where they are not known.
    """
    scores = np.asarray(scores, dtype=float)
    columns = scores[:, None] if scores.ndim == 1 else scores
    n, n_problems = columns.shape
    n_classes = 2 if n_problems == 1 else n_problems
    shares = np.full(n_classes, 1.0 / n_classes) if shares is None else np.asarray(shares)
    shifts, scales = np.zeros(n_problems), np.ones(n_problems)
    typical = float(np.median(margins(columns))) if n else 0.0
    if n < FEWEST or typical <= 0:
        return Adaptation(np.zeros(n_problems), shifts, scales, 0.0, n)
    kept, equal = np.zeros(n_problems), np.zeros(n_problems)
    for k, trained in enumerate(experience.components()):
        if trained.separation <= 0:  # held-out scores were worthless: nothing to go by
            continue
        share = np.clip(shares[1 if n_problems == 1 else k], 0.02, 0.98)
        found = fit_components(columns[:, k], trained, float(share))
        scales[k] = found.separation / trained.separation
        kept[k] = found.outside - trained.outside * scales[k]
        equal[k] = found.equal_density()
        shifts[k] = kept[k] / trained.separation
    walks = [_walk(columns, (kept, equal), width * typical) for width in _WIDTHS]
    offsets, changed = _limit(columns, np.mean(walks, axis=0))
    return Adaptation(offsets, shifts, scales, changed, n)


def margins(columns: NDArray) -> NDArray:
    """Distance of each sample from the boundary of its class: best minus second score, or ``|z|``.

    ``columns`` has one column per problem; for two classes that is one.
    """
    if columns.shape[1] == 1:
        return np.abs(columns[:, 0])
    ordered = np.partition(columns, -2, axis=1)
    return ordered[:, -1] - ordered[:, -2]


def profile_shares(mean_ranks: ArrayLike, profiles: ArrayLike) -> NDArray:
    """Shares of the classes whose mixture is nearest to a mean profile.

    Minimises ``|sum_c p_c mu_c - m|^2`` over ``p >= 0, sum p = 1``, both sides centred over the
    genes, by accelerated projected gradient steps.

    Parameters
    ----------
    mean_ranks : (genes,), of the query.
    profiles : (classes, genes), the mean ranks of each class in training.
    """
    target, mu = np.asarray(mean_ranks, dtype=float), np.asarray(profiles, dtype=float)
    mu = mu - mu.mean(axis=1, keepdims=True)
    gram, product = mu @ mu.T, mu @ (target - target.mean())
    step = 1.0 / max(np.linalg.eigvalsh(gram)[-1], 1e-12)
    p = ahead = np.full(len(mu), 1.0 / len(mu))
    momentum = 1.0
    for _ in range(2000):
        new = _on_simplex(ahead - step * (gram @ ahead - product))
        faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        still = np.abs(new - p).max() < 1e-10
        if still and momentum == 1.0:
            return new
        # A corner may be where the momentum pushes: only a step without it shows the end
        ahead = new if still else new + (momentum - 1.0) / faster * (new - p)
        p, momentum = new, 1.0 if still else faster
    return p


def fit_components(z: NDArray, trained: Components, share: float) -> Components:
    """Two normal components of the scores z by expectation and maximisation, with priors.

    With D the trained separation, the midpoint is normal around the trained one (0.35 D), the
    separation normal around 0.8 D (0.4 D), and the variances and the share of the class are pulled
    to the trained ones and to ``share`` as if by 8 and 12 samples. A flat density of weight 0.03
    takes samples that fit neither.
    """
    D = trained.separation
    middle = prior_middle = (trained.outside + trained.inside) / 2.0
    gap = _SCALE * D
    variances = np.array([trained.outside_spread**2, trained.inside_spread**2])
    prior_variances, pi = variances.copy(), share
    flat = _OUTLIERS / (np.ptp(z) + 2.0 * D)
    half = np.array([-0.5, 0.5])
    prior = np.array([1.0 / (_SHIFT * D) ** 2, 1.0 / (_SCALE_SPREAD * D) ** 2])
    for _ in range(100):
        before = middle, gap
        away = z[:, None] - (middle + half * gap)
        density = np.array([1.0 - pi, pi]) * np.exp(-0.5 * away**2 / variances)
        density *= (1.0 - _OUTLIERS) / np.sqrt(2.0 * np.pi * variances)
        weight = density / (density.sum(axis=1) + flat)[:, None]
        total, mean = weight.sum(axis=0), weight.T @ z
        w = total / variances
        A = np.array([[w.sum(), w @ half], [w @ half, w.sum() / 4.0]]) + np.diag(prior)
        b = np.array([(mean / variances).sum(), (mean / variances) @ half])
        middle, gap = np.linalg.solve(A, b + prior * [prior_middle, _SCALE * D])
        gap = max(gap, 0.1 * D)
        squares = (weight * (z[:, None] - (middle + half * gap)) ** 2).sum(axis=0)
        strength = _SPREAD_STRENGTH
        variances = (strength * prior_variances + squares) / (strength + total)
        pi = (_SHARE_STRENGTH * share + total[1]) / (_SHARE_STRENGTH + total.sum())
        pi = min(max(pi, 1e-3), 1.0 - 1e-3)
        if abs(middle - before[0]) + abs(gap - before[1]) < 1e-6 * D:
            break
    spreads = np.sqrt(variances)
    return Components(
        float(middle - gap / 2), float(middle + gap / 2), float(spreads[0]), float(spreads[1])
    )


def _walk(columns: NDArray, targets: tuple[NDArray, NDArray], width: float) -> NDArray:
    """Offsets on the way to the targets, as far as the density at the boundary does not rise.

    The density is the mean of ``exp(-(margin / width)^2 / 2)``. A step is refused where its rise
    over the lowest density so far, plus half a standard error, exceeds 0.01.
    """
    offsets = np.zeros(columns.shape[1])
    lowest = _at_boundary(columns, width)
    for target in targets:
        start = offsets
        for step in range(1, _STEPS + 1):
            tried = start + (target - start) * step / _STEPS
            there = _at_boundary(columns - tried, width)
            rise = there - lowest
            if rise.mean() + _CERTAINTY * rise.std() / np.sqrt(len(rise)) > _SLACK:
                break
            offsets = tried
            if there.mean() < lowest.mean():
                lowest = there
    return offsets


def _at_boundary(columns: NDArray, width: float) -> NDArray:
    return np.exp(-0.5 * (margins(columns) / width) ** 2)


def _limit(columns: NDArray, offsets: NDArray) -> tuple[NDArray, float]:
    """The largest part of the offsets that changes no more labels than allowed, and the share."""
    before = _labels(columns)
    counts = np.bincount(before)
    from_, to = _ONE_LABEL
    room = np.clip((to - counts.max() / len(before)) / (to - from_), 0.0, 1.0)
    allowed = _FEW_CHANGES + (_CHANGES - _FEW_CHANGES) * room
    for part in np.linspace(1.0, 0.0, 21):
        moved = _labels(columns - part * offsets) != before
        lost = np.bincount(before[moved], minlength=len(counts))
        if moved.mean() <= allowed and (lost <= np.maximum(1, _OF_LABEL * counts)).all():
            break
    return part * offsets, float(moved.mean())


def _labels(columns: NDArray) -> NDArray:
    return best_class(columns[:, 0] if columns.shape[1] == 1 else columns)


def _on_simplex(v: NDArray) -> NDArray:
    """The nearest point with entries of at least 0 that sum to 1."""
    ordered = np.sort(v)[::-1]
    sums = np.cumsum(ordered) - 1.0
    last = np.flatnonzero(ordered - sums / np.arange(1, len(v) + 1) > 0)[-1]
    return np.maximum(v - sums[last] / (last + 1), 0.0)
