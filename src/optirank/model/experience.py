"""What a model remembers of held-out samples: their scores, and the mean ranks of each class.

A query is judged against it: where its scores have shifted (``optirank.model.adaptation``), how
much of it lies between the classes (``optirank.model.query``), and which samples are unlike
every class (:meth:`Experience.familiarity`). A model carries it as ``experience_``, and the model
file keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.model.adaptation import Components, margins
from optirank.model.values import decode_array, encode_array
from optirank.ranks.relative import relative_ranks
from optirank.ranks.scoring import best_class, by_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

_VERSION = 1
_UNIT = 10_000  # mean ranks are stored in ten-thousandths
_BLOCK = 1 << 22  # ranks held at a time
_BETWEEN = 0.25  # of the median margin: below, a sample lies between classes
_UPPER, _OF_LABEL = 0.75, 10  # the quantile that is taken to be of known samples; how many tell it
_LEVELS = 1001  # quantiles kept of the held-out samples' familiarity
_OF_PROBLEMS = ("outside", "inside", "outside_spread", "inside_spread")
_OF_CLASSES = ("score", "score_spread", "likeness", "likeness_spread")


@dataclass(frozen=True, kw_only=True)
class Experience:
    """Held-out scores in a few numbers per class, and the classes' mean ranks."""

    outside: NDArray  # (problems,): mean held-out score of the samples outside of the class
    inside: NDArray  # (problems,): of those of the class
    outside_spread: NDArray  # (problems,): standard deviations
    inside_spread: NDArray
    score: NDArray  # (classes,): mean of the highest score over held-out samples of a label
    score_spread: NDArray
    likeness: NDArray  # (classes,): mean correlation of their ranks with the label's mean ranks
    likeness_spread: NDArray
    familiarity_levels: NDArray  # quantiles of held-out samples' familiarity, rising
    margin: float  # median distance of held-out samples from the boundary
    between: float  # share of them nearer to it than a quarter of that
    genes: NDArray  # (p,): columns of the panel's genes in the training data
    profiles: NDArray  # (classes, p): mean rank of each gene among the panel's, in [0, 1]

    def components(self) -> list[Components]:
        """The two components of each problem's scores."""
        table = zip(*(getattr(self, name).tolist() for name in _OF_PROBLEMS), strict=True)
        return [Components(*row) for row in table]

    def share_between(self, scores: NDArray) -> float:
        """Share of samples nearer to a boundary than a quarter of the usual margin."""
        if not len(scores):
            return 0.0
        return float(np.mean(margins(_columns(scores)) < _BETWEEN * self.margin))

    def familiarity(self, scores: NDArray, ranks: NDArray, genes: NDArray) -> NDArray:
        """How much samples look like the class they are given.

        ``(z - m) / s + (r - m') / s'`` with z a sample's highest score, r the correlation of its
        ranks with the mean ranks of that class, and mean and standard deviation of both over the
        held-out samples of that label. Near 0 for these, far below for samples of no class.

        Parameters
        ----------
        scores : (n,) for two classes, (n, classes) for more.
        ranks : (n, q), among the genes at the positions ``genes`` of the profiles.
        """
        label = best_class(scores)
        z = by_class(scores)[np.arange(len(label)), label]
        likeness = _correlations(ranks, self.profiles[:, genes][label])
        z = (z - self.score[label]) / self.score_spread[label]
        return z + (likeness - self.likeness[label]) / self.likeness_spread[label]

    def unfamiliar(self, familiarity: NDArray, label: NDArray, rate: float) -> NDArray:
        """Which samples of a query look like no class: a share ``rate`` of held-out ones would.

        On another platform all samples are less familiar. So the samples of each label are moved up
        until their upper quartile is that of held-out samples, where there are ten of a label: most
        of these are taken to be of the class.

        Parameters
        ----------
        familiarity : of the samples (:meth:`familiarity`).
        label : the position of the class each is given.
        rate : the share of held-out samples that are less familiar.
        """
        at = np.linspace(0.0, 1.0, len(self.familiarity_levels))
        limit, upper = np.interp([rate, _UPPER], at, self.familiarity_levels)
        found = np.asarray(familiarity, dtype=float).copy()
        for k in np.unique(label):
            of_label = label == k
            if of_label.sum() >= _OF_LABEL:
                found[of_label] += max(0.0, upper - np.quantile(found[of_label], _UPPER))
        return found < limit

    def of_classes(self, kept: NDArray) -> Experience:
        """The same for three or more of the classes, by their positions.

        Samples of the other classes stay among those "outside" of each class, and in the margins
        and levels of familiarity: single scores are not remembered.
        """
        names = (*_OF_PROBLEMS, *_OF_CLASSES, "profiles")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    def to_plain(self) -> dict[str, Any]:
        """As JSON."""
        names = (*_OF_PROBLEMS, *_OF_CLASSES, "familiarity_levels")
        ranks = np.round(self.profiles * _UNIT).astype(np.int32)
        return {name: encode_array(getattr(self, name)) for name in names} | {
            "version": _VERSION,
            "margin": self.margin,
            "between": self.between,
            "genes": encode_array(self.genes.astype(np.int32)),
            "profiles": encode_array(ranks.ravel()),
        }

    @classmethod
    def from_plain(cls, stored: Any, n_problems: int) -> Experience:
        """From JSON, checked."""
        n_classes = max(2, n_problems)
        sizes = dict.fromkeys(_OF_PROBLEMS, n_problems) | dict.fromkeys(_OF_CLASSES, n_classes)
        sizes["familiarity_levels"] = _LEVELS
        names = {*sizes, "version", "margin", "between", "genes", "profiles"}
        if not isinstance(stored, dict) or set(stored) != names or stored["version"] != _VERSION:
            raise ValueError("the record of held-out scores is incomplete, or of a newer version")
        columns = {name: decode_array(stored[name]) for name in sizes}
        for name, values in columns.items():
            good = values.dtype == np.float64 and values.shape == (sizes[name],)
            if not good or not np.isfinite(values).all() or ("spread" in name and min(values) <= 0):
                raise ValueError(f"the record of held-out scores has no good values of {name}")
        if (np.diff(columns["familiarity_levels"]) < 0).any():
            raise ValueError("the record of held-out scores has quantiles that fall")
        margin, between = stored["margin"], stored["between"]
        if not type(margin) is type(between) is float or not 0 <= margin < np.inf:
            raise ValueError("the record of held-out scores has a margin of the wrong type")
        if not 0 <= between <= 1:
            raise ValueError(f"the record of held-out scores has a share of {between}")
        genes, ranks = decode_array(stored["genes"]), decode_array(stored["profiles"])
        if not genes.dtype == ranks.dtype == np.int32 or ranks.shape != (n_classes * len(genes),):
            raise ValueError("the record of held-out scores has no mean ranks for every class")
        if not len(genes) or genes[0] < 0 or (np.diff(genes) <= 0).any():
            raise ValueError("the record of held-out scores has genes that are no positions")
        if ranks.min() < -_UNIT or ranks.max() > 2 * _UNIT:
            raise ValueError("the record of held-out scores has mean ranks out of range")
        profiles = ranks.reshape(n_classes, -1) / _UNIT
        return cls(**columns, margin=margin, between=between, genes=genes, profiles=profiles)


