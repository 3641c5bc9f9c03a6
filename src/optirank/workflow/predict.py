"""Labels for the samples of a file: streamed, so that memory does not follow its size."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import optirank
from optirank._util.files import check_outputs
from optirank._util.names import some
from optirank.datasets.errors import DataError, need
from optirank.datasets.reading import OpenExpression, guess_format, open_expression
from optirank.estimators.panel import carried
from optirank.model.file import as_model
from optirank.model.missing import MAX_MISSING, MissingGenesError
from optirank.model.predict import Predictor, withheld_word
from optirank.model.value_kinds import ValueKinds, scale_difference
from optirank.ranks.scoring import best_class
from optirank.workflow.homologs import Homologs, check_match_case, check_species, model_names
from optirank.workflow.labels import (
    MIN_SHARE,
    Labels,
    check_format,
    check_share,
    label_words,
    majority,
    write_labels,
)
from optirank.workflow.prior import as_prior
from optirank.workflow.withholding import check_unknown_rate, rejection_threshold, unknown_words

if TYPE_CHECKING:
    from typing import IO

    import pandas as pd
    from numpy.typing import NDArray

    from optirank.model.predict import Prediction
    from optirank.model.prior import Prior
    from optirank.model.query import QueryReport

KEY = "optirank"
_FIGURES = (".png", ".svg", ".pdf")
_BLOCK = 2048  # samples
_MANY = 2000  # samples that are worth loading numba for at once
_VALUES = 1 << 25  # of a block, were it dense

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class FilePrediction:
    """What was written, and what there is to say about it."""

    out: Path
    n_samples: int
    counts: dict[str, int]
    """Samples of each label, the most frequent first."""
    mean_confidence: float
    threshold: float | None
    """The confidence below which labels were withheld."""
    notes: tuple[str, ...]
    """How genes were found, which are missing, what is odd about samples."""
    missing: tuple[str, ...]
    """The genes of the panel that the file lacks."""
    losses: pd.DataFrame
    """What each class loses by that."""
    clusters: pd.DataFrame | None
    """The label of each cluster, where asked for."""
    report: QueryReport | None = None
    """What the query looks like beside the training data; None where the model cannot tell."""


def predict_file(
    path: str | os.PathLike[str],
    model: Any,
    out: str | os.PathLike[str],
    *,
    clusters: str | None = None,
    min_share: float = MIN_SHARE,
    threshold: float | None = None,
    target_error: float | None = None,
    prior: Prior | os.PathLike[str] = "balanced",
    adapt: bool = False,
    unknown_rate: float | None = None,
    figure: str | os.PathLike[str] | None = None,
    max_missing: float = MAX_MISSING,
    drop_classes: bool = False,
    match_case: str = "check",
    homologs: Homologs = None,
    layer: str | None = None,
    gene_column: str | None = None,
    genes_in: str | None = None,
    annotations: Sequence[str] = (),
    samples: str | os.PathLike[str] | None = None,
    format: str | None = None,
    key_added: str = KEY,
    block_size: int | None = None,
    progress: Progress | None = None,
) -> FilePrediction:
    """Label the samples of a file.

    Only the genes of the model's panel are kept in memory, for ``block_size`` samples at a time (by
    default 2048, fewer where there are very many genes).

    Parameters
    ----------
    path : expression data, see :func:`optirank.datasets.read_expression`, whose options ``layer``,
        ``gene_column``, ``genes_in``, ``annotations``, ``samples`` and ``format`` are.
    model : a fitted model, or the file of one.
    out : ``.csv`` or ``.parquet`` (sample, label, confidence, one probability per class), or
        ``.h5ad``, a copy of ``path`` with what :func:`optirank.tl.annotate` adds under
        ``key_added``.
    clusters : a column of the file; each cluster gets the label of most of its samples, beside
        the samples' own, or "heterogeneous".
    min_share : the share of a cluster's samples that must have its label.
    threshold : withhold labels ("unassigned") of less confidence than this.
    target_error : withhold labels so that of those given no larger share is wrong, by the held-out
        samples of the training.
    prior : the shares of the classes that probabilities suppose: ``"balanced"`` (labels are then
        those of the highest score), ``"training"``, a mapping from every class to its share, or a
        file with a class and its share on each line. A prior other than balanced may move labels.
    adapt : whether to shift the scores of each class to where the query's samples lie, see
        ``optirank.model.adaptation``; a label then depends on the other samples. Without, a note
        says how many labels it would change.
    unknown_rate : withhold the labels of samples that look like no class of the training data, by
        their highest score and by the correlation of their ranks with that class; so many that of
        held-out samples this share loses its label.
    figure : where to draw the query's scores with the boundaries of the classes, before and after
        adapting (.png, .svg or .pdf).
    max_missing : the share of a class's genes that may be missing.
    drop_classes : whether to leave out classes that lack more, instead of refusing.
    match_case : ``"check"`` refuses a file most of whose genes match in another case only, which
        may be of another species; ``"ignore"`` takes them.
    homologs : genes of another species: a mapping from the file's gene names to the model's, or a
        table of two columns.
    progress : called with the number of samples done and of all.
    """
    path, out = Path(path), Path(out)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    check_format(out, path, format or guess_format(path))
    inputs = [path, samples, *(one for one in (model, prior) if isinstance(one, str | os.PathLike))]
    check_outputs({"the labels": out, "the figure": figure}, inputs, force=True)
    if figure is not None:
        need("matplotlib", "report", "the figure")
        if Path(figure).suffix.lower() not in _FIGURES:
            raise DataError(
                f"{figure}: the figure is written as {', '.join(_FIGURES)}: use such a name"
            )
    check_share(min_share)
    check_match_case(match_case)
    model, prior = as_model(model), as_prior(prior)
    rejection_threshold(model, threshold, target_error, prior)  # refused before any work
    reading = {"layer": layer, "gene_column": gene_column, "genes_in": genes_in, "format": format}
    beside = {"annotations": annotations, "samples": samples}
    with (
        open_expression(path, label=clusters, **beside, **reading) as opened,
        tempfile.TemporaryFile(dir=out.parent) as spool,
    ):
        if not opened.n_samples:
            raise DataError(f"{path} holds no samples: there is nothing to label")
        many = opened.n_samples >= _MANY and importlib.util.find_spec("numba") is not None
        genes, about_genes = model_names(opened.gene_names, model, homologs)
        with transposed_told(opened, genes_in):
            predictor = Predictor(
                model,
                genes,
                max_missing=max_missing,
                drop_classes=drop_classes,
                other_names=opened.other_gene_names,
                prior=prior,
                adapt=adapt,
                compiled=many or None,
            )
        check_species(predictor.bound.match, match_case)
        if figure is not None and predictor.experience is None:
            raise ValueError(
                "the model does not know the scores of held-out samples, so there is no figure to "
                "draw: train it with this version of optirank"
            )
        check_unknown_rate(predictor.experience, unknown_rate)
        limit, reason = rejection_threshold(predictor.model, threshold, target_error, prior)
        notes = about_genes + predictor.notes()
        size = max(1, min(_BLOCK, _VALUES // max(1, len(opened.gene_names))))
        size = size if block_size is None else block_size
        files = spool, out.parent
        found = _predict(opened, predictor, *files, size, progress, unknown_rate)
        codes, confidence, empty, report, unknown, kinds = found
        notes += value_notes(predictor, kinds)
        if report is not None and (adapt or report.adaptation.possible):
            notes.append(report.words(adapt))
        if not is_calibrated(predictor.model):
            notes.append(
                "the model is not calibrated: a confidence is not the share of correct labels"
            )
        if limit is not None:
            codes[confidence < limit] = len(predictor.classes)
            notes.append(f"{np.mean(confidence < limit):.1%} of the labels are withheld: {reason}")
        if target_error is not None and report is not None and report.differences():
            notes.append(report.no_promise())
        if unknown_rate is not None:
            codes[unknown] = len(predictor.classes)
            notes.append(unknown_words(unknown, unknown_rate))
        if empty:
            notes.append(
                f"{len(empty)} samples have none of the panel's genes, so their labels say "
                f"nothing: {some(empty)}"
            )
        classes = class_names(predictor)
        grouped = None
        if clusters is not None:
            column = opened.obs[clusters]
            grouped = majority(column, codes, confidence, label_words(classes), min_share)
            if column.isna().any():
                notes.append(
                    f"{column.isna().sum()} samples have no {clusters}: they keep their own label"
                )
        record = prediction_record(predictor, limit, reason)
        labels = Labels(opened.sample_names, classes, codes, confidence, spool, record, grouped)
        write_labels(labels, out, path, key_added)
    if figure is not None:
        from optirank._plots.common import save_figure
        from optirank._plots.query import query_scores

        save_figure(query_scores(report), figure)
    return FilePrediction(
        out=out,
        n_samples=len(codes),
        counts=_counts(labels.words[codes]),
        mean_confidence=float(confidence.mean()) if len(codes) else float("nan"),
        threshold=limit,
        notes=tuple(notes),
        missing=predictor.bound.match.missing,
        losses=predictor.bound.loss_table(),
        clusters=None if grouped is None else grouped.table,
        report=report,
    )


@contextmanager
def transposed_told(opened: OpenExpression, genes_in: str | None) -> Iterator[None]:
    """Where a table lacks the model's genes, but has them on its other side, say so."""
    try:
        yield
    except MissingGenesError as error:
        there = set(error.match.genes).intersection(map(str, opened.sample_names))
        if genes_in is None or len(there) <= error.match.present.sum():
            raise
        side, other = ("columns", "rows") if genes_in == "columns" else ("rows", "columns")
        raise DataError(
            f"{opened.path}: the genes of the model are in its {other}, not in its {side} "
            f"({some(there, 3)}): use --genes-in {other} (genes_in={other!r})"
        ) from None


