"""Notebooks as pages of the documentation, with the outputs that are stored in them.

A notebook becomes Markdown: its text as it is, code cells as ``python`` blocks, printed
lines as ``text`` blocks, pictures as images. Nothing is run when the pages are built:
tests/docs runs the cells and compares what they print.
"""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser


class NotebookParser(MystParser):
    """Reads ``.ipynb`` files as MyST Markdown."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Parse the text of a notebook's file."""
        super().parse(as_markdown(json.loads(inputstring)), document)


def as_markdown(notebook: dict[str, Any]) -> str:
    """A notebook as one text."""
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(fenced("python", source))
            alt = cell["metadata"].get("alt", "the figure that the cell draws")
            shown = [_shown(output, alt) for output in cell["outputs"]]
            parts += [text for text in shown if text]
    return "\n\n".join(parts) + "\n"


def printed(output: dict[str, Any]) -> str:
    """The text that an output of a cell shows; "" for a picture."""
    if output["output_type"] == "stream":
        return "".join(output["text"]) if output["name"] == "stdout" else ""
    if "image/png" in output.get("data", {}):
        return ""
    return "".join(output.get("data", {}).get("text/plain", ""))


def fenced(language: str, text: str) -> str:
    """A block of Markdown."""
    return f"```{language}\n{text.rstrip()}\n```"


def _shown(output: dict[str, Any], alt: str) -> str:
    """An output as Markdown; ``alt`` says in words what a picture shows."""
    picture = output.get("data", {}).get("image/png")
    if picture:
        content = "".join(picture).replace("\n", "")
        return f"![{alt}](data:image/png;base64,{content})"
    text = printed(output)
    return fenced("text", text) if text.strip() else ""


def setup(app: Any) -> dict[str, bool]:
    """Let Sphinx read notebooks."""
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
