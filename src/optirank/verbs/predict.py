"""From a model to labels: one way for files and for AnnData, with the same notes.

Blocks of samples are read, with the genes of the panel alone, and scored; scores,
labels and probabilities of all samples are kept in memory, which is little (20 classes:
200 bytes per sample). The label of a sample never depends on other samples, unless the
user asked for that: ``adapt`` learns from the whole query, and a target error raises
its threshold where the query's own confidences are low.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import optirank
from optirank._util.matrices import STANDARDISED
from optirank._util.names import some
from optirank.data.errors import DataError
from optirank.data.genes import check_case
from optirank.data.passes import read_values, run_pass
from optirank.data.profiles import text_column
from optirank.model import Model, Predictor
from optirank.model.file import model_digest
from optirank.model.likeness import value_notes
from optirank.ranks.scoring import best_class
from optirank.verbs.labels import Labels, probability_columns, withheld_word
from optirank.verbs.options import DEFAULTS, PredictOptions
from optirank.verbs.query import Query
from optirank.verbs.withholding import withhold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank._util.matrices import Look, Progress
    from optirank.data.profiles import Profiles
    from optirank.model import Predictor

_COMPILE_FROM = 2000  # samples: loading numba is worth it from here on
MIN_ADAPT = 10  # samples: fewer teach nothing of their platform
NOT_CALIBRATED = (
    "the model is not calibrated: a confidence is not the share of correct labels"
)


def label_profiles(
    profiles: Profiles,
    model: Model,
    options: PredictOptions = DEFAULTS,
    progress: Progress | None = None,
) -> Labels:
    """Label the samples of profiles, see `predict_file`.

    The label of a single sample is explained.
    """
    groups = _clusters_asked(profiles, options)
    query = Query(profiles, _bind(profiles, model), progress=progress)
    labels = _decide(query, options, groups)
    if len(labels.chosen) > 1:
        return labels
    return replace(labels, explanation=_explained(query, labels))


def _decide(query: Query, options: PredictOptions, groups: NDArray | None) -> Labels:
    """From scores to labels: probabilities, the best class, what is withheld."""
    predictor = query.predictor
    model = predictor.model
    record = _record(query, options)
    notes = _query_notes(query)
    chosen, probabilities = _most_probable(query, options, record, notes)
    confidence = probabilities[np.arange(len(chosen)), chosen]
    leaf_confidence = None
    if model.tree is None:
        reasons, rule, said = withhold(query, confidence, options)
        codes = chosen.copy()
    else:
        leaves = model.tree.positions(model.classes.astype(str))
        way = model.tree.descend(probabilities, model.classes)
        reasons, rule, said = withhold(query, way.confidence, options)
        codes, confidence = way.label(rule.get("threshold", 0.0))
        leaf_confidence = way.confidence[:, -1]
        chosen = (way.leaf[:, None] == leaves).argmax(axis=1)
    codes[reasons != ""] = len(model.labels)
    notes += said
    if predictor.panel.calibration is None:
        notes.append(NOT_CALIBRATED)
    if groups is not None and (groups == "").any():
        n_free = int((groups == "").sum())
        notes.append(
            f"{n_free} samples have no {options.clusters}: they keep their own label"
        )
    record |= rule
    record["notes"] = np.array([*query.alarms, *notes], dtype=object)
    # One text for all samples: np.full makes one per sample
    alarm = np.array(["; ".join(query.alarms)], dtype=object)
    return Labels(
        model=model,
        source=query.profiles.source,
        names=query.profiles.sample_names,
        chosen=chosen,
        codes=codes,
        reasons=reasons,
        alarms=alarm.repeat(len(reasons)),
        confidence=confidence,
        probabilities=probabilities,
        notes=notes,
        warnings=list(query.alarms),
        missing=predictor.match.missing,
        record=record,
        leaf_confidence=leaf_confidence,
        groups=groups,
        trust=query.trust,
    )


def _most_probable(
    query: Query, options: PredictOptions, record: dict[str, Any], notes: list[str]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The class of each sample, as a position, and the probabilities of all classes;
    learned from the query where that is asked for. ``record`` and ``notes`` get what
    there is to say of that.
    """
    chosen = best_class(query.scores)
    if options.adapt:
        probabilities = _learned_probabilities(query)
        learned = probabilities.argmax(axis=1)
        n_changed = int((learned != chosen).sum())
        record["n_changed"] = n_changed
        notes.append(
            f"learning from the query changed {n_changed} of {len(chosen)} labels"
        )
        return learned, probabilities
    return chosen, query.predictor.panel.probabilities(query.scores)


