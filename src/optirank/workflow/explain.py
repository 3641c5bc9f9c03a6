"""What a model is (its card), and why it gave a sample of a file its label."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.names import some
from optirank.datasets.errors import DataError
from optirank.datasets.reading import open_expression
from optirank.model.explanation import explain, export_table, panel_table
from optirank.model.file import as_model
from optirank.model.linear import carried, linear_model, linear_parts
from optirank.model.predictor import Predictor

if TYPE_CHECKING:
    import pandas as pd

_ERROR = "balanced_accuracy_standard_error"
_SHOWN_APART = (  # of a training summary: in the first lines and in the table of classes
    *("n_panel", "n_genes", "curve", "class_counts", "balanced_accuracy_interval"),
    *("recall", "precision", "n_held_out"),
)


@dataclass(frozen=True)
class ModelCard:
    """What a model is: lines of a name and a text, and a table of its classes."""

    lines: tuple[tuple[str, str], ...]
    classes: pd.DataFrame  # class, samples; n_held_out, recall and precision where they are known


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
    import pandas as pd

    model = as_model(model)
    with open_expression(path, **reading) as opened:
        names = opened.sample_names.astype(str)
        where = np.flatnonzero(names == sample)
        if not len(where):
            raise DataError(f"{path} has no sample {sample!r}: there are {some(names, 5)}")
        predictor = Predictor(model, opened.gene_names, other_names=opened.other_gene_names)
        row = opened.read(predictor.columns, (int(where[0]), int(where[0]) + 1))
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


def model_card(model: Any, path: str | os.PathLike[str] | None = None) -> ModelCard:
    """What there is to know of a model: its use, accuracy, training data and how it was made."""
    import pandas as pd

    fitted, parts = linear_model(model), linear_parts(model)
    summary = dict(carried(model, "training_summary_") or {})
    lines: list[tuple[str, str]] = []

    def add(name: str, text: object) -> None:
        if text not in (None, "", {}, []):
            lines.append((name, _plain(text)))

    add("name", summary.pop("name", None))
    add("description", summary.pop("description", None))
    if path is not None:
        add("file", f"{path}, {Path(path).stat().st_size / 1e3:.0f} kB")
    n_genes = summary.pop("n_genes_of_file", parts.n_features)
    add("model", f"{type(fitted).__name__}, {len(parts.genes)} genes of {n_genes:,}")
    if parts.names is None:
        add("gene names", "none: genes cannot be found by name")
    accuracy, error = (summary.pop(key, None) for key in ("balanced_accuracy", _ERROR))
    if accuracy is not None:
        spread = f" ± {error:.3f} (standard error over the folds)" if error else ""
        add("held out", f"balanced accuracy {accuracy:.3f}{spread}")
    calibrated = carried(model, "calibration_") is not None
    add("confidence", "calibrated on held-out samples" if calibrated else "not calibrated")
    target = getattr(carried(model, "error_control_"), "target_error", None)
    add("withholds", f"labels, to reach an error of {target:g}" if target else "no labels")
    for key, name in (("label", "label"), ("batch", "batch"), ("source", "trained on")):
        add(name, summary.pop(key, None))
    add("samples", summary.pop("n_samples", None))
    values = summary.pop("values", None)
    if isinstance(values, dict):
        add("values", f"{values.get('scale')}, {values.get('zeros', 0):.0%} zeros")
    classes = _classes(parts.classes, summary)
    notes = summary.pop("notes", ())
    for key in _SHOWN_APART:
        summary.pop(key, None)
    for key, value in summary.items():
        add(key.replace("_", " "), value)
    for note in notes:
        add("note", note)
    return ModelCard(tuple(lines), pd.DataFrame(classes))


def size_table(model: Any) -> pd.DataFrame:
    """The panels in a model, one line per size: ``n_genes``, held-out accuracy, ``chosen``.

    ``balanced_accuracy`` and ``standard_error`` are NaN for sizes that were not measured;
    ``chosen`` is the size of the model itself.
    """
    import pandas as pd

    model = as_model(model)
    fitted = linear_model(model)
    summary = carried(model, "training_summary_") or {}
    curve = {int(row["n_genes"]): row for row in summary.get("curve", ())}
    own = len(linear_parts(model).genes)
    sizes = sorted({own, *getattr(fitted, "path_", {}), *(n for n in curve if n <= own)})
    nan = float("nan")
    rows = [
        {
            "n_genes": n,
            "balanced_accuracy": curve.get(n, {}).get("balanced_accuracy", nan),
            "standard_error": curve.get(n, {}).get("standard_error", nan),
            "chosen": n == own,
        }
        for n in sizes
    ]
    return pd.DataFrame(rows)


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


def _classes(classes: Any, summary: dict[str, Any]) -> list[dict[str, object]]:
    counts = {str(key): value for key, value in summary.get("class_counts", {}).items()}
    rows = []
    for label in map(str, classes):
        row: dict[str, object] = {"class": label, "samples": counts.get(label, "")}
        for name in ("n_held_out", "recall", "precision"):
            if isinstance(summary.get(name), dict):
                value = summary[name].get(label)
                row[name.replace("_", " ")] = _share(value)
        rows.append(row)
    return rows


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
