"""Build the page: one HTML file of a template, a style, two scripts and the models."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from optirank import __version__
from optirank._util.files import check_outputs, write_text
from optirank._util.numbers import STANDARDISED
from optirank.model import Model
from optirank.model.confidence import CERTAINTY
from optirank.model.file import as_model, model_digest
from optirank.model.likeness import MANY_ZEROS, MORE_ZEROS, SCALED
from optirank.model.tree import SURE
from optirank.panel import further
from optirank.verbs import checks
from optirank.verbs.cards import card_tables, model_card
from optirank.verbs.labelling import LOW_CONFIDENCE, NO_INFORMATION, NOT_CALIBRATED

_PARTS = files("optirank.web") / "page"
# h5wasm 0.10.3 of npm, dist/iife/h5wasm.js, gzipped; its licence lies beside it
_H5WASM = files("optirank.web") / "vendor" / "h5wasm.js.gz"
_LICENCE = files("optirank.web") / "vendor" / "h5wasm-LICENSE.txt"
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z0-9]+)\.js";\n', re.MULTILINE)
# Lines that are comments alone; the worker is packed, so nobody reads them there
_COMMENT = re.compile(r"^[ \t]*(?:/\*\*.*?\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)


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
        "worker": packed(_COMMENT.sub("", bundle("worker"))),
        "words": json.dumps(WORDS),
    }
    if h5ad:
        blocks["h5wasm"] = base64.b64encode(_H5WASM.read_bytes()).decode("ascii")
        blocks["licence"] = _LICENCE.read_text("utf-8")
    stored = [_block("model", packed_model(model), _name(model)) for model in models]
    stored += [_block(name, text) for name, text in blocks.items()]
    names = _name(models[0]) if len(models) == 1 else f"{len(models)} models"
    values = {
        "policy": _policy(script, style, h5ad),
        "title": html.escape(f"optirank: {names}"),
        "style": style,
        "script": script,
        "blocks": "\n".join(stored),
        "version": __version__,
        "formats": ".csv,.tsv,.txt,.tab,.gz" + ",.h5ad,.h5" * h5ad,
        "kinds": ".csv, .tsv or .txt" + ", .h5ad, .h5 of 10x" * h5ad,
    }
    template = _part("page.html")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)


def bundle(entry: str) -> str:
    """A module of the page and those it imports as one script.

    Modules share one scope there, so their names must differ: a test looks.
    """
    modules: dict[str, str] = {}
    begun = set()  # a module may import one that imports it

    def add(name: str) -> None:
        begun.add(name)
        source = _part(f"{name}.js")
        for imported in _IMPORT.findall(source):
            if imported not in begun:
                add(imported)
        own = _IMPORT.sub("", source)
        modules[name] = re.sub(r"^export ", "", own, flags=re.MULTILINE)

    add(entry)
    text = "\n".join(modules.values())
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


def _block(part: str, text: str, name: str = "") -> str:
    """Data of the page, as text that is no script."""
    if "</script" in text.lower() or "<!--" in text:
        text = text.replace("<", "\\u003c")
    named = f' data-name="{html.escape(name)}"' if name else ""
    return f'<script type="text/plain" data-part="{part}"{named}>{text}</script>'


def _name(model: Model) -> str:
    card = model.card
    return card.name or (f"classifier of {card.label}" if card.label else "model")


# Sentences and limits that the page takes from here, so that they cannot differ
WORDS = {
    "no_information": NO_INFORMATION,
    "low_confidence": LOW_CONFIDENCE,
    "not_calibrated": NOT_CALIBRATED,
    "standardised": STANDARDISED,
    "scaled": SCALED,
    "many_zeros": MANY_ZEROS,
    "more_zeros": MORE_ZEROS,
    "certainty": CERTAINTY,
    "sure": SURE,
    "trust": {
        "unlikely": checks.UNLIKELY,
        "clear": further.CLEAR,
        "fewest_genes": further.FEWEST_GENES,
        "fewest_samples": further.FEWEST_SAMPLES,
        "most_samples": further.MOST_SAMPLES,
        "alarm_below": checks.ALARM_BELOW,
        "doubt_below": checks.DOUBT_BELOW,
        "unlike": checks.UNLIKE,
        "unlike_unchecked": checks.UNLIKE_UNCHECKED,
        "most": checks.MOST,
        "low_label": checks.LOW_LABEL,
    },
}


def packed_model(model: Model) -> str:
    """What the page has of a model, packed; arrays are the base64 of their bytes."""
    if not model.votes:
        raise TypeError(
            f"a model of method {model.card.method!r} has reference sets of its own "
            "per class, and the page counts votes alone: train a panel model "
            "(method='panel') to export one"
        )
    card, panel, likeness = model.card, model.panel, model.panel.likeness
    checks, tree = model.further, model.tree
    data = {
        "name": card.name,
        "digest": model_digest(model),
        "version": __version__,
        "classes": [str(label) for label in model.classes],
        "genes": panel.genes.tolist(),
        "panel": {
            "coef": _bytes(panel.coef, "<f8"),
            "profiles": likeness and _bytes(likeness.profiles, "<f4"),
            "medians": likeness and likeness.medians,
            "calibration": panel.calibration,
            "error_control": panel.error_control,
            "missing": panel.missing,
        },
        "further": checks
        and {"genes": checks.genes.tolist(), "means": _bytes(checks.means, "<f4")},
        # Pairs: objects of JavaScript have keys that are numbers in another order
        "tree": tree and list(tree.parents.items()),
        "terms": list(model.terms.items()),
        "values": card.values or None,
        "card": model_card(model),
        "tables": card_tables(model),
    }
    text = json.dumps(data, default=_plain, separators=(",", ":"), allow_nan=False)
    return packed(text)


def _bytes(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, kind).data).decode("ascii")


def _plain(value: Any) -> Any:
    """An array or a dataclass as JSON has it."""
    return value.tolist() if isinstance(value, np.ndarray) else asdict(value)


def packed(text: str) -> str:
    """A text, gzipped, in base64: the same text gives the same bytes."""
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 9, mtime=0)).decode()
