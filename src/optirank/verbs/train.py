"""Train a model on labelled profiles, and say how well it does on held-out samples.

A method of training is an entry of `METHODS`: a function that gives weights with the
scores of held-out samples. All else is the same for every method: calibration, error
control, the out-of-distribution score, tables and the card of the model.
"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank import __version__
from optirank._util.matrices import STANDARDISED
from optirank._util.names import some
from optirank.io.data import source_of
from optirank.io.objects import FILE_COLUMN
from optirank.model import Model, fit_calibration, fit_error_control, fit_likeness
from optirank.model.card import Card, ClassCounts, CurvePoint, JudgedSet
from optirank.model.confidence import NEVER
from optirank.model.likeness import FurtherGenes, ValueCounter
from optirank.model.predictor import SizedPanel
from optirank.model.tree import fit_tree_control
from optirank.panel.further import RanksByLabel, further_genes
from optirank.panel.samples import fold_matrix
from optirank.ranks.scoring import best_class, panel_ranks
from optirank.verbs.cards import size_table
from optirank.verbs.options import METHODS, Result, TrainingOptions
from optirank.verbs.performance import Performance, performance
from optirank.verbs.preparation import Prepared, prepare

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank._util.matrices import Progress
    from optirank.io.cluster import Cluster
    from optirank.panel.elimination import Panel

__all__ = ["TrainingOptions", "TrainingResult", "train", "train_prepared"]

_FEW = 10  # samples of a class below which its held-out figures say little
_VERSIONS = ("numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True, kw_only=True, repr=False)
class TrainingResult(Result):
    """A trained model, how well it does on held-out samples, and how it came about.

    Attributes
    ----------
    model : Model
        Fitted on all samples; ready for :func:`optirank.save`.
    held_out : DataFrame
        One line per held-out sample: ``sample``, ``label``, ``predicted``,
        ``confidence``, ``fold``, ``source`` (where sources were left out) and
        ``score_<class>``.
    curve : DataFrame
        Held-out accuracy by size of the panel: ``n_genes``, ``balanced_accuracy``,
        ``standard_error``, ``chosen``.
    performance : Performance
        The tables of the held-out samples.
    notes, warnings : what was left out or decided; what needs attention.
    fold_panels : dict of int to Panel
        The panels that labelled the held-out samples of each fold, where the method has
        them; weights of a class that the fold could not learn are NaN.
    """

    model: Model
    held_out: pd.DataFrame
    curve: pd.DataFrame
    performance: Performance
    notes: list[str]
    warnings: list[str]
    fold_panels: Mapping[int, Panel]

    def __repr__(self) -> str:
        return f"TrainingResult: {self.model!r}, {self.performance.headline()}"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Those of the performance, ``held_out`` and ``curve``."""
        own = {"held_out": self.held_out, "curve": self.curve}
        return self.performance.tables | own


@dataclass(frozen=True)
class Fitted:
    """What a method of training gives back.

    Attributes
    ----------
    panels : panels by number of genes, with their weights.
    n_genes : the number of genes of the model itself.
    genes : names of the columns that the panels were chosen from.
    X : the samples that the first pass kept, with these columns.
    held_out : positions of the samples that were held out, all among these; none of a
        class that their fold could not learn.
    scores : decision values of these, (n,) for two classes or (n, classes), by number
        of genes of the panels, which were fitted without them; -inf for a class that a
        fold could not learn.
    curve : held-out accuracy by number of genes.
    fold_panels : panels of ``n_genes`` genes that were found without each fold.
    notes : sentences for the user.
    """

    panels: dict[int, SizedPanel]
    n_genes: int
    genes: NDArray
    X: Any
    held_out: NDArray
    scores: dict[int, NDArray]
    curve: list[CurvePoint]
    fold_panels: Mapping[int, Panel] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def train(
    data: AnnData | Sequence[AnnData],
    options: TrainingOptions,
    *,
    command: str = "",
    source: str | None = None,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
    cluster: Cluster | None = None,
) -> TrainingResult:
    """Train a classifier on labelled expression profiles, or raise ValueError.

    Samples without a label, samples without values to rank and classes of fewer than
    three samples are left out; ``notes`` of the result say so. Five folds repeat the
    whole training without some of the samples (or sources), which gives the held-out
    accuracy of every size of the panel, the calibration, the error control and the
    out-of-distribution score.

    Parameters
    ----------
    data : labelled profiles as readers leave them, or several (`optirank.io.objects`).
    options : what is asked for.
    command, source : how the model was made and from what, for its card.
    say : called with each note as soon as it is known, but not with the warnings.
    progress : called with the number of stages that are done, and of all.
    cluster : runs passes over the samples, see `optirank.io.passes`.
    """
    prepared = prepare(data, options, cluster=cluster)
    say_all(say, [*prepared.notes, prepared.summary()])
    made_of = source or source_of(data)
    result = train_prepared(prepared, options, command, made_of, progress)
    say_all(say, result.notes[len(prepared.notes) :])
    return result