def is_calibrated(model: Any) -> bool:
    """Whether the confidences of a model were fitted to held-out samples."""
    return carried(model, "calibration_") is not None


def value_notes(predictor: Predictor, kinds: ValueKinds) -> list[str]:
    """How the values of a query differ from those that the model was trained on."""
    summary = carried(predictor.model, "training_summary_")
    trained = summary.get("values") if isinstance(summary, dict) else None
    on_values = predictor.bound.parts.ties is None
    return kinds.differences(trained) + (scale_difference(kinds, trained) if on_values else [])


def class_names(predictor: Predictor) -> NDArray:
    """The model's classes as text."""
    return np.array([str(label) for label in predictor.classes], dtype=object)


def prediction_record(predictor: Predictor, threshold: float | None, reason: str) -> dict[str, Any]:
    """What ``uns`` says of a prediction, in values that a file can hold."""
    bound = predictor.bound
    losses = bound.loss_table().astype({"label": str}).set_index("label")
    record = {
        "classes": class_names(predictor),
        "withheld_label": withheld_word(predictor.classes),
        "n_genes": len(bound.match.genes),
        "missing_genes": np.array(bound.match.missing, dtype=object),
        "losses": losses,
        "left_out_classes": np.array([str(loss.label) for loss in predictor.left_out], object),
        "notes": np.array(predictor.notes(), dtype=object),
        "optirank_version": optirank.__version__,
    }
    if threshold is not None:
        record |= {"threshold": threshold, "threshold_reason": reason}
    return record


