"""The code blocks of a Markdown page: what they are, what to do with them, what they
should print.

Blocks of ``python`` and ``bash`` are run, those of ``r`` where R is installed. A
comment on the line above may say more:

    <!-- not run: REASON -->       the block is shown only; the reason is one of
    `REASONS` <!-- needs data -->            the block needs the folder of real data
    sets <!-- output: numbers vary -->  of the output shown, words are compared and
    numbers are not

A block of ``text`` right below a block that is run (but for a comment) is what that one
prints.

The cells of a notebook (docs/tutorials) are blocks too, with the outputs that are
stored: of these, words are compared and numbers are not. ``optirank: needs`` in its
metadata says what it needs: "data", or a package.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")),
]

RUN = ("python", "bash", "r")
SHOWN = ("text", "")
REASONS = {
    "installs software",
    "needs the network",
    "takes minutes",
    "files of yours",
}

_FENCE = re.compile(r"^(`{3,})([^`]*)$")
_COMMENT = re.compile(r"^<!-- (.+) -->$")
_NUMBER = re.compile(r"[-+±]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int  # of its first line of code, from 1
    language: str
    code: str
    mark: str  # the comment above it
    # Whether nothing but blank lines and a comment is between it and the last one
    follows: bool

    @property
    def not_run(self) -> str | None:
        """Why it is not run, or None."""
        return (
            self.mark.removeprefix("not run: ")
            if self.mark.startswith("not run")
            else None
        )

    @property
    def needs_data(self) -> bool:
        """Whether it needs the folder of real data sets."""
        return self.mark == "needs data"

    @property
    def where(self) -> str:
        """Where it is, for messages."""
        return f"{self.page}:{self.line}"


def read_blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order; directives such as ``{toctree}`` are
    left out.
    """
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    if page.suffix == ".ipynb":
        return find_cells(json.loads(text), name)
    return find_blocks(text, name)


def packages_needed(page: Path) -> list[str]:
    """Packages that a notebook needs and that optirank does not install."""
    if page.suffix != ".ipynb":
        return []
    return [
        need for need in needs(json.loads(page.read_text("utf-8"))) if need != "data"
    ]


def needs(notebook: dict) -> list[str]:
    """What a notebook says that it needs."""
    return notebook["metadata"].get("optirank", {}).get("needs", [])


def find_cells(notebook: dict, name: str) -> list[Block]:
    """The code cells of a notebook and what they print, as blocks."""
    mark = "needs data" if "data" in needs(notebook) else ""
    blocks: list[Block] = []
    for number, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] != "code":
            continue
        code = "".join(cell["source"]) + "\n"
        blocks.append(Block(name, number, "python", code, mark, follows=False))
        text = "".join(
            "".join(output["text"])
            for output in cell["outputs"]
            if output["output_type"] == "stream"
        )
        if text:
            loose = "output: numbers vary"
            blocks.append(Block(name, number, "text", text, loose, follows=True))
    return blocks


def find_blocks(text: str, name: str) -> list[Block]:
    """The fenced blocks of a text."""
    blocks: list[Block] = []
    lines = text.splitlines()
    mark, follows, k = "", False, 0
    while k < len(lines):
        fence = _FENCE.match(lines[k])
        if fence:
            end = next(
                j for j in range(k + 1, len(lines)) if lines[j].rstrip() == fence[1]
            )
            language = fence[2].strip()
            if not language.startswith("{"):
                code = "\n".join(lines[k + 1 : end]) + "\n"
                blocks.append(Block(name, k + 2, language, code, mark, follows))
            mark, follows, k = "", not language.startswith("{"), end
        elif comment := _COMMENT.match(lines[k]):
            mark = comment[1]
        elif lines[k].strip():
            mark, follows = "", False
        k += 1
    return blocks


def expected_output(blocks: list[Block], k: int) -> Block | None:
    """The block that shows what block k prints, where there is one."""
    after = blocks[k + 1] if k + 1 < len(blocks) else None
    return after if after and after.language == "text" and after.follows else None


def differences(shown: Block, printed: str) -> list[str]:
    """Lines shown that were not printed, in this order; numbers may differ by 5 %.

    Blanks, rules and dots of tables do not count, and ``...`` stands for any lines, or
    for the rest of a line.
    """
    loose = shown.mark == "output: numbers vary"
    actual = [_words(line) for line in printed.splitlines()]
    missing, at = [], 0
    for line in shown.code.splitlines():
        wanted = _words(line)
        if not wanted[0] or wanted[0] == "...":
            continue
        found = next(
            (j for j in range(at, len(actual)) if _same(wanted, actual[j], loose)), None
        )
        if found is None:
            missing.append(line)
        else:
            at = found + 1
    return missing


def _words(line: str) -> tuple[str, list[float]]:
    """A line with its numbers taken out, and the numbers."""
    line = re.sub(r"[─━│]+", " ", line)
    numbers = [
        float(re.sub(r"[^\d.e-]", "", number)) for number in _NUMBER.findall(line)
    ]
    return " ".join(_NUMBER.sub("#", line).split()), numbers


def _same(wanted: tuple, actual: tuple, loose: bool) -> bool:
    start = wanted[0].removesuffix("...")
    if not (actual[0].startswith(start) if start != wanted[0] else actual[0] == start):
        return False
    pairs = zip(wanted[1], actual[1], strict=False)
    return loose or all(
        math.isclose(a, b, rel_tol=0.05, abs_tol=0.005) for a, b in pairs
    )
