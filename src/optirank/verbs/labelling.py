"""From a model to labels: one way for files and for AnnData, with the same notes.

One pass over the samples reads the genes of the panel, and those that check its labels,
and scores each sample once. Scores of all samples are kept in memory, which is little
(20 classes: 200 bytes per sample). The label of a sample never depends on other
samples, unless the user asked for that: ``adapt`` learns from the whole query, and a
target error raises its threshold where the query's own confidences are low.
"""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import optirank
from optirank._util.numbers import STANDARDISED, GeneMoments, Progress, as_dense
from optirank._util.words import collected_notes, counted, note, percent, some, warn
from optirank.data.genes import GeneMatch
from optirank.data.passes import block_rows, run_pass
from optirank.data.profiles import DataError, Profiles, text_column
from optirank.model.confidence import raise_threshold
from optirank.model.file import model_digest
from optirank.model.likeness import ValueCounter, note_values
from optirank.model.model import Model
from optirank.model.tree import NO_LABEL, SURE, Descent
from optirank.panel.further import (
    MOST_SAMPLES,
    Agreement,
    RanksByLabel,
    agreement_of,
    learn_from_query,
    sharpened,
)
from optirank.panel.votes import centred_ranks
from optirank.ranks.scoring import best_class
from optirank.verbs.checks import Checks
from optirank.verbs.labels import (
    FURTHER,
    ID_COLUMN,
    Labels,
    cluster_table,
    probability_columns,
    withheld_word,
)
from optirank.verbs.options import DEFAULTS, PredictOptions

_BLOCK_SAMPLES = 4096  # read together: more save no time
_COMPILE_FROM = 2000  # samples: loading numba is worth it from here on
_LOST = 0.05  # of the held-out accuracy: more is said
MIN_ADAPT = 10  # samples: fewer teach nothing of their platform
NO_INFORMATION = "no information: all genes of the panel have the same value"
LOW_CONFIDENCE = "confidence below the threshold"
NOT_CALIBRATED = (
    "the model is not calibrated: a confidence is not the share of correct labels"
)
_NO_ID = "unknown"  # CELLxGENE's word for a cell whose type has no term


