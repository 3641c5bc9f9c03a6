"""Train a model on labelled profiles, and say how well it does on held-out samples.

A method of training is an entry of `METHODS`: a function that gives a fitted model with the scores
of held-out samples. All else is the same for every method: calibration, error control, the
out-of-distribution score, tables and the summary that the model file keeps.
"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank import __version__
from optirank._util.metrics import balanced_accuracy, standard_error
from optirank._util.names import some
from optirank._util.workers import worker_count
from optirank.estimators.panel_classifier import OF_SIZE, PanelClassifier
from optirank.io.data import DataError
from optirank.model import (
    describe_training,
    fit_calibration,
    fit_error_control,
    fit_novelty,
    panel_ranks,
)
from optirank.model.confidence import NEVER
from optirank.panel.elimination import first_pass, some_rows
from optirank.panel.platforms import VIEW_STRENGTHS, log_spread, simulate_platforms
from optirank.ranks.scoring import best_class, by_class
from optirank.solver.constants import DEFAULTS
from optirank.tuning.selection import (
    default_setting,
    select_for_transfer,
)
from optirank.workflow import METHODS
from optirank.workflow.performance import Performance, performance
from optirank.workflow.preparation import (
    FILE_COLUMN,
    EmptySamplesError,
    Prepared,
    prepare,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.io.data import Profiles

__all__ = ["TrainingOptions", "TrainingResult", "train"]

Progress = Callable[[int, int], None]
_FEW = 10  # samples of a class below which its held-out figures say little
_N_CANDIDATES = 1000  # genes: the paper's classifiers gained nothing from more
_VERSIONS = ("numpy", "scipy", "scikit-learn", "numba")
SETTINGS: dict[str, list[dict[str, float]]] = {
    "optirank": [
        DEFAULTS | {"n_reference": share, "l2": l2}
        for share in (DEFAULTS["n_reference"], 0.05)
        for l2 in (DEFAULTS["l2"], 1e-2)
    ],
    "rank-lr": [{"l1": 0.0, "l2": l2} for l2 in (1e-3, 1e-2, 1e-1)],
}
"""Around the defaults of the estimators; the first is left only for a clearly better one."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What a user may ask of a training: the parameters of :func:`optirank.tl.train`.

    ``available`` are the genes of its ``query``, found by name as in prediction, whatever their
    case and version; ``n_jobs`` are threads, -1 for all processors.
    """

    label: str
    batch: str | None = None
    n_genes: int | str = "auto"
    gene_list: Sequence[str] | None = None
    available: Sequence[str] | None = None
    include: Sequence[str] | str = ()
    exclude: Sequence[str] | str = ()
    method: str = "panel"
    target_error: float | None = None
    n_jobs: int | None = None
    name: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        n = self.n_genes
        if n != "auto" and (
            isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2
        ):
            raise DataError(
                f"{n!r} genes: give a number of at least 2 genes, or 'auto'"
            )
        error = self.target_error
        if error is not None and not 0 < error < 1:
            raise DataError(
                f"target error {error!r}: use a share between 0 and 1, such as 0.05"
            )
        for name in ("include", "exclude"):  # one pattern may be given as it is
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, (getattr(self, name),))
        if self.method != "panel" and (self.include or n != "auto"):
            raise DataError(
                f"method={self.method!r} chooses its genes itself: leave out include and n_genes "
                "(--include, --genes), or use the panel method"
            )


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


@dataclass(frozen=True)
class Fitted:
    """What a method of training gives back.

    ``scores`` are decision values (n, 1 or classes) of the samples ``held_out``, by number of genes
    of the models, which were fitted without them; -inf for a class that a fold could not learn. The
    largest number is that of the model itself.
    """

    model: Any
    genes: NDArray  # names of the model's columns
    X: Any  # samples at ``rows``, with these genes
    rows: NDArray
    held_out: NDArray  # rows that were held out, all among ``rows``
    scores: dict[int, NDArray]
    curve: list[
        tuple[int, float, float]
    ]  # number of genes, accuracy, its standard error
    notes: tuple[str, ...] = ()
    missing: Sequence[
        tuple[float, float]
    ] = ()  # shares of genes missing, held-out accuracy


def train(
    data: Profiles,
    options: TrainingOptions,
    *,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train a classifier on labelled expression profiles, or raise DataError.

    Samples without a label, samples without values to rank and classes of fewer than three samples
    are left out; ``notes`` of the result say so. Five folds repeat the whole training without some
    of the samples (or sources), which gives the held-out accuracy of every size of the panel, the
    calibration, the error control and the out-of-distribution score.

    ``say`` is told each note as soon as it is known, but not the warnings of the result.
    """
    if options.method not in METHODS:
        raise DataError(f"method {options.method!r}: use one of {', '.join(METHODS)}")
    module, _, function = METHODS[options.method].partition(":")
    method = getattr(importlib.import_module(module), function)
    said: set[str] = set()

    def tell(*lines: str) -> None:
        for line in lines:
            if say is not None and line not in said:
                say(line)
            said.add(line)

    def attempt(empty: NDArray | None = None) -> tuple[Prepared, Fitted]:
        prepared = prepare(data, options, empty)
        n, d = prepared.source.shape
        shape = f"{n} samples, {d} genes, {len(prepared.classes)} classes"
        tell(*prepared.notes, f"{shape}, {prepared.n_folds} folds")
        fitted = method(prepared, options, progress or (lambda *_: None))
        return prepared, fitted

    try:
        try:
            prepared, fitted = attempt()
        except EmptySamplesError as error:
            prepared, fitted = attempt(error.rows)
        result = _conclude(data, prepared, options, fitted)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(str(error)) from error
    tell(*(note for note in result.notes if note not in result.warnings))
    return result


