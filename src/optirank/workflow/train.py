"""Train a model on labelled profiles, and say how well it does on held-out samples."""

from __future__ import annotations

import importlib
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank import __version__
from optirank._util.names import some
from optirank._util.workers import worker_count
from optirank.datasets.errors import DataError
from optirank.estimators.elimination import best_codes
from optirank.estimators.panel_classifier import OF_SIZE, PanelClassifier
from optirank.model import (
    describe_training,
    fit_calibration,
    fit_error_control,
    fit_novelty,
    panel_ranks,
)
from optirank.workflow import METHODS
from optirank.workflow.performance import Performance, performance
from optirank.workflow.preparation import EmptySamplesError, Prepared, TrainingOptions, prepare
from optirank.workflow.settings import Fitted, Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.datasets.profiles import Profiles

__all__ = ["TrainingOptions", "TrainingResult", "train"]

_LOWEST = -100.0  # score of a class that a fold could not learn: far below those of ranks in [0, 1]
_FEW = 10  # samples of a class below which its held-out figures say little
_VERSIONS = ("numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True, kw_only=True)
class TrainingResult:
    """A trained model, how well it does on held-out samples, and how it came about.

    Attributes
    ----------
    model : fitted on all samples, with ``calibration_``, ``error_control_``, ``novelty_`` and
        ``training_summary_``; ready for :func:`optirank.save`.
    held_out : DataFrame
        One line per held-out sample: ``sample``, ``label``, ``predicted``, ``confidence``,
        ``fold``, ``source`` (where sources were left out) and ``score_<class>``.
    curve : DataFrame
        Held-out accuracy by size of the panel: ``n_genes``, ``balanced_accuracy``,
        ``standard_error``, ``chosen``.
    performance : Performance
        The tables of the held-out samples.
    balanced_accuracy, standard_error : float
        Of all held-out samples, and its standard error over the folds.
    genes : the genes that the model needs.
    notes, warnings : what was left out or decided, in words; those of them that need attention.
    timings : seconds of each part.
    """

    model: Any
    label: str
    batch: str | None
    source: str
    held_out: pd.DataFrame
    curve: pd.DataFrame
    performance: Performance
    balanced_accuracy: float
    standard_error: float
    genes: list[str]
    notes: list[str]
    warnings: list[str]
    timings: dict[str, float]


def train(
    data: Profiles,
    options: TrainingOptions,
    *,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train a classifier on labelled expression profiles.

    Samples without a label, samples without values to rank and classes of fewer than three samples
    are left out; ``notes`` of the result say so. Five folds repeat the whole training without some
    of the samples (or sources), which gives the held-out accuracy of every size of the panel, the
    calibration, the error control and the out-of-distribution score.

    Parameters
    ----------
    data : the profiles, or an opened file, of which only what is used is read.
    options : see `TrainingOptions`.
    say : is told in words what was decided, before the work.
    progress : is told how much is done, of how much, and what is being done.

    Raises
    ------
    DataError
        Where the data cannot be trained on.
    """
    begin = time.perf_counter()
    if options.method not in METHODS:
        raise DataError(f"method {options.method!r}: use one of {', '.join(METHODS)}")
    prepared = prepare(data, options)
    module, _, name = METHODS[options.method].partition(":")
    method = getattr(importlib.import_module(module), name)
    try:
        fitted = _told(prepared, say, method, options, progress)
    except EmptySamplesError as error:
        prepared = prepare(data, options, error.rows)
        fitted = _told(prepared, say, method, options, progress)
    searched = time.perf_counter()
    result = _conclude(data, prepared, options, fitted)
    result.timings.update(search=searched - begin, calibration=time.perf_counter() - searched)
    return result


def _told(
    prepared: Prepared,
    say: Callable[[str], None] | None,
    method: Callable[..., Fitted],
    options: TrainingOptions,
    progress: Progress | None,
) -> Fitted:
    n, d = prepared.source.shape
    n_folds = len(np.unique(prepared.fold_of[prepared.fold_of >= 0]))
    lines = [f"{n} samples, {d} genes, {len(prepared.classes)} classes, {n_folds} folds"]
    for line in (*prepared.notes, *lines) if say is not None else ():
        say(line)
    try:
        return method(prepared, options, progress)
    except EmptySamplesError:
        raise
    except ValueError as error:
        raise DataError(str(error)) from error


def train_panel(prepared: Prepared, options: TrainingOptions, progress: Progress | None) -> Fitted:
    """The panel model: nested panels by elimination, a size by held-out accuracy."""
    model = PanelClassifier(
        options.n_genes, include=prepared.include, n_jobs=worker_count(options.n_jobs)
    )

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total, "training")

    found = model._fit_source(
        prepared.source,
        prepared.classes,
        prepared.codes,
        prepared.fold_of,
        progress=None
        if progress is None
        else lambda done, total: progress(done, total, "training"),
    )
    genes = prepared.source.genes
    model.set_params(n_jobs=None, include=genes[prepared.include].tolist() or None)
    held_out, size = found.held_out, len(model.panel_)
    table = [(n, accuracy, error, n == size) for n, accuracy, error in held_out.curve()]
    columns = ["n_genes", "balanced_accuracy", "standard_error", "chosen"]
    scores = {n: held_out.scores[n] for n in held_out.scores if n in model.path_}
    if size not in scores:  # a fold had a gene or two fewer to choose from
        scores[size] = held_out.scores[max(held_out.scores)]
    return Fitted(
        model,
        genes,
        found.X,
        found.rows,
        held_out.rows,
        scores,
        pd.DataFrame(table, columns=columns),
    )


def _conclude(
    data: Profiles, prepared: Prepared, options: TrainingOptions, fitted: Fitted
) -> TrainingResult:
    """Calibrate by the held-out scores, and gather all there is to say."""
    model, codes, classes = fitted.model, prepared.codes, prepared.classes
    notes = [*prepared.notes, *fitted.notes]
    size = max(fitted.scores)
    own = _calibrate(model, prepared, fitted, size, options.target_error)
    notes += own.notes
    if len(fitted.scores) > 1:
        model.of_sizes_ = {}
    for n in sorted(set(fitted.scores) - {size}):
        small = model.smaller(n)
        _calibrate(small, prepared, fitted, n)
        model.of_sizes_[n] = {name: vars(small)[name] for name in OF_SIZE if hasattr(small, name)}
    rows, scores, truth, predicted = own.rows, own.scores, own.truth, own.predicted
    probabilities = own.probabilities
    confidence = probabilities.max(axis=1)
    held_out = pd.DataFrame(
        {
            "sample": prepared.samples[rows],
            "label": truth,
            "predicted": predicted,
            "confidence": confidence,
            "fold": prepared.fold_of[rows] + 1,
        }
    )
    if prepared.sources is not None:
        held_out["source"] = prepared.sources[rows]
    for k, name in enumerate(classes if scores.shape[1] > 1 else classes[1:]):
        held_out[f"score_{name}"] = scores[:, k]
    found = performance(truth, predicted, probabilities, classes)
    accuracy = found.balanced_accuracy
    of_size = fitted.curve.loc[fitted.curve["chosen"], "standard_error"]
    error = float(of_size.iloc[0]) if len(of_size) else np.nan
    warnings_ = _warnings(found, codes, classes)
    notes += warnings_
    describe_training(
        model,
        fitted.X,
        classes[codes[fitted.rows]],
        genes=fitted.genes,
        **_summary(data, prepared, options, fitted.curve, found, (accuracy, error), notes),
    )
    return TrainingResult(
        model=model,
        label=options.label,
        batch=options.batch,
        source=data.source,
        held_out=held_out,
        curve=fitted.curve,
        performance=found,
        balanced_accuracy=accuracy,
        standard_error=error,
        genes=[str(gene) for gene in fitted.genes[model.genes_]],
        notes=notes,
        warnings=warnings_,
        timings={},
    )


@dataclass(frozen=True)
class _HeldOut:
    """Held-out samples of classes that their fold could learn, with their labels."""

    rows: NDArray
    scores: NDArray
    truth: NDArray
    predicted: NDArray
    probabilities: NDArray
    notes: tuple[str, ...]


def _calibrate(
    model: Any, prepared: Prepared, fitted: Fitted, n_genes: int, target_error: float | None = None
) -> _HeldOut:
    """Give a model its calibration, error control and out-of-distribution score."""
    classes, scores = prepared.classes, fitted.scores[n_genes]
    codes = prepared.codes[fitted.held_out]
    own = scores[np.arange(len(scores)), codes if scores.shape[1] > 1 else 0]
    known = np.isfinite(own)  # others are of a class that their fold could not learn
    rows, scores = fitted.held_out[known], np.maximum(scores[known], _LOWEST)
    truth, predicted = classes[codes[known]], classes[best_codes(scores)]
    flat = scores[:, 0] if scores.shape[1] == 1 else scores
    model.calibration_ = fit_calibration(flat, truth, classes)
    probabilities = model.calibration_.probabilities(flat)
    try:
        model.error_control_ = fit_error_control(
            probabilities.max(axis=1), predicted == truth, truth, target_error=target_error
        )
    except ValueError as error:
        raise DataError(str(error)) from error
    notes: tuple[str, ...] = ()
    try:
        place = np.searchsorted(fitted.rows, rows)
        ranks = panel_ranks(fitted.X[place][:, np.flatnonzero(model.genes_)])
        model.novelty_ = fit_novelty(model, ranks, truth, predicted)
    except ValueError as error:
        notes = (f"samples of unknown classes cannot be recognised: {error}",)
    return _HeldOut(rows, scores, truth, predicted, probabilities, notes)


def _warnings(found: Performance, codes: NDArray, classes: NDArray) -> list[str]:
    """What needs attention: a model that may know nothing, and classes of few samples."""
    told = []
    chance = 1.0 / len(classes)
    if found.interval[0] <= chance:
        told.append(
            f"the accuracy of held-out samples, {found.headline()}, cannot be told from chance "
            f"({chance:.0%}): do not rely on this model"
        )
    counts = np.bincount(codes, minlength=len(classes))
    few = [f"{classes[k]} ({counts[k]})" for k in np.flatnonzero(counts < _FEW)]
    if few:
        told.append(
            f"classes of fewer than {_FEW} samples are learned from little, and their figures are "
            f"rough: {some(few, 10)}"
        )
    return told


def _summary(
    data: Profiles,
    prepared: Prepared,
    options: TrainingOptions,
    curve: pd.DataFrame,
    found: Performance,
    accuracy: tuple[float, float],
    notes: list[str],
) -> dict[str, Any]:
    """What the model file keeps of the training: plain values, the same for the same data."""
    counts = np.bincount(prepared.codes, minlength=len(prepared.classes)).tolist()
    per_class = found.per_class
    return {
        "source": str(data.source),
        "label": options.label,
        "batch": options.batch,
        "method": options.method,
        "name": options.name,
        "description": options.description,
        "n_samples": len(prepared.codes),
        "class_counts": dict(zip(map(str, prepared.classes), counts, strict=True)),
        "n_genes_of_file": prepared.n_genes_of_file,
        "n_folds": len(np.unique(prepared.fold_of[prepared.fold_of >= 0])),
        "balanced_accuracy": accuracy[0],
        "balanced_accuracy_standard_error": accuracy[1],
        "balanced_accuracy_interval": [float(one) for one in found.interval],
        "n_held_out": {name: int(n) for name, n in per_class["n"].items()},
        "recall": {name: float(share) for name, share in per_class["sensitivity"].items()},
        "precision": {name: float(share) for name, share in per_class["ppv"].items()},
        "curve": curve.drop(columns="chosen", errors="ignore").to_dict("records"),
        "checksum": prepared.source.checksum,
        "versions": {"optirank": __version__, "python": platform.python_version()}
        | {name: version(name) for name in _VERSIONS},
        "notes": notes,
    }