def say_all(say: Callable[[str], None] | None, lines: Sequence[str]) -> None:
    """Say sentences, each once."""
    if say is not None:
        for line in dict.fromkeys(lines):
            say(line)


def train_prepared(
    prepared: Prepared,
    options: TrainingOptions,
    command: str = "",
    source: str = "",
    progress: Progress | None = None,
) -> TrainingResult:
    """Train on samples and genes that were looked at, calibrate by the held-out scores,
    and gather all there is to say; parameters are those of `train`.
    """
    module, _, function = METHODS[options.method].partition(":")
    method = getattr(importlib.import_module(module), function)
    fitted = method(prepared, options, progress or (lambda *_: None))
    classes = prepared.classes
    panels = fitted.panels | {
        size: _measured(fitted.panels[size], prepared, fitted, size)
        for size in fitted.scores
    }
    own = panels[fitted.n_genes]
    held_out, probabilities = _held_out_table(own, prepared, fitted)
    truth, predicted = (held_out[name].to_numpy() for name in ("label", "predicted"))
    judged = performance(
        truth,
        predicted,
        probabilities,
        list(classes),
    )
    panels[fitted.n_genes], warnings = _with_target(own, options.target_error)
    curve = [
        replace(point, balanced_accuracy=judged.balanced_accuracy)
        if point.n_genes == fitted.n_genes
        else point
        for point in fitted.curve
    ]
    if prepared.standardised:
        warnings.append(STANDARDISED)
    warnings += _warnings(judged, prepared)
    notes = [*prepared.notes, *fitted.notes]
    model = Model(
        classes=classes,
        n_genes=fitted.n_genes,
        panels=panels,
        n_features=len(fitted.genes),
        card=_card(
            prepared,
            options,
            fitted,
            curve,
            balanced_accuracy=judged.balanced_accuracy,
            interval=tuple(float(end) for end in judged.interval),
            held_out=class_counts(truth, predicted, classes),
            # They rise, so that they do not tell which sample is which
            held_out_probabilities={
                str(name): tuple(np.sort(probabilities[truth == name, 1]).tolist())
                for name in classes
                if len(classes) == 2
            },
            judged=_judged_sources(held_out, options.batch, classes),
            command=command,
            source=str(source),
            notes=(*notes, *warnings),
        ),
        further=_further(prepared, own),
        tree=prepared.tree,
        terms=prepared.terms,
    )
    return TrainingResult(
        model=model,
        held_out=held_out,
        curve=size_table(model),
        performance=judged,
        notes=notes,
        warnings=warnings,
        fold_panels=fitted.fold_panels,
    )


def _with_target(
    panel: SizedPanel, target_error: float | None
) -> tuple[SizedPanel, list[str]]:
    """Store a target error, or say that the held-out samples cannot show it."""
    control = panel.error_control
    if target_error is None or control is None:
        return panel, []
    try:
        control.at(target_error)
    except ValueError as error:
        return panel, [f"the model withholds no labels: {error}"]
    return replace(panel, error_control=replace(control, target_error=target_error)), []


def _measured(
    panel: SizedPanel, prepared: Prepared, fitted: Fitted, size: int
) -> SizedPanel:
    """A panel with its calibration, error control and out-of-distribution score."""
    classes = prepared.classes
    rows, scores = fitted.held_out, fitted.scores[size]
    truth = classes[prepared.codes[rows]]
    predicted = classes[best_class(scores)]
    calibration = fit_calibration(scores, truth, classes)
    probabilities = calibration.probabilities(np.maximum(scores, NEVER))
    if prepared.tree is not None:
        control = fit_tree_control(prepared.tree, probabilities, [*classes], truth)
    else:
        confidence = probabilities.max(axis=1)
        control = fit_error_control(confidence, predicted == truth, truth)
    ranks = panel_ranks(fitted.X[:, panel.columns], compiled=True)
    of_rows = np.full(len(prepared.codes), None)
    of_rows[rows] = predicted
    kept = prepared.kept
    true_classes = classes[prepared.codes[kept]]
    likeness = fit_likeness(ranks, true_classes, of_rows[kept], classes)
    return replace(
        panel, calibration=calibration, error_control=control, likeness=likeness
    )


