"""Names of genes that carry more than the gene: its Entrez number, or the genome."""

from __future__ import annotations

import re

import numpy as np

from optirank._util.names import some

# ESR1|2099 of TCGA's RSEM files; ?|100130426 has no symbol
_WITH_NUMBER = re.compile(r"([^|\s]+)\|(\d+)")
_GENOMES = "hg18|hg19|hg38|GRCh37|GRCh38|mm9|mm10|mm39|GRCm38|GRCm39"
# ESR1_hg38, or hg38_ESR1 as Cell Ranger writes it; several _ where it has more genomes
_WITH_GENOME = re.compile(
    rf"(?P<first>{_GENOMES})_+(?P<gene>.+)|(?P<symbol>.+)_(?P<last>{_GENOMES})",
    re.IGNORECASE,
)


def plain_gene_names(names: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """The names without Entrez numbers and without the genome, and what was changed.

    They are changed where all names carry a number, or all carry the same genome: names
    of two genomes, as in mixtures of species, stay as they are.
    """
    numbered = [_WITH_NUMBER.fullmatch(str(name)) for name in names]
    if numbered and all(numbered):
        pairs = [match.groups() for match in numbered if match]
        plain = [entrez if symbol == "?" else symbol for symbol, entrez in pairs]
        return _changed(names, plain, "their Entrez numbers")
    marked = [_WITH_GENOME.fullmatch(str(name)) for name in names]
    if not marked or not all(marked):
        return names, []
    found = [match.groupdict() for match in marked if match]
    genomes = {str(one["first"] or one["last"]).casefold() for one in found}
    if len(genomes) > 1:
        return names, []
    plain = [str(one["gene"] or one["symbol"]) for one in found]
    return _changed(names, plain, f"the genome ({genomes.pop()})")


def _changed(
    names: np.ndarray, plain: list[str], without: str
) -> tuple[np.ndarray, list[str]]:
    note = f"gene names are read without {without}: {some(names, 2)}"
    return np.array(plain, dtype=object), [note]
