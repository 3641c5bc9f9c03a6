"""Which features of data are genes, and what features of one name are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from optirank._util.matrices import value_scale
from optirank._util.words import counted, note, some
from optirank.data.errors import DataError
from optirank.data.passes import read_values
from optirank.data.profiles import Profiles, duplicates, stripped

GENE_EXPRESSION = "Gene Expression"  # the features of 10x that are genes
_FEATURE_TYPES = ("feature_types", "feature_type")  # columns of var, in this order
# Probes of Xenium, MERFISH, CosMx and Visium that measure no gene
_CONTROL = re.compile(
    r"NegControl(Probe|Codeword)_|(Unassigned|Deprecated)Codeword_|antisense_|"
    r"BLANK[_-]|Blank[_-]|NegPrb|Negative[0-9]|SystemControl|FalseCode|"
    r"Intergenic_Region_"
)
_SCALE_SAMPLES = 200  # samples and genes that tell what kind of values data hold
_SCALE_GENES = 2000


def gene_profiles(
    X: Any,
    obs: pd.DataFrame,
    var: pd.DataFrame,
    source: str,
    gene_column: str | None = None,
    known_genes: Iterable[str] = (),
    raw_genes: Iterable[str] = (),
) -> Profiles:
    """Profiles of a matrix and its tables: features that are genes, each name once.

    Counts of features that share a name are summed. Of values on another scale the
    first of each is used, since sums of logarithms mean nothing.

    Parameters
    ----------
    X : the matrix, see `Profiles`.
    obs, var : what is known of its samples and features.
    source : where they come from, for messages.
    gene_column : the column of ``var`` with the names; None for its index, or another
        column that has far more of the known genes.
    known_genes : the genes of a model.
    raw_genes : see `Profiles`.
    """
    if X.shape != (len(obs), len(var)):
        raise DataError(
            f"{source}: the matrix is {X.shape[0]} x {X.shape[1]}, but there are "
            f"{len(obs)} sample names and {len(var)} gene names"
        )
    obs = obs.set_axis(obs.index.astype(str).rename(None))
    repeated = duplicates(obs.index)
    if repeated:
        what = counted(len(repeated), "sample name occurs", "sample names occur")
        note(f"{what} more than once: {some(repeated)}")
    names = _names_of_features(var, source, gene_column, set(known_genes))
    features = np.flatnonzero(_are_genes(names, var))
    group, unique = pd.factorize(names[features])
    first = np.unique(group, return_index=True)[1]
    profiles = Profiles(
        X=X,
        obs=obs,
        genes=np.asarray(unique, dtype=object),
        columns=features,
        gene_of_column=group,
        source=source,
        raw_genes=frozenset(map(str, raw_genes)),
    )
    return _with_unique_genes(profiles, names[features], first)


def _names_of_features(
    var: pd.DataFrame, source: str, column: str | None, known_genes: set[str]
) -> NDArray[np.object_]:
    """The name of each feature."""
    if column is not None and column not in var.columns:
        raise DataError(
            f"{source} has no gene column {column!r}: there are "
            f"{some(var.columns, 20)}; without one the names of the features are used"
        )
    index = stripped(var.index)
    if column is None:
        column = _column_with_more(var, index, known_genes)
    if column is None:
        return index
    n_missing = int(var[column].isna().sum())
    if n_missing:
        raise DataError(
            f"{source}: {counted(n_missing, 'gene has', 'genes have')} no {column!r}: "
            "fill them in, or choose another column (gene_column=)"
        )
    return stripped(var[column])


def _column_with_more(
    var: pd.DataFrame, names: NDArray, known_genes: set[str]
) -> str | None:
    """The column of ``var`` that has more than twice as many of the known genes as the
    names of the features, where these have less than half of them.
    """
    n_named = len(known_genes.intersection(names))
    if 2 * n_named >= len(known_genes):
        return None
    texts = [name for name in var if var[name].dtype.kind not in "biufcmM"]
    complete = [name for name in texts if not bool(np.any(var[name].isna()))]
    shared = {k: len(known_genes.intersection(stripped(var[k]))) for k in complete}
    best = max(shared, key=lambda column: shared[column], default=None)
    if best is None or shared[best] <= 2 * n_named:
        return None
    note(
        f"genes are named by the column {best!r}: it has {shared[best]} of the "
        f"{len(known_genes)} genes of the model, the names of the features {n_named}"
    )
    return best


def _are_genes(names: NDArray, var: pd.DataFrame) -> NDArray[np.bool_]:
    """Which features are genes: proteins and the like are told by their
    ``feature_types``, control probes by their names.
    """
    left_out = []
    is_gene = np.ones(len(names), dtype=bool)
    column = next((name for name in _FEATURE_TYPES if name in var.columns), None)
    if column is not None:
        types = var[column].astype(str).to_numpy(dtype=object)
        others = types != GENE_EXPRESSION
        if others.any() and not others.all():
            is_gene = ~others
            kinds = some(sorted(set(types[others])))
            left_out.append(
                f"{int(others.sum())} features are left out, they are no genes: {kinds}"
            )
    is_control = np.array([bool(_CONTROL.match(name)) for name in names], dtype=bool)
    is_control &= is_gene
    if is_control.any():
        left_out.append(
            f"{int(is_control.sum())} control probes are left out: "
            f"{some(names[is_control], 3)}"
        )
    is_gene &= ~is_control
    if not is_gene.any():
        return np.ones_like(is_gene)
    for text in left_out:
        note(text)
    return is_gene


def _with_unique_genes(
    profiles: Profiles, names: NDArray, first: NDArray[np.intp]
) -> Profiles:
    """Profiles in which features that share a name are summed, where values are
    counts, else the first of each is taken. Some features of some samples, evenly
    spaced, tell what values are.
    """
    alone = replace(profiles, columns=profiles.columns[first], gene_of_column=None)
    repeated = duplicates(names)
    if not repeated:
        return alone
    step = max(1, len(names) // _SCALE_GENES)
    features = profiles.columns[::step]
    looked_at = replace(profiles, columns=features, gene_of_column=None)
    rows = np.arange(0, len(profiles.obs), max(1, len(profiles.obs) // _SCALE_SAMPLES))
    counts = value_scale(read_values(looked_at, rows=rows)) == "counts"
    how = "their counts are summed" if counts else "the first of each is used"
    what = counted(len(repeated), "gene name occurs", "gene names occur")
    note(f"{what} more than once, {how}: {some(repeated)}")
    return profiles if counts else alone
