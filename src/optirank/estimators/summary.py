"""What a model remembers of its training: a dictionary that prints as a readable summary."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from optirank._util.names import folds_in_words, printable

_NAME = 60  # characters of a class in a table
_TEXT = 400  # characters of one line
_COLUMNS = ("class", "samples", "recall", "precision")


class TrainingSummary(dict):
    """A training in plain values, as the model file keeps it.

    A dictionary in every respect; printing it, or showing it in a notebook, gives a summary.
    """

    def __or__(self, other: Mapping) -> TrainingSummary:
        """Both, as a summary again."""
        return TrainingSummary({**self, **other})

    def __str__(self) -> str:
        """The summary in lines of text."""
        lines = [f"{name + ':':<10} {text}" for name, text in summary_lines(self)]
        rows = _class_rows(self)
        if rows:
            width = max(len(row[0]) for row in rows)
            lines.append("")
            for name, *numbers in [_COLUMNS, *rows]:
                lines.append(f"{name:<{width}}" + "".join(f"{one:>11}" for one in numbers))
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows in a terminal."""
        printer.text("{...}" if cycle else str(self))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        parts = [lines_html(summary_lines(self))]
        rows = _class_rows(self)
        if rows:
            head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
            body = "".join(
                "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
                for row in rows
            )
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        return "".join(parts)


def summary_lines(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and texts: the data, the date, the genes, the held-out accuracy, the notes.

    Values of the wrong type, which a file of others may have, are left out.
    """
    lines = [("data", data_text(summary)), ("date", date_text(summary))]
    n_panel, n_genes = (_count(summary.get(key)) for key in ("n_panel", "n_genes"))
    if n_panel:
        lines.append(("genes", f"{n_panel} needed" + (f", of {n_genes}" if n_genes else "")))
    lines.append(("held out", held_out_text(summary)))
    notes = summary.get("notes")
    lines += [("note", str(note)) for note in (notes if isinstance(notes, list | tuple) else ())]
    return [(name, printable(text, _TEXT)) for name, text in lines if text]


def data_text(summary: Mapping[str, Any]) -> str:
    """How many samples of which data, and the column of the labels."""
    parts = []
    if count := _count(summary.get("n_samples")):
        parts.append(f"{count} samples")
    if isinstance(source := summary.get("source"), str) and source:
        parts.append(f"of {source}" if parts else source)
    text = " ".join(parts)
    for key, word in (("label", "labels"), ("batch", "sources")):
        if isinstance(value := summary.get(key), str) and value:
            text += f"{', ' if text else ''}{word} in {value!r}"
    return text


def date_text(summary: Mapping[str, Any]) -> str:
    """The day of the training, and the version of optirank."""
    day, version = summary.get("date"), summary.get("optirank")
    parts = [day] if isinstance(day, str) else []
    if isinstance(version, str):
        parts.append(f"optirank {version}")
    return ", ".join(parts)


def held_out_text(summary: Mapping[str, Any]) -> str:
    """Balanced accuracy on held-out samples, with its standard error."""
    score = _number(summary.get("balanced_accuracy"))
    if score is None:
        return ""
    text = f"balanced accuracy {100 * score:.1f} %"
    error = _number(summary.get("balanced_accuracy_standard_error"))
    if error is not None:
        text += f" ± {100 * error:.1f}"
    folds = _count(summary.get("n_folds"))
    return text + (f", {folds_in_words(folds)}" if folds else "")


def lines_html(lines: list[tuple[str, str]]) -> str:
    """Names and texts as a list of definitions in HTML."""
    rows = "".join(
        f'<div><b style="display: inline-block; min-width: 6em; font-weight: 600">'
        f"{html.escape(name)}</b>{html.escape(text)}</div>"
        for name, text in lines
    )
    return f'<div style="line-height: 1.5; overflow-wrap: anywhere">{rows}</div>'


def _class_rows(summary: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """One row per class: its name, samples, recall and precision on held-out samples."""
    tables = {key: summary.get(key) for key in ("class_counts", "recall", "precision")}
    if not isinstance(tables["class_counts"], Mapping):
        return []
    shares = [
        {str(name): _number(value) for name, value in tables[key].items()}
        if isinstance(tables[key], Mapping)
        else {}
        for key in ("recall", "precision")
    ]
    rows = []
    for name, count in tables["class_counts"].items():
        found = [share.get(str(name)) for share in shares]
        numbers = ["–" if one is None else f"{100 * one:.1f} %" for one in found]
        rows.append((printable(str(name), _NAME), str(_count(count) or "–"), *numbers))
    return rows


def _count(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < 10**12 else None


def _number(value: Any) -> float | None:
    """A number that can be shown, None for anything else (NaN too)."""
    whole = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if whole and abs(value) < 10**12 else None
