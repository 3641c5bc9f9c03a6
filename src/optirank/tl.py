"""Train and annotate with AnnData, in scanpy's manner."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank._util.progress import progress_bar
from optirank.datasets.errors import DataError

if TYPE_CHECKING:
    from anndata import AnnData
    from distributed import Client

logger = logging.getLogger("optirank")


def train(
    adata: AnnData,
    label: str,
    *,
    layer: str | None = None,
    gene_column: str | None = None,
    batch: str | None = None,
    genes: Sequence[str] | None = None,
    available: Sequence[str] | None = None,
    max_genes: int | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    reference_from: Sequence[str] | str = (),
    not_in_reference: Sequence[str] | str = (),
    budget: float | None = None,
    n_jobs: int | None = None,
    device: str = "cpu",
    client: Client | None = None,
    calibrate: bool = True,
    target_error: float | None = None,
    method: str = "auto",
    prefer: str = "accuracy",
    say: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    verbose: int = 1,
) -> Any:
    """Train a classifier on labelled profiles.

    Parameters
    ----------
    adata : AnnData
        Expression on any scale: only ranks within a sample count (but see ``method``). If it is
        backed or lazy (dask arrays), only what is needed is read, in blocks of samples.
    label : str
        Column of ``adata.obs`` with the class labels.
    layer : str, optional
        Layer to use instead of ``X``.
    gene_column : str, optional
        Column of ``adata.var`` with the gene names, instead of its index.
    batch : str, optional
        Column with the source (data set, donor); folds then hold out whole sources.
    genes, available : list of str, optional
        The genes to use; the genes of the query to be labelled later (others are not used).
    max_genes : int, optional
        Largest number of genes that the model may need.
    include, exclude : list of str, optional
        Genes of a fixed reference set; genes to exclude. Names, or patterns such as ``MT-*``.
    reference_from, not_in_reference : list of str, or str, optional
        Genes that the reference set is chosen from, and genes that may not be in it: names,
        patterns, or the name of a column of ``adata.var`` that is true for them. Every gene may
        have weights.
    budget : float, optional
        Time allowed, in seconds; ten minutes by default.
    method : {"auto", "optirank", "rank-lr", "lr", "k-tsp"}, default="auto"
        Classifiers to choose among; "auto" compares the two on ranks. "lr" is logistic regression
        on log values: counts are scaled to 10,000 per sample, other values used as they are.
        "k-tsp" is a vote of a few pairs of genes per class.
    prefer : {"accuracy", "genes"}, default="accuracy"
        ``"genes"`` tries small models, with one panel for all classes, and takes the one of fewest
        genes within two points of the best.
    n_jobs : int, optional
        Threads; -1 for all processors.
    device : {"cpu", "cuda"}, default="cpu"
        Where to fit: ``"cuda"`` is an NVIDIA GPU, and needs CuPy (``pip install 'optirank[gpu]'``).
    client : distributed.Client, optional
        Client of a dask cluster whose workers fit the settings; data are sent to them once.
    calibrate : bool, default=True
        Whether to fit probabilities on held-out scores.
    target_error : float, optional
        Share of wrong labels to allow; a confidence threshold is derived from it.
    say, progress : callable, optional
        ``say`` is called with messages, ``progress`` with the steps done and their number. Messages
        are also logged by the logger "optirank".
    verbose : int, default=1
        Whether to show a progress bar (in terminals and notebooks); 0 shows none.

    Returns
    -------
    The fitted model, for :func:`annotate` and :func:`optirank.save`; ``model.training_summary_``
    has its accuracy on held-out samples. ``adata`` is not changed.
    """
    from optirank.datasets.anndata_objects import check_anndata, profiles_of
    from optirank.workflow.train import train as train_workflow

    check_anndata(adata, "train")

    def tell(line: str) -> None:
        logger.info("%s", line)
        if say is not None:
            say(line)

    with progress_bar("cross-validation", shown=None if verbose else False) as bar:

        def advance(done: int, total: int) -> None:
            bar.update(done, total)
            if progress is not None:
                progress(done, total)

        result = train_workflow(
            profiles_of(adata, layer, gene_column),
            label,
            batch=batch,
            genes=genes,
            available=available,
            max_genes=max_genes,
            include=include,
            exclude=exclude,
            reference_from=_genes_of_column(adata, reference_from, gene_column),
            not_in_reference=_genes_of_column(adata, not_in_reference, gene_column),
            budget=budget,
            n_jobs=n_jobs,
            device=device,
            client=client,
            calibrate=calibrate,
            target_error=target_error,
            method=method,
            prefer=prefer,
            say=tell,
            progress=advance,
        )
    for note in result.notes:
        logger.info("%s", note)
    return result.model


def _genes_of_column(
    adata: AnnData, given: Sequence[str] | str, gene_column: str | None
) -> Sequence[str]:
    """Names and patterns as they are; of the name of a column of ``var``, the genes it marks."""
    from optirank.datasets.anndata_objects import gene_names_of

    if not isinstance(given, str):
        return given
    if given not in adata.var:
        raise DataError(
            f"adata.var has no column {given!r}: name one that marks genes, or give a list of "
            f"names and patterns; its columns are {some(adata.var.columns)}"
        )
    column = adata.var[given]
    if column.dtype != bool:
        raise DataError(
            f"adata.var[{given!r}] is of type {column.dtype}: a column that is true or false for "
            "each gene is needed"
        )
    names = np.asarray(gene_names_of(adata, gene_column), dtype=object)[column.to_numpy()]
    if not len(names):
        raise DataError(f"adata.var[{given!r}] is false for every gene: it marks none")
    return [str(name) for name in names]


def annotate(
    adata: AnnData,
    model: Any,
    key_added: str = "optirank",
    *,
    layer: str | None = None,
    gene_column: str | None = None,
    clusters: str | None = None,
    min_share: float = 0.5,
    threshold: float | None = None,
    target_error: float | None = None,
    prior: str | Mapping | os.PathLike = "balanced",
    adapt: bool = False,
    unknown_rate: float | None = None,
    max_missing: float = 0.5,
    drop_classes: bool = False,
    match_case: str = "check",
    homologs: Mapping[str, str] | str | os.PathLike | None = None,
    block_size: int = 2048,
    copy: bool = False,
) -> AnnData | None:
    """Label the samples of an AnnData.

    Parameters
    ----------
    adata : AnnData
        The query, in memory or backed. If backed, ``block_size`` samples are read at a time.
    model : a fitted model, or the file of one
    key_added : str, default="optirank"
        Name of the fields that are set.
    layer, gene_column
        As in :func:`train`.
    clusters : str, optional
        Column of ``adata.obs``: each cluster gets the majority label of its samples.
    min_share : float, default=0.5
        A cluster in which no label has this share of the samples is called "heterogeneous".
    threshold : float, optional
        Withhold labels with a lower confidence ("unassigned"). If a class is called "unassigned",
        "withheld" is used instead; see ``adata.uns[key_added]["withheld_label"]``.
    target_error : float, optional
        Withhold labels so that at most this share of the given labels is wrong, judged by the
        held-out samples of the training.
    prior : {"balanced", "training"}, mapping or file, default="balanced"
        Class frequencies that the probabilities assume: equal ones, with labels by the highest
        score; those of the training data; or given ones, as a mapping from class to share or a
        file with one line ``class,share`` per class. Priors other than "balanced" may change
        labels.
    adapt : bool, default=False
        Whether to shift the scores of each class to fit the query. A label then depends on the
        other samples. If False, the log says how many labels adapting would change.
    unknown_rate : float, optional
        Withhold the labels of samples that look like no class of the training data. The value is
        the share of held-out samples that may lose their label, such as 0.01.
    max_missing : float, default=0.5
        Share of a class's genes or weights that may be missing; missing genes are logged.
    drop_classes : bool, default=False
        Whether to leave out classes that lack more instead of raising an error; samples of these
        classes get another label.
    match_case : {"check", "ignore"}, default="check"
        "check" refuses data in which most genes match only in another case, as they may come from
        another species; "ignore" accepts them.
    homologs : mapping or file, optional
        Genes of another species: a mapping from the data's gene names to the model's, or a table of
        two columns.
    block_size : int, default=2048
        Number of samples processed together.
    copy : bool, default=False
        Whether to return a copy instead of changing ``adata``.

    Returns
    -------
    None, or with ``copy=True`` an AnnData. Sets the fields:

    ``adata.obs[key_added]`` : categorical
        The label of each sample.
    ``adata.obs[key_added + "_confidence"]`` : float
        The probability of that label.
    ``adata.obs[key_added + "_cluster_label"]`` : categorical
        The label of the sample's cluster, with ``clusters``.
    ``adata.obsm[key_added + "_proba"]`` : DataFrame, samples x classes
        Probabilities, one column per class, in the order of ``adata.uns[key_added]["classes"]``.
        Since an .h5ad file cannot store a column name with "/", it is "|" in the column's name.
    ``adata.uns[key_added]`` : dict
        The classes, those left out, the genes that are missing, what each class loses by them
        (``losses``), the threshold and the version of optirank.
    """
    import pandas as pd

    from optirank.datasets.anndata_files import other_gene_names
    from optirank.datasets.anndata_objects import blocks_of, check_anndata, gene_names_of
    from optirank.model.file import as_model
    from optirank.model.predict import Predictor
    from optirank.model.value_kinds import ValueKinds
    from optirank.ranks.scoring import best_class
    from optirank.workflow.homologs import check_match_case, check_species, model_names
    from optirank.workflow.labels import (
        as_category,
        check_share,
        label_words,
        majority,
        probability_columns,
    )
    from optirank.workflow.predict import class_names, prediction_record, value_notes
    from optirank.workflow.prior import as_prior
    from optirank.workflow.withholding import (
        check_unknown_rate,
        rejection_threshold,
        unknown_words,
    )

    check_anndata(adata, "annotate")
    if not adata.n_obs:
        raise DataError("adata holds no samples: there is nothing to label")
    check_share(min_share)
    check_match_case(match_case)
    if copy:
        if adata.isbacked:
            raise ValueError("copy=True needs data in memory: adata.to_memory(), or copy=False")
        adata = adata.copy()
    if clusters is not None and clusters not in adata.obs:
        raise DataError(f"obs has no column {clusters!r}: there are {some(adata.obs.columns, 20)}")
    if block_size < 1:
        raise ValueError(f"block_size={block_size}: use at least 1")
    model, prior = as_model(model), as_prior(prior)
    genes, about_genes = model_names(gene_names_of(adata, gene_column), model, homologs)
    predictor = Predictor(
        model,
        genes,
        max_missing=max_missing,
        drop_classes=drop_classes,
        other_names=other_gene_names(adata.var, gene_column),
        prior=prior,
        adapt=adapt,
    )
    limit, reason = rejection_threshold(predictor.model, threshold, target_error, prior)
    check_species(predictor.bound.match, match_case)
    for note in about_genes + predictor.notes():
        logger.warning("%s", note)

    classes = class_names(predictor)
    check_unknown_rate(predictor.experience, unknown_rate)
    familiarity = np.zeros(adata.n_obs)
    narrow, meter, scores = predictor.narrowed(), predictor.meter(adata.n_obs), []
    kinds = ValueKinds()
    for rows, X in blocks_of(adata, layer, predictor.columns, block_size):
        scores.append(narrow.scores(X))
        kinds.add(X)
        if meter is not None:
            meter.add(X, scores[-1])
        if unknown_rate is not None:
            familiarity[rows] = meter.familiarity(X, scores[-1])
    for note in value_notes(predictor, kinds):
        logger.warning("%s", note)
    report = meter.report() if meter is not None else None
    n_problems = predictor.bound.parts.n_problems
    whole = np.concatenate(scores or [np.empty((0, n_problems) if n_problems > 1 else 0)])
    if report is not None and (adapt or report.adaptation.possible):
        logger.warning("%s", report.words(adapt))
    found = predictor.from_scores(report.adaptation.apply(whole) if adapt else whole)
    codes, confidence = found.chosen.astype(np.int32), found.confidence
    if limit is not None:
        codes[confidence < limit] = len(classes)
    if target_error is not None and report is not None and report.differences():
        logger.warning("%s", report.no_promise())
    if unknown_rate is not None:
        unknown = predictor.experience.unfamiliar(familiarity, best_class(whole), unknown_rate)
        codes[unknown] = len(classes)
        logger.warning("%s", unknown_words(unknown, unknown_rate))

    words = label_words(classes)
    adata.obs[key_added] = as_category(words[codes], words)
    adata.obs[f"{key_added}_confidence"] = confidence
    if clusters is not None:
        grouped = majority(adata.obs[clusters], codes, confidence, words, min_share)
        adata.obs[f"{key_added}_cluster_label"] = as_category(grouped.labels, words)
    adata.obsm[f"{key_added}_proba"] = pd.DataFrame(
        found.probabilities, index=adata.obs_names, columns=probability_columns(classes)
    )
    adata.uns[key_added] = prediction_record(predictor, limit, reason)
    return adata if copy else None
