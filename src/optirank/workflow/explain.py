"""What a model is (its card), and why it gave a sample of a file its label."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from optirank._util.names import some
from optirank.io.data import DataError
from optirank.io.reading import open_expression
from optirank.model.explanation import explain, export_table, panel_table
from optirank.model.file import as_model
from optirank.model.genes import check_case
from optirank.model.linear import carried, linear_model, linear_parts
from optirank.model.predictor import Predictor
from optirank.workflow.performance import balanced, wilson
from optirank.workflow.predict import model_names

_ERROR = "balanced_accuracy_standard_error"
_SHOWN_APART = (  # of a training summary: in the first lines and in the tables
    *("n_panel", "n_genes", "curve", "class_counts", "balanced_accuracy_interval"),
    *("recall", "precision", "n_held_out", "sources", "missing_genes"),
)


@dataclass(frozen=True)
class Explanation:
    """Why a sample got its label."""

    sample: str
    label: Any
    confidence: float
    scores: pd.DataFrame  # class, score, probability; the most probable first
    table: (
        pd.DataFrame
    )  # what each gene contributes to each class, see optirank.model.explain
    notes: tuple[str, ...]

    def of_class(self, label: str | None = None) -> tuple[str, pd.DataFrame]:
        """The class explained, and the contributions to its score, the intercept first.

        ``label`` None is the label given. A model of two classes has one score: contributions are
        turned so that a positive one speaks for the class explained.
        """
        asked = str(self.label if label is None else label)
        every = [str(name) for name in self.scores["class"]]
        if asked not in every:
            raise ValueError(
                f"the model has no class {asked!r}: its classes are {some(every, 20)}"
            )
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
            raise DataError(
                f"{path} has no sample {sample!r}: there are {some(names, 5)}"
            )
        genes, told = model_names(opened.gene_names, model, None)
        predictor = Predictor(model, genes, other_names=opened.other_gene_names)
        check_case(predictor.bound.match)
        row = next(iter(opened.blocks(predictor.columns, 1, where[:1])))
    found = predictor.narrowed().predict(row.X)
    table = explain(predictor.model, row.X, [genes[k] for k in predictor.columns])
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
        notes=(*told, *predictor.notes()),
    )


def model_card(
    model: Any, path: str | os.PathLike[str] | None = None
) -> list[tuple[str, str]]:
    """What there is to know of a model, as names and texts: use, accuracy, data, how it was made.

    The numbers of single classes and data sets are in `card_tables`, of sizes in `size_table`.
    """
    fitted, parts = linear_model(model), linear_parts(model)
    summary = dict(_summary(model))
    mean, lowest, n_sets = judged(summary)
    elsewhere = f"mean balanced accuracy {_percent(mean)} % of {n_sets}, lowest {_percent(lowest)} %"
    for key in _SHOWN_APART:
        summary.pop(key, None)
    target = getattr(carried(model, "error_control_"), "target_error", None)
    calibrated = carried(model, "calibration_") is not None
    n_genes = summary.pop("n_genes_of_file", parts.n_features)
    accuracy, error = (summary.pop(key, None) for key in ("balanced_accuracy", _ERROR))
    if accuracy is not None:
        spread = (
            f" ± {_percent(error)} (standard error over the folds)" if error else ""
        )
        accuracy = f"balanced accuracy {_percent(accuracy)} %{spread}"
    values, notes = summary.pop("values", None) or {}, summary.pop("notes", ())
    told = summary.pop("unknown_types", None)
    if told is None and carried(model, "novelty_") is not None:
        told = "predict --unknown-rate 0.01 finds some of them"
    lines: list[tuple[str, object]] = [
        ("name", summary.pop("name", None)),
        ("description", summary.pop("description", None)),
        *((key, summary.pop(key, None)) for key in ("tissue", "species")),
        ("file", path and f"{path}, {Path(path).stat().st_size / 1e3:.0f} kB"),
        ("model", f"{type(fitted).__name__}, {len(parts.genes)} genes of {n_genes:,}"),
        (
            "gene names",
            "none: genes cannot be found by name" if parts.names is None else "",
        ),
        ("held out", accuracy),
        (_others(model), elsewhere if n_sets else None),
        ("unknown types", "get one of the labels" + (f"; {told}" if told else "")),
        (
            "confidence",
            "calibrated on held-out samples" if calibrated else "not calibrated",
        ),
        (
            "withholds",
            f"labels, to reach an error of {target:g}" if target else "no labels",
        ),
        ("label", summary.pop("label", None)),
        ("batch", summary.pop("batch", None)),
        ("trained on", summary.pop("source", None)),
        ("samples", summary.pop("n_samples", None)),
        (
            "values",
            values and f"{values.get('scale')}, {values.get('zeros', 0):.0%} zeros",
        ),
        *((key.replace("_", " "), value) for key, value in summary.items()),
        *(("note", note) for note in notes),
    ]
    return [
        (name, _plain(text)) for name, text in lines if text not in (None, "", {}, [])
    ]


def card_tables(model: Any) -> dict[str, pd.DataFrame]:
    """The tables of a model card, as text: classes, other data sets, missing genes."""
    lacking = [
        (f"{k:.0%}", _percent(one))
        for k, one in _summary(model).get("missing_genes", ())
    ]
    tables = {
        "Classes": class_table(model),
        f"{_others(model).capitalize()}, by a model that had not seen them": set_table(
            model
        ),
        "Missing genes": pd.DataFrame(
            lacking, columns=["missing at random", "held-out accuracy"]
        ),
    }
    return {title: table for title, table in tables.items() if len(table)}


def class_table(model: Any) -> pd.DataFrame:
    """The classes of a model as text: samples, and how many of those held out got their label."""
    summary = _summary(model)
    names = [str(label) for label in linear_parts(model).classes]
    counts, recall = summary.get("class_counts") or {}, summary.get("recall") or {}
    n_held_out = summary.get("n_held_out") or {}
    held_out = {
        name: (round(recall[name] * n), n) for name, n in n_held_out.items() if n
    }
    sources = [one["classes"] for one in summary.get("sources", ())]
    pairs = {name: [one[name] for one in sources if name in one] for name in names}
    elsewhere = {name: np.sum(found, axis=0) for name, found in pairs.items() if found}
    table = pd.DataFrame(
        {"class": names, "samples": [str(counts.get(name, "")) for name in names]}
    )

    def add(number: str, share: str, judged: dict[str, Any]) -> None:
        table[number] = [str(judged.get(name, (0, 0))[1] or "") for name in names]
        table[share] = [_with_interval(*judged.get(name, (0, 0))) for name in names]

    if held_out and not (elsewhere and summary.get("batch")):
        add("held out", "sensitivity", held_out)
    other = _others(model)
    if elsewhere:
        add(
            other,
            "sensitivity there" if "held out" in table else "sensitivity",
            elsewhere,
        )
    if summary.get("precision") and other == "sources left out":
        table["PPV"] = [_percent(summary["precision"].get(name)) for name in names]
    return table


def set_table(model: Any) -> pd.DataFrame:
    """How a model does on other data sets, as text; one it was trained on was left out for that."""
    rows = []
    for one in _summary(model).get("sources", ()):
        right, n = np.array([*one["classes"].values()], dtype=int).reshape(-1, 2).T
        mean, (low, high) = balanced(right, n)
        text = f"{_percent(mean)} ({100 * low:.0f}-{100 * high:.0f})" if len(n) else ""
        row = {"data": one["name"], "platform": one.get("about", "")}
        row |= {"how": "left out" if one.get("trained", True) else "not in training"}
        rows.append(row | {"samples": str(n.sum() or ""), "accuracy": text})
    table = pd.DataFrame(rows)
    return (
        table.drop(columns="platform") if rows and not any(table["platform"]) else table
    )


def judged(summary: dict) -> tuple[float, float, int]:
    """Mean and lowest balanced accuracy on other data sets, and their number; NaN without any."""
    pairs = [[*one["classes"].values()] for one in summary.get("sources", ())]
    found = [float(np.mean([right / n for right, n in one])) for one in pairs if one]
    return (
        (float(np.mean(found)), min(found), len(found))
        if found
        else (np.nan, np.nan, 0)
    )


def size_table(model: Any) -> pd.DataFrame:
    """The panels in a model, one line per size: ``n_genes``, held-out accuracy, ``chosen``.

    ``balanced_accuracy`` and ``standard_error`` are NaN for sizes that were not measured;
    ``chosen`` is the size of the model itself.
    """
    model = as_model(model)
    fitted = linear_model(model)
    summary = _summary(model)
    curve = {int(row["n_genes"]): row for row in summary.get("curve", ())}
    own = len(linear_parts(model).genes)
    sizes = sorted(
        {own, *getattr(fitted, "path_", {}), *(n for n in curve if n <= own)}
    )
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


def _summary(model: Any) -> dict:
    return carried(model, "training_summary_") or {}


def _others(model: Any) -> str:
    """What judged a model: data sets of other laboratories, or sources of its own training."""
    several = any("about" in one for one in _summary(model).get("sources", ()))
    return "other data sets" if several else "sources left out"


def _percent(share: float | None) -> str:
    return "" if share is None or share != share else f"{100 * share:.1f}"


def _with_interval(right: int, n: int) -> str:
    """A share in percent with its 95 % interval; nothing without samples."""
    if not n:
        return ""
    low, high = wilson(right / n, n)
    return f"{_percent(right / n)} ({100 * low:.0f}-{100 * high:.0f})"


def _plain(value: Any) -> str:
    """A value of a summary on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
    if isinstance(value, list | tuple | np.ndarray):
        return some((_plain(one) for one in value), 12)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
