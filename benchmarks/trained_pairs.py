"""Models of `optirank train` on the other data set of each pair: adapting, and promised errors.

Used by ``study_adapt.py adapt promise --trained DIR``. Models are trained once and kept in DIR.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from optirank.workflow.withholding import rejection_threshold
from transfer_pairs import Pair, both_sides, labels_of, pairs

from optirank.model import Predictor, load, save
from optirank.workflow.train import train


def trained_model(pair: Pair, folder: Path, budget: float):
    """The model of a pair, trained unless the folder has it."""
    path = folder / f"{pair.train}--{pair.test}.optirank"
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = train(both_sides(pair)[0], "cell_type", budget=budget, n_jobs=1)
        save(result.model, path)
    return load(path)


def trained_promises(folder: Path, budget: float, target: float = 0.05) -> None:
    """Errors among the labels that are given."""
    folder.mkdir(parents=True, exist_ok=True)
    errors, given = [], []
    print("| pair | held out | wrong, % | given, % | wrong of these, % |\n|---|--:|--:|--:|--:|")
    for pair in pairs():
        model = trained_model(pair, folder, budget)
        _, query = both_sides(pair)
        found = Predictor(model, query.gene_names).predict(query.X)
        right = found.labels.astype(str) == labels_of(query)
        try:
            threshold, _ = rejection_threshold(model, None, target)
        except ValueError:  # nothing can be promised, so no label is given
            threshold = np.inf
        kept = found.confidence >= threshold
        errors.append(1.0 - right[kept].mean() if kept.any() else 0.0)
        given.append(kept.mean())
        shares = [100 * one for one in (1.0 - right.mean(), given[-1], errors[-1])]
        n = len(model.training_summary_["held_out"]["correct"])
        cells = [f"{pair.train} -> {pair.test}", str(n), *(f"{one:.1f}" for one in shares)]
        print(f"| {' | '.join(cells)} |", flush=True)
    good, none = np.sum(np.array(errors) <= 0.1), np.sum(np.array(given) == 0)
    print(
        f"\nerror at most 10 % on {good} of {len(errors)} pairs, mean {100 * np.mean(errors):.1f} "
        f"%, worst {100 * np.max(errors):.1f} %; {100 * np.mean(given):.0f} % of the labels given, "
        f"none on {none} pairs"
    )


def trained_adaptation(folder: Path, budget: float) -> None:
    """Balanced accuracy with and without adapting: whole queries, one class removed, one alone."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[tuple[float, float, str]]] = {}
    for pair in pairs():
        model = trained_model(pair, folder, budget)
        _, query = both_sides(pair)
        y, X = labels_of(query), query.X.tocsr() if hasattr(query.X, "tocsr") else query.X
        plain = Predictor(model, query.gene_names).predict(X).labels.astype(str)
        for kind, rows in _queries(y):
            adapted = Predictor(model, query.gene_names, adapt=True).predict(X[rows])
            labels = plain[rows], adapted.labels.astype(str)
            before, after = (100 * _recall(y[rows], one) for one in labels)
            found.setdefault(kind, []).append(
                (after - before, before, f"{pair.train} -> {pair.test}")
            )
    print("| query | plain, % | gain, points | worst | more than 2 points below |")
    print("|---|--:|--:|--:|--:|")
    for kind, rows in found.items():
        gains = np.array([row[0] for row in rows])
        worst = min(rows)
        cells = [kind, f"{np.mean([row[1] for row in rows]):.1f}", f"{gains.mean():+.2f}"]
        cells += [f"{worst[0]:+.1f} ({worst[2]})", f"{(gains < -2).sum()} of {len(rows)}"]
        print(f"| {' | '.join(cells)} |")


def _queries(y: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Rows of the whole query, of those without one class, and of those of one class alone."""
    classes = np.unique(y)
    removed = [("one class removed", np.flatnonzero(y != one)) for one in classes]
    alone = [("one class alone", np.flatnonzero(y == one)) for one in classes]
    return [("whole", np.arange(len(y))), *(removed if len(classes) > 2 else []), *alone]


def _recall(truth: np.ndarray, labels: np.ndarray) -> float:
    """Balanced accuracy over the classes that are there."""
    return float(np.mean([(labels[truth == one] == one).mean() for one in np.unique(truth)]))
