"""The command that trains a model again, for the genes that a query has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optirank.datasets.reading import is_table
from optirank.model.linear import linear_model

# Options of reading that a training remembers, and what the command line calls them.
OPTIONS = {
    "layer": "--layer",
    "gene_column": "--gene-column",
    "genes_in": "--genes-in",
    "annotations": "--annotations",
    "samples": "--samples",
    "format": "--format",
}


def reading_record(**options: Any) -> dict[str, str]:
    """What a training remembers of how its data were read; of files the name alone."""
    record = {name: value for name, value in options.items() if value and name in OPTIONS}
    if "annotations" in record:
        record["annotations"] = ",".join(record["annotations"])
    if "samples" in record:
        record["samples"] = Path(record["samples"]).name
    return {name: str(value) for name, value in record.items()}


def retraining(
    model: Any, model_file: Path, query: Path, genes_in: str | None
) -> tuple[list[str], bool]:
    """The words after ``optirank train``, and whether the training data were found.

    A model knows the name of the file it was trained on, not its folder: it is looked for here,
    beside the model and beside the query.
    """
    summary = getattr(model, "training_summary_", None)
    summary = summary or getattr(linear_model(model), "training_summary_", {})
    folders = (Path(), model_file.parent, query.parent)
    source, found = _find(str(summary.get("source") or "REFERENCE"), folders)
    words = [str(source), "--label", str(summary.get("label") or "LABEL")]
    if summary.get("batch"):
        words += ["--batch", str(summary["batch"])]
    reading = dict(summary.get("reading") or {})
    if "samples" in reading:
        path, there = _find(reading["samples"], (source.parent, *folders))
        reading["samples"], found = str(path), found and there
    if genes_in and not (found and is_table(source, reading.get("format"))):
        reading["genes_in"] = str(genes_in)  # it is then said of the query
    for name, option in OPTIONS.items():
        if reading.get(name):
            words += [option, str(reading[name])]
    return [*words, "--for", str(query), "--out", str(_free_name("for_query"))], found


def _find(name: str, folders: tuple[Path, ...]) -> tuple[Path, bool]:
    places = [folder / name for folder in folders]
    there = [place for place in places if place.exists()]
    return (there or places)[0], bool(there)


def _free_name(stem: str) -> Path:
    """A model file that does not exist yet."""
    path, number = Path(f"{stem}.optirank"), 2
    while path.exists():
        path, number = Path(f"{stem}_{number}.optirank"), number + 1
    return path
