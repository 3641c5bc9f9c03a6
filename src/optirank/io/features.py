"""Which features of data are genes, and what these are called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.names import counted, some
from optirank.io.data import DataError

if TYPE_CHECKING:
    import pandas as pd

GENE_EXPRESSION = "Gene Expression"  # the features of 10x that are genes
_FEATURE_TYPES = ("feature_types", "feature_type")
# Probes of Xenium, MERFISH, CosMx and Visium that measure no gene
_CONTROL = re.compile(
    r"NegControl(Probe|Codeword)_|(Unassigned|Deprecated)Codeword_|antisense_|"
    r"BLANK[_-]|Blank[_-]|NegPrb|Negative[0-9]|SystemControl|FalseCode|"
    r"Intergenic_Region_"
)


def gene_names_of(
    var: pd.DataFrame, gene_column: str | None, source: object
) -> np.ndarray:
    """Names of the genes: the index or a column of ``var``."""
    if gene_column is not None and gene_column not in var.columns:
        raise DataError(
            f"{source} has no gene column {gene_column!r}: there are "
            f"{some(var.columns, 20)}; without one the index of var is used"
        )
    names = var.index.to_series() if gene_column is None else var[gene_column]
    if bool(np.any(names.isna())):
        what = counted(int(names.isna().sum()), "gene has", "genes have")
        raise DataError(
            f"{source}: {what} no {gene_column!r}: fill them in, or choose another "
            "gene column"
        )
    # Blanks around names nobody sees, and no other data have them
    return np.array([name.strip() or name for name in names.astype(str)], dtype=object)


def genes_among(
    names: np.ndarray, var: pd.DataFrame | None
) -> tuple[np.ndarray | None, list[str]]:
    """Positions of the features that are genes (None: all are), and notes on the
    others.

    Proteins and other features that are no genes are told by their ``feature_types``,
    control probes by their names. Where no gene would be left, all features stay.
    """
    kept = np.ones(len(names), dtype=bool)
    notes = []
    types = _feature_types(var)
    if types is not None and (types == GENE_EXPRESSION).any():
        others = types != GENE_EXPRESSION
        if others.any():
            kinds = sorted(set(types[others]))
            notes.append(
                f"{int(others.sum())} features are left out, they are no genes: "
                f"{some(kinds)}"
            )
        kept &= ~others
    control = np.array([_CONTROL.match(str(name)) is not None for name in names], bool)
    control &= kept
    if control.any():
        notes.append(
            f"{int(control.sum())} control probes are left out: "
            f"{some(names[control], 3)}"
        )
    kept &= ~control
    if kept.all() or not kept.any():
        return None, []
    return np.flatnonzero(kept), notes


def _feature_types(var: pd.DataFrame | None) -> np.ndarray | None:
    column = next(
        (name for name in _FEATURE_TYPES if var is not None and name in var.columns),
        None,
    )
    if var is None or column is None:
        return None
    return var[column].astype(str).to_numpy(dtype=object)
