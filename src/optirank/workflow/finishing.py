"""After the search: the final fit on all samples, held-out scores, calibration, the summary."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank import __version__
from optirank.estimators.panel import plain_probabilities
from optirank.model import (
    Outcomes,
    fit_calibration,
    fit_rejection,
    gather_experience,
    remember_training,
)
from optirank.model.value_kinds import value_kinds
from optirank.tuning.scoring import predicted
from optirank.tuning.search import HELD_OUT
from optirank.workflow.planning import place
from optirank.workflow.preparation import thin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.tuning.folds import Fold
    from optirank.workflow.candidates import Candidates
    from optirank.workflow.planning import Plan
    from optirank.workflow.preparation import Prepared
    from optirank.workflow.result import TrainingResult
    from optirank.workflow.searching import Choice, Searched
    from optirank.workflow.sorting import SortedSamples

_SPARSER = 1.3  # what l1 is raised by while a panel has too many genes
REMEMBERED = 20_000  # held-out confidences kept in the model file, and samples looked at for it


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Scores of samples by models that had not seen them."""

    rows: NDArray  # positions of the samples
    y: NDArray
    fold: NDArray
    decisions: NDArray  # (n, problems); -inf for a class that the fold lacked


def held_out_scores(
    prepared: Prepared, found: Searched, choice: Choice, view: str = HELD_OUT
) -> HeldOut:
    """Scores of the chosen setting; samples of a class that the fold lacked are left out.

    ``view`` names a set of samples that every fold has scored: the held-out ones, or these as
    another platform would measure them.
    """
    decisions = [result.decision(choice.index, view) for result in found.results]
    return gather_held_out(prepared, found.folds, decisions)


def gather_held_out(prepared: Prepared, folds: list[Fold], decisions: list[NDArray]) -> HeldOut:
    """The held-out samples of all folds in order, with their scores in each fold."""
    rows, places, scores = [], [], []
    for k, ((train, test), found) in enumerate(zip(folds, decisions, strict=True)):
        fair = np.isin(prepared.y[test], prepared.y[train])
        rows.append(test[fair])
        places.append(np.full(fair.sum(), k))
        scores.append(found[fair].astype(float))
    order = np.argsort(np.concatenate(rows), kind="stable")
    where, fold, found = (np.concatenate(part)[order] for part in (rows, places, scores))
    return HeldOut(rows=where, y=prepared.y[where], fold=fold, decisions=found)


