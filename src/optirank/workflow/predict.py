"""From a model to labels: one way for files and for AnnData, with the same notes.

Blocks of samples are read, with the genes of the panel alone, and scored; scores,
labels and probabilities of all samples are kept in memory, which is little (20 classes:
200 bytes per sample). The label of a sample never depends on other samples, unless the
user asked for that: ``adapt`` learns from the whole query, and a target error raises
its threshold where the query's own confidences are low.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import optirank
from optirank._util.files import check_outputs
from optirank._util.names import some
from optirank._util.scales import STANDARDISED
from optirank.io.data import DataError, ExpressionData, block_rows, text_column
from optirank.io.genes import check_case
from optirank.io.homologs import in_names_of
from optirank.io.reading import check_path, guess_format, open_expression
from optirank.model import MissingGenesError, Model, Predictor
from optirank.model.file import as_model, model_digest
from optirank.model.values import value_notes
from optirank.ranks.scoring import best_class
from optirank.workflow.cluster import engine_at, parts_folder, run_of
from optirank.workflow.clusters import Clusters, majority
from optirank.workflow.explain import Explanation, explain_row
from optirank.workflow.label_files import check_format, write_labels
from optirank.workflow.labels import Labels, withheld_word
from optirank.workflow.options import PredictOptions
from optirank.workflow.query import Progress, Query
from optirank.workflow.several import join_labels, names_of_files
from optirank.workflow.sources import with_annotations
from optirank.workflow.withholding import Withholding, withhold

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from optirank.io.blocks import Engine
    from optirank.io.data import Profiles

_COMPILE_FROM = 2000  # samples: loading numba is worth it from here on
MIN_ADAPT = 10  # samples: fewer teach nothing of their platform
_SUGGEST_ADAPT = 50  # samples from which learning from the query is worth trying


def predict_file(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    model: Any,
    out: str | os.PathLike[str],
    options: PredictOptions | None = None,
    *,
    spreadsheet: bool = False,
    progress: Progress | None = None,
    dask: str | None = None,
    **reading: Any,
) -> Labels:
    """Label the samples of a file with a model or the file of one, and write the
    labels.

    ``out`` is ``.csv`` or ``.parquet`` (sample, label, confidence, one probability per
    class), ``.h5ad``, a copy of ``path`` with what :func:`optirank.tl.annotate` adds,
    or ``.zarr``, an AnnData with that alone. Of several files, each is labelled as if
    it were alone, and a column says which file a sample is from. ``dask`` is the
    address of a dask scheduler whose workers can read ``path``. A run that is
    interrupted goes on where it stopped. ``reading`` are options of
    :func:`optirank.datasets.read_expression`.
    """
    files = [path] if isinstance(path, str | os.PathLike) else path
    paths = [Path(file) for file in files]
    out = Path(out)
    options = options or PredictOptions()
    _check_files(paths, out, reading)
    inputs = [*paths, reading.get("samples")]
    if isinstance(model, str | Path):
        inputs.append(model)
    check_outputs({"the labels": out}, inputs, force=True)
    fitted = as_model(model)
    names = names_of_files(paths)
    run = run_of(model_digest(fitted), paths, options.given(), reading)
    # A column of a table with clusters is no gene
    reading_file = with_annotations(
        reading, [options.clusters] if options.clusters else []
    )
    parts = []
    with engine_at(dask, parts_folder(out), run) as engine:
        for number, file in enumerate(paths):
            with open_expression(
                file, known_genes=fitted.path_genes, **reading_file
            ) as opened:
                parts.append(
                    label_profiles(
                        opened,
                        fitted,
                        options,
                        progress,
                        reading.get("genes_in"),
                        engine and engine.for_file(number),
                    )
                )
        labels = join_labels(parts, names)
        labels.record["options"] |= _given(reading)
        write_labels(labels, out, paths[0], spreadsheet=spreadsheet)
    return labels


def _given(reading: Mapping[str, Any]) -> dict[str, Any]:
    """The options of reading that differ from their defaults, as a record
    keeps them.
    """
    given = {name: value for name, value in reading.items() if value}
    if "samples" in given:
        given["samples"] = Path(given["samples"]).name
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
    }


def _check_files(paths: list[Path], out: Path, reading: Mapping[str, Any]) -> None:
    """Refuse files that are not there, and formats that cannot be written."""
    if not paths:
        raise DataError("no file is named: name at least one")
    for path in paths:
        check_path(path)
        check_format(out, path, reading.get("format") or guess_format(path))
    if len(paths) > 1 and out.suffix.lower() == ".h5ad":
        raise DataError(
            f"{out} would be a copy of one query, and there are {len(paths)}: write "
            "the labels as .csv, .parquet or .zarr"
        )


def explain_sample(
    path: str | os.PathLike[str],
    model: Any,
    sample: str,
    options: PredictOptions | None = None,
    **reading: Any,
) -> tuple[Labels, Explanation]:
    """Why a sample of a file got its label, under the options it was labelled with.

    Gives the labels of all samples, with their notes, and the explanation.
    """
    fitted = as_model(model)
    with open_expression(path, known_genes=fitted.path_genes, **reading) as opened:
        names = opened.sample_names.astype(str)
        where = np.flatnonzero(names == sample)
        if not len(where):
            raise DataError(
                f"{path} has no sample {sample!r}: there are {some(names, 5)}"
            )
        labels = label_profiles(opened, fitted, options, explained=int(where[0]))
    assert labels.explanation is not None
    return labels, labels.explanation


def label_profiles(
    profiles: ExpressionData,
    model: Model,
    options: PredictOptions | None = None,
    progress: Progress | None = None,
    genes_in: str | None = None,
    engine: Engine | None = None,
    explained: int | None = None,
) -> Labels:
    """Label the samples of an open file or an AnnData, see `predict_file`.

    ``genes_in`` is what the user said of a table, for the error of a table that lies
    the other way. ``engine`` runs over the blocks of samples, see `optirank.io.blocks`.
    ``explained`` is the position of a sample whose label is explained; that of a single
    sample always is.
    """
    options = options or PredictOptions()
    n_samples = profiles.n_samples
    if not n_samples:
        raise DataError(
            f"{profiles.source} holds no samples: there is nothing to label"
        )
    if options.adapt and n_samples < MIN_ADAPT:
        raise DataError(
            f"{profiles.source} has {n_samples} samples: learning from the query "
            f"(--adapt, adapt=True) needs at least {MIN_ADAPT}; leave it out"
        )
    groups = None if options.clusters is None else _groups(profiles, options.clusters)
    profiles = in_names_of(profiles, model.path_genes, homologs=options.homologs)
    notes = list(profiles.notes)
    predictor = _bind(profiles, model, options, genes_in)
    query = Query(
        profiles,
        predictor,
        all_likeness=options.unknown_rate is not None,
        progress=progress,
        engine=engine,
    )
    notes += predictor.notes()
    notes += _raw_notes(profiles, predictor.match.missing)
    notes += value_notes(query.values, model.card.values)
    if query.standardised:
        notes.append(STANDARDISED)
    probabilities, adapt_notes = _probabilities(query, options)
    notes += adapt_notes
    chosen = probabilities.argmax(axis=1)
    if not options.adapt:
        chosen = best_class(query.scores)
    confidence = probabilities[np.arange(n_samples), chosen]
    decision = withhold(query, confidence, options)
    notes += decision.notes
    if predictor.panel.calibration is None:
        notes.append(
            "the model is not calibrated: a confidence is not the share of correct "
            "labels"
        )
    alarms = query.alarms()
    classes = np.array([str(label) for label in predictor.model.classes], dtype=object)
    codes = np.where(decision.reasons != "", len(classes), chosen)
    clusters = _majority(groups, codes, confidence, classes, options, notes)
    record = _record(query, options, decision, classes, [*alarms, *notes])
    if options.adapt:
        record["n_changed"] = int((chosen != best_class(query.scores)).sum())
    explanation = None
    if n_samples == 1:
        explained = 0
    if explained is not None:
        explanation = explain_row(
            profiles,
            predictor,
            explained,
            probabilities[explained],
            str(decision.reasons[explained]),
        )
    return Labels(
        model=model,
        source=str(profiles.source),
        names=np.asarray(profiles.sample_names, dtype=object),
        classes=classes,
        chosen=chosen,
        reasons=decision.reasons,
        confidence=confidence,
        probabilities=probabilities,
        notes=notes,
        alarms=alarms,
        missing=predictor.match.missing,
        threshold=decision.threshold,
        clusters=clusters,
        record=record,
        explanation=explanation,
    )


def _bind(
    profiles: ExpressionData,
    model: Model,
    options: PredictOptions,
    genes_in: str | None,
) -> Predictor:
    """The model over the columns of the data."""
    many = profiles.n_samples >= _COMPILE_FROM
    compiled = True if many and importlib.util.find_spec("numba") else None
    try:
        predictor = model.bind(
            [str(name) for name in profiles.gene_names],
            other_names=profiles.other_gene_names,
            drop_classes=options.drop_classes,
            compiled=compiled,
        )
    except MissingGenesError as error:
        in_samples = set(error.match.genes).intersection(
            map(str, profiles.sample_names)
        )
        if genes_in is None or len(in_samples) <= error.match.present.sum():
            raise
        opposite = "rows" if genes_in == "columns" else "columns"
        raise DataError(
            f"{profiles.source}: the genes of the model are in its {opposite}, not in "
            f"its {genes_in} ({some(in_samples, 3)}): use --genes-in {opposite} "
            f"(genes_in={opposite!r})"
        ) from None
    if options.homologs != "case":
        check_case(predictor.match)
    return predictor


def _raw_notes(profiles: ExpressionData, missing: Sequence[str]) -> list[str]:
    """Say where genes that are missing are in ``raw``."""
    if profiles.raw_gene_names is None:
        return []
    in_raw = set(missing).intersection(map(str, profiles.raw_gene_names))
    if not in_raw:
        return []
    return [
        f"{len(in_raw)} genes that are missing are in raw: use_raw=True (--use-raw) "
        "reads it"
    ]


def _probabilities(
    query: Query, options: PredictOptions
) -> tuple[NDArray[np.float64], list[str]]:
    """Probabilities of all samples, learned from the query if asked for, and notes."""
    predictor = query.predictor
    plain = predictor.probabilities(query.scores)
    n_samples = len(plain)
    if options.adapt:
        from optirank.panel.adaptation import learn_from_query, sharpened

        soft = predictor.probabilities(query.scores, calibrated=False)
        adapted = learn_from_query(soft, _WholeQuery(query.profiles))
        adapted = sharpened(adapted, float(plain.max(axis=1).mean()))
        n_changed = int((adapted.argmax(axis=1) != best_class(query.scores)).sum())
        note = f"learning from the query changed {n_changed} of {n_samples} labels"
        return adapted, [note]
    n_labels = len(np.unique(best_class(query.scores)))
    like_training = query.predictor.panel.likeness is not None and not query.alarms()
    if n_samples >= _SUGGEST_ADAPT and n_labels > 1 and like_training:
        return plain, [
            "learning from the query may help on another platform: --adapt (adapt=True)"
        ]
    return plain, []


class _WholeQuery:
    """The samples of a query with all genes, as learning from the query reads them."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self.shape = (profiles.n_samples, len(profiles.gene_names))

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """All samples in order, with some genes (all)."""
        for block in self._profiles.blocks(columns, block_rows(self.shape[1])):
            yield block.X.tocsr() if hasattr(block.X, "tocsr") else block.X


