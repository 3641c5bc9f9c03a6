"""How often labels are wrong, on samples like the training samples and elsewhere; when to withhold.

Held-out samples come from the platform of the training data. What they say about errors holds for
samples like them, and a query from elsewhere does worse. So an error rate is promised by two kinds
of samples: held-out samples as they are, and the same samples on simulated platforms
(``optirank.tuning.shifts``), where training has scored them. Real platforms differ in more ways
than simulated ones, and few held-out samples say little; five precautions make up for it:

- classes count equally, since a query may have other shares of them than the training data;
- on held-out samples it is not the error itself that must be small, but its upper bound by Clopper
  and Pearson, with 80 % certainty: with w the weights of the samples that keep their label, their
  number is taken to be ``(sum w)^2 / sum w^2``; so some 30 samples are needed to promise 5 %;
- on simulated platforms the error may be 0.6 of what is asked for, no more;
- samples that lie between classes get no label, whatever the errors of others: those of a
  confidence that the same share of held-out samples falls short of as lie nearer to a boundary than
  a quarter of the usual distance;
- where a query is seen to differ from the training data, no error rate is promised for it
  (``QueryReport.differences``).

A model carries a threshold as ``rejection_``, and the model file keeps it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

_STRICTER = 0.6  # of the error asked for, on simulated platforms
_CERTAINTY = 0.8  # of the bound of the error on held-out samples
_SHARES = ("threshold", "target_error", "error", "accepted")


@dataclass(frozen=True)
class Outcomes:
    """Confidences of labels, whether they are right, and the platform of each sample.

    ``truth`` is the true class of each, as a number, where it is known.
    """

    confidence: NDArray
    correct: NDArray
    platform: NDArray
    truth: NDArray | None = None

    @classmethod
    def from_summary(cls, summary: Mapping[str, Any] | None) -> Outcomes | None:
        """What a training summary remembers of simulated platforms; None where it does not."""
        found = (summary or {}).get("elsewhere")
        if not isinstance(found, dict):
            return None
        parts = [np.asarray(found.get(name, ())) for name in ("confidence", "correct", "platform")]
        sizes = {part.shape for part in parts}
        if len(sizes) > 1 or not parts[0].size:
            return None
        truth = known_truth(found, len(parts[0]))
        return cls(parts[0].astype(float), parts[1].astype(bool), parts[2], truth)

    def errors(self, threshold: float) -> NDArray:
        """Share of wrong labels among those of at least this confidence, per platform with any."""
        kept = self.confidence >= threshold
        return np.array(
            [
                1.0 - self.correct[there].mean()
                for one in np.unique(self.platform)
                if (there := kept & (self.platform == one)).any()
            ]
        )


@dataclass(frozen=True)
class Rejection:
    """The confidence below which a label is withheld, and why."""

    threshold: float
    target_error: float
    error: float  # among the held-out samples that keep their label
    accepted: float  # share of the held-out samples that keep their label
    n_samples: int
    reason: str
    elsewhere: tuple[float, float] | None = None
    """Lowest and highest error among the labels that are kept, over simulated platforms."""

    def to_plain(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"elsewhere": self.elsewhere and list(self.elsewhere)}

    @classmethod
    def from_plain(cls, stored: Any, _: int = 0) -> Rejection:
        """From JSON, checked; files of before simulated platforms have no ``elsewhere``."""
        kinds = dict.fromkeys(_SHARES, float) | {"n_samples": int, "reason": str}
        if not isinstance(stored, dict) or set(stored) - {"elsewhere"} != set(kinds):
            raise ValueError("the rejection threshold is incomplete")
        for name, kind in kinds.items():
            if type(stored[name]) is not kind:
                raise ValueError(f"the rejection's {name} is not of type {kind.__name__}")
        elsewhere = stored.get("elsewhere")
        shares = [stored[name] for name in _SHARES]
        if elsewhere is not None:
            if not isinstance(elsewhere, list) or [type(one) for one in elsewhere] != [float] * 2:
                raise ValueError("the rejection's elsewhere is not two shares")
            shares += elsewhere
        if not all(0 <= share <= 1 for share in shares):
            raise ValueError("the rejection has shares outside of 0 to 1")
        return cls(**stored | {"elsewhere": elsewhere and tuple(elsewhere)})


def fit_rejection(
    confidence: ArrayLike,
    correct: ArrayLike,
    target_error: float,
    *,
    truth: ArrayLike | None = None,
    elsewhere: Outcomes | None = None,
    between: float | None = None,
) -> Rejection:
    """The lowest threshold at which the labels that are kept are wrong no more often than asked.

    Parameters
    ----------
    confidence : the probability of the label given to each held-out sample.
    correct : whether that label is right.
    target_error : the share of wrong labels to allow among those kept, such as 0.05.
    truth : the true class of each held-out sample, as a number; classes then count equally.
    elsewhere : the same of simulated platforms, where they may be wrong 0.6 times as often.
    between : share of the held-out samples that lie between classes: of a query, samples of less
        confidence than the others have are withheld.
    """
    confidence, correct = np.asarray(confidence, dtype=float), np.asarray(correct, dtype=bool)
    if not 0 < target_error < 1:
        raise ValueError(f"target error {target_error!r}: use a share between 0 and 1, as 0.05")
    if not len(confidence) or confidence.shape != correct.shape:
        raise ValueError("give one confidence and one verdict per held-out sample, at least one")
    overall = 1.0 - correct.mean()
    weights = class_weights(truth, len(correct))
    threshold = lowest_threshold(confidence, correct, target_error, weights, _CERTAINTY)
    if threshold is None:
        raise ValueError(
            f"an error of {target_error:.3g} cannot be promised: of {len(correct)} held-out "
            f"samples {overall:.1%} are wrong, and with {_CERTAINTY:.0%} certainty an error of at "
            f"most {_lowest_bound(confidence, correct, weights):.1%} is shown by the most "
            "confident of them, each class counting equally; allow a larger error, or train on "
            "more samples or with more time, so that more are held out"
        )
    if between is not None:
        floor = np.quantile(confidence, between, method="higher")
        threshold = max(threshold, float(floor))
    there = "nothing is known of other platforms"
    if elsewhere is not None:
        there_weights = class_weights(elsewhere.truth, len(elsewhere.correct))
        needed = lowest_threshold(
            elsewhere.confidence, elsewhere.correct, _STRICTER * target_error, there_weights
        )
        threshold = threshold if needed is None else max(threshold, needed)
        errors = elsewhere.errors(threshold)
        there = f"on simulated platforms {_range(errors)} of them"
        if needed is None:
            there += (
                f"; no confidence makes that {_STRICTER * target_error:.3g}, so nothing can be "
            )
            there += "promised on another platform"
    kept = confidence >= threshold
    n_kept, n_wrong = int(kept.sum()), int((kept & ~correct).sum())
    reason = (
        f"on {len(correct)} held-out samples {overall:.1%} of the labels were wrong; with a "
        f"confidence of at least {threshold:.3f}, {kept.mean():.1%} keep their label and "
        f"{n_wrong / max(n_kept, 1):.1%} of those are wrong (at most "
        f"{_bound(correct[kept], weights[kept]):.1%} with {_CERTAINTY:.0%} certainty, each class "
        f"counting equally, for samples like these), {there}; asked for: {target_error:.3g}"
    )
    return Rejection(
        threshold=threshold,
        target_error=float(target_error),
        error=n_wrong / max(n_kept, 1),
        accepted=float(kept.mean()),
        n_samples=len(correct),
        reason=reason,
        elsewhere=None if elsewhere is None or not errors.size else _ends(errors),
    )


def lowest_threshold(
    confidence: NDArray,
    correct: NDArray,
    target: float,
    weights: NDArray | None = None,
    certainty: float | None = None,
) -> float | None:
    """The lowest confidence above which no larger share than ``target`` is wrong; 0 keeps all.

    With ``certainty`` it is the upper bound of the share that is no larger. None where even the
    most confident samples are wrong more often.
    """
    order = np.argsort(-confidence, kind="stable")
    values = confidence[order]
    w = np.ones(len(values)) if weights is None else weights[order]
    rate = _rates(correct[order], w, certainty)
    whole = np.append(values[1:] != values[:-1], True)  # a threshold keeps equal confidences
    fits = np.flatnonzero(whole & (rate <= target + 1e-12))
    if not fits.size:
        return None
    last = fits[-1]
    return 0.0 if last == len(values) - 1 else float(values[last])


def class_weights(truth: ArrayLike | None, n_samples: int) -> NDArray:
    """Weights of mean 1 with which all classes count equally; ones where these are not known."""
    if truth is None:
        return np.ones(n_samples)
    _, codes, counts = np.unique(truth, return_inverse=True, return_counts=True)
    return n_samples / (len(counts) * counts[codes])


def known_truth(stored: Mapping[str, Any], n_samples: int) -> NDArray | None:
    """The true classes that a training summary remembers; files of before have none."""
    truth = np.asarray(stored.get("truth", ()))
    return truth if truth.shape == (n_samples,) and truth.dtype.kind == "i" else None


def _rates(correct: NDArray, w: NDArray, certainty: float | None) -> NDArray:
    """Weighted share of wrong labels among the first 1, 2, ... samples, or its upper bound."""
    total = np.cumsum(w)
    rate = np.cumsum(np.where(correct, 0.0, w)) / total
    if certainty is None:
        return rate
    from scipy.stats import beta

    n = total**2 / np.cumsum(w**2)  # so many samples of equal weight say as much
    wrong = rate * n
    some_right = rate < 1.0
    bound = np.ones(len(rate))
    bound[some_right] = beta.ppf(certainty, wrong[some_right] + 1, (n - wrong)[some_right])
    return bound


def _bound(correct: NDArray, w: NDArray) -> float:
    return float(_rates(correct, w, _CERTAINTY)[-1]) if len(w) else 1.0


def _lowest_bound(confidence: NDArray, correct: NDArray, w: NDArray) -> float:
    order = np.argsort(-confidence, kind="stable")
    return float(_rates(correct[order], w[order], _CERTAINTY).min())


def _ends(errors: NDArray) -> tuple[float, float]:
    return float(errors.min()), float(errors.max())


def _range(errors: NDArray) -> str:
    if not errors.size:
        return "none"
    low, high = _ends(errors)
    return f"{low:.1%}" if f"{low:.1%}" == f"{high:.1%}" else f"{low:.1%} to {high:.1%}"
