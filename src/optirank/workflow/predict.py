"""From a model to labels: one way for files and for AnnData, with the same notes.

Blocks of samples are read, with the genes of the panel alone, and scored; scores, labels and
probabilities of all samples are kept in memory, which is little (20 classes: 200 bytes per sample).
"""

from __future__ import annotations

import csv
import importlib.util
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import optirank
from optirank._util.files import check_outputs
from optirank._util.names import some
from optirank.io.data import DataError, block_rows, readable, text_column
from optirank.io.homologs import homolog_table
from optirank.io.reading import guess_format, open_expression
from optirank.io.tables import open_text, separator
from optirank.model.file import as_model
from optirank.model.genes import MAX_MISSING, MissingGenesError, check_case
from optirank.model.linear import carried, linear_parts
from optirank.model.predictor import Predictor, withheld_word
from optirank.model.query import ValueSummary, match_prevalences
from optirank.ranks.scoring import best_class
from optirank.workflow.labels import Labelled, check_format, majority, write_labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.io.data import Profiles

Progress = Callable[[int, int], None]
Homologs = Mapping[str, str] | str | os.PathLike[str] | None


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """How labels are given: the parameters of these names of :func:`optirank.tl.annotate`."""

    clusters: str | None = None
    threshold: float | None = None
    target_error: float | None = None
    adapt: bool = False
    unknown_rate: float | None = None
    max_missing: float = MAX_MISSING
    drop_classes: bool = False
    homologs: Homologs = None

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> PredictOptions:
        """The options among the parameters of a command."""
        return cls(
            **{one.name: given[one.name] for one in fields(cls) if one.name in given}
        )

    def __post_init__(self) -> None:
        if self.threshold is not None and self.target_error is not None:
            raise ValueError("give a threshold or a target error, not both")
        for name in ("threshold", "target_error", "unknown_rate"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name}={value!r}: use a share between 0 and 1")


def predict_file(
    path: str | os.PathLike[str],
    model: Any,
    out: str | os.PathLike[str],
    options: PredictOptions | None = None,
    *,
    progress: Progress | None = None,
    **reading: Any,
) -> Labelled:
    """Label the samples of a file with a model or the file of one, and write the labels.

    ``out`` is ``.csv`` or ``.parquet`` (sample, label, confidence, one probability per class), or
    ``.h5ad``, a copy of ``path`` with what :func:`optirank.tl.annotate` adds. ``reading`` are
    options of :func:`optirank.datasets.read_expression`.
    """
    path, out = Path(path), Path(out)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    check_format(out, path, reading.get("format") or guess_format(path))
    inputs = [
        path,
        reading.get("samples"),
        *([model] if isinstance(model, str | Path) else []),
    ]
    check_outputs({"the labels": out}, inputs, force=True)
    model = as_model(model)
    column = None if options is None else options.clusters  # of a table it is no gene
    with open_expression(path, label=column, **reading) as opened:
        labelled = label_profiles(
            opened, model, options, progress, reading.get("genes_in")
        )
        write_labels(labelled, out, path)
    return labelled


