"""Train, annotate, evaluate and design panels with AnnData, in scanpy's manner.

Each function gives one result with ``notes``, ``warnings``, ``tables`` (data frames)
and can be given wherever a model is taken; ``report=`` names the file of its page.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from anndata import AnnData

from optirank._util.work import progress_bar
from optirank.data.objects import (
    anndata_of,
    is_frame,
    labelled_profiles,
    profiles_of,
)
from optirank.model import Model
from optirank.model.file import as_model
from optirank.report import check_report, write_page
from optirank.verbs.design import DesignResult
from optirank.verbs.design import design as run_design
from optirank.verbs.evaluation import Evaluation, evaluate_profiles
from optirank.verbs.labelling import label_profiles
from optirank.verbs.labels import Labels
from optirank.verbs.options import (
    DesignOptions,
    Genes,
    PredictOptions,
    Result,
    TrainingOptions,
)
from optirank.verbs.training import TrainingResult
from optirank.verbs.training import train as run_training

AnyModel = Model | Result | str | os.PathLike[str]
File = str | os.PathLike[str]
Query = AnnData | pd.DataFrame | Sequence[str]

__all__ = ["annotate", "design", "evaluate", "train"]


def __dir__() -> list[str]:
    return __all__


def train(
    adata: AnnData | pd.DataFrame | Sequence[AnnData],
    label: str | Sequence[str] | pd.Series,
    *,
    query: Query | None = None,
    batch: str | None = None,
    tree: Mapping[str, str] | File | None = None,
    ontology: Mapping[str, str] | File | None = None,
    mapping: Mapping[str, str] | None = None,
    n_genes: int | str = "auto",
    include: Genes = (),
    exclude: Genes = (),
    method: str = "panel",
    layer: str | None = None,
    gene_column: str | None = None,
    table: str | None = None,
    name: str = "",
    description: str = "",
    n_jobs: int | None = None,
    report: File | None = None,
    verbose: bool = True,
) -> TrainingResult:
    """Train a classifier on labelled profiles.

    Parameters
    ----------
    adata : AnnData, SpatialData, MuData or DataFrame, or a list of AnnData
        Expression on any scale: only ranks within a sample count. If it is backed or
        lazy (dask arrays), only what is needed is read, in blocks of samples. A data
        frame has samples as rows. Of several the common genes are used, and each is
        held out in turn.
    label : str, list of str or Series
        Column of ``adata.obs``, or of the data frame, with the class labels; several
        columns from coarse to fine, whose labels are a tree; or the labels themselves,
        one per sample.
    query : AnnData, DataFrame or list of str, optional
        The data to be labelled later, or their gene names: only genes that it has are
        used.
    batch : str, optional
        Column with the source (data set, donor); each source is held out in turn.
    tree : mapping or file, optional
        Coarser labels: the parent of each label, "" at the top; or a table of labels
        and parents. A sample then gets the finest label that is sure.
    ontology : mapping or file, optional
        Ontology ids of the labels, kept in the model: a mapping, or a table of labels
        and ids.
    mapping : mapping, optional
        Labels to join, and the labels that they become.
    n_genes : int or "auto", default="auto"
        Genes in the panel. "auto": the fewest whose held-out accuracy is within one
        standard error of the best, of at least 100 where so many are good enough.
    include, exclude : list of str
        Genes that must, and that may not be in the panel: names or patterns such as
        ``"RPL*"``. ``include`` may be a file of genes, one per line: the panel as it
        is, unless ``n_genes`` asks for another number.
    method : {"panel", "optirank"}, default="panel"
        One panel for all classes, or the paper's classifier.
    layer, gene_column : str, optional
        Layer to use instead of ``X``, "raw" for ``adata.raw``; column of ``adata.var``
        with the gene names, instead of its index.
    table : str, optional
        Which table of a SpatialData, or modality of a MuData.
    name, description : str
        Name of the model and its intended use, kept in the model.
    n_jobs : int, optional
        Threads; None for all processors.
    report : file, optional
        Where to write the page of the result, one HTML file.
    verbose : bool, default=True
        Whether to print warnings and notes and show a progress bar; the result has
        them too.

    Returns
    -------
    TrainingResult
        ``model``, for :func:`optirank.save`; ``held_out`` has the label of every
        held-out sample, ``curve`` the accuracy by size, ``performance`` the tables.
        ``adata`` is not changed.
    """
    if report is not None:
        check_report()
    profiles, label_column, batch_column = labelled_profiles(
        adata, label, batch, layer=layer, gene_column=gene_column, table=table
    )
    options = TrainingOptions(
        label=label_column,
        batch=batch_column,
        tree=tree,
        ontology=ontology,
        mapping=mapping,
        method=method,
        n_jobs=-1 if n_jobs is None else n_jobs,
        n_genes=n_genes,
        query_genes=_gene_names(query),
        include=include,
        exclude=exclude,
        name=name,
        description=description,
    )
    command = _call(
        "train",
        label=label_column,
        batch=batch_column,
        tree=_short(tree),
        ontology=_short(ontology),
        mapping=_short(mapping),
        n_genes=n_genes,
        method=method,
        layer=layer,
    )
    with progress_bar("training", shown=verbose) as update:
        result = run_training(profiles, options, command=command, progress=update)
    _conclude(result, report, verbose)
    return result


def _call(function: str, **options: object) -> str:
    """A call as the model's card keeps it."""
    given = [f"{name}={value!r}" for name, value in options.items() if value]
    return f"optirank.tl.{function}(adata, {', '.join(given)})"