def _groups(profiles: ExpressionData, column: str) -> pd.Series:
    """The cluster of each sample."""
    if column not in profiles.obs.columns:
        raise DataError(
            f"{profiles.source} has no column {column!r} for its samples: there are "
            f"{some(profiles.obs.columns, 20)}. Clusters are not computed here: "
            "scanpy's sc.tl.leiden makes them, or leave them out, each sample has its "
            "own label"
        )
    return text_column(profiles.obs, column, profiles.source)


def _majority(
    groups: pd.Series | None,
    codes: NDArray,
    confidence: NDArray,
    classes: NDArray,
    options: PredictOptions,
    notes: list[str],
) -> Clusters | None:
    """The majority labels of clusters, where these were asked for."""
    if groups is None:
        return None
    n_free = int(groups.isna().sum())
    if n_free:
        notes.append(
            f"{n_free} samples have no {options.clusters}: they keep their own label"
        )
    words = np.array([*classes, withheld_word(classes)], dtype=object)
    return majority(groups, codes, confidence, words)


def _record(
    query: Query,
    options: PredictOptions,
    decision: Withholding,
    classes: NDArray,
    notes: list[str],
) -> dict[str, Any]:
    """How the labels were made, in values that a file can hold."""
    predictor = query.predictor
    model = predictor.model
    record: dict[str, Any] = {
        "model": model.card.name,
        "model_sha256": model_digest(model),
        "optirank_version": optirank.__version__,
        "options": options.given(),
        "query": Path(str(query.profiles.source)).name,
        "query_checksum": query.checksum,
        "classes": classes,
        "withheld_label": withheld_word(classes),
        "n_genes": len(predictor.match.genes),
        "missing_genes": np.array(predictor.match.missing, dtype=object),
        "left_out_classes": np.array(predictor.left_out, dtype=object),
        "shift": float(query.shift),
        "notes": np.array(notes, dtype=object),
    }
    if decision.threshold is not None:
        record["threshold"] = float(decision.threshold)
        record["threshold_reason"] = decision.threshold_reason
    return record
