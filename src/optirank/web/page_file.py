"""Build the page: one HTML file of a template, a style, two scripts and the models."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from optirank import __version__
from optirank._util.files import check_outputs, write_text
from optirank.io.tables import SUFFIXES
from optirank.model import Model
from optirank.model.file import as_model
from optirank.web.model_data import (
    WORDS,
    gene_tables,
    generator_state,
    model_data,
    packed,
    packed_json,
)

_PARTS = files("optirank.web") / "page"
# h5wasm 0.10.3 of npm, dist/iife/h5wasm.js, gzipped; its licence lies beside it
_H5WASM = files("optirank.web") / "vendor" / "h5wasm.js.gz"
_LICENCE = files("optirank.web") / "vendor" / "h5wasm-LICENSE.txt"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z0-9]+)\.js";\n', re.MULTILINE)
_TOP_LEVEL = re.compile(
    r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE
)


def write_page(
    model: Model | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    h5ad: bool = False,
    overwrite: bool = False,
) -> Path:
    """Write the page that labels samples by a model in a browser.

    Parameters
    ----------
    model : a panel model, its file, or the name of one.
    path : the file to write, such as ``model.html``.
    h5ad : whether the page reads .h5ad and 10x .h5 files too, which adds 1.4 MB.
    overwrite : whether a file that exists may be replaced.
    """
    path = Path(path)
    check_outputs({"the page": path}, (), force=overwrite)
    write_text(path, page([as_model(model)], h5ad=h5ad))
    return path


def page(models: Sequence[Model], *, h5ad: bool = False) -> str:
    """The page of one or more models as text; the same models give the same text."""
    style = _part("page.css")
    script = bundle("app")
    # Data of scripts are no scripts: the browser runs none of them
    blocks = {
        "worker": packed(bundle("worker")),
        "words": json.dumps(WORDS | {"generator": generator_state()}),
        "tables": packed_json(gene_tables(models)),
        "h5wasm": "",
        "licence": "",
    }
    if h5ad:
        blocks["h5wasm"] = base64.b64encode(_H5WASM.read_bytes()).decode("ascii")
        blocks["licence"] = _LICENCE.read_text("utf-8")
    stored = "\n".join(
        [
            *(
                _block("model", packed_json(model_data(model)), model)
                for model in models
            ),
            *(_block(name, text) for name, text in blocks.items() if text),
        ]
    )
    values = {
        "policy": _policy(script, style, h5ad),
        "title": _title(models),
        "style": style,
        "script": script,
        "blocks": stored,
        "version": __version__,
        "formats": ",".join([*SUFFIXES, ".gz"]) + ",.h5ad,.h5" * h5ad,
        "kinds": ".csv, .tsv, .txt or .gct" + ", .h5ad, .h5 of 10x" * h5ad,
    }
    template = _part("page.html")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)


def bundle(entry: str) -> str:
    """A module of the page and those it imports as one script.

    Modules share one scope there, so their names must differ.
    """
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        if name in modules:
            return
        source = _part(f"{name}.js")
        modules[name] = ""  # a module may import one that imports it
        for imported in _IMPORT.findall(source):
            add(imported)
        del modules[name]
        modules[name] = re.sub(
            r"^export ", "", _IMPORT.sub("", source), flags=re.MULTILINE
        )

    add(entry)
    names = [name for text in modules.values() for name in _TOP_LEVEL.findall(text)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"several modules of the page have {twice}: rename them")
    text = "\n".join(modules.values())
    if "</script" in text:
        raise ValueError("a module of the page ends the script that it is put into")
    return f'(() => {{\n"use strict";\n{text}}})();\n'


def _part(name: str) -> str:
    return (_PARTS / name).read_text("utf-8")


def _policy(script: str, style: str, h5ad: bool) -> str:
    """What the page may do: no connection at all, and no script but its own."""
    runs = _hash(script) + " 'wasm-unsafe-eval'" * h5ad
    return (
        f"default-src 'none'; script-src {runs}; style-src {_hash(style)}; "
        "worker-src blob:; connect-src 'none'; img-src data:; form-action 'none'; "
        "base-uri 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _block(name: str, text: str, model: Model | None = None) -> str:
    """Data of the page, as text that is no script."""
    if "</script" in text.lower() or "<!--" in text:
        text = text.replace("<", "\\u003c")
    named = ""
    if model is not None:
        named = f' data-name="{html.escape(_name(model))}"'
    return f'<script type="text/plain" data-part="{name}"{named}>{text}</script>'


def _name(model: Model) -> str:
    card = model.card
    return card.name or (f"classifier of {card.label}" if card.label else "model")


def _title(models: Sequence[Model]) -> str:
    names = _name(models[0]) if len(models) == 1 else f"{len(models)} models"
    return html.escape(f"optirank: {names}")
