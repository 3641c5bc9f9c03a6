"""From a model to labels: one way for files and for AnnData, with the same notes.

Blocks of samples are read, with the genes of the panel alone, and scored; scores,
labels and probabilities of all samples are kept in memory, which is little (20 classes:
200 bytes per sample). The label of a sample never depends on other samples, unless the
user asked for that: ``adapt`` learns from the whole query, and a target error raises
its threshold where the query's own confidences are low.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Mapping, Sequence
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
from optirank.io.passes import run_pass
from optirank.io.reading import check_path, guess_format, open_expression
from optirank.model import MissingGenesError, Model, Predictor
from optirank.model.file import as_model, model_digest
from optirank.model.values import value_notes
from optirank.ranks.scoring import best_class
from optirank.workflow.cluster import cluster_at, parts_folder, run_of
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

    from optirank.io.cluster import Cluster
    from optirank.io.data import Profiles

_COMPILE_FROM = 2000  # samples: loading numba is worth it from here on
MIN_ADAPT = 10  # samples: fewer teach nothing of their platform
NOT_CALIBRATED = (
    "the model is not calibrated: a confidence is not the share of correct labels"
)
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
    with cluster_at(dask, parts_folder(out), run) as cluster:
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
                        cluster and cluster.for_file(number),
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
        row = sample_position(opened, sample)
        labels = label_profiles(opened, fitted, options, explained=row)
    assert labels.explanation is not None
    return labels, labels.explanation


def sample_position(profiles: Profiles, sample: str | None) -> int:
    """The position of a sample by its name; None for the only one there is."""
    names = np.asarray(profiles.sample_names).astype(str)
    if sample is None and len(names) == 1:
        return 0
    where = np.flatnonzero(names == sample)
    if sample is None or not len(where):
        asked = "several samples" if sample is None else f"no sample {sample!r}"
        raise DataError(
            f"{profiles.source} has {asked}: name one, there are {some(names, 5)}"
        )
    return int(where[0])


def label_profiles(
    profiles: ExpressionData,
    model: Model,
    options: PredictOptions | None = None,
    progress: Progress | None = None,
    genes_in: str | None = None,
    cluster: Cluster | None = None,
    explained: int | None = None,
) -> Labels:
    """Label the samples of an open file or an AnnData, see `predict_file`.

    ``genes_in`` is what the user said of a table, for the error of a table that lies
    the other way. ``cluster`` runs passes over the samples, see `optirank.io.passes`.
    ``explained`` is the position of a sample whose label is explained; that of a single
    sample always is.
    """
    options = options or PredictOptions()
    _check_size(profiles, options)
    groups = None if options.clusters is None else _groups(profiles, options.clusters)
    profiles = in_names_of(profiles, model.path_genes, homologs=options.homologs)
    query = Query(
        profiles,
        _bind(profiles, model, options, genes_in),
        all_likeness=options.unknown_rate is not None,
        progress=progress,
        cluster=cluster,
    )
    probabilities, adapt_notes = _probabilities(query, options)
    chosen = best_class(query.scores)
    n_changed = None
    if options.adapt:
        n_changed = int((probabilities.argmax(axis=1) != chosen).sum())
        chosen = probabilities.argmax(axis=1)
    confidence = probabilities[np.arange(len(chosen)), chosen]
    decision = withhold(query, confidence, options)
    notes = [*_query_notes(query), *adapt_notes, *decision.notes]
    if query.predictor.panel.calibration is None:
        notes.append(NOT_CALIBRATED)
    classes = np.array(
        [str(label) for label in query.predictor.model.classes], dtype=object
    )
    codes = np.where(decision.reasons != "", len(classes), chosen)
    clusters = _majority(groups, codes, confidence, classes, options, notes)
    alarms = query.alarms()
    record = _record(query, options, decision, classes, [*alarms, *notes])
    if n_changed is not None:
        record["n_changed"] = n_changed
    explanation = None
    if len(chosen) == 1:
        explained = 0
    if explained is not None:
        explanation = explain_row(
            profiles,
            query.predictor,
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
        warnings=alarms,
        missing=query.predictor.match.missing,
        threshold=decision.threshold,
        clusters=clusters,
        record=record,
        explanation=explanation,
    )


def _check_size(profiles: Profiles, options: PredictOptions) -> None:
    """Refuse a query without samples, or with too few to learn from."""
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


def _query_notes(query: Query) -> list[str]:
    """What the reader changed, which genes are missing, and what the values are."""
    predictor = query.predictor
    profiles: Any = query.profiles
    notes = [*profiles.notes, *predictor.notes()]
    notes += _raw_notes(profiles, predictor.match.missing)
    notes += value_notes(query.values, predictor.model.card.values)
    if query.standardised:
        notes.append(STANDARDISED)
    return notes


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
        shape = (n_samples, len(query.profiles.gene_names))
        size = block_rows(shape[1])
        over_query = functools.partial(run_pass, query.profiles, size=size)
        adapted = learn_from_query(soft, over_query, shape)
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