def gather_experience(
    model: Any, X: Any, y: ArrayLike, scores: ArrayLike, held_out: ArrayLike
) -> Experience:
    """What a model is to remember of its training data and of held-out scores.

    Parameters
    ----------
    model : a fitted linear classifier on ranks.
    X, y : the data it was fitted on.
    scores : decision functions of held-out samples, (n,) for two classes, (n, classes) for more,
        by models that were not fitted on them.
    held_out : the rows of these samples in X.
    """
    scores, held_out = np.asarray(scores, dtype=float), np.asarray(held_out)
    classes, y = np.asarray(model.classes_), np.asarray(y)
    positives = classes[1:] if len(classes) == 2 else classes
    columns = _columns(scores)
    if columns.shape != (len(held_out), len(positives)) or not np.isfinite(columns).all():
        raise ValueError(
            f"scores of shape {scores.shape} for {len(held_out)} held-out samples of "
            f"{len(classes)} classes: finite ones are needed, one row per sample and, beyond two "
            "classes, one column per class"
        )
    truth = y[held_out]
    if lacking := [str(label) for label in classes if label not in truth]:
        raise ValueError(f"no held-out sample is of class {lacking[0]}")
    found: dict[str, list[float]] = {name: [] for name in _OF_PROBLEMS}
    for z, label in zip(columns.T, positives, strict=True):
        for side, there in (("outside", truth != label), ("inside", truth == label)):
            found[side].append(float(z[there].mean()))
            found[f"{side}_spread"].append(float(z[there].std()) + 1e-6)
    genes = np.flatnonzero(model.genes_)
    code = np.searchsorted(classes, y)
    profiles, counts = _class_profiles(X, code, len(classes), genes)
    label = best_class(scores)
    z = by_class(scores)[np.arange(len(label)), label]
    likeness = np.concatenate(
        [
            _correlations(ranks, _without(ranks, profiles, counts, code[held_out[rows]], given))
            for rows, ranks in _blocks(X, genes, held_out)
            for given in [label[rows]]
        ]
    )
    score, score_spread = _by_label(z, label, len(classes))
    like, like_spread = _by_label(likeness, label, len(classes))
    familiar = (z - score[label]) / score_spread[label]
    familiar += (likeness - like[label]) / like_spread[label]
    margin = float(np.median(margins(columns)))
    return Experience(
        **{name: np.array(values) for name, values in found.items()},
        score=score,
        score_spread=score_spread,
        likeness=like,
        likeness_spread=like_spread,
        familiarity_levels=np.quantile(familiar, np.linspace(0.0, 1.0, _LEVELS)),
        margin=margin,
        between=float(np.mean(margins(columns) < _BETWEEN * margin)),
        genes=genes.astype(np.int32),
        profiles=profiles,
    )


