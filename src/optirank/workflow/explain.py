"""What a model is (its card), and why it gave a sample of a file its label."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from optirank._util.names import some
from optirank.datasets.data import DataError
from optirank.datasets.reading import open_expression
from optirank.model.explanation import explain, export_table, panel_table
from optirank.model.file import as_model
from optirank.model.linear import carried, linear_model, linear_parts
from optirank.model.predictor import Predictor

_ERROR = "balanced_accuracy_standard_error"
_SHOWN_APART = (  # of a training summary: in the first lines and in the table of classes
    *("n_panel", "n_genes", "curve", "class_counts", "balanced_accuracy_interval"),
    *("recall", "precision", "n_held_out"),
)


@dataclass(frozen=True)
class Explanation:
    """Why a sample got its label."""

    sample: str
    label: Any
    confidence: float
    scores: pd.DataFrame  # class, score, probability; the most probable first
    table: pd.DataFrame  # what each gene contributes to each class, see optirank.model.explain
    notes: tuple[str, ...]

    def of_class(self, label: str | None = None) -> tuple[str, pd.DataFrame]:
        """The class explained, and the contributions to its score, the intercept first.

        ``label`` None is the label given. A model of two classes has one score: contributions are
        turned so that a positive one speaks for the class explained.
        """
        asked = str(self.label if label is None else label)
        every = [str(name) for name in self.scores["class"]]
        if asked not in every:
            raise ValueError(f"the model has no class {asked!r}: its classes are {some(every, 20)}")
        names = self.table["class"].astype(str)
        if asked in set(names):
            return asked, self.table[names == asked]
        mine = self.table.copy()  # two classes: the score of the other one, turned
        for column in ("weight", "contribution"):
            mine[column] = -mine[column]
        return asked, mine.assign(**{"class": asked})


def explain_sample(
    path: str | os.PathLike[str], model: Any, sample: str, **reading: Any
) -> Explanation:
    """Why a sample of a file got its label.

    ``reading`` are options of :func:`optirank.datasets.read_expression`; only the genes of the
    model's panel are read, of that sample.
    """
    model = as_model(model)
    with open_expression(path, **reading) as opened:
        names = opened.sample_names.astype(str)
        where = np.flatnonzero(names == sample)
        if not len(where):
            raise DataError(f"{path} has no sample {sample!r}: there are {some(names, 5)}")
        predictor = Predictor(model, opened.gene_names, other_names=opened.other_gene_names)
        row = next(iter(opened.blocks(predictor.columns, 1, where[:1])))
    found = predictor.narrowed().predict(row.X)
    table = explain(predictor.model, row.X, row.gene_names)
    score = found.scores[0]
    both = np.array([-score, score]) if np.ndim(score) == 0 else score
    ranking = pd.DataFrame(
        {"class": found.classes, "score": both, "probability": found.probabilities[0]}
    ).sort_values("probability", ascending=False, kind="stable", ignore_index=True)
    return Explanation(
        sample=sample,
        label=found.labels[0],
        confidence=float(found.confidence[0]),
        scores=ranking,
        table=table,
        notes=tuple(predictor.notes()),
    )


def model_card(model: Any, path: str | os.PathLike[str] | None = None) -> list[tuple[str, str]]:
    """What there is to know of a model, as names and texts: use, accuracy, data, how it was made.

    Numbers of single classes are in `class_table`, those of single sizes in `size_table`.
    """
    fitted, parts = linear_model(model), linear_parts(model)
    summary = dict(carried(model, "training_summary_") or {})
    for key in _SHOWN_APART:
        summary.pop(key, None)
    target = getattr(carried(model, "error_control_"), "target_error", None)
    calibrated = carried(model, "calibration_") is not None
    n_genes = summary.pop("n_genes_of_file", parts.n_features)
    accuracy, error = (summary.pop(key, None) for key in ("balanced_accuracy", _ERROR))
    spread = f" ± {error:.3f} (standard error over the folds)" if error else ""
    values, notes = summary.pop("values", None) or {}, summary.pop("notes", ())
    lines: list[tuple[str, object]] = [
        ("name", summary.pop("name", None)),
        ("description", summary.pop("description", None)),
        ("file", path and f"{path}, {Path(path).stat().st_size / 1e3:.0f} kB"),
        ("model", f"{type(fitted).__name__}, {len(parts.genes)} genes of {n_genes:,}"),
        ("gene names", "none: genes cannot be found by name" if parts.names is None else ""),
        ("held out", None if accuracy is None else f"balanced accuracy {accuracy:.3f}{spread}"),
        ("confidence", "calibrated on held-out samples" if calibrated else "not calibrated"),
        ("withholds", f"labels, to reach an error of {target:g}" if target else "no labels"),
        ("label", summary.pop("label", None)),
        ("batch", summary.pop("batch", None)),
        ("trained on", summary.pop("source", None)),
        ("samples", summary.pop("n_samples", None)),
        ("values", values and f"{values.get('scale')}, {values.get('zeros', 0):.0%} zeros"),
        *((key.replace("_", " "), value) for key, value in summary.items()),
        *(("note", note) for note in notes),
    ]
    return [(name, _plain(text)) for name, text in lines if text not in (None, "", {}, [])]


def class_table(model: Any) -> pd.DataFrame:
    """The classes of a model as text: samples and, where known, held-out recall and precision."""
    summary = carried(model, "training_summary_") or {}
    heads = {"class_counts": "samples", "n_held_out": "n held out", "recall": "recall"}
    heads["precision"] = "precision"
    table = pd.DataFrame({"class": [str(label) for label in linear_parts(model).classes]})
    for key, head in heads.items():
        found = {str(name): value for name, value in (summary.get(key) or {}).items()}
        if found or head == "samples":
            table[head] = [_share(found.get(name)) for name in table["class"]]
    return table


def size_table(model: Any) -> pd.DataFrame:
    """The panels in a model, one line per size: ``n_genes``, held-out accuracy, ``chosen``.

    ``balanced_accuracy`` and ``standard_error`` are NaN for sizes that were not measured;
    ``chosen`` is the size of the model itself.
    """
    model = as_model(model)
    fitted = linear_model(model)
    summary = carried(model, "training_summary_") or {}
    curve = {int(row["n_genes"]): row for row in summary.get("curve", ())}
    own = len(linear_parts(model).genes)
    sizes = sorted({own, *getattr(fitted, "path_", {}), *(n for n in curve if n <= own)})
    table = pd.DataFrame({"n_genes": sizes})
    for name in ("balanced_accuracy", "standard_error"):
        table[name] = [curve.get(n, {}).get(name, float("nan")) for n in sizes]
    return table.assign(chosen=table["n_genes"] == own)


def smaller_model(model: Any, n_genes: int) -> Any:
    """The model of a smaller panel that is in a panel model, with its held-out accuracy."""
    fitted = linear_model(model)
    if not hasattr(fitted, "smaller"):
        raise ValueError(
            f"a {type(fitted).__name__} has no smaller panels in it: train with --method panel"
        )
    small = fitted.smaller(n_genes)
    if n_genes < len(fitted.panel_) and hasattr(small, "training_summary_"):
        small.training_summary_["taken_from"] = f"a panel of {len(fitted.panel_)}"
    return small


def exported(model: Any) -> pd.DataFrame:
    """The genes with all that labels need in another program; else the table of the panel."""
    return export_table(model) if linear_parts(model).is_panel else panel_table(model)


def _share(value: object) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> str:
    """A value of a summary on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
    if isinstance(value, list | tuple | np.ndarray):
        return some((_plain(one) for one in value), 12)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
