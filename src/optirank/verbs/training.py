"""Train a model on labelled profiles, and say how well it does on held-out samples.

A `TrainingSet` looks at all samples once, a method chooses genes and weights and scores
held-out samples (`optirank.verbs.methods`). What follows is the same for every method:
calibration, error control, likeness, tables and the card.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from optirank import __version__
from optirank._util.files import file_digests
from optirank._util.words import Notes, collected_notes, some, warn
from optirank._util.work import using_threads
from optirank.data.profiles import FILE_COLUMN
from optirank.model import Model
from optirank.model.card import Card, ClassCounts, JudgedSet
from optirank.model.confidence import NEVER, fit_calibration, fit_error_control
from optirank.model.likeness import FurtherGenes, ValueCounter, fit_likeness
from optirank.model.tree import fit_tree_control
from optirank.panel.further import RanksByLabel, further_genes
from optirank.panel.samples import matrix_blocks
from optirank.ranks.scoring import best_class, panel_ranks
from optirank.verbs.options import Result, TrainingOptions
from optirank.verbs.performance import Performance, performance, size_table
from optirank.verbs.training_set import TrainingSet

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from optirank._util.numbers import Progress
    from optirank.data.profiles import Profiles
    from optirank.model.panels import SizedPanel
    from optirank.panel.elimination import Panel

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
        return self.performance.tables | {
            "held_out": self.held_out,
            "curve": self.curve,
        }


class Fitted(NamedTuple):
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
    """

    panels: dict[int, SizedPanel]
    n_genes: int
    genes: NDArray
    X: Any
    held_out: NDArray
    scores: dict[int, NDArray]
    curve: list[tuple[int, float, float]]
    fold_panels: Mapping[int, Panel]


def train(
    data: Profiles | Sequence[Profiles],
    options: TrainingOptions,
    *,
    command: str = "",
    source: str = "",
    progress: Progress | None = None,
) -> TrainingResult:
    """Train a classifier on labelled expression profiles, or raise ValueError.

    Samples without a label, samples without values to rank and classes of fewer than
    three samples are left out; ``notes`` of the result say so. Five folds repeat the
    whole training without some of the samples (or sources), which gives the held-out
    accuracy of every size of the panel, the calibration, the error control and the
    likeness.

    Parameters
    ----------
    data : labelled profiles, or several over the same genes.
    options : what is asked for.
    command, source : how the model was made and from what, for its card.
    progress : called with the number of stages that are done, and of all.
    """
    # SciPy's optimisers take a while to load
    from optirank.verbs.methods import train_optirank, train_panel

    fit = train_panel if options.method == "panel" else train_optirank
    with collected_notes() as said, using_threads(options.n_jobs):
        training_set = TrainingSet(data, options)
        training_set.choose_genes(options)
        fitted = fit(training_set, progress or (lambda *_: None))
        return make_result(training_set, options, fitted, said, command, source)


def make_result(
    training_set: TrainingSet,
    options: TrainingOptions,
    fitted: Fitted,
    said: Notes,
    command: str = "",
    source: str = "",
) -> TrainingResult:
    """Calibrate by the held-out scores, and gather all there is to say (``said``);
    other parameters are those of `train`.
    """
    classes = training_set.samples.classes
    codes = training_set.samples.codes
    panels = fitted.panels | {
        size: _measured_panel(fitted.panels[size], training_set, fitted, size)
        for size in fitted.scores
    }
    panel = panels[fitted.n_genes]
    held_out, probabilities = _held_out_table(panel, training_set, fitted)
    truth, predicted = (held_out[name].to_numpy() for name in ("label", "predicted"))
    judged = performance(truth, predicted, probabilities, list(classes))
    chance = 1.0 / len(classes)
    if judged.interval[0] <= chance:
        warn(
            f"the accuracy of held-out samples, {judged.headline()}, cannot be told "
            f"from chance ({chance:.0%}): do not rely on this model"
        )
    counts = zip(classes, np.bincount(codes), strict=True)
    few = [f"{name} ({n})" for name, n in counts if n < _FEW]
    if few:
        warn(
            f"classes of fewer than {_FEW} samples are learned from little, and their "
            f"figures are rough: {some(few, 10)}"
        )
    model = Model(
        classes=classes,
        n_genes=fitted.n_genes,
        panels=panels,
        n_features=len(fitted.genes),
        card=replace(
            _training_card(training_set, options, fitted, held_out, judged),
            command=command,
            source=source or training_set.source,
            notes=(*said.notes, *said.warnings),
        ),
        further=_further_genes(training_set, panel),
        tree=training_set.samples.tree,
        terms=training_set.samples.terms,
    )
    return TrainingResult(
        model=model,
        held_out=held_out,
        curve=size_table(model),
        performance=judged,
        notes=said.notes,
        warnings=said.warnings,
        fold_panels=fitted.fold_panels,
    )


def _measured_panel(
    panel: SizedPanel, training_set: TrainingSet, fitted: Fitted, size: int
) -> SizedPanel:
    """A panel with its calibration, error control and likeness."""
    samples = training_set.samples
    classes = samples.classes
    rows, scores = fitted.held_out, fitted.scores[size]
    truth = classes[samples.codes[rows]]
    predicted = classes[best_class(scores)]
    calibration = fit_calibration(scores, truth, classes)
    probabilities = calibration.probabilities(np.maximum(scores, NEVER))
    if samples.tree is not None:
        control = fit_tree_control(samples.tree, probabilities, [*classes], truth)
    else:
        confidence = probabilities.max(axis=1)
        control = fit_error_control(confidence, predicted == truth, truth)
    ranks = panel_ranks(fitted.X[:, panel.columns], compiled=True)
    held_out_labels = np.full(len(samples.codes), None)
    held_out_labels[rows] = predicted
    kept = training_set.kept
    likeness = fit_likeness(
        ranks, classes[samples.codes[kept]], held_out_labels[kept], classes
    )
    return replace(
        panel, calibration=calibration, error_control=control, likeness=likeness
    )


