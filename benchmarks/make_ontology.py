"""The table of Cell Ontology terms that comes with optirank.

    pip install cellxgene-ontology-guide
    python benchmarks/make_ontology.py [--out src/optirank/ontology/cell_ontology.tsv.gz]

The package has the terms of the Cell Ontology (CC BY 4.0, https://obofoundry.org/ontology/cl)
in the versions that CELLxGENE accepts; the newest is taken. Terms that are out of use
are left out. One line per term: id, name, synonyms and parents; the first line names
the version. The same package gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from optirank._util.files import write_bytes

OUT = Path(__file__).parents[1] / "src/optirank/ontology/cell_ontology.tsv.gz"
LARGEST = 300_000  # bytes that the package may grow by
_SEPARATOR = "|"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    version, terms = read_terms()
    content = gzip.compress(as_table(version, terms).encode(), 9, mtime=0)
    if len(content) > LARGEST:
        raise SystemExit(f"the table takes {len(content)} bytes, more than {LARGEST}")
    write_bytes(args.out, content)
    print(f"{args.out}: Cell Ontology {version}, {len(terms)} terms, {len(content)} B")


def read_terms() -> tuple[str, dict[str, dict[str, Any]]]:
    """The newest version, and its terms by id without those that are out of use."""
    import zstandard

    folder = Path(str(files("cellxgene_ontology_guide") / "data"))
    newest = max(folder.glob("CL-ontology-v*.json.zst"))
    version = newest.name.removeprefix("CL-ontology-").removesuffix(".json.zst")
    with newest.open("rb") as packed:
        stream = zstandard.ZstdDecompressor().stream_reader(packed)
        terms = json.load(io.TextIOWrapper(stream, "utf-8"))
    in_use = {
        term: about
        for term, about in sorted(terms.items())
        if term.startswith("CL:") and not about["deprecated"]
    }
    return version, in_use


def as_table(version: str, terms: dict[str, dict[str, Any]]) -> str:
    """The lines of the table."""
    lines = [f"# Cell Ontology {version}, CC BY 4.0, obofoundry.org/ontology/cl"]
    lines.append("id\tname\tsynonyms\tparents")
    for term, about in terms.items():
        synonyms = sorted(set(about.get("synonyms", ())))
        parents = [
            parent
            for parent, distance in sorted(about["ancestors"].items())
            if distance == 1 and parent in terms
        ]
        cells = [
            term,
            about["label"],
            _SEPARATOR.join(synonyms),
            _SEPARATOR.join(parents),
        ]
        lines.append("\t".join(" ".join(cell.split()) for cell in cells))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