def _short(given: object) -> object:
    """A file by its name, so that a card names no folder; else the value."""
    return Path(given).name if isinstance(given, str | os.PathLike) else given


def _conclude(result: Result, report: File | None, verbose: bool) -> None:
    """Print what there is to say, and write the page."""
    if verbose:
        for warning in result.warnings:
            print(f"WARNING: {warning}")
        for line in [*result.notes, repr(result)]:
            print(line)
    if report is not None:
        write_page(result, report)


def _gene_names(query: Query | None) -> list[str] | None:
    """The gene names of a query: of an AnnData, a data frame, or given as they are."""
    if query is None:
        return None
    names = getattr(query, "var_names", getattr(query, "columns", query))
    return [str(name) for name in names]


def annotate(
    adata: AnnData | pd.DataFrame | pd.Series,
    model: AnyModel,
    key_added: str = "optirank",
    *,
    clusters: str | None = None,
    adapt: bool = False,
    target_error: float | None = None,
    threshold: float | None = None,
    layer: str | None = None,
    gene_column: str | None = None,
    table: str | None = None,
    report: File | None = None,
    verbose: bool = True,
) -> Labels:
    """Label the samples of an AnnData, or of a data frame.

    The labels are written into ``adata``; label ``adata.copy()`` to leave it as it is.

    Parameters
    ----------
    adata : AnnData, DataFrame or Series
        The query, in memory or backed. A data frame has samples as rows; a series is
        one sample.
    model : a fitted model, the file of one, or the name of a shipped one
    key_added : str, default="optirank"
        Name of the fields that are set.
    clusters : str, optional
        Column of ``adata.obs``: each cluster is described, by the majority label of its
        samples and their likeness to it. Samples keep their own labels.
    adapt : bool, default=False
        Whether to learn from the query: a regression on the query's own genes, taught
        by the surest labels, is mixed with the model. A label then depends on the other
        samples.
    target_error : float, optional
        Withhold labels ("unassigned") so that at most this share of those given is
        wrong, judged by the held-out samples of the training, with 80 % confidence, and
        by the query's own confidences.
    threshold : float, optional
        Withhold labels of a lower confidence.
    layer, gene_column, table, report, verbose
        As in :func:`train`.

    Returns
    -------
    Labels
        ``samples`` has one line per sample, ``counts()`` the samples of each label,
        ``clusters`` one line per cluster, ``missing`` the genes that ``adata`` lacks.

    An AnnData (also the table of a SpatialData, the modality of a MuData) gets fields,
    in which ``KEY`` is ``key_added``:

    ``obs["KEY"]`` and ``obs["KEY_confidence"]``
        The label of each sample, and its probability.
    ``obs["KEY_withheld_because"]`` and ``obs["KEY_alarm"]``
        Why a label is withheld, "" where it is given; and where there is an alarm, why
        the labels may all be wrong.
    ``obs["KEY_likeness"]``
        How much the sample looks like its class, as a share of what is typical of
        held-out samples: 1 is typical.
    ``obs["KEY_leaf"]`` and ``obs["KEY_leaf_confidence"]``
        The class at the end of the way down the tree, of a model with one; its label
        may be above.
    ``obs["KEY_cell_type_ontology_term_id"]``
        The id of the label, of a model with ids.
    ``obsm["KEY_proba"]``, samples x classes
        Probabilities, in the order of ``uns["KEY"]["classes"]``. "/" is "|" in the name
        of a column, since an .h5ad file cannot store it.
    ``uns["KEY"]``
        How the labels were made: the model and its digest, the options, the classes,
        the missing genes, the threshold, the word for labels that are withheld, the
        ``agreement`` of genes outside the panel (None where it cannot be told) and that
        ``agreement_by_label``, the median ``likeness``, the ``clusters``, and the
        ``notes``.
    """
    if report is not None:
        check_report()
    options = PredictOptions(
        clusters=clusters,
        adapt=adapt,
        target_error=target_error,
        threshold=threshold,
    )
    fitted = as_model(model)
    profiles = profiles_of(
        adata,
        label=[clusters] if clusters else [],
        known_genes=fitted.genes.tolist(),
        layer=layer,
        gene_column=gene_column,
        table=table,
    )
    target: Any = None if is_frame(adata) else anndata_of(adata, table)
    if target is not None and key_added in target.obs and key_added not in target.uns:
        raise ValueError(
            f"adata.obs has a column {key_added!r} that is not optirank's: choose "
            "another key_added, or delete the column"
        )
    labels = label_profiles(profiles, fitted, options)
    if target is not None:
        labels.annotate(target.obs, target.obsm, target.uns, key_added)
    _conclude(labels, report, verbose)
    return labels