def _held_out_table(
    panel: SizedPanel, training_set: TrainingSet, fitted: Fitted
) -> tuple[pd.DataFrame, NDArray]:
    """The held-out samples with their labels, and their probabilities."""
    samples = training_set.samples
    classes = samples.classes
    in_file = np.argsort(fitted.held_out)
    rows = fitted.held_out[in_file]
    scores = fitted.scores[fitted.n_genes][in_file]
    bounded = np.maximum(scores, NEVER)
    probabilities = panel.probabilities(bounded)
    table = pd.DataFrame(
        {
            "sample": samples.names[rows],
            "label": classes[samples.codes[rows]],
            "predicted": classes[best_class(scores)],
            "confidence": probabilities.max(axis=1),
            "fold": training_set.fold_of[rows] + 1,
        }
    )
    if samples.sources is not None:
        table["source"] = samples.sources[rows]
    columns = np.atleast_2d(bounded.T)
    for name, column in zip(classes[-len(columns) :], columns, strict=True):
        table[f"score_{name}"] = column
    return table, probabilities


def _further_genes(training_set: TrainingSet, panel: SizedPanel) -> FurtherGenes | None:
    """Mean ranks of each class over genes outside the panel, where there are some.

    They are of the samples that training keeps in memory anyway.
    """
    in_panel = np.flatnonzero(np.isin(training_set.genes, panel.genes))
    genes = further_genes(training_set.sums, in_panel)
    if not len(genes):
        return None
    samples = training_set.samples
    codes = samples.codes[training_set.kept]
    ranks = RanksByLabel(len(samples.classes))
    start = 0
    for block in matrix_blocks(training_set.X, genes):
        stop = start + block.shape[0]
        ranks.add(block, codes[start:stop])
        start = stop
    means = ranks.result()[1].astype(np.float16)
    return FurtherGenes(training_set.genes[genes], means)


def _training_card(
    training_set: TrainingSet,
    options: TrainingOptions,
    fitted: Fitted,
    held_out: pd.DataFrame,
    judged: Performance,
) -> Card:
    """What there is to know of the data, the program and the held-out samples.

    Of sources that were left out, files have their names; values of a column, which may
    be patients, are numbered.
    """
    samples = training_set.samples
    classes = [str(name) for name in samples.classes]
    counts = np.bincount(samples.codes, minlength=len(classes)).tolist()
    lines = sorted(
        f"{name}\t{classes[code]}\n"
        for name, code in zip(samples.names, samples.codes, strict=True)
    )
    files = [options.tree, options.ontology]
    for part in training_set.data:
        if part.opening is not None:
            files += [part.opening.path, dict(part.opening.options)["samples"]]
    paths = [file for file in files if isinstance(file, str | os.PathLike)]
    values = ValueCounter()
    values.add(fitted.X[:, fitted.panels[fitted.n_genes].columns])
    versions = {"optirank": __version__, "python": platform.python_version()}
    curve = [
        (size, judged.balanced_accuracy if size == fitted.n_genes else accuracy, error)
        for size, accuracy, error in fitted.curve
    ]
    left_out = []
    by_source = held_out.groupby("source", sort=True) if options.batch else ()
    for number, (source, part) in enumerate(by_source, 1):
        is_file = options.batch == FILE_COLUMN
        name = str(source) if is_file else f"{options.batch} {number}"
        counted = class_counts(part["label"], part["predicted"], samples.classes)
        left_out.append(JudgedSet(name, counted))
    return Card(
        name=options.name,
        description=options.description,
        method=options.method,
        label=", ".join(options.label),
        batch=options.batch or "",
        sources=file_digests(paths),
        labels_sha256=hashlib.sha256(
            "".join(lines).encode("utf-8", "surrogatepass")
        ).hexdigest(),
        n_samples=len(samples.codes),
        class_counts=dict(zip(classes, counts, strict=True)),
        n_genes_of_file=training_set.n_genes_of_file,
        n_folds=training_set.n_folds,
        values=values.result(),
        versions=versions | {name: version(name) for name in _VERSIONS},
        curve=tuple(curve),
        standard_error={size: error for size, _, error in curve}[fitted.n_genes],
        balanced_accuracy=judged.balanced_accuracy,
        interval=tuple(float(end) for end in judged.interval),
        held_out=class_counts(
            held_out["label"], held_out["predicted"], samples.classes
        ),
        judged=tuple(left_out),
    )


def class_counts(
    truth: ArrayLike, predicted: ArrayLike, classes: NDArray
) -> dict[str, ClassCounts]:
    """How the samples of each class that is there were labelled."""
    true_names = np.asarray(truth).astype(str)
    given_names = np.asarray(predicted).astype(str)
    counts = {}
    for name in map(str, classes):
        is_class = true_names == name
        is_called = given_names == name
        if is_class.any():
            counts[name] = ClassCounts(
                right=int((is_called & is_class).sum()),
                n=int(is_class.sum()),
                false=int((is_called & ~is_class).sum()),
                n_others=int((~is_class).sum()),
            )
    return counts
