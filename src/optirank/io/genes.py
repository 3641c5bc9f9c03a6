"""Names of genes: which features of data are genes, and where those of a model are.

A name is looked for as it is written. Names that are not there are looked for without
the version of an Ensembl identifier (``ENSG00000141510.12``), then without regard to
case. Whatever was found in another spelling is listed. Nothing is guessed: a gene that
several columns could stand for, be it a symbol that is there twice or two spellings of
it, counts as missing and is listed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optirank._util.names import counted, some
from optirank.io.data import (
    FEATURE_TYPES,
    DataError,
    changed,
    duplicates,
    features_of,
    source_of,
    stripped,
)

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

GENE_EXPRESSION = "Gene Expression"  # the features of 10x that are genes
# Probes of Xenium, MERFISH, CosMx and Visium that measure no gene
_CONTROL = re.compile(
    r"NegControl(Probe|Codeword)_|(Unassigned|Deprecated)Codeword_|antisense_|"
    r"BLANK[_-]|Blank[_-]|NegPrb|Negative[0-9]|SystemControl|FalseCode|"
    r"Intergenic_Region_"
)
# ESR1|2099 of TCGA's RSEM files; ?|100130426 has no symbol
_WITH_NUMBER = re.compile(r"\?\|(?P<gene>\d+)|(?P<symbol>[^|\s]+)\|\d+")
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
    used = _genes_among(names, var, notes)
    repeated = duplicates(adata.obs_names)
    if repeated:
        what = counted(len(repeated), "sample name occurs", "sample names occur")
        notes.append(f"{what} more than once: {some(repeated)}")
    var = var.drop(columns=gene_column or []).set_axis(names)
    known: dict[str, Any] = {} if used.all() else {"used": used}
    return changed(adata, var=var, notes=notes, **known)


def _genes_among(
    names: np.ndarray, var: pd.DataFrame, notes: list[str]
) -> NDArray[np.bool_]:
    """A mask of the features that are genes; ``notes`` gets sentences on the others.

    Proteins and other features that are no genes are told by their ``feature_types``,
    control probes by their names. Where no gene would be left, all features stay.
    """
    is_gene = np.ones(len(names), dtype=bool)
    left_out = []
    column = next((name for name in FEATURE_TYPES if name in var.columns), None)
    if column is not None:
        types = var[column].astype(str).to_numpy(dtype=object)
        others = types != GENE_EXPRESSION
        if others.any() and not others.all():
            is_gene = ~others
            left_out.append(
                f"{int(others.sum())} features are left out, they are no genes: "
                f"{some(sorted(set(types[others])))}"
            )
    control = np.array([_CONTROL.match(name) is not None for name in names], dtype=bool)
    control &= is_gene
    if control.any():
        left_out.append(
            f"{int(control.sum())} control probes are left out: "
            f"{some(names[control], 3)}"
        )
    is_gene &= ~control
    if not is_gene.any():
        return np.ones_like(is_gene)
    notes += left_out
    return is_gene


def plain_gene_names(names: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """The names without Entrez numbers and without the genome, and what was changed.

    They are changed where all names carry a number, or all carry the same genome: names
    of two genomes, as in mixtures of species, stay as they are.
    """
    without = "their Entrez numbers"
    found = [_WITH_NUMBER.fullmatch(name) for name in names]
    if not found or not all(found):
        found = [_WITH_GENOME.fullmatch(name) for name in names]
        genomes = {
            (match["first"] or match["last"]).casefold() for match in found if match
        }
        if not all(found) or len(genomes) != 1:
            return names, []
        without = f"the genome ({genomes.pop()})"
    plain = [match["gene"] or match["symbol"] for match in found if match]
    note = f"gene names are read without {without}: {some(names, 2)}"
    return np.array(plain, dtype=object), [note]


_ENSEMBL = re.compile(r"^(ENS[A-Z]*[GTPER][0-9]{6,})\.[0-9]+(.*)$", re.IGNORECASE)
_FEW = 5  # genes in another case differ between annotations, and are only reported


@dataclass(frozen=True)
class GeneMatch:
    """Where the genes that were looked for are in new data.

    Attributes
    ----------
    genes : the names that were looked for.
    columns : the column of each, -1 where it is missing.
    spelled : genes found in another spelling: another version of their Ensembl
        identifier, or another case.
    ambiguous : genes for which there are several columns; they count as missing.
    other_column : other names of the data with more of the genes, and how many.
    """

    genes: tuple[str, ...]
    columns: NDArray[np.intp]
    spelled: Mapping[str, str] = field(default_factory=dict)
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    other_column: tuple[str, int] | None = None

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which of the genes were found."""
        return self.columns >= 0

    @property
    def missing(self) -> tuple[str, ...]:
        """The genes that were not found, the ambiguous ones among them."""
        return tuple(np.array(self.genes, dtype=object)[~self.present].tolist())

    @property
    def by_case(self) -> dict[str, str]:
        """The genes found in another case."""
        return {
            gene: name
            for gene, name in self.spelled.items()
            if _without_version(gene) != _without_version(name)
        }

    def spelling_notes(self) -> list[str]:
        """Sentences about genes that were found in another spelling."""
        several = {gene: " and ".join(names) for gene, names in self.ambiguous.items()}
        by_case = self.by_case
        by_version = {
            gene: name for gene, name in self.spelled.items() if gene not in by_case
        }
        kinds = {
            "matched without the version of their Ensembl identifier": by_version,
            "matched in another case": by_case,
            "missing because several columns match": several,
        }
        return [
            f"{counted(len(spelled), 'gene is', 'genes are')} {what}: {_pairs(spelled)}"
            for what, spelled in kinds.items()
            if spelled
        ]

    def notes(self) -> list[str]:
        """Sentences about all genes; none when every gene was found as written."""
        notes = self.spelling_notes()
        missing = self.missing
        if missing:
            notes.append(
                f"{len(missing)} of {len(self.genes)} genes "
                f"{'is' if len(missing) == 1 else 'are'} missing: {some(missing)}"
            )
        if self.other_column:
            column, n_genes = self.other_column
            notes.append(
                f"the column {column!r} of the data's genes has {n_genes} of the "
                f"{len(self.genes)}: it may be the one to use (gene_column=)"
            )
        return notes

    def of_genes(self, genes: Iterable[str]) -> GeneMatch:
        """The match of some of the genes, in the order given."""
        where = {gene: place for place, gene in enumerate(self.genes)}
        names = tuple(genes)
        columns = self.columns[[where[name] for name in names]]
        return GeneMatch(
            names,
            columns,
            {name: self.spelled[name] for name in names if name in self.spelled},
            {name: self.ambiguous[name] for name in names if name in self.ambiguous},
            self.other_column,
        )


