"""Several data sets as one: over the genes that all of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from optirank._util.names import some
from optirank.data.errors import DataError
from optirank.data.genes import check_case, match_genes
from optirank.data.profiles import Profiles

FILE_COLUMN = "file"  # of obs: which of several data sets a sample is from


def join_profiles(
    parts: Sequence[Profiles], names: Sequence[str] | None = None
) -> list[Profiles]:
    """Several data sets over the genes that all of them have, in the order of the
    first. ``obs`` gets a column that names the data set of a sample.

    ``names`` are what they are called; None for their sources, numbered where two are
    the same.
    """
    if names is None:
        names = [part.source for part in parts]
        if len(set(names)) < len(names):
            names = [f"{name} {number}" for number, name in enumerate(names, 1)]
    first = parts[0].genes
    columns = np.array([_places_of(first, part.genes) for part in parts])
    common = np.flatnonzero((columns >= 0).all(axis=0))
    if len(common) < 2:
        raise DataError(
            f"{some(names)} have {len(common)} genes in common: their gene names may "
            "be of different kinds (gene_column=)"
        )
    joined = []
    for part, name, places in zip(parts, names, columns, strict=True):
        same = part.with_genes(places[common])
        obs = part.obs.assign(**{FILE_COLUMN: name})
        notes = tuple(f"{name}: {text}" for text in part.notes)
        joined.append(
            replace(same, genes=first[common], obs=obs, name=name, notes=notes)
        )
    return joined


def _places_of(genes: NDArray, others: NDArray) -> NDArray[np.intp]:
    """Where genes are among others, -1 where they are not; versions of Ensembl ids
    count only where few names are the same.
    """
    places = pd.Index(others).get_indexer(pd.Index(genes))
    if 2 * (places >= 0).sum() >= len(genes):
        return places
    match = match_genes(genes, others)
    check_case(match)
    return match.columns