class Labelling:
    """Scores the samples of blocks, each once, and keeps what follows from the scores.

    Attributes
    ----------
    match : where the genes of the model's panel are.
    genes : positions of the genes that are read, rising.
    values : shares of zeros and of negative values of the panel's genes.
    moments : whether the values were standardised per gene.
    sample : the values of the panel's genes in the last sample.
    """

    blocks_per_task = 4

    def __init__(self, model: Model, profiles: Profiles) -> None:
        names = profiles.genes.tolist()
        self.match = model.find_genes(names)
        columns = self.match.columns[self.match.present]
        further, self._means = np.zeros(0, np.intp), None
        if model.further is not None:
            further, self._means = model.further.found_among(names, model.genes)
        self.genes = np.union1d(columns, further)
        self._columns = np.searchsorted(self.genes, columns)
        self._further = np.searchsorted(self.genes, further)
        self._panel = model.panel
        is_large = profiles.n_samples >= _COMPILE_FROM
        self._compiled = is_large and importlib.util.find_spec("numba") is not None
        self._every = max(1, -(-profiles.n_samples // MOST_SAMPLES))
        self._ranks = RanksByLabel(len(model.classes))
        self.values = ValueCounter()
        self.moments = GeneMoments()
        self.sample: NDArray = np.zeros(0)
        self._parts: list[tuple[NDArray, ...]] = []

    def add(self, block: Any, rows: slice) -> None:
        """Score the samples of a block."""
        panel, present = self._panel, self.match.present
        values = as_dense(block[:, self._columns])
        self.values.add(values)
        self.moments.add(values)
        ranks = centred_ranks(values, compiled=self._compiled)
        scores = panel.scores(
            values, present, compiled=self._compiled or None, ranks=ranks
        )
        codes = best_class(scores)
        likeness = np.full(len(codes), np.nan)
        if panel.likeness is not None:
            likeness = panel.likeness.relative(ranks, codes, present)
        is_tied = (values == values[:, :1]).all(axis=1)
        self._parts.append((scores, likeness, is_tied))
        self.sample = values[-1]
        if len(self._further):
            spaced = slice(-rows.start % self._every, None, self._every)
            self._ranks.add(block[spaced][:, self._further], codes[spaced])

    def merge(self, other: Labelling) -> None:
        """Take what another one has seen of the samples that follow."""
        self._parts += other._parts
        self._ranks.merge(other._ranks)
        self.values.merge(other.values)
        self.moments.merge(other.moments)
        self.sample = other.sample

    def result(self) -> tuple[NDArray, NDArray, NDArray, Agreement | None]:
        """Of all samples: scores, likeness, and whether all genes of the panel have the
        same value; and the agreement of other genes, None where the model stores none.
        """
        scores, likeness, is_tied = map(np.concatenate, zip(*self._parts, strict=True))
        agreement = None
        if self._means is not None:
            agreement = agreement_of(self._means, *self._ranks.result())
        return scores, likeness, is_tied, agreement


def label_profiles(
    profiles: Profiles,
    model: Model,
    options: PredictOptions = DEFAULTS,
    progress: Progress | None = None,
) -> Labels:
    """Label the samples of profiles."""
    clusters = _clusters_of(profiles, options)
    changed: dict[str, Any] = {}
    with collected_notes() as said:
        look = Labelling(model, profiles)
        size = min(_BLOCK_SAMPLES, block_rows(len(look.genes)))
        run_pass(profiles, [look], size=size, progress=progress)
        scores, likeness, is_tied, agreement = look.result()
        checks = Checks(
            classes=model.classes.tolist(),
            n_samples=profiles.n_samples,
            compared=agreement,
            likeness=float(np.median(likeness)),
            missing=1.0 - float(look.match.present.mean()),
        )
        _say_of_query(profiles, model, look, checks)
        chosen = best_class(scores)
        probabilities = model.panel.probabilities(scores)
        if options.adapt:
            learned = learn_from_query(
                model.panel.probabilities(scores, calibrated=False),
                partial(run_pass, profiles),
                len(profiles.genes),
            )
            mean_confidence = float(probabilities.max(axis=1).mean())
            probabilities = sharpened(learned, mean_confidence)
            plain, chosen = chosen, probabilities.argmax(axis=1)
            changed["n_changed"] = int((chosen != plain).sum())
            note(
                f"learning from the query changed {changed['n_changed']} of "
                f"{len(chosen)} labels"
            )
        columns, chosen, rule = _decide(model, options, chosen, probabilities, is_tied)
    if said.warnings:
        # One text for all samples: np.full makes one per sample
        alarm = np.array(["; ".join(said.warnings)], dtype=object)
        columns["alarm"] = alarm.repeat(len(chosen))
    samples = profiles.obs.index.to_numpy(dtype=object)
    columns |= {"sample": samples, "likeness": likeness}
    names_of_classes = [f"probability_{name}" for name in model.classes]
    columns |= dict(zip(names_of_classes, probabilities.T, strict=True))
    order = ["sample", "label", "confidence", *names_of_classes, *FURTHER]
    samples = pd.DataFrame({name: columns[name] for name in order if name in columns})
    word = withheld_word(model.labels)
    by_label = checks.by_label
    record = {
        "model": model.card.name,
        "model_sha256": model_digest(model),
        "optirank_version": optirank.__version__,
        "options": options.given(),
        "query": Path(profiles.source).name,
        "classes": np.array([str(name) for name in model.classes], dtype=object),
        "withheld_label": word,
        "n_genes": model.n_genes,
        "missing_genes": np.array(look.match.missing, dtype=object),
        "agreement": checks.agreement,
        "agreement_by_label": dict(
            zip(probability_columns(by_label), by_label.values(), strict=True)
        ),
        "likeness": None if np.isnan(checks.likeness) else checks.likeness,
        **changed,
        **rule,
        "notes": np.array([*said.warnings, *said.notes], dtype=object),
    }
    if clusters is not None:
        record["clusters"] = cluster_table(clusters, samples, word)
    return Labels(
        model=model,
        source=profiles.source,
        samples=samples,
        chosen=chosen,
        notes=said.notes,
        warnings=said.warnings,
        missing=look.match.missing,
        record=record,
        clusters=record.get("clusters"),
        explanation=_explain(model, look, chosen[0]) if len(chosen) == 1 else None,
        checks=checks,
    )


def _clusters_of(profiles: Profiles, options: PredictOptions) -> Any:
    """The cluster of each sample, "" where it has none; None where they are not asked
    for. What the query cannot give is refused.
    """
    n_samples = profiles.n_samples
    if not n_samples:
        raise DataError(
            f"{profiles.source} holds no samples: there is nothing to label"
        )
    if options.adapt and n_samples < MIN_ADAPT:
        raise DataError(
            f"{profiles.source} has {n_samples} samples: learning from the query "
            f"(adapt=True) needs at least {MIN_ADAPT}; leave it out"
        )
    if options.clusters is None:
        return None
    column = text_column(profiles.obs, options.clusters, profiles.source)
    return column.fillna("").to_numpy(dtype=object)


def _say_of_query(
    profiles: Profiles, model: Model, look: Labelling, checks: Checks
) -> None:
    """Say what the reader changed, which genes are missing, what the values are, and
    whether the labels can be right.
    """
    for text in profiles.notes:
        note(text)
    note_missing_genes(model, look.match)
    checks.say()
    note_values(look.values.result(), model.card.values)
    if look.moments.result():
        note(STANDARDISED)
        if profiles.raw_genes:
            note("raw may have the values before: layer='raw' reads it")
    if model.panel.calibration is None:
        note(NOT_CALIBRATED)


def note_missing_genes(model: Model, match: GeneMatch) -> None:
    """Note which genes are missing, and what it cost held-out samples to lack so many
    at random; warn where their accuracy is then nearer to guessing than to that with
    all genes.
    """
    match.note_spelling()
    if missing := match.missing:
        verb = "is" if len(missing) == 1 else "are"
        note(
            f"{len(missing)} of {len(match.genes)} genes {verb} missing: "
            f"{some(missing)}"
        )
    whole = model.panel.expected_accuracy(0.0)
    without = model.panel.expected_accuracy(1.0 - float(match.present.mean()))
    cost = (
        f"without so many of its genes the model's held-out accuracy was "
        f"{without:.1%}, with all of them {whole:.1%}"
    )
    if without - 1.0 / len(model.classes) < whole - without:
        warn(f"{cost}: these labels are little more than guesses")
    elif whole - without > _LOST:
        note(f"{cost}: labels are less certain")


def _decide(
    model: Model,
    options: PredictOptions,
    chosen: NDArray,
    probabilities: NDArray,
    is_tied: NDArray,
) -> tuple[dict[str, Any], NDArray, dict[str, Any]]:
    """Which labels are given.

    Returns
    -------
    Columns with the label, its confidence and why it is withheld, and of a tree with
    the leaf; the class of each sample; and the ``threshold`` with its reason.
    """
    columns = {}
    if model.tree is None:
        codes = chosen[:, None]
        way = Descent(codes, np.take_along_axis(probabilities, codes, axis=1))
    else:
        way = model.tree.descend(probabilities, model.classes)
        leaves = model.tree.positions(model.classes.astype(str))
        chosen = (way.leaf[:, None] == leaves).argmax(axis=1)
        columns["leaf"] = model.classes.astype(str).astype(object)[chosen]
        columns["leaf_confidence"] = way.confidence[:, -1]
    threshold, why = _threshold(model, way.confidence, options)
    codes, confidence = way.label(threshold)
    is_below = codes == NO_LABEL
    is_coarse = ~is_below & (way.confidence[:, -1] < threshold)
    rule: dict[str, Any] = {}
    if why:
        rule = {"threshold": float(threshold), "threshold_reason": why}
        share = percent(is_below.mean())
        text = f"{is_below.sum()} of {len(chosen)} labels ({share}) are withheld"
        if is_coarse.any():
            text += f", {is_coarse.sum()} ({percent(is_coarse.mean())}) are coarser "
            text += "than a class"
        note(f"{text}: {why}")
    if is_tied.any():
        samples = counted(int(is_tied.sum()), "sample has", "samples have")
        note(
            f"{samples} the same value in all genes of the panel, and no label is given"
        )
    words = np.array([*model.labels, withheld_word(model.labels)], dtype=object)
    places = np.where(is_tied, NO_LABEL, codes)  # without a label the last word
    columns["label"] = words[places]
    columns["confidence"] = confidence
    if model.terms:
        ids = [model.terms.get(name, _NO_ID) for name in words]
        columns[ID_COLUMN] = np.array(ids, dtype=object)[places]
    columns["withheld_because"] = np.select(
        [is_tied, is_below],
        np.array([NO_INFORMATION, LOW_CONFIDENCE], dtype=object),
        np.array("", dtype=object),
    )
    return columns, chosen, rule


def _threshold(
    model: Model, confidence: NDArray, options: PredictOptions
) -> tuple[float, str]:
    """The confidence below which labels are withheld, and where it comes from; "" where
    none are. ``confidence`` is (n, levels).
    """
    target = options.target_error
    if options.threshold is not None:
        why = f"asked for a confidence of at least {options.threshold:g}"
        return options.threshold, why
    if target is None:
        why = "a label of the tree is given where it is more probable than all others"
        return (0.0, "") if model.tree is None else (SURE, f"{why} together")
    control = model.panel.error_control
    if control is None:
        raise ValueError(
            f"target error {target:g}: the model stores no errors of held-out samples; "
            "give a threshold instead"
        )
    by_held_out, why = control.at(target, by_level=model.tree is not None)
    threshold = raise_threshold(confidence, by_held_out, target)
    if threshold > by_held_out:
        why = (
            f"the query's own confidences ask for at least {threshold:.3f}, so that "
            f"{percent(target)} of the labels given are expected to be wrong; by "
            f"held-out samples it would be {by_held_out:.3f}"
        )
    return threshold, f"{why}; an error is an aim on data like the training"


def _explain(model: Model, look: Labelling, chosen: int) -> pd.DataFrame:
    """What the genes of a single sample contribute to the score of its class, the
    largest contributions first.

    A model of two classes has one score: contributions are turned so that a positive
    one speaks for the class.
    """
    table: Any = model.explain(look.sample, model.genes[look.match.present])
    name = model.classes[chosen]
    if name in model.score_classes:
        return table[table["class"] == name].reset_index(drop=True)
    turned = {column: -table[column] for column in ("weight", "contribution")}
    return table.assign(**{"class": name}, **turned)
