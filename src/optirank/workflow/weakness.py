"""Whether a model is weak: near chance, or far below logistic regression on the same samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optirank.preprocessing import LogCPM
from optirank.preprocessing._statistics import is_counts
from optirank.tuning.scoring import balanced_accuracy
from optirank.workflow.preparation import thin

if TYPE_CHECKING:
    import pandas as pd

    from optirank.tuning.folds import Fold
    from optirank.workflow.preparation import Prepared

_SAMPLES = 2000  # that logistic regression is fitted to, and at most as many scored
_ABOVE_CHANCE = 0.1  # of the way from chance to 1: a score below is near chance
_BELOW = 0.1  # by which a score is far below that of logistic regression
_ITERATIONS = 100
_FEWEST = 200  # samples, however short the time is
_SPEED = 2e9  # samples x genes x classes that a step of logistic regression takes a second for


def weaknesses(
    prepared: Prepared, fold: Fold, held_out: pd.DataFrame, seconds: float = 10.0
) -> list[str]:
    """What to warn of, with the remedy; ``held_out`` are the labels given, see `TrainingResult`.

    Logistic regression sees the first fold alone, and at most 2000 of its samples: as many as
    about ``seconds`` are enough for.
    """
    first = held_out[held_out["fold"] == held_out["fold"].min()]
    score = balanced_accuracy(first["label"].to_numpy(), first["predicted"].to_numpy())
    chance = 1 / max(2, first["label"].nunique())
    warnings = []
    if score < chance + _ABOVE_CHANCE * (1 - chance):
        warnings.append(
            f"the balanced accuracy on held-out samples, {100 * score:.1f} %, is near that of "
            f"guessing, {100 * chance:.1f} %: check the labels and the genes, or give more samples"
        )
    plain = logistic_score(prepared, fold, seconds)
    if score < plain - _BELOW:
        warnings.append(
            f"plain logistic regression reaches {100 * plain:.1f} % on held-out samples, this "
            f"model {100 * score:.1f} %: allow more time (budget=, --budget), or more genes"
        )
    return warnings


def logistic_score(prepared: Prepared, fold: Fold, seconds: float = 10.0) -> float:
    """Balanced accuracy of scikit-learn's logistic regression on the held-out part of a fold."""
    import warnings

    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    y, genes = prepared.y, prepared.chooser(fold[0])
    each = _ITERATIONS * len(genes) * prepared.n_problems / _SPEED
    n = int(np.clip(seconds / each, _FEWEST, _SAMPLES))
    train, test = (rows[thin(y[rows], n)[0]] for rows in fold)
    test = test[np.isin(y[test], y[train])]
    parts = [prepared.X[rows][:, genes] for rows in (train, test)]
    if is_counts(parts[0]):
        parts = [LogCPM(1e4).transform(part) for part in parts]
    model = make_pipeline(
        StandardScaler(with_mean=not hasattr(parts[0], "indptr")),
        LogisticRegression(C=1e-2, class_weight="balanced", max_iter=_ITERATIONS),
    )
    with warnings.catch_warnings():  # a rough figure is enough
        warnings.simplefilter("ignore")
        labels = model.fit(parts[0], y[train]).predict(parts[1])
    return balanced_accuracy(y[test], labels)