def _learned_probabilities(query: Query) -> NDArray[np.float64]:
    """Probabilities of all samples, learned from the query."""
    from optirank.panel.further import learn_from_query, sharpened

    panel = query.predictor.panel
    plain = panel.probabilities(query.scores)
    soft = panel.probabilities(query.scores, calibrated=False)

    def over_query(
        looks: Sequence[Look],
        columns: NDArray | None = None,
        rows: NDArray | None = None,
    ) -> None:
        run_pass(query.profiles, looks, columns, rows=rows)

    learned = learn_from_query(soft, over_query, len(query.profiles.genes))
    return sharpened(learned, float(plain.max(axis=1).mean()))


def _clusters_asked(
    profiles: Profiles, options: PredictOptions
) -> NDArray[np.object_] | None:
    """The cluster of each sample, "" where it has none; None where they are not asked
    for. What the model or the query cannot give is refused.
    """
    n_samples, source = profiles.n_samples, profiles.source
    if not n_samples:
        raise DataError(f"{source} holds no samples: there is nothing to label")
    if options.adapt and n_samples < MIN_ADAPT:
        raise DataError(
            f"{source} has {n_samples} samples: learning from the query "
            f"(adapt=True) needs at least {MIN_ADAPT}; leave it out"
        )
    if options.clusters is None:
        return None
    obs = profiles.obs
    if options.clusters not in obs.columns:
        raise DataError(
            f"{source} has no column {options.clusters!r} for its samples: there are "
            f"{some(obs.columns, 20)}. Clusters are not computed here: "
            "scanpy's sc.tl.leiden makes them, or leave them out, each sample has its "
            "own label"
        )
    clusters = text_column(obs, options.clusters, source).fillna("")
    return clusters.to_numpy(dtype=object)


def _query_notes(query: Query) -> list[str]:
    """What the reader changed, which genes are missing, and what the values are."""
    predictor = query.predictor
    notes = [*query.profiles.notes, *predictor.notes()]
    raw_genes = query.profiles.raw_genes
    in_raw = set(predictor.match.missing).intersection(raw_genes)
    if in_raw:
        notes.append(
            f"{len(in_raw)} genes that are missing are in raw: layer='raw' reads it"
        )
    notes += query.trust.notes()
    notes += value_notes(query.values, predictor.model.card.values)
    if query.standardised:
        notes.append(STANDARDISED)
        if raw_genes:
            notes.append("raw may have the values before: layer='raw' reads it")
    return notes


def _bind(profiles: Profiles, model: Model) -> Predictor:
    """The model over the columns of the data."""
    many = profiles.n_samples >= _COMPILE_FROM
    compiled = True if many and importlib.util.find_spec("numba") else None
    predictor = model.bind(
        profiles.genes.tolist(), other_names=profiles.other_names(), compiled=compiled
    )
    check_case(predictor.match)
    return predictor


def _record(query: Query, options: PredictOptions) -> dict[str, Any]:
    """How the labels are made, in values that a file can hold."""
    predictor = query.predictor
    model = predictor.model
    by_label = query.trust.by_label
    record: dict[str, Any] = {
        "model": model.card.name,
        "model_sha256": model_digest(model),
        "optirank_version": optirank.__version__,
        "options": options.given(),
        "query": Path(query.profiles.source).name,
        "classes": np.array([str(label) for label in model.classes], dtype=object),
        "withheld_label": withheld_word(model.labels),
        "n_genes": len(predictor.match.genes),
        "missing_genes": np.array(predictor.match.missing, dtype=object),
        "agreement": query.trust.agreement,
        "agreement_by_label": dict(
            zip(probability_columns(by_label), by_label.values(), strict=True)
        ),
        "likeness": query.trust.likeness,
    }
    if model.terms:
        record["n_ids"] = len(model.terms)
    return record


def _explained(query: Query, labels: Labels) -> pd.DataFrame:
    """What the genes of a single sample contribute to the score of its class, the
    largest contributions first.

    A model of two classes has one score: contributions are turned so that a positive
    one speaks for the class.
    """
    model = labels.model
    columns = query.predictor.columns
    used = query.profiles.genes[columns].tolist()
    table = model.explain(read_values(query.profiles, columns), used)
    label = model.classes[labels.chosen[0]]
    if label in model.score_classes:
        return table[table["class"] == label].reset_index(drop=True)
    turned = {name: -table[name] for name in ("weight", "contribution")}
    return table.assign(**{"class": label}, **turned)
