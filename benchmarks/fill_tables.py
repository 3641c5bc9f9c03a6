"""Write the tables and numbers of the pages from results/: python
benchmarks/fill_tables.py.

A table is marked by a comment line directly above it: ``<!-- results: NAME -->``, where
NAME is one of `tables.TABLES`. A number in a sentence stands between comments:
``<!--NAME-->91.1<!--/-->``, where NAME is one of `tables.NUMBERS`. What stands between
``<!-- independent -->`` and ``<!-- end of independent -->`` is the section of the
independent test. ``--list`` prints all tables, ``--check`` changes nothing and fails
where a page differs from results/.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import pandas as pd
from tables import NUMBERS, TABLES
from tables_independent import BEGIN, END, section

ROOT = Path(__file__).resolve().parent.parent
MARKED = re.compile(r"(<!-- results: (\S+) -->\n)((?:\|.*(?:\n|\Z))*)")
INDEPENDENT = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
for path in sorted(Path(__file__).parent.glob("tables_*.py")):
    import_module(path.stem)  # each enters its tables
NUMBER = re.compile(r"(<!--([a-z0-9-]+)-->)(.*?)(<!--/-->)")


def main() -> None:
    if "--list" in sys.argv:
        for name, function in TABLES.items():
            print(f"\n{name}: {function.__doc__}\n\n{markdown(function())}", end="")
        for name, function in NUMBERS.items():
            print(f"{name}: {function()} ({function.__doc__})")
        return
    changed = [page for page in pages() if page.read_text("utf-8") != filled(page)]
    if "--check" in sys.argv:
        sys.exit("\n".join(f"{page}: run fill_tables.py" for page in changed) or None)
    for page in changed:
        page.write_text(filled(page), "utf-8")
        print(page.relative_to(ROOT))


def pages() -> list[Path]:
    """The pages that may have tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def filled(page: Path) -> str:
    """The text of a page with its marked tables and numbers as results/ has them."""
    with_tables = MARKED.sub(
        lambda found: found[1] + markdown(TABLES[found[2]]()), page.read_text("utf-8")
    )
    with_numbers = NUMBER.sub(
        lambda found: found[1] + NUMBERS[found[2]]() + found[4], with_tables
    )
    return INDEPENDENT.sub(lambda _: BEGIN + independent() + END, with_numbers)


def independent() -> str:
    """The section of the independent test."""
    parts = []
    for text, frame in section().items():
        tables = "" if isinstance(frame, str) else f"\n{markdown(frame)}"
        parts.append(f"\n{text}{tables}")
    return "".join(parts) + "\n"


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown: the first column and text to the left, numbers right."""
    lines = [[str(name).strip() for name in table.columns]]
    others = (table.iloc[:, place] for place in range(1, table.shape[1]))
    lines.append(["---"] + ["---" if is_text(column) else "--:" for column in others])
    lines += [[str(value) for value in row] for row in table.itertuples(index=False)]
    lines = [f"| {' | '.join(line)} |\n" for line in lines]
    lines[1] = lines[1].replace(" ", "")
    return "".join(lines)


def is_text(column: pd.Series) -> bool:
    """Whether every cell of a column begins with a letter."""
    return bool(column.astype(str).str.match("[A-Za-z]").all())


if __name__ == "__main__":
    main()