def match_genes(
    wanted: Iterable[str],
    given: Iterable[str],
    other_names: Mapping[str, Iterable[str]] | None = None,
) -> GeneMatch:
    """Find genes by name.

    Parameters
    ----------
    wanted : the genes looked for: those of a model, all different.
    given : the genes of the new data, in the order of its columns.
    other_names : other names of the data's columns, by kind: said where they would
        find more.
    """
    genes = _names(wanted, "the model")
    names = _names(given, "the data")
    columns = np.full(len(genes), -1, dtype=np.intp)
    spelled: dict[str, str] = {}
    ambiguous: dict[str, tuple[str, ...]] = {}
    as_written = set(genes)
    for spelling in (str, _without_version, _without_case):
        if (columns < 0).sum() == len(ambiguous):
            break
        n_wanted = Counter(map(spelling, genes))
        places: defaultdict[str, list[int]] = defaultdict(list)
        for column, name in enumerate(names):
            # A name that is wanted is itself, and not another spelling of a gene
            if (name in as_written) == (spelling is str):
                places[spelling(name)].append(column)
        for position, gene in enumerate(genes):
            candidates = places.get(spelling(gene), [])
            if columns[position] >= 0 or gene in ambiguous or not candidates:
                continue
            if len(candidates) > 1 or n_wanted[spelling(gene)] > 1:
                ambiguous[gene] = tuple(names[column] for column in candidates)
                continue
            columns[position] = candidates[0]
            if names[candidates[0]] != gene:
                spelled[gene] = names[candidates[0]]
    shared = {
        kind: len(as_written.intersection(others))
        for kind, others in (other_names or {}).items()
    }
    best = max(shared.items(), key=lambda entry: entry[1], default=("", 0))
    other_column = best if best[1] > (columns >= 0).sum() else None
    return GeneMatch(tuple(genes), columns, spelled, ambiguous, other_column)


def check_case(match: GeneMatch) -> None:
    """Refuse a match most of which rests on names in another case.

    Symbols of mouse genes are those of human genes in another case (Cd4, CD4), and
    genes of the same name need not be the same gene, nor behave alike.
    """
    by_case = match.by_case
    n_case = len(by_case)
    n_found = int(match.present.sum())
    if n_case <= _FEW or 2 * n_case <= n_found:
        return
    raise ValueError(
        f"{n_case} of the {n_found} genes that were found match in another case only: "
        f"{_pairs(by_case)}. This may be another species (mouse symbols are "
        "written Cd4, human ones CD4). Please give a table of homologs "
        "(homologs='mouse', or a file), or say that case does not matter "
        "(homologs='case')."
    )


def _without_version(name: str) -> str:
    return _ENSEMBL.sub(r"\1\2", name)


def _without_case(name: str) -> str:
    return _without_version(name).casefold()


def _names(names: Iterable[str], whose: str) -> list[str]:
    listed = list(names)
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(
                f"the gene names of {whose} are not all strings: {name!r} is of type "
                f"{type(name).__name__}; give names as strings"
            )
    return listed


def _pairs(spelled: Mapping[str, str]) -> str:
    return some(f"{ours} as {theirs}" for ours, theirs in spelled.items())