def panel_ranks(X: Any) -> NDArray:
    """Ranks of each sample's values among themselves, from 0 to 1, ties averaged."""
    return relative_ranks(X, np.ones(X.shape[1], dtype=bool))


def _columns(scores: NDArray) -> NDArray:
    return scores[:, None] if scores.ndim == 1 else scores


def _blocks(X: Any, genes: NDArray, rows: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """Positions among the rows, and the ranks of these samples among some genes."""
    step = max(1, _BLOCK // len(genes))
    for start in range(0, len(rows), step):
        part = slice(start, min(start + step, len(rows)))
        yield part, panel_ranks(X[rows[part]][:, genes])


def _class_profiles(
    X: Any, code: NDArray, n_classes: int, genes: NDArray
) -> tuple[NDArray, NDArray]:
    """Mean ranks among the panel's genes per class, and the samples of each class."""
    sums = np.zeros((n_classes, len(genes)))
    for part, ranks in _blocks(X, genes, np.arange(len(code))):
        np.add.at(sums, code[part], ranks)
    counts = np.bincount(code, minlength=n_classes)
    return sums / np.maximum(counts, 1)[:, None], counts


def _without(
    ranks: NDArray, profiles: NDArray, counts: NDArray, code: NDArray, label: NDArray
) -> NDArray:
    """The profile of each sample's label, without the sample itself where it is in it."""
    found = profiles[label]
    own = (label == code) & (counts[code] > 1)
    n = counts[code[own]][:, None]
    found[own] = (n * found[own] - ranks[own]) / (n - 1)
    return found


def _correlations(a: NDArray, b: NDArray) -> NDArray:
    """The correlation of each row of a with the same row of b; 0 where one is constant."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    size = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return np.divide((a * b).sum(axis=1), size, out=np.zeros(len(a)), where=size > 0)


def _by_label(values: NDArray, label: NDArray, n_classes: int) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation over the samples of each label; of all for one not given."""
    mean, spread = np.full(n_classes, values.mean()), np.full(n_classes, values.std())
    for k in np.unique(label):
        these = values[label == k]
        if len(these) > 2:
            mean[k], spread[k] = these.mean(), these.std()
    return mean, spread + 1e-6
