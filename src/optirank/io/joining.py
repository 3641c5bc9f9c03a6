"""Several data sets that are used as one, over the genes that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from optirank._util.names import some
from optirank.io.blocks import unique_genes
from optirank.io.data import (
    KEY,
    DataError,
    gene_names,
    source_of,
    used_names,
    with_annotations,
)
from optirank.io.homologs import in_names_of

if TYPE_CHECKING:
    from anndata import AnnData

FILE_COLUMN = "file"  # says which of several sources a sample is from


def join(
    parts: Sequence[AnnData],
    names: Sequence[str] | None = None,
    column: str = FILE_COLUMN,
) -> list[AnnData]:
    """Data sets whose genes have the names of those of the first, each once.

    Genes that share a name within one set are merged (`unique_genes`), and sets whose
    genes have names of another kind are translated (`in_names_of`). ``obs`` gets a
    column that names the source of a sample. What looks at all of them, such as
    `gene_names` and `run_pass`, takes the list.

    Parameters
    ----------
    parts : the sets, in order.
    names : what the column says of each; by default the names of their files.
    column : the name of that column.
    """
    sources = _names_of(parts) if names is None else [str(n) for n in names]
    if len(set(sources)) < len(parts):
        raise DataError(
            f"{len(parts)} sources are called {some(sources)}: give each a name of its "
            "own"
        )
    first = unique_genes(parts[0])
    panel = dict.fromkeys(used_names(first))
    # Such as Ensembl ids beside symbols
    translated = [first, *(in_names_of(part, panel) for part in parts[1:])]
    named = []
    for part, source in zip(translated, sources, strict=True):
        annotated = with_annotations(part, **{column: source})
        annotated.uns[KEY]["name"] = source
        named.append(annotated)
    gene_names(named)  # refuses sets that share none
    return named


def _names_of(parts: Sequence[AnnData]) -> list[str]:
    """Short names of the sources, that differ where they can."""
    sources = [source_of(part) for part in parts]
    names = [Path(source).stem for source in sources]
    if len(set(names)) < len(names):
        names = sources
    if len(set(names)) < len(names):
        names = [f"{name} {k + 1}" for k, name in enumerate(names)]
    return names
