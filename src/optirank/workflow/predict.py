"""From a model to labels: one way for files and for AnnData, with the same notes.

Blocks of samples are read, with the genes of the panel alone, and scored; scores, labels
and probabilities of all samples are kept in memory, which is little (20 classes: 200 bytes
per sample). The label of a sample never depends on other samples, unless the user asked
for that: ``adapt`` learns from the whole query, and a target error raises its threshold
where the query's own confidences are low.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import optirank
from optirank._util.files import check_outputs
from optirank._util.names import some
from optirank.io.data import DataError, block_rows, text_column
from optirank.io.genes import check_case
from optirank.io.homologs import Homologs, in_names_of
from optirank.io.reading import guess_format, open_expression
from optirank.model import MissingGenesError, Model, Predictor
from optirank.model.confidence import check_target_error, raise_threshold
from optirank.model.file import as_model, model_digest
from optirank.model.values import value_notes
from optirank.ranks.scoring import best_class
from optirank.workflow.explain import explain_row
from optirank.workflow.label_files import check_format, write_labels
from optirank.workflow.labels import Clusters, Labels, majority, withheld_word
from optirank.workflow.query import Progress, Query

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from optirank.io.blocks import Engine
    from optirank.io.data import Profiles

NO_INFORMATION = "no information: all genes of the panel have the same value"
LOW_CONFIDENCE = "confidence below the threshold"
UNKNOWN = "looks like no class of the training data"
_COMPILE_FROM = 2000  # samples: loading numba is worth it from here on
_MOSTLY_TIED = 0.9  # share of the panel's genes that are tied with another
MIN_ADAPT = 10  # samples: fewer teach nothing of their platform
_SUGGEST_ADAPT = 50  # samples from which learning from the query is worth trying


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """How labels are given: parameters of :func:`optirank.tl.annotate`."""

    clusters: str | None = None
    threshold: float | None = None
    target_error: float | None = None
    adapt: bool = False
    unknown_rate: float | None = None
    drop_classes: bool = False
    homologs: Homologs = None

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> PredictOptions:
        """The options among the parameters of a command or a function."""
        names = [option.name for option in fields(cls)]
        return cls(**{name: given[name] for name in names if name in given})

    def __post_init__(self) -> None:
        if self.threshold is not None and self.target_error is not None:
            raise ValueError("give a threshold or a target error, not both")
        for name in ("threshold", "target_error", "unknown_rate"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name}={value!r}: use a share between 0 and 1")

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        if isinstance(self.homologs, Mapping):
            values["homologs"] = f"a mapping of {len(self.homologs)} genes"
        elif self.homologs is not None:
            values["homologs"] = os.fspath(self.homologs)
        return {
            name: value for name, value in values.items() if value not in (None, False)
        }


def predict_file(
    path: str | os.PathLike[str],
    model: Any,
    out: str | os.PathLike[str],
    options: PredictOptions | None = None,
    *,
    spreadsheet: bool = False,
    progress: Progress | None = None,
    **reading: Any,
) -> Labels:
    """Label the samples of a file with a model or the file of one, and write the labels.

    ``out`` is ``.csv`` or ``.parquet`` (sample, label, confidence, one probability per
    class), or ``.h5ad``, a copy of ``path`` with what :func:`optirank.tl.annotate` adds.
    ``reading`` are options of :func:`optirank.datasets.read_expression`.
    """
    path = Path(path)
    out = Path(out)
    options = options or PredictOptions()
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    check_format(out, path, reading.get("format") or guess_format(path))
    inputs = [path, reading.get("samples")]
    if isinstance(model, str | Path):
        inputs.append(model)
    check_outputs({"the labels": out}, inputs, force=True)
    fitted = as_model(model)
    # A column of a table with clusters is no gene
    with open_expression(path, label=options.clusters, **reading) as opened:
        labels = label_profiles(
            opened, fitted, options, progress, reading.get("genes_in")
        )
        write_labels(labels, out, path, spreadsheet=spreadsheet)
    return labels


def label_profiles(
    profiles: Profiles,
    model: Model,
    options: PredictOptions | None = None,
    progress: Progress | None = None,
    genes_in: str | None = None,
    engine: Engine | None = None,
) -> Labels:
    """Label the samples of an open file or an AnnData, see `predict_file`.

    ``genes_in`` is what the user said of a table, for the error of a table that lies the
    other way. ``engine`` runs over the blocks of samples, see `optirank.io.blocks`.
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
    groups = None
    if options.clusters is not None:
        groups = text_column(profiles.obs, options.clusters, profiles.source)
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
    notes += value_notes(query.values, model.card.values)
    probabilities, adapt_notes = _probabilities(query, options)
    notes += adapt_notes
    chosen = probabilities.argmax(axis=1)
    if not options.adapt:
        chosen = best_class(query.scores)
    confidence = probabilities[np.arange(n_samples), chosen]
    decision = _Decision(np.full(n_samples, "", dtype=object))
    decision.withhold_unknown(query, options.unknown_rate)
    decision.withhold_unsure(predictor, confidence, options)
    decision.withhold_tied(query.tied_share)
    notes += decision.notes
    if predictor.panel.calibration is None:
        notes.append(
            "the model is not calibrated: a confidence is not the share of correct labels"
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
        explanation = explain_row(profiles, predictor, 0)
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
    profiles: Profiles, model: Model, options: PredictOptions, genes_in: str | None
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
        other = "rows" if genes_in == "columns" else "columns"
        raise DataError(
            f"{profiles.source}: the genes of the model are in its {other}, not in its "
            f"{genes_in} ({some(in_samples, 3)}): use --genes-in {other} "
            f"(genes_in={other!r})"
        ) from None
    if options.homologs != "case":
        check_case(predictor.match)
    return predictor


def _probabilities(
    query: Query, options: PredictOptions
) -> tuple[NDArray[np.float64], list[str]]:
    """Probabilities of all samples, learned from the query if asked for, and notes."""
    predictor = query.predictor
    plain = predictor.probabilities(query.scores)
    n_samples = len(plain)
    if options.adapt:
        from optirank.panel.adaptation import learn_from_query

        soft = predictor.probabilities(query.scores, calibrated=False)
        adapted = learn_from_query(soft, _QuerySource(query.profiles))
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


class _QuerySource:
    """The samples of a query with all genes, as `learn_from_query` reads them."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self.shape = (profiles.n_samples, len(profiles.gene_names))

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """All samples in order, with some genes (all)."""
        size = block_rows(self.shape[1])
        for block in self._profiles.blocks(columns, size):
            yield block.X.tocsr() if hasattr(block.X, "tocsr") else block.X


@dataclass
class _Decision:
    """Which labels are withheld, and why."""

    reasons: NDArray[np.object_]
    threshold: float | None = None
    threshold_reason: str = ""
    notes: list[str] = field(default_factory=list)

    def withhold_unknown(self, query: Query, rate: float | None) -> None:
        """Withhold labels of samples that look like no class."""
        if rate is None:
            return
        score = query.predictor.likeness_score
        unknown = score.unknown(query.likeness, query.labels_looked_at, rate)
        self.reasons[unknown] = UNKNOWN
        self.notes.append(
            f"{unknown.sum()} of {len(unknown)} samples ({unknown.mean():.1%}) look like "
            "no class, and their labels are withheld; of held-out samples it was "
            f"{rate:.1%}"
        )

    def withhold_unsure(
        self, predictor: Predictor, confidence: NDArray, options: PredictOptions
    ) -> None:
        """Withhold labels of low confidence, as asked for or as the model was trained."""
        if options.threshold is not None:
            self.threshold = options.threshold
            self.threshold_reason = (
                f"asked for a confidence of at least {options.threshold:g}"
            )
        else:
            self._set_threshold(predictor, confidence, options.target_error)
        if self.threshold is None:
            return
        below = confidence < self.threshold
        self.reasons[below] = LOW_CONFIDENCE
        share = f"{below.sum()} of {len(below)} labels ({below.mean():.1%})"
        what = f"{share} are withheld" if below.any() else "no label is withheld"
        self.notes.append(f"{what}: {self.threshold_reason}")

    def _set_threshold(
        self, predictor: Predictor, confidence: NDArray, target_error: float | None
    ) -> None:
        """The threshold for a target error: by held-out samples, and by the query."""
        control = predictor.panel.error_control
        target = target_error
        trained = predictor.model.panel.error_control  # of the model's own size
        if target is None and trained is not None:
            target = trained.target_error
        if target is None or target == 1:  # 1: withhold none
            return
        check_target_error(target)
        if predictor.left_out:
            raise ValueError(
                f"target error {target:g}: the model without some of its classes was "
                "never judged; give a threshold instead"
            )
        if control is None:
            raise ValueError(
                f"target error {target:g}: the model stores no errors of held-out "
                "samples; give a threshold instead"
            )
        withholding = control.at(target)
        self.threshold = raise_threshold(confidence, withholding.threshold, target)
        self.threshold_reason = withholding.reason
        if self.threshold > withholding.threshold:
            self.threshold_reason = (
                f"the query's own confidences ask for at least {self.threshold:.3f}, so "
                f"that {target:.3g} of the labels given are expected to be wrong; by "
                f"held-out samples it would be {withholding.threshold:.3f}"
            )

    def withhold_tied(self, tied_share: NDArray) -> None:
        """Withhold labels of samples without information; say where there is little."""
        tied = tied_share == 1.0
        self.reasons[tied] = NO_INFORMATION
        if tied.any():
            self.notes.append(
                f"{tied.sum()} samples have the same value in all genes of the panel, and "
                "their labels are withheld"
            )
        mostly = (tied_share >= _MOSTLY_TIED) & ~tied
        if mostly.any():
            self.notes.append(
                f"in {mostly.sum()} samples at least {_MOSTLY_TIED:.0%} of the panel's "
                "genes are tied with another: their labels rest on few genes"
            )


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
    decision: _Decision,
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