def label_profiles(
    profiles: Profiles,
    model: Any,
    options: PredictOptions | None = None,
    progress: Progress | None = None,
    genes_in: str | None = None,
) -> Labelled:
    """Label the samples of an open file or an AnnData, see `predict_file` and `tl.annotate`.

    ``genes_in`` is what the user said of a table, for the error of a table that lies the other way.
    """
    options = options or PredictOptions()
    n = profiles.n_samples
    if not n:
        raise DataError(
            f"{profiles.source} holds no samples: there is nothing to label"
        )
    groups = None
    if options.clusters is not None:
        groups = text_column(profiles.obs, options.clusters, profiles.source)
    # Loading numba is worth it for a few thousand samples
    many = n >= 2000 and importlib.util.find_spec("numba") is not None
    genes, notes = model_names(profiles.gene_names, model, options.homologs)
    try:
        predictor = Predictor(
            model,
            genes,
            max_missing=options.max_missing,
            drop_classes=options.drop_classes,
            other_names=getattr(profiles, "other_gene_names", None),
            adapt=options.adapt,
            compiled=many or None,
        )
    except (
        MissingGenesError
    ) as error:  # where the genes of a table are in its other direction
        there = set(error.match.genes).intersection(map(str, profiles.sample_names))
        if genes_in is None or len(there) <= error.match.present.sum():
            raise
        other = "rows" if genes_in == "columns" else "columns"
        raise DataError(
            f"{profiles.source}: the genes of the model are in its {other}, not in its {genes_in} "
            f"({some(there, 3)}): use --genes-in {other} (genes_in={other!r})"
        ) from None
    if options.homologs != "case":
        check_case(predictor.bound.match)
    limit, reason = options.threshold, ""
    if limit is not None:
        reason = f"asked for a confidence of at least {limit:g}"
    elif (
        options.target_error != 1
    ):  # as the model was trained to, unless another one is asked for
        found = predictor.withholding(options.target_error)
        limit, reason = (None, "") if found is None else (found.threshold, found.reason)
    scores, values, empty, likeness = _scores(profiles, predictor, options, progress)
    every = (
        1 if options.adapt else -(-n // 5000)
    )  # samples that tell whether adapting may help
    adaptation = match_prevalences(scores[::every])
    notes += predictor.notes() + predictor.query_notes(values, adaptation)
    found = predictor.from_scores(adaptation.apply(scores) if options.adapt else scores)
    if carried(predictor.model, "calibration_") is None:
        notes.append(
            "the model is not calibrated: a confidence is not the share of correct labels"
        )
    classes = np.array([str(label) for label in predictor.classes], dtype=object)
    codes = found.chosen.astype(np.int32)
    if limit is not None:
        below = found.confidence < limit
        codes[below] = len(classes)
        told = f"{below.sum()} of {n} labels ({below.mean():.1%}) are withheld"
        notes.append(f"{told if below.any() else 'no label is withheld'}: {reason}")
    if options.unknown_rate is not None:
        labels = best_class(scores)
        unknown = predictor.novelty.unknown(likeness, labels, options.unknown_rate)
        codes[unknown] = len(classes)
        notes.append(
            f"{unknown.sum()} of {n} samples ({unknown.mean():.1%}) look like no class, and their "
            f"labels are withheld; of held-out samples it was {options.unknown_rate:.1%}"
        )
    if empty.any():
        notes.append(
            f"{empty.sum()} samples have none of the panel's genes, so their labels say nothing: "
            f"{some(np.asarray(profiles.sample_names)[empty])}"
        )
    if groups is not None and groups.isna().any():
        n_free = int(groups.isna().sum())
        notes.append(
            f"{n_free} samples have no {options.clusters}: they keep their own label"
        )
    words = np.array([*classes, withheld_word(classes)], dtype=object)
    bound = predictor.bound
    losses = bound.loss_table()
    record = {  # in values that a file can hold
        "classes": classes,
        "withheld_label": withheld_word(predictor.classes),
        "n_genes": len(bound.match.genes),
        "missing_genes": np.array(bound.match.missing, dtype=object),
        "losses": losses.astype({"label": str}).set_index("label"),
        "left_out_classes": np.array(
            [str(loss.label) for loss in predictor.left_out], object
        ),
        "notes": np.array(notes, dtype=object),
        "optirank_version": optirank.__version__,
    }
    if limit is not None:
        record |= {"threshold": limit, "threshold_reason": reason}
    return Labelled(
        model=model,
        source=str(profiles.source),
        names=np.asarray(profiles.sample_names, dtype=object),
        classes=classes,
        codes=codes,
        chosen=found.chosen,
        confidence=found.confidence,
        probabilities=found.probabilities,
        notes=notes,
        missing=bound.match.missing,
        losses=losses,
        threshold=limit,
        clusters=None
        if groups is None
        else majority(groups, codes, found.confidence, words),
        record=record,
    )


def _scores(
    profiles: Profiles,
    predictor: Predictor,
    options: PredictOptions,
    progress: Progress | None,
) -> tuple[NDArray, ValueSummary, NDArray, NDArray]:
    """Scores of all samples, a summary of the values, samples without any, likeness if asked."""
    n, done, parts = profiles.n_samples, 0, []
    values, empty = ValueSummary(), np.zeros(n, dtype=bool)
    likeness = np.zeros(0 if options.unknown_rate is None else n)
    narrow = predictor.narrowed()
    size = min(4096, block_rows(len(profiles.gene_names)))  # more samples save no time
    for block in profiles.blocks(predictor.columns, size):
        X, rows = block.X, slice(done, done + block.n_samples)
        try:
            parts.append(narrow.scores(X))
        except ValueError as error:
            place = f"{profiles.source}, samples {rows.start + 1} to {rows.stop}"
            raise DataError(f"{place}: {error}") from None
        values.add(X)
        empty[rows] = np.diff(X.indptr) == 0 if hasattr(X, "indptr") else ~X.any(axis=1)
        if options.unknown_rate is not None:
            likeness[rows] = narrow.likeness(X, best_class(parts[-1]))
        done = rows.stop
        if progress is not None:
            progress(done, n)
    return np.concatenate(parts), values, empty, likeness


def _read_homologs(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """The pairs of a table with two columns, of which one has the names of the query's genes."""
    path = homolog_table() if path == "mouse" else Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist: give a table, or one of 'mouse', 'case'"
        )
    with readable(path), open_text(path) as file:
        lines = [
            line for line in csv.reader(file, delimiter=separator(path)) if any(line)
        ]
    wrong = next((k for k, line in enumerate(lines) if len(line) != 2), None)
    if wrong is not None:
        raise DataError(
            f"{path}: line {wrong + 1} has {len(lines[wrong])} columns: a table of homologs has "
            "two, the gene of one species and that of the other"
        )
    return [
        (one.strip(), other.strip())
        for one, other in lines
        if one.strip() and other.strip()
    ]


def model_names(
    names: Iterable[str], model: Any, homologs: Homologs
) -> tuple[list[str], list[str]]:
    """The query's gene names in the model's species, and what there is to say about them.

    Which column of the table has the model's genes is seen from the names. A gene with several
    homologs, in either direction, keeps its name: which of them it is would be a guess. Where
    nothing is said of homologs, mouse and human names are recognised: the table is used if less
    than half of the panel is there as written, and the table finds more than twice as much.
    """
    names = [str(name) for name in names]
    if homologs is None:
        genes, here = set(map(str, linear_parts(model).genes)), set(names)
        written = len(genes & here)
        if 2 * written < len(genes):
            pairs = {
                pair for one in _read_homologs("mouse") for pair in (one, one[::-1])
            }
            found = genes & {other for one, other in pairs if one in here}
            if len(found) > 2 * written:
                told = "gene names are translated between mouse and human by the shipped table"
                renamed, _ = model_names(names, model, "mouse")
                return renamed, [
                    f"{told}: {len(found)} of the panel's {len(genes)} genes"
                ]
        return names, []
    if homologs == "case":
        return names, []
    whence = "homologs" if isinstance(homologs, Mapping) else os.fspath(homologs)
    pairs = (
        list(homologs.items())
        if isinstance(homologs, Mapping)
        else _read_homologs(homologs)
    )
    parts = linear_parts(model)
    known = set(parts.genes if parts.names is None else parts.names)
    given = set(names)
    forward = sum(one in given and other in known for one, other in pairs)
    backward = sum(other in given and one in known for one, other in pairs)
    if not forward and not backward:
        raise DataError(
            f"{whence} has no line with a gene of the query and one of the model: the query has "
            f"{some(names, 3)}, the model {some(parts.genes, 3)}"
        )
    if backward > forward:
        pairs = [(other, one) for one, other in pairs]
    pairs = list(dict.fromkeys(pairs))
    theirs, ours = (
        Counter(one for one, _ in pairs),
        Counter(other for _, other in pairs),
    )
    unique = {one: other for one, other in pairs if theirs[one] == 1 == ours[other]}
    renamed = sum(name in unique for name in names)
    table = "the table of mouse and human genes" if whence == "mouse" else whence
    note = (
        f"{renamed} of {len(names)} genes have the names of their homologs in {table}"
    )
    return [unique.get(name, name) for name in names], [note]
