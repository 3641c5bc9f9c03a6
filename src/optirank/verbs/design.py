"""Design a panel for an assay: choose it, extend a list or score it as it is, and judge
it.

The panel comes from the same search as that of a training. What an assay may do to it
is then measured on held-out samples: genes that fail, other platforms, thinner counts
(`optirank.panel.drills`). Labelled samples of another platform, the test data, may
judge the panel; they never choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.matrices import per_ten_thousand, value_scale
from optirank._util.names import some
from optirank._util.work import one_blas_thread
from optirank.io.data import DataError, source_of, used_names
from optirank.io.data import other_names as names_of_columns
from optirank.panel.drills import HeldOutSamples
from optirank.panel.elimination import Panel
from optirank.panel.gene_roles import best_more
from optirank.panel.samples import class_sums
from optirank.verbs.design_tables import (
    class_table,
    condition_table,
    confusion_table,
    gene_table,
    genes_together,
    id_notes,
    idle_genes,
)
from optirank.verbs.evaluate import evaluate_profiles
from optirank.verbs.gene_lists import (
    excluded_genes,
    find_listed,
    shared_genes,
)
from optirank.verbs.options import DesignOptions, Result, TrainingOptions
from optirank.verbs.preparation import prepare
from optirank.verbs.train import say_all, train_prepared

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank._util.matrices import Progress
    from optirank.model import Model
    from optirank.verbs.evaluate import Evaluation
    from optirank.verbs.preparation import Prepared
    from optirank.verbs.train import TrainingResult

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
        One line per gene: ``gene``, ``symbol``, ``ensembl_id``, ``speaks_for``,
        ``weight``, ``rank`` and ``path`` (the smallest panel of the path that has it),
        ``origin``, ``backup``, ``backup_correlation``, ``highest_mean``, and
        ``mean_<class>`` and ``share_<class>`` for every class. With a tree of labels
        also ``tells``, the label that the gene tells best from those beside it, and
        ``below``, the coarser label that these are below.
    conditions : DataFrame
        Balanced accuracy, with 95 % intervals, as it is and under every condition.
    classes : DataFrame
        Sensitivity of each class with its interval, its genes, those it depends on, and
        its sensitivity under every condition.
    confusions : DataFrame
        Pairs of classes that are confused, as it is and on simulated platforms.
    additions : DataFrame, optional
        For a list: the ten best genes more, with the accuracy that they would give.
    idle : DataFrame, optional
        For a list: genes that carry nothing, with the accuracy without them.
    test : Evaluation, optional
        Labelled samples of another platform.
    left_out : names of genes that were excluded.
    notes, warnings : sentences; those that need attention.
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
    additions: pd.DataFrame | None = None
    idle: pd.DataFrame | None = None
    test: Evaluation | None = None
    n_required: int = 0

    def __repr__(self) -> str:
        accuracy = self.training.performance.headline()
        return f"DesignResult: {len(self.genes)} genes {self.kind}, {accuracy}"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name; ``additions`` and ``idle`` of a list alone."""
        tables = {
            "genes": self.genes,
            "conditions": self.conditions,
            "classes": self.classes,
            "confusions": self.confusions,
            "additions": self.additions,
            "idle": self.idle,
        }
        return {name: table for name, table in tables.items() if table is not None}


