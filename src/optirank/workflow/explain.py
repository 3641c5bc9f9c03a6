"""What a model is, and why it gave a sample of a file its label."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import folds_in_words, some
from optirank.datasets.errors import DataError
from optirank.datasets.reading import open_expression
from optirank.model.explanation import explain
from optirank.model.file import read_versions
from optirank.model.linear import linear_model, linear_parts
from optirank.model.missing import MAX_MISSING
from optirank.model.predict import Predictor
from optirank.model.votes import pair_table
from optirank.workflow.predict import is_calibrated, transposed_told

if TYPE_CHECKING:
    import pandas as pd

_SETTINGS = (
    *("algorithm", "n_reference", "l1", "l2", "side", "ties", "class_weight", "integral"),
    *("k_max", "choose_k", "balance_rest", "max_genes"),  # of k-TSP
)
_OPTIONS = ("shared_reference", "whole_panel")  # told where they are chosen
# What a training summary tells in lines of its own, or in the table of classes.
_TOLD = (
    *("class_counts", "n_samples", "n_genes", "n_panel", "held_out", "notes", "recall", "values"),
    *("precision", "balanced_accuracy", "balanced_accuracy_standard_error", "seconds", "reading"),
    *("elsewhere", "balanced_accuracy_elsewhere"),
)


@dataclass(frozen=True)
class ModelDescription:
    """What a model is: lines of a name and a text, and a table of its classes."""

    lines: tuple[tuple[str, str], ...]
    classes: pd.DataFrame  # class, samples, genes, reference, weights; recall and precision
    pairs: pd.DataFrame | None = None  # of a vote of pairs, see optirank.model.votes


@dataclass(frozen=True)
class Explanation:
    """Why a sample got its label."""

    sample: str
    label: Any
    confidence: float
    scores: pd.DataFrame  # class, score, probability; the most probable first
    table: pd.DataFrame  # what each gene contributes to each class, see optirank.model.explain
    notes: tuple[str, ...]

    def of_class(
        self, label: str | None, n_genes: int
    ) -> tuple[Any, pd.DataFrame, tuple[int, float] | None]:
        """The largest contributions to a class (None: the one given), and the sum of the rest.

        A model of two classes has one score; it is that of the second class, and negative
        contributions speak for the first.
        """
        known = self.table["class"].unique().tolist()
        asked = str(self.label if label is None else label)
        every = [str(name) for name in self.scores["class"]]
        if asked not in every:
            raise ValueError(f"the model has no class {asked!r}: its classes are {some(every, 20)}")
        matching = [name for name in known if str(name) == asked]
        chosen = matching[0] if matching else known[0]
        mine = self.table[self.table["class"] == chosen]
        genes = mine.loc[mine["role"] != "intercept", "gene"].unique()
        beyond = mine["gene"].isin(genes[n_genes:])
        lines, rest = mine[~beyond], mine[beyond]
        about = f"{chosen}, score {mine['contribution'].sum():+.4f}"
        if len(every) == 2:
            about += f" (below 0: {next(name for name in every if name != str(chosen))})"
        left = len(genes) - n_genes
        return about, lines, (left, float(rest["contribution"].sum())) if left > 0 else None


def explain_sample(
    path: str | os.PathLike[str],
    model: Any,
    sample: str | None = None,
    *,
    layer: str | None = None,
    gene_column: str | None = None,
    genes_in: str | None = None,
    annotations: Sequence[str] = (),
    format: str | None = None,
    max_missing: float = MAX_MISSING,
    drop_classes: bool = False,
) -> Explanation:
    """Why a sample of a file (the first where none is named) got its label.

    Options are those of :func:`optirank.datasets.read_expression`; only the genes of the model's
    panel are read, of that sample. ``max_missing`` and ``drop_classes`` as in prediction.
    """
    import pandas as pd

    reading = {"layer": layer, "gene_column": gene_column, "genes_in": genes_in, "format": format}
    with open_expression(path, annotations=annotations, **reading) as opened:
        names = opened.sample_names.astype(str)
        if not len(names):
            raise DataError(f"{path} holds no samples")
        where = np.flatnonzero(names == sample) if sample is not None else np.array([0])
        if len(where) != 1:
            what = "has no sample" if not len(where) else f"has {len(where)} samples called"
            raise DataError(f"{path} {what} {sample!r}: there are {some(names, 5)}")
        with transposed_told(opened, genes_in):
            predictor = Predictor(
                model,
                opened.gene_names,
                max_missing=max_missing,
                drop_classes=drop_classes,
                other_names=opened.other_gene_names,
            )
        row = opened.read(predictor.columns, (int(where[0]), int(where[0]) + 1))
    found = predictor.narrowed().predict(row.X)
    table = explain(predictor.model, row.X, row.gene_names, max_missing=max_missing)
    scores = found.scores[0]
    both = np.array([-scores, scores]) if np.ndim(scores) == 0 else scores
    ranking = pd.DataFrame(
        {"class": found.classes, "score": both, "probability": found.probabilities[0]}
    ).sort_values("probability", ascending=False, kind="stable", ignore_index=True)
    return Explanation(
        sample=str(names[where[0]]),
        label=found.labels[0],
        confidence=float(found.confidence[0]),
        scores=ranking,
        table=table,
        notes=tuple(predictor.notes()),
    )


def describe_model(model: Any, path: str | os.PathLike[str] | None = None) -> ModelDescription:
    """What there is to know of a model: its class, settings, training and classes."""
    import pandas as pd

    fitted, parts = linear_model(model), linear_parts(model)
    summary = dict(getattr(model, "training_summary_", getattr(fitted, "training_summary_", {})))
    lines = []
    if path is not None:
        lines.append(("file", f"{path}, {Path(path).stat().st_size / 1e3:.0f} kB"))
        lines.append(("written by", "optirank {}, schema {}".format(*read_versions(path))))
    lines.append(("model", type(model).__name__))
    lines.append(("genes", f"{len(parts.genes)} of {parts.n_features} in the training data"))
    if parts.names is None:
        lines.append(("names", "none: genes cannot be found by name"))
    lines.append(("settings", _settings(model, fitted)))
    if hasattr(model, "best_score_"):
        scoring = model.scoring if isinstance(model.scoring, str) else "score"
        lines.append(("validation", f"{scoring} {model.best_score_:.3f}"))
    for name, word in (("calibration_", "calibration"), ("rejection_", "rejection")):
        kept = getattr(model, name, getattr(fitted, name, None))
        if kept is not None:
            lines.append((word, getattr(kept, "reason", "") or kept.summary))
    if not is_calibrated(model):
        lines.append(("calibration", "none: a confidence is not the share of correct labels"))
    if "n_samples" in summary:
        took = f", in {summary['seconds']:.0f} s" if "seconds" in summary else ""
        lines.append(("trained on", f"{summary['n_samples']} samples{took}"))
    if "balanced_accuracy" in summary:
        error = summary.get("balanced_accuracy_standard_error", float("nan"))
        text = f"balanced accuracy {summary['balanced_accuracy']:.3f} ± {error:.3f}"
        if "n_folds" in summary:
            text += f", {folds_in_words(summary['n_folds'])}"
        lines.append(("held out", text))
    if isinstance(summary.get("values"), dict):
        kinds = {key: one for key, one in summary["values"].items() if key != "version"}
        lines.append(("values", _plain(kinds).replace("_", " ")))
    if summary.get("balanced_accuracy_elsewhere"):
        low, high = summary["balanced_accuracy_elsewhere"]
        lines.append(("simulated platforms", f"balanced accuracy {low:.3f} to {high:.3f}"))
    lines += [
        (key, _plain(value))
        for key, value in summary.items()
        if key not in _TOLD and value is not None
    ]
    lines += [("note", str(note)) for note in summary.get("notes", ())]
    pairs = pair_table(model) if parts.votes else None
    return ModelDescription(tuple(lines), pd.DataFrame(_classes(parts, summary)), pairs)


def _classes(parts: Any, summary: dict[str, Any]) -> list[dict[str, object]]:
    counts = {str(key): value for key, value in summary.get("class_counts", {}).items()}
    held_out = [name for name in ("recall", "precision") if isinstance(summary.get(name), dict)]
    rows = []
    for label in parts.classes:
        k = int(np.flatnonzero(parts.problem_classes == label)[0]) if parts.n_problems > 1 else 0
        mine = slice(k * parts.rows_per_problem, (k + 1) * parts.rows_per_problem)
        reference = (parts.reference_weights[mine] > 0).any(axis=0)
        weights = (parts.coef[mine] != 0).any(axis=0)
        rows.append(
            {
                "class": label,
                "samples": counts.get(str(label), ""),
                "genes": int((reference | weights).sum()),
            }
            | (
                {"pairs": int(parts.coef[mine].any(axis=1).sum())}
                if parts.votes
                else {"reference": int(reference.sum()), "weights": int(weights.sum())}
            )
            | {name: _share(summary[name].get(str(label))) for name in held_out}
        )
    return rows


def _share(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) and value == value else ""


def _settings(model: Any, fitted: Any) -> str:
    chosen = getattr(model, "best_params_", None)
    if chosen and all(isinstance(value, dict) for value in chosen.values()):
        return "; ".join(f"{label}: {_plain(one)}" for label, one in chosen.items())
    settings = chosen or fitted.get_params(deep=False)
    told = [*_SETTINGS, *(name for name in _OPTIONS if settings.get(name))]
    return _plain({key: value for key, value in settings.items() if key in told})


def _plain(value: Any) -> str:
    """A value of a summary on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
    if isinstance(value, list | tuple | np.ndarray):
        return some((_plain(one) for one in value), 12)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