def design(
    adata: AnnData | pd.DataFrame | Sequence[AnnData],
    label: str | pd.Series,
    *,
    n_genes: int | None = None,
    gene_list: Genes = (),
    include: Genes = (),
    exclude: Genes = (),
    min_mean: float | None = None,
    max_mean: float | None = None,
    per_class: int = 0,
    query: Query | None = None,
    test: AnnData | pd.DataFrame | None = None,
    batch: str | None = None,
    layer: str | None = None,
    gene_column: str | None = None,
    table: str | None = None,
    name: str = "",
    description: str = "",
    n_jobs: int | None = None,
    report: File | None = None,
    verbose: bool = True,
) -> DesignResult:
    """Design a panel of genes for an assay, or score a list that somebody else made.

    Parameters
    ----------
    adata : AnnData, SpatialData, MuData or data frame, or a list of them
        Labelled profiles on any scale. Several are used over their common genes, each
        held out in turn.
    label : str or Series
        As in :func:`train`.
    n_genes : int, optional
        Genes in the panel; 100 where there is no list.
    gene_list : list of str or file, optional
        A list to score as it is; with ``n_genes``, to extend.
    include, exclude : list of str
        Genes that must and may not be in the panel: names, patterns such as ``"RPL*"``,
        or files of genes.
    min_mean, max_mean : float, optional
        Bounds on a gene's mean, in counts per 10,000, in the class where it is highest.
    per_class : int, default=0
        Genes of largest weight that each class keeps, so that no class depends on one
        probe; of several columns of labels, each coarser label too.
    query : AnnData, DataFrame or list of str, optional
        The data to be labelled later, or the genes that the assay can measure: only
        these are used.
    test : AnnData or DataFrame, optional
        Labelled samples of another platform, with the same column of classes. They
        judge the panel, and never choose it.
    batch : str, optional
        Column with the source (data set, donor); each source is held out in turn.
    layer, gene_column, table, name, description, n_jobs, report, verbose
        As in :func:`train`.

    Returns
    -------
    DesignResult
        ``genes`` is the table of the panel, ``model`` labels the assay; ``conditions``,
        ``classes`` and ``confusions`` say how it will do. ``adata`` is not changed.
    """
    if report is not None:
        check_report()
    profiles, label_column, batch_column = labelled_profiles(
        adata, label, batch, layer=layer, gene_column=gene_column, table=table
    )
    options = DesignOptions(
        label=label_column,
        batch=batch_column,
        n_jobs=-1 if n_jobs is None else n_jobs,
        n_genes=n_genes,
        gene_list=gene_list,
        query_genes=_gene_names(query),
        include=include,
        exclude=exclude,
        min_mean=min_mean,
        max_mean=max_mean,
        per_class=per_class,
        name=name,
        description=description,
    )
    judges = None
    if test is not None:
        judges = profiles_of(test, label=[options.label[-1]])
    with progress_bar("designing", shown=verbose) as update:
        result = run_design(
            profiles,
            options,
            test=judges,
            command=_call("design", label=label_column, n_genes=n_genes),
            progress=update,
        )
    _conclude(result, report, verbose)
    return result


def evaluate(
    adata: AnnData | pd.DataFrame,
    model: AnyModel,
    label: str,
    *,
    mapping: Mapping[str, str] | None = None,
    adapt: bool = False,
    target_error: float | None = None,
    threshold: float | None = None,
    layer: str | None = None,
    gene_column: str | None = None,
    table: str | None = None,
    report: File | None = None,
    verbose: bool = True,
) -> Evaluation:
    """Compare the labels of a model with the true classes of samples.

    Parameters
    ----------
    adata : AnnData or DataFrame
        Labelled samples that the model was not trained on.
    model : a fitted model, the file of one, or the name of a shipped one
    label : str
        Column of ``adata.obs``, or of the data frame, with the true classes; samples
        without one are left out.
    mapping : mapping, optional
        Classes of that column, and the model's names for them.
    adapt, target_error, threshold
        As in :func:`annotate`.
    layer, gene_column, table, report, verbose
        As in :func:`train`.

    Returns
    -------
    Evaluation, for :func:`optirank.pl.confusion`, :func:`optirank.pl.roc` and
    :func:`optirank.pl.reliability`. Its ``performance`` has ``balanced_accuracy``,
    ``interval`` and the tables ``per_class``, ``confusion`` and ``reliability``.
    ``adata`` is not changed.
    """
    if report is not None:
        check_report()
    options = PredictOptions(
        adapt=adapt,
        target_error=target_error,
        threshold=threshold,
    )
    fitted = as_model(model)
    profiles = profiles_of(
        adata,
        label=[label],
        known_genes=fitted.genes.tolist(),
        layer=layer,
        gene_column=gene_column,
        table=table,
    )
    evaluation = evaluate_profiles(
        profiles,
        fitted,
        label,
        options,
        mapping=mapping,
    )
    _conclude(evaluation, report, verbose)
    return evaluation
