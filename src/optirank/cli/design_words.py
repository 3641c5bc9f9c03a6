"""A design in about twenty lines of text, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optirank._util.metrics import percent
from optirank._util.names import counted, some
from optirank.workflow.design_tables import PLATFORM_WORDS, condition_words

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.design import DesignResult

_WEAKEST = 4  # classes that are listed
_WIDE = 36  # columns of a title

Record = dict[Any, Any]


def summary(result: DesignResult) -> list[str]:
    """What there is to say of a design."""
    lines = [_first_line(result), "Balanced accuracy, % (95 % interval)"]
    conditions = result.conditions.to_dict("records")
    lines.append(_line("held-out samples", _with_interval(conditions[0])))
    path = [
        f"{point.n_genes}: {_share(point.balanced_accuracy)}"
        for point in result.model.card.curve
    ]
    if len(path) > 1:
        lines.append(_line("by number of genes", ", ".join(path)))
    lines += _under_conditions(conditions)
    lines += _weakest(result.classes)
    lines.append(_confused(result.confusions))
    own = sorted(zip(result.classes["n_genes"], result.classes.index, strict=True))
    (fewest, first), (most, last) = own[0], own[-1]
    lines.append(f"Genes per class: {fewest} ({first}) to {most} ({last})")
    return lines + _about_list(result)


def _first_line(result: DesignResult) -> str:
    n_genes = len(result.genes)
    required = f", {result.n_required} of them required" if result.n_required else ""
    words = {
        "chosen": f"A panel of {n_genes} genes is chosen{required}",
        "extended": f"The list is extended to {n_genes} genes{required}",
        "scored": f"A list of {n_genes} genes is scored as it is",
    }
    return f"{words[result.kind]}, for {len(result.classes)} classes."


def _under_conditions(conditions: list[Record]) -> list[str]:
    """A line per kind of condition, and one for the test data."""
    failing = _of_kind(conditions, "failing")
    lines = [_line("genes that fail", _joined(failing, "{:.0%}: {}"))]
    lowest = [
        f"{row['amount']:.0%}: {_share(row['lowest'])} ({row['lowest_class']})"
        for row in failing
    ]
    lines.append(_line("the same, lowest class of any draw", ", ".join(lowest)))
    needed = _of_kind(conditions, "needed")
    lines.append(_line("a class without its best genes", _joined(needed, "{:.0f}: {}")))
    platforms = [
        f"{PLATFORM_WORDS[row['amount']]}: {_share(row['balanced_accuracy'])}"
        for row in _of_kind(conditions, "platform")
    ]
    lines.append(_line("simulated platforms", ", ".join(platforms)))
    thinned = [
        f"to 1/{round(1 / row['amount'])}: {_share(row['balanced_accuracy'])}"
        for row in _of_kind(conditions, "thinned")
    ]
    if thinned:
        lines.append(_line("counts thinned", ", ".join(thinned)))
    return lines + [
        _line(row["condition"], _with_interval(row))
        for row in _of_kind(conditions, "test")
    ]


def _weakest(classes: pd.DataFrame) -> list[str]:
    """The classes of lowest sensitivity."""
    lines = ["Weakest classes, % (95 % interval; without the first gene it depends on)"]
    without = condition_words("needed", 1)
    weakest = classes.sort_values("sensitivity", kind="stable").head(_WEAKEST)
    for name, row in zip(weakest.index, weakest.to_dict("records"), strict=True):
        text = f"{_with_interval(row, 'sensitivity')}; {_share(row[without])}"
        depends_on = f", depends on {row['depends_on']}" if row["depends_on"] else ""
        lines.append(_line(str(name), text + depends_on))
    return lines


def _confused(confusions: pd.DataFrame) -> str:
    if confusions.empty:
        return "No two classes are confused."
    pairs = [
        f"{row['class']} as {row['labelled']} {_share(row['share'])} %"
        for row in confusions.head(3).to_dict("records")
    ]
    return f"Most confused: {'; '.join(pairs)}"


def _about_list(result: DesignResult) -> list[str]:
    """What a given list would gain, and which of its genes carry nothing."""
    lines = []
    plain = float(result.conditions["balanced_accuracy"].iloc[0])
    if result.additions is not None and len(result.additions):
        accuracy = float(result.additions["balanced_accuracy"].iloc[0])
        lines.append(
            f"{len(result.additions)} genes more would give {percent(accuracy)} "
            f"({100 * (accuracy - plain):+.1f} points): "
            f"{some(result.additions['gene'], 10)}"
        )
    if result.idle is not None and len(result.idle):
        accuracy = float(result.idle["balanced_accuracy"].iloc[0])
        what = counted(len(result.idle), "gene carries", "genes carry")
        without = "it" if len(result.idle) == 1 else "them"
        lines.append(
            f"{what} nothing (without {without} {percent(accuracy)}): "
            f"{some(result.idle['gene'], 10)}"
        )
    return lines


def _of_kind(conditions: list[Record], kind: str) -> list[Record]:
    return [row for row in conditions if row["kind"] == kind]


def _joined(rows: list[Record], words: str) -> str:
    shown = [
        words.format(row["amount"], _share(row["balanced_accuracy"])) for row in rows
    ]
    return ", ".join(shown)


def _line(title: str, text: str) -> str:
    return f"  {title:<{_WIDE}}{text}" if len(title) < _WIDE else f"  {title}  {text}"


def _with_interval(row: Record, column: str = "balanced_accuracy") -> str:
    return f"{_share(row[column])} ({_share(row['low'])} to {_share(row['high'])})"


def _share(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f}"