def _held_out_table(
    panel: SizedPanel, prepared: Prepared, fitted: Fitted
) -> tuple[pd.DataFrame, NDArray]:
    """The held-out samples with their labels, and their probabilities."""
    classes = prepared.classes
    in_file = np.argsort(fitted.held_out)
    rows = fitted.held_out[in_file]
    scores = fitted.scores[fitted.n_genes][in_file]
    bounded = np.maximum(scores, NEVER)
    probabilities = panel.probabilities(bounded)
    table = pd.DataFrame(
        {
            "sample": prepared.samples[rows],
            "label": classes[prepared.codes[rows]],
            "predicted": classes[best_class(scores)],
            "confidence": probabilities.max(axis=1),
            "fold": prepared.fold_of[rows] + 1,
        }
    )
    if prepared.sources is not None:
        table["source"] = prepared.sources[rows]
    columns = np.atleast_2d(bounded.T)
    for name, column in zip(classes[-len(columns) :], columns, strict=True):
        table[f"score_{name}"] = column
    return table, probabilities


def _further(prepared: Prepared, panel: SizedPanel) -> FurtherGenes | None:
    """Mean ranks of each class over genes outside the panel, where there are some.

    They are of the samples that training keeps in memory anyway.
    """
    in_panel = np.flatnonzero(np.isin(prepared.genes, panel.genes))
    genes = further_genes(prepared.sums, in_panel)
    if not len(genes):
        return None
    codes = prepared.codes[prepared.kept]
    ranks = RanksByLabel(lambda _, rows: codes[rows], len(prepared.classes))
    fold_matrix(prepared.X, [ranks], genes)
    means = ranks.result()[1].astype(np.float16)
    return FurtherGenes(prepared.genes[genes], means)


def _card(
    prepared: Prepared,
    options: TrainingOptions,
    fitted: Fitted,
    curve: Sequence[CurvePoint],
    **judged: Any,
) -> Card:
    """What the model file says of the training."""
    classes = [str(name) for name in prepared.classes]
    counts = np.bincount(prepared.codes, minlength=len(classes)).tolist()
    errors = {point.n_genes: point.standard_error for point in curve}
    values = ValueCounter()
    panel_values = fitted.X[:, fitted.panels[fitted.n_genes].columns]
    values.add(panel_values)
    versions = {"optirank": __version__, "python": platform.python_version()}
    return Card(
        name=options.name,
        description=options.description,
        method=options.method,
        label=", ".join(options.label),
        batch=options.batch or "",
        n_samples=len(prepared.codes),
        class_counts=dict(zip(classes, counts, strict=True)),
        n_genes_of_file=prepared.n_genes_of_file,
        n_folds=prepared.n_folds,
        values=values.result(),
        standard_error=errors.get(fitted.n_genes),
        curve=tuple(curve),
        versions=versions | {name: version(name) for name in _VERSIONS},
        **judged,
    )


def _judged_sources(
    held_out: pd.DataFrame, batch: str | None, classes: NDArray
) -> tuple[JudgedSet, ...]:
    """Of each source that was left out, how its samples were labelled.

    Files have their names; values of a column, which may be patients, are numbered.
    """
    if not batch:
        return ()
    sets = []
    for number, (source, part) in enumerate(held_out.groupby("source", sort=True), 1):
        name = str(source) if batch == FILE_COLUMN else f"{batch} {number}"
        counts = class_counts(
            part["label"].to_numpy(), part["predicted"].to_numpy(), classes
        )
        sets.append(JudgedSet(name, counts))
    return tuple(sets)


def class_counts(
    truth: NDArray, predicted: NDArray, classes: NDArray
) -> dict[str, ClassCounts]:
    """How the samples of each class that is there were labelled."""
    true_names = np.asarray(truth).astype(str)
    given_names = np.asarray(predicted).astype(str)
    counts = {}
    for name in map(str, classes):
        of_class = true_names == name
        called = given_names == name
        if of_class.any():
            counts[name] = ClassCounts(
                right=int((called & of_class).sum()),
                n=int(of_class.sum()),
                false=int((called & ~of_class).sum()),
                n_others=int((~of_class).sum()),
            )
    return counts


def _warnings(judged: Performance, prepared: Prepared) -> list[str]:
    """What needs attention: a model that may know nothing, and classes of few
    samples.
    """
    warnings = []
    classes = prepared.classes
    chance = 1.0 / len(classes)
    if judged.interval[0] <= chance:
        warnings.append(
            f"the accuracy of held-out samples, {judged.headline()}, cannot be told "
            f"from chance ({chance:.0%}): do not rely on this model"
        )
    counts = zip(classes, np.bincount(prepared.codes), strict=True)
    few = [f"{name} ({n})" for name, n in counts if n < _FEW]
    if few:
        warnings.append(
            f"classes of fewer than {_FEW} samples are learned from little, and their "
            f"figures are rough: {some(few, 10)}"
        )
    return warnings
