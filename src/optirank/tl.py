"""Train, annotate, evaluate and design panels with AnnData, in scanpy's manner."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

    from optirank.model import Model
    from optirank.workflow.design import DesignResult
    from optirank.workflow.evaluate import Evaluation
    from optirank.workflow.labels import Labels
else:  # typing.get_type_hints works without importing them
    pd = SimpleNamespace(DataFrame=Any, Series=Any)
    AnnData = Any
    DesignResult = Any
    Evaluation = Any
    Labels = Any
    Model = Any

from optirank._util.metrics import percent

__all__ = ["annotate", "design", "evaluate", "train"]

logger = logging.getLogger("optirank")


def __dir__() -> list[str]:
    return __all__


def train(
    adata: AnnData | pd.DataFrame | Sequence[AnnData],
    label: str | pd.Series,
    *,
    query: AnnData | pd.DataFrame | Sequence[str] | None = None,
    batch: str | None = None,
    n_genes: int | str = "auto",
    gene_list: Sequence[str] | None = None,
    include: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    method: str = "panel",
    target_error: float | None = None,
    layer: str | None = None,
    use_raw: bool = False,
    gene_column: str | None = None,
    name: str = "",
    description: str = "",
    n_jobs: int | None = None,
    verbose: bool = True,
) -> Model:
    """Train a classifier on labelled profiles.

    Parameters
    ----------
    adata : AnnData, DataFrame, or a list of AnnData
        Expression on any scale: only ranks within a sample count. If it is backed or
        lazy (dask arrays), only what is needed is read, in blocks of samples. A data
        frame has samples as rows. Of several the common genes are used, and each is
        held out in turn.
    label : str or Series
        Column of ``adata.obs``, or of the data frame, with the class labels; or the
        labels themselves, one per sample.
    query : AnnData, DataFrame or list of str, optional
        The data to be labelled later, or their gene names: only genes that it has are
        used.
    batch : str, optional
        Column with the source (data set, donor); each source is held out in turn.
    n_genes : int or "auto", default="auto"
        Genes in the panel. "auto": the fewest whose held-out accuracy is within one
        standard error of the best, of at least 100 where so many are good enough.
    gene_list, include, exclude : list of str
        The genes to use, all of them unless ``n_genes`` asks for fewer; genes that must
        be in the panel; genes that may not be. The last two may be patterns such as
        ``"RPL*"``.
    method : {"panel", "optirank", "rank-lr"}, default="panel"
        One panel for all classes; the paper's classifier; logistic regression on all
        ranks.
    target_error : float, optional
        Let the model withhold labels so that at most this share of those given is
        wrong, judged by held-out samples.
    layer, use_raw, gene_column
        Layer to use instead of ``X``; whether to use ``adata.raw``; column of
        ``adata.var`` with the gene names, instead of its index.
    name, description : str
        Name of the model and its intended use, kept in the model.
    n_jobs : int, optional
        Threads; None for all processors.
    verbose : bool, default=True
        Whether to print notes and show a progress bar. The logger "optirank" gets the
        notes too.

    Returns
    -------
    Model
        For :func:`annotate` and :func:`optirank.save`; ``model.card`` has its accuracy
        on held-out samples and the notes. ``adata`` is not changed.
    """
    from optirank._util.flags import among
    from optirank._util.progress import progress_bar
    from optirank._util.workers import worker_count
    from optirank.io.objects import labelled_profiles
    from optirank.workflow.options import TrainingOptions
    from optirank.workflow.train import train as run

    given = dict(locals())
    profiles, given["label"], given["batch"] = labelled_profiles(
        adata, label, batch, layer=layer, gene_column=gene_column, use_raw=use_raw
    )
    given["query_genes"] = _gene_names(query)
    given["n_jobs"] = worker_count(-1) if n_jobs is None else n_jobs
    options = among(TrainingOptions, given)

    def say(line: str) -> None:
        logger.info("%s", line)
        if verbose:
            print(line)

    raw_genes = getattr(profiles, "raw_gene_names", None)
    if raw_genes is not None and len(raw_genes) > len(profiles.gene_names):
        say(
            f"adata.raw has {len(raw_genes)} genes, X has {len(profiles.gene_names)}: "
            "use_raw=True trains on adata.raw"
        )
    shown = ("label", "batch", "n_genes", "method", "target_error", "layer", "use_raw")
    call = ", ".join(f"{name}={given[name]!r}" for name in shown if given[name])
    with progress_bar("training", shown=None if verbose else False) as bar:
        result = run(
            profiles,
            options,
            command=f"optirank.tl.train(adata, {call})",
            say=say,
            progress=bar.update,
        )
    for warning in result.warnings:
        say(warning)
    curve = result.model.card.curve
    sizes = [
        f"{point.n_genes} genes {percent(point.balanced_accuracy)}" for point in curve
    ]
    say(f"held-out accuracy by size: {', '.join(sizes)}")
    accuracy = result.performance.headline()
    n_needed = result.model.n_genes
    say(f"balanced accuracy of held-out samples {accuracy}, {n_needed} genes")
    return result.model


def _gene_names(query: Any) -> list[str] | None:
    """The gene names of a query: of an AnnData, a data frame, or given as they are."""
    if query is None:
        return None
    names = getattr(query, "var_names", getattr(query, "columns", query))
    return [str(name) for name in names]


def annotate(
    adata: AnnData | pd.DataFrame | pd.Series,
    model: Any,
    key_added: str = "optirank",
    *,
    clusters: str | None = None,
    adapt: bool = False,
    target_error: float | None = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    drop_classes: bool = False,
    homologs: Mapping[str, str] | str | os.PathLike[str] | None = None,
    layer: str | None = None,
    use_raw: bool = False,
    gene_column: str | None = None,
    copy: bool = False,
) -> AnnData | pd.DataFrame | None:
    """Label the samples of an AnnData, or of a data frame.

    Parameters
    ----------
    adata : AnnData, DataFrame or Series
        The query, in memory or backed. A data frame has samples as rows; a series is
        one sample.
    model : a fitted model, the file of one, or the name of a shipped one
    key_added : str, default="optirank"
        Name of the fields that are set.
    clusters : str, optional
        Column of ``adata.obs``: each cluster also gets a name, the majority label of
        its samples or "heterogeneous". Samples keep their own labels.
    adapt : bool, default=False
        Whether to learn from the query: a regression on the query's own genes, taught
        by the surest labels, is mixed with the model. A label then depends on the other
        samples. If False, a note says where it is worth trying.
    target_error : float, optional
        Withhold labels ("unassigned") so that at most this share of those given is
        wrong, judged by the held-out samples of the training, with 80 % confidence, and
        by the query's own confidences. None: as the model was trained; 1: withhold
        none.
    threshold, unknown_rate : float, optional
        Withhold labels of a lower confidence; of samples that look like no class of the
        training data, where the rate is the share of held-out samples that may lose
        their label (0.01).
    drop_classes : bool, default=False
        Whether to leave out classes that cannot be told because their genes are
        missing, instead of raising an error.
    homologs : mapping or file, optional
        Genes of another species; mouse and human names are recognised. ``"mouse"``; a
        mapping from the data's gene names to the model's; a table of two columns; or
        ``"case"``: names that differ only in case are the same gene.
    layer, use_raw, gene_column
        As in :func:`train`.
    copy : bool, default=False
        Whether to return a copy instead of changing ``adata``.

    Returns
    -------
    None, or with ``copy=True`` an AnnData; of a data frame or a series a table with one
    line per sample. Sets the fields:

    ``adata.obs[key_added]`` : categorical
        The label of each sample.
    ``adata.obs[key_added + "_confidence"]`` : float
        The probability of that label.
    ``adata.obs[key_added + "_cluster_label"]`` : categorical
        The label of the sample's cluster, with ``clusters``.
    ``adata.obsm[key_added + "_proba"]`` : DataFrame, samples x classes
        Probabilities, one column per class, in the order of
        ``adata.uns[key_added]["classes"]``. Since an .h5ad file cannot store a column
        name with "/", it is "|" in the column's name.
    ``adata.obs[key_added + "_withheld_because"]`` : categorical
        Why a label is withheld; "" where it is given.
    ``adata.uns[key_added]`` : dict
        How the labels were made: the model and its digest, the options, the classes,
        the genes that are missing, the threshold, the word for labels that are
        withheld, how far the samples are from the training data (``shift``), and the
        ``notes``.
    """
    from optirank._util.flags import among
    from optirank.io.objects import check_anndata, is_frame, profiles_of
    from optirank.model.file import as_model
    from optirank.workflow.labels import outdated
    from optirank.workflow.options import PredictOptions
    from optirank.workflow.predict import label_profiles

    options = among(PredictOptions, locals())
    if copy and getattr(adata, "isbacked", False):
        raise ValueError(
            "copy=True needs data in memory: adata.to_memory(), or copy=False"
        )
    check_anndata(adata, "annotate")
    clusters_of_frame = [clusters] if is_frame(adata) and clusters else []
    profiles = profiles_of(
        adata, layer, gene_column, use_raw=use_raw, annotations=clusters_of_frame
    )
    if not is_frame(adata) and key_added in adata.obs and key_added not in adata.uns:
        raise ValueError(
            f"adata.obs has a column {key_added!r} that is not optirank's: choose "
            "another key_added, or delete the column"
        )
    labels = label_profiles(profiles, as_model(model), options)
    _show_notes(labels)
    if is_frame(adata):
        return labels.table().set_index("sample")
    result: Any = adata.copy() if copy else adata
    columns, probabilities = labels.fields(key_added)
    for name in outdated(key_added, result.obs, columns):
        del result.obs[name]
    for name, values in columns.items():
        result.obs[name] = values
    probabilities.index = result.obs_names
    result.obsm[f"{key_added}_proba"] = probabilities
    result.uns[key_added] = labels.record
    return result if copy else None


def design(
    adata: AnnData | pd.DataFrame | Sequence[AnnData],
    label: str | pd.Series,
    *,
    n_genes: int | None = None,
    gene_list: Sequence[str] | None = None,
    include: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    min_mean: float | None = None,
    max_mean: float | None = None,
    per_class: int = 0,
    assay_genes: Sequence[str] | None = None,
    skip_unknown: bool = False,
    query: AnnData | None = None,
    query_label: str | None = None,
    batch: str | None = None,
    report: str | os.PathLike[str] | None = None,
    layer: str | None = None,
    use_raw: bool = False,
    gene_column: str | None = None,
    table: str | None = None,
    name: str = "",
    description: str = "",
    n_jobs: int | None = None,
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
    gene_list : list of str, optional
        A list to score as it is; with ``n_genes``, to extend.
    include, exclude : list of str
        Genes that must and may not be in the panel: names, patterns such as ``"RPL*"``,
        and for ``exclude`` the word ``"housekeeping"`` (ribosomal, mitochondrial,
        haemoglobin and cell-cycle genes).
    min_mean, max_mean : float, optional
        Bounds on a gene's mean, in counts per 10,000, in the class where it is highest.
    per_class : int, default=0
        Genes of largest weight that each class keeps, so that no class depends on one
        probe.
    assay_genes : list of str, optional
        Genes that the assay can measure.
    skip_unknown : bool, default=False
        Whether to go on without genes of the list that the data lack, instead of
        raising an error.
    query, query_label : AnnData and str, optional
        Labelled samples of another platform, and the column of their classes (by
        default ``label``). They judge the panel, and never choose it.
    batch : str, optional
        Column with the source (data set, donor); each source is held out in turn.
    report : file, optional
        Where to write the page.
    layer, use_raw, gene_column
        As in :func:`train`.
    table : str, optional
        Which table of a SpatialData, or modality of a MuData.
    name, description, n_jobs, verbose
        As in :func:`train`.

    Returns
    -------
    DesignResult
        ``genes`` is the table of the panel, ``model`` labels the assay; ``conditions``,
        ``classes`` and ``confusions`` say how it will do. ``adata`` is not changed.
    """
    from optirank._util.flags import among
    from optirank._util.progress import progress_bar
    from optirank._util.workers import worker_count
    from optirank.io.objects import labelled_profiles, profiles_of
    from optirank.workflow.design import design as run
    from optirank.workflow.design_words import summary
    from optirank.workflow.options import DesignOptions

    given = dict(locals())
    reading = {"layer": layer, "gene_column": gene_column, "use_raw": use_raw}
    profiles, given["label"], given["batch"] = labelled_profiles(
        adata, label, batch, table=table, **reading
    )
    given["n_jobs"] = worker_count(-1) if n_jobs is None else n_jobs
    options = among(DesignOptions, given)
    if report is not None:
        from optirank.report.pages import check_report

        check_report()

    def say(line: str) -> None:
        logger.info("%s", line)
        if verbose:
            print(line)

    with progress_bar("designing", shown=None if verbose else False) as bar:
        result = run(
            profiles,
            options,
            query=None if query is None else profiles_of(query),
            query_label=query_label,
            command=f"optirank.tl.design(adata, {label!r}, n_genes={n_genes!r})",
            say=say,
            progress=bar.update,
        )
    for line in [*summary(result), *result.warnings]:
        say(line)
    if report is not None:
        from optirank.report.pages import write_report

        write_report(result, os.fspath(report))
    return result