def design(
    data: AnnData | Sequence[AnnData],
    options: DesignOptions,
    *,
    test: AnnData | None = None,
    test_label: str | None = None,
    command: str = "",
    source: str | None = None,
    say: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> DesignResult:
    """Design a panel on labelled profiles, or raise ValueError.

    Parameters
    ----------
    data : labelled profiles.
    options : what is asked for.
    test, test_label : labelled samples of another platform, which judge the panel,
        and the column of their classes.
    command, source : how the model was made and from what, for its card.
    say : called with each note as soon as it is known, but not with the warnings.
    progress : called with the number of stages that are done, and of all.
    """
    made_of = source or source_of(data)
    result = _designed(data, options, command, made_of, say, progress)
    if test is None:
        return result
    evaluation = evaluate_profiles(test, result.model, test_label or options.label[-1])
    say_all(say, evaluation.notes)
    judged = evaluation.performance
    sensitivity = judged.per_class["sensitivity"]
    line = {
        "kind": "test",
        "amount": np.nan,
        "condition": f"test {Path(evaluation.source).name}",
        "balanced_accuracy": judged.balanced_accuracy,
        "low": judged.interval[0],
        "high": judged.interval[1],
        "lowest": sensitivity.min(),
        "lowest_class": str(sensitivity.idxmin()),
    }
    of_classes = sensitivity.reindex(result.classes.index.map(str)).to_numpy()
    return replace(
        result,
        test=evaluation,
        conditions=pd.concat(
            [result.conditions, pd.DataFrame([line])], ignore_index=True
        ),
        classes=result.classes.assign(test=of_classes),
        notes=[*result.notes, *evaluation.notes],
        warnings=[*result.warnings, *evaluation.warnings],
    )


def _designed(
    data: AnnData | Sequence[AnnData],
    options: DesignOptions,
    command: str,
    source: str,
    say: Callable[[str], None] | None,
    progress: Progress | None,
) -> DesignResult:
    """Choose the genes, train, and judge the panel."""
    asked = TrainingOptions(
        label=options.label,
        batch=options.batch,
        n_jobs=options.n_jobs,
        include=options.include,
        name=options.name,
        description=options.description,
    )
    prepared = prepare(data, asked)
    X, codes = prepared.X, prepared.codes[prepared.kept]
    scale = value_scale(X)
    means, shares = _expression(X, codes, scale)
    other_names = _names_beside(prepared)
    listed, left_out = _choose(
        prepared, options, means.max(axis=0), source_of(data), other_names
    )
    kind = "extended" if len(listed) else "chosen"
    if len(prepared.include) == prepared.n_genes:
        kind = "scored"
    say_all(say, [*prepared.notes, prepared.summary()])
    training = train_prepared(prepared, asked, command, source, progress)
    with one_blas_thread():  # products are small, and the same for any machine
        genes = gene_table(training.model, prepared, listed, means, shares, other_names)
        fold = prepared.fold_of[prepared.kept]
        n_classes = len(prepared.classes)
        held_out = HeldOutSamples(X, codes, fold, training.fold_panels, n_classes)
        drills = list(held_out.drills())
        notes = [*training.notes, *id_notes(genes, other_names)]
        if scale != "counts":
            notes.append(
                "the values are no counts, so thinner counts are not simulated, and "
                "means are shares of a sample's total after logarithms are undone"
            )
        classes = class_table(training, drills, genes, X, codes)
        additions = idle = None
        if kind == "scored":
            additions = _addition_table(prepared, training)
            idle = idle_genes(held_out, prepared.genes)
    say_all(say, notes[len(prepared.notes) :])
    return DesignResult(
        model=training.model,
        training=training,
        kind=kind,
        genes=genes,
        conditions=condition_table(drills, prepared.classes),
        classes=classes,
        confusions=confusion_table(drills, prepared.classes),
        additions=additions,
        idle=idle,
        left_out=left_out,
        notes=notes,
        warnings=[*training.warnings, *_few_genes(training.model, genes, options)],
        n_required=len(prepared.include),
    )


def _expression(X: Any, codes: NDArray, scale: str) -> tuple[NDArray, NDArray]:
    """How the genes are expressed in each class (rows), of the samples that are kept:
    means, per 10,000 of a sample's total, and shares of samples with a value above 0.
    """
    of_classes = []
    for values in (per_ten_thousand(X, scale), (X > 0).astype(np.float32)):
        sums = class_sums(values, codes, int(codes.max()) + 1)
        of_classes.append(sums.sums[0] / sums.sizes[0][:, None])
    means, shares = of_classes
    return means, shares


def _names_beside(prepared: Prepared) -> dict[str, list[str]]:
    """Other names of the genes, where the (first) data have columns of them."""
    first = prepared.data[0]
    names = used_names(first)
    aligned = {}
    for column, others in names_of_columns(first).items():
        by_name = dict(zip(names, others, strict=True))
        aligned[column] = [by_name.get(gene, "") for gene in prepared.genes]
    return aligned


def _choose(
    prepared: Prepared,
    options: DesignOptions,
    highest: NDArray,
    source: str,
    other_names: Mapping[str, Sequence[str]],
) -> tuple[NDArray, tuple[str, ...]]:
    """Set which genes must and may be in the panel and how many it has, or raise
    DataError.

    ``highest`` is the mean of each gene in the class where it is highest. Gives the
    positions of the genes of the list, and names of those that a pattern excludes.
    """
    names = [str(gene) for gene in prepared.genes]
    notes = prepared.notes
    listed = np.zeros(0, np.intp)
    if options.gene_list is not None:
        listed, found_notes = find_listed(
            options.gene_list,
            names,
            source,
            other_names,
            skip_unknown=options.skip_unknown,
        )
        notes += found_notes
    required = np.union1d(listed, prepared.include).astype(np.intp)
    excluded = excluded_genes(names, options.exclude, notes)
    allowed = ~excluded
    if options.query_genes is not None:
        measured = [str(gene) for gene in options.query_genes]
        whose = "the assay can measure"
        allowed &= shared_genes(names, source, measured, whose, notes)
    allowed &= _within_bounds(highest, options, source)
    allowed[required] = True
    prepared.include = required
    prepared.allowed = np.flatnonzero(allowed)
    prepared.n_genes = _panel_size(options, len(required), int(allowed.sum()), source)
    prepared.per_class = options.per_class
    return listed, tuple(prepared.genes[excluded].astype(str).tolist())


def _panel_size(
    options: DesignOptions, n_required: int, n_allowed: int, source: str
) -> int:
    """The number of genes of the panel."""
    if options.n_genes is None and options.gene_list is not None:
        if n_required < 2:
            raise DataError(
                f"the list has {n_required} gene: ranks need at least 2; add genes, "
                "or have it extended (n_genes=)"
            )
        return n_required
    n_genes = DEFAULT_SIZE if options.n_genes is None else int(options.n_genes)
    if n_genes < n_required:
        raise DataError(
            f"a panel of {n_genes} genes cannot hold the {n_required} that are "
            f"required: ask for at least {n_required} (n_genes=), or "
            "require fewer"
        )
    if options.n_genes is None:
        return min(n_genes, n_allowed)
    if n_genes > n_allowed:
        raise DataError(
            f"a panel of {n_genes} genes: {n_allowed} genes of {source} may be used; "
            "ask for fewer (n_genes=), or allow more"
        )
    return n_genes


def _within_bounds(
    highest: NDArray, options: DesignOptions, source: str
) -> NDArray[np.bool_]:
    """Mask of the genes whose mean, in the class where it is highest, is
    within bounds.
    """
    low = 0.0 if options.min_mean is None else options.min_mean
    high = np.inf if options.max_mean is None else options.max_mean
    within = (highest >= low) & (highest <= high)
    if within.sum() < 2:
        middle, top = np.quantile(highest, [0.5, 1.0])
        raise DataError(
            f"{source}: {within.sum()} of {len(highest)} genes have a mean from "
            f"{low:g} to {high:g} counts per 10,000 in the class where they are "
            "highest (min_mean=, max_mean=): half of the genes are above "
            f"{middle:.2g}, the highest has {top:.4g}; widen the bounds"
        )
    return within


def _few_genes(model: Model, genes: pd.DataFrame, options: DesignOptions) -> list[str]:
    """Classes, or labels of a tree, that have fewer genes of their own than was asked
    for.
    """
    names = [str(name) for name in model.classes]
    words, column = "classes", "speaks_for"
    if model.tree is not None:
        names, _ = model.tree.contrasts(model.classes)
        words, column = "labels", "tells"
    counts = genes[column].value_counts().reindex(names, fill_value=0)
    few = [f"{name} ({n})" for name, n in counts.items() if n < options.per_class]
    if not few:
        return []
    named = some(few, 10)
    return [
        f"{words} with fewer than {options.per_class} genes whose weight is largest "
        f"for them: {named}; their other genes speak more for another"
    ]


def _addition_table(prepared: Prepared, training: TrainingResult) -> pd.DataFrame:
    """The genes to add, with the held-out accuracy that they would give together."""
    panel = training.model.panel
    added, counts = best_more(
        prepared.X,
        prepared.codes[prepared.kept],
        prepared.fold_of[prepared.kept],
        Panel(panel.columns, panel.coef),
        training.fold_panels,
        len(prepared.classes),
        allowed=prepared.allowed,
        n_threads=prepared.n_threads,
    )
    return genes_together(prepared.genes[added], counts)
