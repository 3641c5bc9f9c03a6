"""What `optirank design` prints of a panel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optirank._util.metrics import in_percent, percent
from optirank._util.names import counted, some
from optirank.workflow.design_tables import PLATFORM_WORDS, condition_words

if TYPE_CHECKING:
    import pandas as pd

    from optirank.workflow.design import DesignResult

_WEAKEST = 4  # classes that are listed
_WIDE = 36  # columns of a title
_KINDS = {
    "chosen": "A panel of {n} genes is chosen{required}",
    "extended": "The list is extended to {n} genes{required}",
    "scored": "A list of {n} genes is scored as it is",
}

# Of a kind of condition, how much of it
_AMOUNTS: dict[str, Callable[[float], str]] = {
    "failing": "{:.0%}".format,
    "needed": "{:.0f}".format,
    "platform": PLATFORM_WORDS.__getitem__,
    "thinned": lambda share: f"to 1/{round(1 / share)}",
}
Record = dict[Any, Any]


def summary(result: DesignResult) -> list[str]:
    """What there is to say of a design, line by line."""
    required = f", {result.n_required} of them required" if result.n_required else ""
    kind = _KINDS[result.kind].format(n=len(result.genes), required=required)
    n_genes = result.classes.sort_values("n_genes", kind="stable")["n_genes"]
    return [
        f"{kind}, for {len(result.classes)} classes.",
        "Balanced accuracy, % (95 % interval)",
        *_under_conditions(result),
        "Weakest classes, % (95 % interval; without the first gene it depends on)",
        *_weakest(result.classes),
        _confused(result.confusions),
        f"Genes per class: {n_genes.iloc[0]} ({n_genes.index[0]}) to "
        f"{n_genes.iloc[-1]} ({n_genes.index[-1]})",
        *_by_level(result.genes),
        *_about_list(result),
    ]


def _under_conditions(result: DesignResult) -> list[str]:
    """A line per kind of condition, and one for the test data."""
    by_kind: dict[str, list[Record]] = {}
    for row in result.conditions.to_dict("records"):
        by_kind.setdefault(row["kind"], []).append(row)
    failing = by_kind["failing"]
    lowest = [
        f"{row['amount']:.0%}: {in_percent(row['lowest'])} ({row['lowest_class']})"
        for row in failing
    ]
    curve = result.model.card.curve
    sizes = [
        f"{point.n_genes}: {in_percent(point.balanced_accuracy)}" for point in curve
    ]
    texts = {
        "held-out samples": _with_interval(by_kind["as it is"][0]),
        "by number of genes": ", ".join(sizes) if len(sizes) > 1 else "",
        "genes that fail": _each(failing),
        "the same, lowest class of any draw": ", ".join(lowest),
        "a class without its best genes": _each(by_kind["needed"]),
        "simulated platforms": _each(by_kind["platform"]),
        "counts thinned": _each(by_kind.get("thinned", [])),
    }
    for row in by_kind.get("test", []):
        texts[row["condition"]] = _with_interval(row)
    return [_line(title, text) for title, text in texts.items() if text]


def _weakest(classes: pd.DataFrame) -> list[str]:
    """The classes of lowest sensitivity."""
    lines = []
    without = condition_words("needed", 1)
    weakest = classes.sort_values("sensitivity", kind="stable").head(_WEAKEST)
    for name, row in zip(weakest.index, weakest.to_dict("records"), strict=True):
        text = f"{_with_interval(row, 'sensitivity')}; {in_percent(row[without])}"
        depends_on = f", depends on {row['depends_on']}" if row["depends_on"] else ""
        lines.append(_line(str(name), text + depends_on))
    return lines


def _confused(confusions: pd.DataFrame) -> str:
    if confusions.empty:
        return "No two classes are confused."
    pairs = [
        f"{row['class']} as {row['labelled']} {percent(row['share'])}"
        for row in confusions.head(3).to_dict("records")
    ]
    return f"Most confused: {'; '.join(pairs)}"


def _by_level(genes: pd.DataFrame) -> list[str]:
    """Of a tree, how many genes tell apart the labels below each coarser one."""
    if "below" not in genes:
        return []
    numbers = genes["below"].value_counts().sort_index()
    places = [f"below {name}" if name else "at the top" for name in numbers.index]
    told = [f"{n} {place}" for n, place in zip(numbers, places, strict=True)]
    return [f"Genes that tell labels apart: {', '.join(told)}"]


def _about_list(result: DesignResult) -> list[str]:
    """What a given list would gain, and which of its genes carry nothing."""
    lines = []
    additions, idle = result.additions, result.idle
    if additions is not None and len(additions):
        plain = float(result.conditions["balanced_accuracy"].iloc[0])
        accuracy = float(additions["balanced_accuracy"].iloc[0])
        lines.append(
            f"{len(additions)} genes more would give {percent(accuracy)} "
            f"({100 * (accuracy - plain):+.1f} points): {some(additions['gene'], 10)}"
        )
    if idle is not None and len(idle):
        what = counted(len(idle), "gene carries", "genes carry")
        without = "it" if len(idle) == 1 else "them"
        accuracy = percent(float(idle["balanced_accuracy"].iloc[0]))
        lines.append(
            f"{what} nothing (without {without} {accuracy}): {some(idle['gene'], 10)}"
        )
    return lines


def _each(rows: list[Record]) -> str:
    """The accuracy under each condition of a kind."""
    texts = []
    for row in rows:
        amount = _AMOUNTS[row["kind"]](row["amount"])
        texts.append(f"{amount}: {in_percent(row['balanced_accuracy'])}")
    return ", ".join(texts)


def _line(title: str, text: str) -> str:
    return f"  {title:<{_WIDE}}{text}" if len(title) < _WIDE else f"  {title}  {text}"


def _with_interval(row: Record, column: str = "balanced_accuracy") -> str:
    low, high = in_percent(row["low"]), in_percent(row["high"])
    return f"{in_percent(row[column])} ({low} to {high})"
