"""Design a panel for an assay: choose it, extend a list or score it as it is, and judge
it.

The panel comes from the same search as that of a training. What an assay may do to it
is then measured on held-out samples: genes that fail, other platforms
(`optirank.panel.drills`). Labelled samples of another platform, the test data, may
judge the panel; they never choose it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.numbers import balanced, per_ten_thousand, value_scale
from optirank._util.words import collected_notes, note
from optirank._util.work import one_blas_thread, using_threads
from optirank.data.profiles import DataError
from optirank.panel.drills import run_drills
from optirank.panel.samples import class_sums
from optirank.verbs.evaluation import evaluate_profiles
from optirank.verbs.gene_lists import (
    excluded_genes,
    find_genes,
    genes_of_items,
    refuse_missing,
    shared_genes,
)
from optirank.verbs.options import DesignOptions, Result
from optirank.verbs.training import TrainingResult, make_result
from optirank.verbs.training_set import TrainingSet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank._util.numbers import Progress
    from optirank.data.profiles import Profiles
    from optirank.model import Model
    from optirank.panel.drills import Drill
    from optirank.verbs.evaluation import Evaluation

PLATFORM_WORDS = {1.0: "sequencing", 2.0: "imaging"}  # by their strength
DEFAULT_SIZE = 100  # genes, where neither a number nor a list is given


@dataclass(frozen=True, kw_only=True, repr=False)
class DesignResult(Result):
    """A panel, its model, and how it stands up to what an assay may do.

    Attributes
    ----------
    model : Model
        Labels the assay.
    training : TrainingResult
        Accuracy along the path, and the tables of held-out samples.
    kind : str
        Whether the panel was "chosen", or a list "extended" or "scored".
    genes : DataFrame
        One line per gene: ``gene``, ``speaks_for``, ``weight``, ``rank`` and ``path``
        (the smallest panel of the path that has it), ``origin``, ``highest_mean``, and
        ``mean_<class>`` and ``share_<class>`` for every class. With a tree of labels
        also ``tells``, the label that the gene tells best from those beside it, and
        ``below``, the coarser label that these are below.
    conditions : DataFrame
        Balanced accuracy, with 95 % intervals, as it is and under every condition.
    classes : DataFrame
        Sensitivity of each class with its interval, the number of its genes, and its
        sensitivity under every condition.
    confusions : DataFrame
        Pairs of classes that are confused, as it is and on simulated platforms.
    left_out : names of genes that were excluded.
    notes, warnings : sentences; those that need attention.
    test : Evaluation, optional
        Labelled samples of another platform.
    n_required : genes that had to be in the panel.
    """

    model: Model
    training: TrainingResult
    kind: str
    genes: pd.DataFrame
    conditions: pd.DataFrame
    classes: pd.DataFrame
    confusions: pd.DataFrame
    left_out: tuple[str, ...]
    notes: list[str]
    warnings: list[str]
    test: Evaluation | None = None
    n_required: int = 0

    def __repr__(self) -> str:
        accuracy = self.training.performance.headline()
        return f"DesignResult: {len(self.genes)} genes {self.kind}, {accuracy}"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        return {
            "genes": self.genes,
            "conditions": self.conditions,
            "classes": self.classes,
            "confusions": self.confusions,
        }


def design(
    data: Profiles | Sequence[Profiles],
    options: DesignOptions,
    *,
    test: Profiles | None = None,
    command: str = "",
    source: str = "",
    progress: Progress | None = None,
) -> DesignResult:
    """Design a panel on labelled profiles, or raise ValueError.

    Parameters
    ----------
    data : labelled profiles, or several over the same genes.
    options : what is asked for.
    test : labelled samples of another platform, which judge the panel.
    command, source : how the model was made and from what, for its card.
    progress : called with the number of stages that are done, and of all.
    """
    # SciPy's optimisers take a while to load
    from optirank.verbs.methods import train_panel

    with collected_notes() as said, using_threads(options.n_jobs):
        # Means are shares of the counts of all genes
        asked = replace(options, exclude=(), query_genes=None)
        training_set = TrainingSet(data, asked)
        samples = training_set.samples
        X, codes = training_set.X, samples.codes[training_set.kept]
        scale = value_scale(X)
        if scale != "counts":
            note(
                "the values are no counts: means are shares of a sample's total after "
                "logarithms are undone"
            )
        means, shares = _mean_expression(X, codes, scale)
        listed, left_out = _choose_genes(training_set, options, means.max(axis=0))
        required = training_set.include
        fitted = train_panel(training_set, progress or (lambda *_: None))
        training = make_result(training_set, asked, fitted, said, command, source)
        with one_blas_thread():  # products are small, and the same for any machine
            genes = gene_table(training.model, required, listed, means, shares)
            drills = run_drills(
                X,
                codes,
                training_set.fold_of[training_set.kept],
                training.fold_panels,
                len(samples.classes),
            )
        conditions = condition_table(drills, samples.classes)
        classes = class_table(training.performance.per_class, drills, genes)
        evaluation = None
        if test is not None:
            evaluation = evaluate_profiles(test, training.model, options.label[-1])
            judged = evaluation.performance
            sensitivity = judged.per_class["sensitivity"]
            conditions.loc[len(conditions)] = {
                "kind": "test",
                "amount": np.nan,
                "condition": f"test {Path(evaluation.source).name}",
                "balanced_accuracy": judged.balanced_accuracy,
                "low": judged.interval[0],
                "high": judged.interval[1],
                "lowest": sensitivity.min(),
                "lowest_class": str(sensitivity.idxmin()),
            }
            classes["test"] = sensitivity.reindex(classes.index.map(str)).to_numpy()
        kind = "extended" if len(listed) else "chosen"
        if len(required) == training_set.n_genes:
            kind = "scored"
        return DesignResult(
            model=training.model,
            training=training,
            kind=kind,
            genes=genes,
            conditions=conditions,
            classes=classes,
            confusions=confusion_table(drills, samples.classes),
            left_out=left_out,
            notes=said.notes,
            warnings=said.warnings,
            test=evaluation,
            n_required=len(required),
        )


def _mean_expression(X: Any, codes: NDArray, scale: str) -> tuple[NDArray, NDArray]:
    """How the genes are expressed in each class (rows), of the samples that are kept:
    means, per 10,000 of a sample's total, and shares of samples with a value above 0.
    """
    by_class = []
    for values in (per_ten_thousand(X, scale), (X > 0).astype(np.float32)):
        sums = class_sums(values, codes, int(codes.max()) + 1)
        by_class.append(sums.sums[0] / sums.sizes[0][:, None])
    means, shares = by_class
    return means, shares


def _choose_genes(
    training_set: TrainingSet, options: DesignOptions, highest: NDArray
) -> tuple[NDArray, tuple[str, ...]]:
    """Set which genes must and may be in the panel and how many it has, or raise
    DataError.

    ``highest`` is the mean of each gene in the class where it is highest. Gives the
    positions of the genes of the list, and names of those that a pattern excludes.
    """
    names = [str(gene) for gene in training_set.genes]
    source = training_set.source
    listed, missing = find_genes(names, chain(*genes_of_items(options.gene_list)))
    refuse_missing(missing, names, source)
    included, missing = find_genes(names, chain(*genes_of_items(options.include)))
    refuse_missing(missing, names, source)
    required = np.union1d(listed, included)
    excluded = excluded_genes(names, options.exclude)
    allowed = ~excluded
    if options.query_genes is not None:
        measured = [str(gene) for gene in options.query_genes]
        allowed &= shared_genes(names, source, measured, "the assay can measure")
    low = 0.0 if options.min_mean is None else options.min_mean
    high = np.inf if options.max_mean is None else options.max_mean
    within = (highest >= low) & (highest <= high)
    if within.sum() < 2:
        raise DataError(
            f"{source}: {within.sum()} of {len(highest)} genes have a mean from "
            f"{low:g} to {high:g} counts per 10,000 in the class where they are "
            "highest (min_mean=, max_mean=): half of the genes are above "
            f"{np.median(highest):.2g}, the highest has {highest.max():.4g}; widen the "
            "bounds"
        )
    allowed &= within
    allowed[required] = True
    n_genes = options.n_genes
    if n_genes is None:
        n_genes = min(DEFAULT_SIZE, int(allowed.sum()))
        if options.gene_list:
            n_genes = len(required)
    if not max(2, len(required)) <= n_genes <= allowed.sum():
        raise DataError(
            f"a panel of {n_genes} genes: {len(required)} are required, and "
            f"{allowed.sum()} genes of {source} may be used; ranks need at least 2: "
            "ask for another number (n_genes=), require fewer, or allow more"
        )
    training_set.include = required
    training_set.allowed = np.flatnonzero(allowed)
    training_set.n_genes = int(n_genes)
    training_set.per_class = options.per_class
    return listed, tuple(training_set.genes[excluded].astype(str).tolist())


def condition_words(kind: str, amount: float) -> str:
    """A condition in words."""
    if kind == "as it is":
        return "held-out samples"
    if kind == "failing":
        return f"{100 * amount:.0f} % of the genes fail"
    return f"simulated {PLATFORM_WORDS.get(amount, amount)} platforms"


def condition_table(drills: Sequence[Drill], classes: NDArray) -> pd.DataFrame:
    """Balanced accuracy with its 95 % interval under every condition.

    ``lowest`` is the sensitivity of the class that does worst, over all draws.
    """
    lines = []
    for drill in drills:
        counts = drill.counts
        accuracy, (low, high) = balanced(counts.diagonal(), counts.sum(axis=1))
        lowest = drill.sensitivity.min(axis=0)
        weakest = np.nanargmin(lowest)
        lines.append(
            {
                "kind": drill.kind,
                "amount": drill.amount,
                "condition": condition_words(drill.kind, drill.amount),
                "balanced_accuracy": accuracy,
                "low": low,
                "high": high,
                "lowest": lowest[weakest],
                "lowest_class": str(classes[weakest]),
            }
        )
    return pd.DataFrame(lines)


def class_table(
    per_class: pd.DataFrame, drills: Sequence[Drill], genes: pd.DataFrame
) -> pd.DataFrame:
    """The sensitivity of each class, as it is and in a column per condition, and how
    many genes speak for it.
    """
    table = pd.DataFrame(
        {
            "n": per_class["n"],
            "sensitivity": per_class["sensitivity"],
            "low": per_class["sensitivity_low"],
            "high": per_class["sensitivity_high"],
            "n_genes": genes["speaks_for"]
            .value_counts()
            .reindex(per_class.index, fill_value=0),
        }
    )
    for drill in drills[1:]:
        words = condition_words(drill.kind, drill.amount)
        table[words] = drill.sensitivity.mean(axis=0)
    return table


def confusion_table(drills: Sequence[Drill], classes: NDArray) -> pd.DataFrame:
    """Classes that are confused, the most frequent confusion first: ``class`` and
    ``labelled``, the ``share`` of the first that is labelled as the second, and the
    same on the strongest ``platform``.
    """
    plain, strongest = (
        drill.counts / np.maximum(drill.counts.sum(axis=1, keepdims=True), 1.0)
        for drill in (drills[0], drills[-1])
    )
    truth, label = np.nonzero(plain * (1.0 - np.eye(len(classes))))
    table = pd.DataFrame(
        {
            "class": classes[truth].astype(str),
            "labelled": classes[label].astype(str),
            "share": plain[truth, label],
            "platform": strongest[truth, label],
        }
    )
    return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def gene_table(
    model: Model,
    required: NDArray,
    listed: NDArray,
    means: NDArray,
    shares: NDArray,
) -> pd.DataFrame:
    """One line per gene of the panel, in the order of the path.

    ``required`` are positions of genes that had to be in the panel, ``listed`` of those
    that came from a list; ``means`` and ``shares`` say how genes are expressed in each
    class.
    """
    panel = model.panel
    coef = panel.coef
    if len(coef) == 1:
        coef = np.concatenate([-coef, coef])
    speaks = coef.argmax(axis=0)
    sizes = [
        np.where(np.isin(panel.columns, smaller.columns), size, model.n_genes)
        for size, smaller in model.panels.items()
    ]
    origin = np.where(np.isin(panel.columns, required), "required", "chosen")
    table = pd.DataFrame(
        {
            "gene": panel.genes,
            "speaks_for": [str(model.classes[code]) for code in speaks],
            "weight": coef[speaks, np.arange(len(speaks))],
            "rank": 0,
            "path": np.min(sizes, axis=0),
            "origin": np.where(np.isin(panel.columns, listed), "listed", origin),
            "highest_mean": means[:, panel.columns].max(axis=0),
        }
    )
    if model.tree is not None:
        labels, contrasts = model.tree.contrasts(model.classes)
        told = (contrasts @ coef).argmax(axis=0)
        table["tells"] = [labels[place] for place in told]
        table["below"] = [model.tree.parents[name] for name in table["tells"]]
    for word, values in (("mean", means), ("share", shares)):
        for code, name in enumerate(model.classes):
            table[f"{word}_{name}"] = values[code, panel.columns]
    table = table.sort_values(
        ["path", "weight"], ascending=[True, False], kind="stable", ignore_index=True
    )
    table["rank"] = np.arange(1, len(table) + 1)
    return table
