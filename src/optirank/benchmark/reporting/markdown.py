"""Tables as Markdown."""

from __future__ import annotations

import re

from optirank.benchmark.reporting.layout import Cell, Table


def render(table: Table) -> str:
    """Return a table with its title and caption."""
    header = [escape(column.text) for column in table.columns]
    rule = ["---" if column.words else "---:" for column in table.columns]
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    lines = "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *rows))
    return f"# {escape(table.title)}\n\n{lines}\n{escape(table.caption)}\n"


def escape(text: str) -> str:
    """Return text that Markdown shows as it is."""
    text = re.sub(r"([\\|*`<\[\]])", r"\\\1", " ".join(text.split()))
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    if not text:
        return text
    if cell.tone == "worse":
        return f"*{text}*"
    return f"**{text}**" if cell.bold or cell.tone == "better" else text