def evaluate(
    adata: AnnData | pd.DataFrame,
    model: Any,
    label: str,
    *,
    mapping: Mapping[str, str] | None = None,
    prevalence: Mapping[str, float] | None = None,
    report: str | os.PathLike[str] | None = None,
    adapt: bool = False,
    target_error: float | None = None,
    threshold: float | None = None,
    unknown_rate: float | None = None,
    drop_classes: bool = False,
    homologs: Mapping[str, str] | str | os.PathLike[str] | None = None,
    layer: str | None = None,
    use_raw: bool = False,
    gene_column: str | None = None,
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
    prevalence : mapping from class to share, optional
        How frequent classes are where the model will be used, for PPV and NPV; by
        default as in ``adata``.
    report : file, optional
        Where to write the report, one HTML page.
    adapt, target_error, threshold, unknown_rate, drop_classes, homologs
        As in :func:`annotate`.
    layer, use_raw, gene_column
        As in :func:`train`.

    Returns
    -------
    Evaluation, for :func:`optirank.pl.confusion`, :func:`optirank.pl.roc` and
    :func:`optirank.pl.reliability`. Its ``performance`` has ``balanced_accuracy``,
    ``interval`` and the tables ``per_class``, ``confusion``, ``reliability`` and
    ``withholding``. ``adata`` is not changed.
    """
    from optirank._util.flags import among
    from optirank.io.objects import check_anndata, is_frame, profiles_of
    from optirank.model.file import as_model
    from optirank.report.pages import write_report
    from optirank.workflow.evaluate import evaluate_profiles
    from optirank.workflow.options import PredictOptions

    options = among(PredictOptions, locals())
    check_anndata(adata, "evaluate")
    annotations = [label] if is_frame(adata) else []
    profiles = profiles_of(
        adata, layer, gene_column, use_raw=use_raw, annotations=annotations
    )
    evaluation = evaluate_profiles(
        profiles,
        as_model(model),
        label,
        options,
        mapping=mapping,
        prevalence=prevalence,
    )
    _show_notes(evaluation)
    if report is not None:
        write_report(evaluation, os.fspath(report))
    return evaluation


def _show_notes(labelled: Labels | Evaluation) -> None:
    """Say what labels of a query need said, alarms first."""
    for alarm in labelled.alarms:
        logger.warning("WARNING: %s", alarm)
    for note in labelled.notes:
        logger.warning("note: %s", note)