def train_panel(
    prepared: Prepared, options: TrainingOptions, progress: Progress
) -> Fitted:
    """The panel model: nested panels by elimination, a size by held-out accuracy."""
    jobs = worker_count(options.n_jobs)
    model = PanelClassifier(options.n_genes, include=prepared.include, n_jobs=jobs)
    source, classes, codes = prepared.source, prepared.classes, prepared.codes
    found = model._fit_source(
        source, classes, codes, prepared.fold_of, prepared.weights, progress
    )
    genes, held_out = source.genes, found.held_out
    model.set_params(n_jobs=None, include=genes[prepared.include].tolist() or None)
    scores = {n: one for n, one in held_out.scores.items() if n in model.path_}
    if len(model.panel_) not in scores:  # a fold had a gene or two fewer to choose from
        scores[len(model.panel_)] = held_out.scores[max(held_out.scores)]
    missing = held_out.with_missing(min(len(model.panel_), max(held_out.scores)))
    curve = held_out.curve()
    return Fitted(
        model, genes, found.X, found.rows, held_out.rows, scores, curve, missing=missing
    )


def train_settings(
    prepared: Prepared, options: TrainingOptions, progress: Progress
) -> Fitted:
    """The paper's methods: a small fixed grid, judged on held-out samples.

    Every setting is fitted in every fold, on the genes that correlate most with the labels of its
    training part, and scored on its held-out samples as they are and on simulated platforms; the
    rule of ``selection="transfer"`` chooses. At most 500 samples per class are used.
    """
    settings = SETTINGS[options.method]
    codes, classes, fold_of = prepared.codes, prepared.classes, prepared.fold_of
    rows = some_rows(codes)
    sums, X = first_pass(prepared.source, codes, len(classes), fold_of + 1, rows)
    X = X.tocsr() if hasattr(X, "tocsr") else X
    y, fold = codes[rows], fold_of[rows]
    weights = prepared.weights
    weights = np.ones(len(rows)) if weights is None else weights[rows]
    folds, every = np.unique(fold[fold >= 0]), np.arange(sums.n_parts)
    width = 1 if len(classes) == 2 else len(classes)
    scores = np.full((len(settings), len(rows), width), np.nan)
    plain = np.full((len(settings), len(folds)), np.nan)
    shifted = np.full((*plain.shape, len(VIEW_STRENGTHS)), np.nan)
    n_genes = np.zeros(plain.shape)
    for k, number in enumerate(folds):
        columns = sums.best_genes(_N_CANDIDATES, every[every != number + 1])
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        fair = np.isin(y[test], y[train])
        seen = X[train][:, columns]
        views = [X[test][:, columns]]
        views += simulate_platforms(views[0], VIEW_STRENGTHS, spread=log_spread(seen))
        for i, setting in enumerate(settings):
            model = _make(options, setting).fit(seen, y[train], weights[train])
            n_genes[i, k] = model.genes_.sum()
            found = [_scores(model, view, width) for view in views]
            scores[i, test] = found[0]
            accuracies = [
                balanced_accuracy(y[test][fair], best_class(one)[fair]) for one in found
            ]
            plain[i, k], shifted[i, k] = accuracies[0], accuracies[1:]
            progress(k * len(settings) + i + 1, plain.size + 1)
    real = prepared.sources is not None
    default = default_setting(settings)
    best = select_for_transfer(plain, shifted, n_genes, default=default, real=real)
    columns = sums.best_genes(_N_CANDIDATES)
    model = _make(options, settings[best]).fit(X[:, columns], classes[y], weights)
    model.set_params(n_jobs=None)
    progress(plain.size + 1, plain.size + 1)
    out, size = fold >= 0, int(model.genes_.sum())
    error = float(standard_error(plain[best][np.isfinite(plain[best])]))
    words = ", ".join(f"{name} {value:g}" for name, value in settings[best].items())
    return Fitted(
        model,
        prepared.source.genes[columns],
        X[:, columns],
        rows,
        rows[out],
        {size: scores[best][out]},
        [(size, np.nan, error)],
        (f"setting chosen among {len(settings)}: {words}",),
    )


