"""Which features of data are genes, and what these are called."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.names import counted, some
from optirank.io.data import (
    DataError,
    changed,
    duplicates,
    features_of,
    source_of,
)

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData
    from numpy.typing import NDArray

GENE_EXPRESSION = "Gene Expression"  # the features of 10x that are genes
_FEATURE_TYPES = ("feature_types", "feature_type")
# Probes of Xenium, MERFISH, CosMx and Visium that measure no gene
_CONTROL = re.compile(
    r"NegControl(Probe|Codeword)_|(Unassigned|Deprecated)Codeword_|antisense_|"
    r"BLANK[_-]|Blank[_-]|NegPrb|Negative[0-9]|SystemControl|FalseCode|"
    r"Intergenic_Region_"
)
# ESR1|2099 of TCGA's RSEM files; ?|100130426 has no symbol
_WITH_NUMBER = re.compile(r"([^|\s]+)\|(\d+)")
_GENOMES = "hg18|hg19|hg38|GRCh37|GRCh38|mm9|mm10|mm39|GRCm38|GRCm39"
# ESR1_hg38, or hg38_ESR1 as Cell Ranger writes it; several _ where it has more genomes
_WITH_GENOME = re.compile(
    rf"(?P<first>{_GENOMES})_+(?P<gene>.+)|(?P<symbol>.+)_(?P<last>{_GENOMES})",
    re.IGNORECASE,
)


def with_named_genes(adata: AnnData, gene_column: str | None = None) -> AnnData:
    """Data whose features have the names of their genes; those that are none are left
    out. The notes say so, and which samples share a name.

    Parameters
    ----------
    adata : data with the names and features that a file or an object has.
    gene_column : the column of ``var`` with the names; None for its index.
    """
    var = features_of(adata)
    source = source_of(adata)
    if gene_column is not None and gene_column not in var.columns:
        raise DataError(
            f"{source} has no gene column {gene_column!r}: there are "
            f"{some(var.columns, 20)}; without one the index of var is used"
        )
    column = var.index.to_series() if gene_column is None else var[gene_column]
    if bool(np.any(column.isna())):
        what = counted(int(column.isna().sum()), "gene has", "genes have")
        raise DataError(
            f"{source}: {what} no {gene_column!r}: fill them in, or choose another "
            "gene column"
        )
    names, notes = stripped(column), []
    if gene_column is None:
        names, notes = plain_gene_names(names)
    used, left_out = _genes_among(names, var)
    notes += left_out
    repeated = duplicates(adata.obs_names)
    if repeated:
        what = counted(len(repeated), "sample name occurs", "sample names occur")
        notes.append(f"{what} more than once: {some(repeated)}")
    var = var.drop(columns=gene_column or []).set_axis(names)
    return changed(adata, var=var, used=used, notes=notes)


def stripped(names: Iterable[object]) -> np.ndarray:
    """Names without blanks around them, which nobody sees and no other data have."""
    texts = [str(name) for name in names]
    return np.array([text.strip() or text for text in texts], dtype=object)


def _genes_among(
    names: np.ndarray, var: pd.DataFrame
) -> tuple[NDArray[np.bool_] | None, list[str]]:
    """A mask of the features that are genes (None: all are), and notes on the others.

    Proteins and other features that are no genes are told by their ``feature_types``,
    control probes by their names. Where no gene would be left, all features stay.
    """
    used = np.ones(len(names), dtype=bool)
    notes = []
    column = next((name for name in _FEATURE_TYPES if name in var.columns), None)
    if column is not None:
        types = var[column].astype(str).to_numpy(dtype=object)
        others = types != GENE_EXPRESSION
        if others.any() and not others.all():
            kinds = sorted(set(types[others]))
            notes.append(
                f"{int(others.sum())} features are left out, they are no genes: "
                f"{some(kinds)}"
            )
            used = ~others
    control = np.array([_CONTROL.match(str(name)) is not None for name in names], bool)
    control &= used
    if control.any():
        notes.append(
            f"{int(control.sum())} control probes are left out: "
            f"{some(names[control], 3)}"
        )
    used &= ~control
    return (used, notes) if notes and used.any() else (None, [])


def plain_gene_names(names: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """The names without Entrez numbers and without the genome, and what was changed.

    They are changed where all names carry a number, or all carry the same genome: names
    of two genomes, as in mixtures of species, stay as they are.
    """
    without = "their Entrez numbers"
    found = [_WITH_NUMBER.fullmatch(str(name)) for name in names]
    if found and all(found):
        pairs = [match.groups() for match in found if match]
        plain = [entrez if symbol == "?" else symbol for symbol, entrez in pairs]
    else:
        found = [_WITH_GENOME.fullmatch(str(name)) for name in names]
        genomes = {
            (match["first"] or match["last"]).casefold() for match in found if match
        }
        if not all(found) or len(genomes) != 1:
            return names, []
        plain = [match["gene"] or match["symbol"] for match in found if match]
        without = f"the genome ({genomes.pop()})"
    note = f"gene names are read without {without}: {some(names, 2)}"
    return np.array(plain, dtype=object), [note]