def _predict(
    opened: OpenExpression,
    predictor: Predictor,
    spool: IO[bytes],
    folder: Path,
    block_size: int,
    progress: Progress | None,
    unknown_rate: float | None,
) -> tuple[NDArray, NDArray, list[str], QueryReport | None, NDArray, ValueKinds]:
    """Codes and confidences; the probabilities go to the spool.

    Besides, the samples without a count, what the query looks like beside the training data, which
    samples look like no class, and what kind of values there are.
    To adapt to the query all scores are needed first: they wait in another file of the folder.
    """
    total, done, empty = opened.n_samples, 0, []
    codes, confidence = np.empty(total, dtype=np.int32), np.empty(total)
    familiarity = np.zeros(total if unknown_rate is not None else 0)
    plain = np.zeros(len(familiarity), dtype=np.int32)
    narrow, meter = predictor.narrowed(), predictor.meter(total)
    kinds = ValueKinds()

    def keep(rows: slice, found: Prediction) -> None:
        codes[rows], confidence[rows] = found.chosen, found.confidence
        np.ascontiguousarray(found.probabilities, dtype=np.float64).tofile(spool)

    with contextlib.ExitStack() as stack:
        waiting = None
        if predictor.adapt:
            waiting = stack.enter_context(tempfile.TemporaryFile(dir=folder))
        for block in opened.blocks(predictor.columns, block_size):
            rows = slice(done, done + block.n_samples)
            try:
                scores = narrow.scores(block.X)
            except ValueError as error:
                place = f"{opened.path}, samples {rows.start + 1} to {rows.stop}"
                raise DataError(f"{place}: {error}") from None
            kinds.add(block.X)
            if meter is not None:
                meter.add(block.X, scores)
            if unknown_rate is not None:
                familiarity[rows] = meter.familiarity(block.X, scores)
                plain[rows] = best_class(scores)
            if waiting is None:
                keep(rows, predictor.from_scores(scores))
            else:
                np.ascontiguousarray(scores, dtype=np.float64).tofile(waiting)
            empty.extend(block.sample_names[_without_counts(block.X)])
            done = rows.stop
            if progress is not None:
                progress(done, total)
        report = meter.report() if meter is not None else None
        if waiting is not None:
            for rows, scores in _scores_again(waiting, predictor, total, block_size):
                keep(rows, predictor.from_scores(report.adaptation.apply(scores)))
    unknown = np.zeros(0, dtype=bool)
    if unknown_rate is not None:
        unknown = predictor.experience.unfamiliar(familiarity, plain, unknown_rate)
    return codes, confidence, empty, report, unknown, kinds


def _scores_again(
    waiting: IO[bytes], predictor: Predictor, total: int, block_size: int
) -> Iterator[tuple[slice, NDArray]]:
    """The scores that were written to a file, block by block."""
    waiting.seek(0)
    width = predictor.bound.parts.n_problems
    for start in range(0, total, block_size):
        rows = slice(start, min(start + block_size, total))
        values = np.fromfile(waiting, np.float64, (rows.stop - start) * width)
        yield rows, values if width == 1 else values.reshape(-1, width)


def _without_counts(X: Any) -> NDArray:
    """Which rows are zero throughout."""
    return np.diff(X.indptr) == 0 if hasattr(X, "indptr") else ~X.any(axis=1)


def _counts(labels: NDArray) -> dict[str, int]:
    names, counts = np.unique(labels.astype(str), return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return dict(zip(names[order].tolist(), counts[order].tolist(), strict=True))