def _make(options: TrainingOptions, setting: dict[str, float]) -> Any:
    from optirank import OptirankClassifier, RankLogisticRegression

    kind = (
        OptirankClassifier if options.method == "optirank" else RankLogisticRegression
    )
    return kind(**setting, n_jobs=worker_count(options.n_jobs))


def _scores(model: Any, X: Any, width: int) -> NDArray:
    """Decision values by class; -inf for classes that the model lacks."""
    found = model.decision_function(X)
    if width == 1:
        return found[:, None]
    scores = np.full((X.shape[0], width), -np.inf)
    scores[:, model.classes_] = by_class(found)
    return scores


def _conclude(
    data: Profiles, prepared: Prepared, options: TrainingOptions, fitted: Fitted
) -> TrainingResult:
    """Calibrate by the held-out scores, and gather all there is to say."""
    model, classes, size = fitted.model, prepared.classes, max(fitted.scores)
    held_out, probabilities, told = _calibrate(
        model, prepared, fitted, size, options.target_error
    )
    if len(fitted.scores) > 1:
        model.of_sizes_ = {}
    for n in sorted(set(fitted.scores) - {size}):
        small = model.smaller(n)
        _calibrate(small, prepared, fitted, n)
        model.of_sizes_[n] = {
            name: vars(small)[name] for name in OF_SIZE if hasattr(small, name)
        }
    found = performance(
        held_out["label"], held_out["predicted"], probabilities, classes
    )
    columns = ["n_genes", "balanced_accuracy", "standard_error"]
    curve = pd.DataFrame(fitted.curve, columns=columns)
    curve["chosen"] = curve["n_genes"] == size
    curve.loc[curve["chosen"], "balanced_accuracy"] = found.balanced_accuracy
    error = float(
        curve["standard_error"][curve["chosen"]].max()
    )  # NaN where there is none
    warnings = _warnings(found, prepared)
    notes = [*prepared.notes, *fitted.notes, *told, *warnings]
    per_class = found.per_class
    counts = np.bincount(prepared.codes, minlength=len(classes)).tolist()
    describe_training(
        model,
        fitted.X,
        classes[prepared.codes[fitted.rows]],
        genes=fitted.genes,
        source=str(data.source),
        label=options.label,
        batch=options.batch,
        method=options.method,
        name=options.name,
        description=options.description,
        n_samples=len(prepared.codes),
        class_counts=dict(zip(map(str, classes), counts, strict=True)),
        n_genes_of_file=prepared.n_genes_of_file,
        n_folds=prepared.n_folds,
        balanced_accuracy=found.balanced_accuracy,
        balanced_accuracy_standard_error=error,
        balanced_accuracy_interval=[float(one) for one in found.interval],
        n_held_out={name: int(n) for name, n in per_class["n"].items()},
        recall=per_class["sensitivity"].astype(float).to_dict(),
        precision=per_class["ppv"].astype(float).to_dict(),
        curve=curve[columns].to_dict("records"),
        missing_genes=[list(one) for one in fitted.missing],
        sources=by_source(held_out, options.batch),
        checksum=prepared.source.checksum,
        versions={"optirank": __version__, "python": platform.python_version()}
        | {name: version(name) for name in _VERSIONS},
        notes=notes,
    )
    return TrainingResult(
        model=model,
        label=options.label,
        batch=options.batch,
        source=data.source,
        held_out=held_out,
        curve=curve,
        performance=found,
        balanced_accuracy=found.balanced_accuracy,
        standard_error=error,
        genes=[str(gene) for gene in fitted.genes[model.genes_]],
        notes=notes,
        warnings=warnings,
    )