def final_fit(
    prepared: Prepared,
    chooser: Candidates,
    choice: Choice,
    samples: SortedSamples,
    panel_size: int | None = None,
) -> tuple[Any, list[str], list[str]]:
    """The chosen setting on all samples, the genes it needs, and what there is to say.

    With ``panel_size`` its l1 is raised until it needs no more genes than that.
    """
    from optirank.estimators.anova_rank import AnovaRankLogisticRegression
    from optirank.estimators.logistic import ElasticNetLogisticRegression
    from optirank.estimators.optirank import OptirankClassifier

    columns = chooser()
    X, names = prepared.X[:, columns], prepared.genes[columns]
    candidates = None
    if samples.values:
        model = ElasticNetLogisticRegression(**choice.params, target_sum=samples.target_sum)
    elif prepared.reference is None:
        candidates = prepared.candidate_mask(columns)
        model = OptirankClassifier(
            **choice.params,
            reference_candidates=candidates,
            n_platforms=samples.n_platforms,
            n_jobs=samples.n_jobs,
            device=samples.device,
        )
    else:
        reference = place(prepared.reference, columns)
        model = AnovaRankLogisticRegression(
            **choice.params, reference=reference, n_jobs=samples.n_jobs
        )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, prepared.y)
        while panel_size is not None and model.genes_.sum() > panel_size:
            most = max(1, min(int(model.reference_.sum(axis=1).max()), panel_size // 2))
            model.set_params(l1=max(_SPARSER * model.l1, 1e-4), n_reference=most).fit(X, prepared.y)
    if prepared.reference is not None:
        model.set_params(reference=names[reference].tolist())
    elif candidates is not None:
        model.set_params(reference_candidates=names[candidates].tolist())
    if not samples.values:
        model.set_params(n_jobs=None)
        if prepared.reference is None:
            model.set_params(device="cpu")  # of the machine that reads the model, nothing is known
    remember_training(model, X, prepared.y, genes=names)
    notes = [str(warning.message) for warning in told] + value_kinds(X).own_notes()
    return model, names[model.genes_].tolist(), notes


def elsewhere_scores(prepared: Prepared, found: Searched, choice: Choice) -> list[HeldOut]:
    """Scores of the held-out samples on each simulated platform that the search has scored."""
    views = [view for view in found.results[0].n_scored if view != HELD_OUT]
    return [held_out_scores(prepared, found, choice, view) for view in views]


def elsewhere_table(scored: list[HeldOut], model: Any) -> pd.DataFrame:
    """The held-out samples on simulated platforms: platform, fold, label, predicted, confidence."""
    tables = []
    for k, one in enumerate(scored):
        labels, confidence = _labels(model, one)
        columns = {"platform": k, "fold": one.fold + 1, "label": one.y}
        tables.append(pd.DataFrame(columns | {"predicted": labels, "confidence": confidence}))
    columns = ["platform", "fold", "label", "predicted", "confidence"]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def calibrate_model(
    model: Any,
    scored: HeldOut,
    wanted: bool,
    target_error: float | None,
    elsewhere: list[HeldOut],
) -> list[str]:
    """Let the model carry calibrated probabilities and the threshold of the error asked for.

    Returns what could not be done.
    """
    notes = []
    known = np.isfinite(scored.decisions).all(axis=1)
    if wanted:
        scores = scored.decisions[known]
        try:
            model.calibration_ = fit_calibration(_flat(scores), scored.y[known], model.classes_)
        except ValueError as error:
            notes.append(f"probabilities are not calibrated: {error}")
    if target_error is None:
        return notes
    chosen, confidence = _labels(model, scored)
    experience = getattr(model, "experience_", None)
    there = _outcomes(elsewhere_table(elsewhere, model), model.classes_)
    try:
        model.rejection_ = fit_rejection(
            confidence,
            chosen == scored.y,
            target_error,
            truth=np.searchsorted(model.classes_, scored.y),
            elsewhere=Outcomes.from_summary({"elsewhere": there}),
            between=None if experience is None else experience.between,
        )
    except ValueError as error:
        notes.append(f"no label will be withheld: {error}")
    return notes


def remember_held_out(
    model: Any, prepared: Prepared, chooser: Candidates, scored: HeldOut
) -> list[str]:
    """Let the model carry what held-out samples looked like; returns what could not be done."""
    known = np.isfinite(scored.decisions).all(axis=1)
    scores, rows = _flat(scored.decisions[known]), scored.rows[known]
    used = np.arange(len(prepared.y))
    if len(used) > REMEMBERED:  # means over so many samples are known well enough
        used = np.union1d(rows, thin(prepared.y, REMEMBERED)[0])
    try:
        X = prepared.X[used][:, chooser()]
        inside = np.searchsorted(used, rows)
        model.experience_ = gather_experience(model, X, prepared.y[used], scores, inside)
    except ValueError as error:
        return [f"queries cannot be compared with held-out samples: {error}"]
    return []


def held_out_table(scored: HeldOut, model: Any, prepared: Prepared) -> pd.DataFrame:
    """The held-out samples as `TrainingResult.held_out` has them."""
    labels, confidence = _labels(model, scored)
    columns = {
        "label": scored.y,
        "predicted": labels,
        "confidence": confidence,
        "fold": scored.fold + 1,
    }
    if prepared.groups is not None:
        columns["source"] = prepared.groups[scored.rows]
    problems = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    for name, column in zip(problems, scored.decisions.T, strict=True):
        columns[f"score_{name}"] = column
    return pd.DataFrame(columns, index=pd.Index(prepared.samples[scored.rows], name="sample"))


def search_notes(plan: Plan, found: Searched) -> list[str]:
    """What the search decided on its way."""
    notes = []
    if plan.n_candidates is not None:
        notes.append(
            f"{plan.n_candidates} of {plan.n_genes} genes were selected by their correlation with "
            "the labels before fitting; for the held-out figures on the training part of each fold"
        )
    n, done = len(found.params), len(found.folds)
    if n < plan.n_widest:
        tried = "a single setting was" if n == 1 else f"{n} settings were"
        notes.append(
            f"to keep to the time allowed {tried} tried, of {plan.n_widest}; more time may find "
            "better ones"
        )
    if done < plan.n_folds:
        notes.append(
            f"there was time for {done} of {plan.n_folds} folds: held-out figures are those of the "
            f"samples of {'this fold' if done == 1 else 'these folds'}"
        )
    return notes


def summary(result: TrainingResult) -> dict[str, Any]:
    """What the model file keeps of the training, in plain values."""
    held_out = result.held_out
    kept = _remembered(held_out)
    return {
        "label": result.label,
        "batch": result.batch,
        "source": result.source,
        "date": date.today().isoformat(),
        "optirank": __version__,
        "balanced_accuracy": result.balanced_accuracy,
        "balanced_accuracy_standard_error": result.standard_error,
        "balanced_accuracy_elsewhere": list(result.accuracy_elsewhere() or ()),
        "recall": {str(k): float(v) for k, v in result.per_class["recall"].items()},
        "precision": {str(k): float(v) for k, v in result.per_class["precision"].items()},
        "n_folds": len(result.by_fold),
        "n_settings": len(result.path),
        "seconds": result.timings["total"],
        "notes": list(result.notes),
        "held_out": _outcomes(kept, result.model.classes_),
        "elsewhere": _outcomes(_remembered(result.elsewhere), result.model.classes_),
    }


def _remembered(table: pd.DataFrame) -> pd.DataFrame:
    """Evenly spread rows, as many as a model file keeps."""
    return table.iloc[:: max(1, -(-len(table) // REMEMBERED))]


def _outcomes(table: pd.DataFrame, classes: NDArray) -> dict[str, NDArray]:
    """Confidences, whether labels are right, true classes and platforms, for the model file."""
    found = {
        "confidence": table["confidence"].to_numpy().astype(np.float32),
        "correct": (table["label"] == table["predicted"]).to_numpy(),
        "truth": np.searchsorted(classes, table["label"].to_numpy(classes.dtype)).astype(np.int32),
    }
    if "platform" in table:
        found["platform"] = table["platform"].to_numpy().astype(np.int32)
    return found


def _labels(model: Any, scored: HeldOut) -> tuple[NDArray, NDArray]:
    """Labels and confidences as prediction gives them."""
    calibration = getattr(model, "calibration_", None)
    scores = _flat(scored.decisions)
    if calibration is None:
        found = plain_probabilities(model, scores)
    else:
        found = calibration.probabilities(scores)
    labels = predicted(scored.decisions, model.classes_)
    return labels, found[np.arange(len(found)), np.searchsorted(model.classes_, labels)]


def _flat(decisions: NDArray) -> NDArray:
    return decisions[:, 0] if decisions.shape[1] == 1 else decisions
