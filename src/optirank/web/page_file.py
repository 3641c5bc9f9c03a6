"""Build the page: one HTML file of a template, a style, two scripts, the models, and
what the names of their genes need.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from optirank import __version__
from optirank._util.files import check_outputs, write_text
from optirank._util.matrices import STANDARDISED
from optirank.io.homologs import HOMOLOG_TABLE, ensembl_symbols
from optirank.io.table_files import SUFFIXES
from optirank.model import Model
from optirank.model.confidence import CERTAINTY
from optirank.model.file import as_model, model_digest
from optirank.model.likeness import (
    CHANCE,
    INVERTED,
    INVERTED_BELOW,
    MANY_ZEROS,
    MORE_ZEROS,
    SCALED,
)
from optirank.model.tree import SURE
from optirank.panel.further import (
    CLEAR,
    FEWEST_GENES,
    FEWEST_SAMPLES,
    MOST_SAMPLES,
)
from optirank.verbs import query as trust
from optirank.verbs.cards import card_tables, model_card
from optirank.verbs.predict import NOT_CALIBRATED
from optirank.verbs.withholding import (
    LOW_CONFIDENCE,
    NO_INFORMATION,
)

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
    names = _name(models[0]) if len(models) == 1 else f"{len(models)} models"
    values = {
        "policy": _policy(script, style, h5ad),
        "title": html.escape(f"optirank: {names}"),
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
        "unlikely": trust.UNLIKELY,
        "inverted": INVERTED,
        "inverted_below": INVERTED_BELOW,
        "chance": CHANCE,
        "clear": CLEAR,
        "fewest_genes": FEWEST_GENES,
        "fewest_samples": FEWEST_SAMPLES,
        "most_samples": MOST_SAMPLES,
        "alarm_below": trust.ALARM_BELOW,
        "doubt_below": trust.DOUBT_BELOW,
        "unlike": trust.UNLIKE,
        "unlike_unchecked": trust.UNLIKE_UNCHECKED,
        "most": trust.MOST,
        "low_label": trust.LOW_LABEL,
    },
}


def model_data(model: Model) -> dict[str, Any]:
    """A model for `packed_json`; large arrays are the base64 of their bytes."""
    if not model.votes:
        raise TypeError(
            f"a model of method {model.card.method!r} has reference sets of its own "
            "per class, and the page counts votes alone: train a panel model "
            "(method='panel') to export one"
        )
    card = model.card
    further, tree, terms = model.further, model.tree, model.terms
    place = {gene: position for position, gene in enumerate(model.path_genes)}
    panels = [
        {
            "genes": [place[gene] for gene in panel.genes],
            "coef": _bytes(panel.coef, "<f8"),
            "profiles": panel.likeness and _bytes(panel.likeness.profiles, "<f4"),
            "levels": panel.likeness and _bytes(panel.likeness.levels, "<f4"),
            "calibration": panel.calibration,
            "error_control": panel.error_control,
            "missing": panel.missing,
        }
        for panel in model.panels.values()
    ]
    return {
        "name": card.name,
        "label": card.label,
        "digest": model_digest(model),
        "version": __version__,
        "classes": [str(label) for label in model.classes],
        "n_genes": model.n_genes,
        "n_rows": len(model.panel.coef),
        "genes": list(model.path_genes),
        "further": further
        and {"genes": further.genes.tolist(), "means": _bytes(further.means, "<f2")},
        # Pairs: objects of JavaScript have keys that are numbers in another order
        "tree": tree and {"parents": list(tree.parents.items()), "levels": tree.levels},
        "terms": terms and {"ids": list(terms.ids.items()), "version": terms.version},
        "panels": panels,
        "standard_error": card.standard_error or 0.0,
        "values": card.values,
        "card": model_card(model),
        "tables": card_tables(model),
    }


def _bytes(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, kind).data).decode("ascii")


def gene_tables(models: Sequence[Model]) -> dict[str, Any]:
    """Symbols by Ensembl id, and homologs, as far as these models need them.

    A gene in another case is needed too: ``Fyb``, whose homolog is ``FYB1``, is not the
    ``FYB`` of a model. ``symbols`` has a line per id, see ``readSymbols`` of
    ``page/names.js``: all ids, so that the page counts them as the command does, but
    few symbols.
    """
    known = {gene.casefold() for model in models for gene in model.path_genes}
    for model in models:
        if model.further is not None:
            known.update(map(str.casefold, model.further.genes.tolist()))
    lines = HOMOLOG_TABLE.read_text("utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    pairs = [pair for pair in pairs if known.intersection(map(str.casefold, pair))]
    wanted = known.union(*(map(str.casefold, pair) for pair in pairs))
    return {"symbols": _packed_symbols(wanted), "homologs": pairs}


def _packed_symbols(wanted: Collection[str]) -> str:
    """``wanted`` are names in lower case."""
    symbols = ensembl_symbols()
    by_id = any(gene.upper() in symbols for gene in wanted)  # a model of Ensembl ids
    counts = Counter(symbols.values())
    lines = []
    for prefix in ("ENSG", "ENSMUSG"):
        lines.append(f">{prefix}")
        last = 0
        for key in sorted(key for key in symbols if key.startswith(prefix)):
            number = int(key.removeprefix(prefix))
            symbol = symbols[key]
            needed = by_id or counts[symbol] > 1 or symbol.casefold() in wanted
            lines.append(f"{number - last:x}" + f" {symbol}" * needed)
            last = number
    return "\n".join(lines)


def generator_state() -> dict[str, str]:
    """The generator whose numbers a query's checksum is made with."""
    state: Any = np.random.PCG64(0).state["state"]
    return {name: str(value) for name, value in state.items()}


def packed(text: str) -> str:
    """A text, gzipped, in base64: the same text gives the same bytes."""
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 9, mtime=0)).decode()


def packed_json(data: object) -> str:
    """Plain values, dataclasses and arrays as packed JSON."""

    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray) else vars(value)

    text = json.dumps(
        data,
        default=plain,
        ensure_ascii=False,
        separators=(",", ":"),
        allow_nan=False,
    )
    return packed(text)