def by_source(held_out: pd.DataFrame, batch: str | None) -> list[dict[str, Any]]:
    """Of each source that was left out, and each class in it, right labels and samples.

    Files have their names; values of a column, which may be patients, are numbered.
    """
    rows = []
    for source, part in held_out.groupby("source", sort=True) if batch else ():
        right = (part["label"] == part["predicted"]).groupby(part["label"])
        counts = {str(name): [int(one.sum()), len(one)] for name, one in right}
        name = str(source) if batch == FILE_COLUMN else f"{batch} {len(rows) + 1}"
        rows.append({"name": name, "classes": counts})
    return rows


def _calibrate(
    model: Any,
    prepared: Prepared,
    fitted: Fitted,
    n_genes: int,
    target_error: float | None = None,
) -> tuple[pd.DataFrame, NDArray, list[str]]:
    """Give a model its calibration, error control and out-of-distribution score.

    Returns the table of the held-out samples of classes that their fold could learn, their
    probabilities, and notes.
    """
    classes, scores, notes = prepared.classes, fitted.scores[n_genes], []
    codes = prepared.codes[fitted.held_out]
    known = np.isfinite(
        scores[np.arange(len(scores)), codes if scores.shape[1] > 1 else 0]
    )
    rows, scores = fitted.held_out[known], scores[known]
    truth, predicted = classes[codes[known]], classes[best_class(scores)]
    flat = scores[:, 0] if scores.shape[1] == 1 else scores
    model.calibration_ = fit_calibration(flat, truth, classes)
    probabilities = model.calibration_.probabilities(np.maximum(flat, NEVER))
    confidence = probabilities.max(axis=1)
    model.error_control_ = fit_error_control(
        confidence, predicted == truth, truth, target_error=target_error
    )
    try:
        ranks = panel_ranks(fitted.X[:, np.flatnonzero(model.genes_)])
        given = np.full(len(fitted.rows), None)
        given[np.searchsorted(fitted.rows, rows)] = predicted
        model.novelty_ = fit_novelty(
            model, ranks, classes[prepared.codes[fitted.rows]], given
        )
    except ValueError as error:
        notes.append(f"samples of unknown classes cannot be recognised: {error}")
    table = pd.DataFrame(
        {
            "sample": prepared.samples[rows],
            "label": truth,
            "predicted": predicted,
            "confidence": confidence,
            "fold": prepared.fold_of[rows] + 1,
        }
    )
    if prepared.sources is not None:
        table["source"] = prepared.sources[rows]
    for name, column in zip(
        classes[-scores.shape[1] :], np.maximum(scores, NEVER).T, strict=True
    ):
        table[f"score_{name}"] = column
    return table, probabilities, notes


def _warnings(found: Performance, prepared: Prepared) -> list[str]:
    """What needs attention: a model that may know nothing, and classes of few samples."""
    told, classes = [], prepared.classes
    chance = 1.0 / len(classes)
    if found.interval[0] <= chance:
        told.append(
            f"the accuracy of held-out samples, {found.headline()}, cannot be told from chance "
            f"({chance:.0%}): do not rely on this model"
        )
    counts = np.bincount(prepared.codes, minlength=len(classes))
    few = [f"{classes[k]} ({counts[k]})" for k in np.flatnonzero(counts < _FEW)]
    if few:
        told.append(
            f"classes of fewer than {_FEW} samples are learned from little, and their figures are "
            f"rough: {some(few, 10)}"
        )
    return told
