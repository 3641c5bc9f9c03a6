"""Genes: which features are genes, and where genes are by their names.

A name is looked for as it is written. Names that are not there are looked for without
the version of an Ensembl identifier (``ENSG00000141510.12``), then without regard to
case. Whatever was found in another spelling is listed. Nothing is guessed: a gene that
several names could stand for counts as missing and is listed. Other names, such as
those of another species, are the user's to translate.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from optirank._util.numbers import value_scale
from optirank._util.words import counted, note, some
from optirank.data.passes import read_values
from optirank.data.profiles import (
    FILE_COLUMN,
    DataError,
    Profiles,
    duplicates,
    stripped,
)

_ENSEMBL = re.compile(r"^(ENS[A-Z]*[GTPER][0-9]{6,})\.[0-9]+(.*)$", re.IGNORECASE)
_FEW = 5  # genes in another case differ between annotations, and are only reported
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


@dataclass(frozen=True)
class GeneMatch:
    """Where the genes that were looked for are in new data.

    Attributes
    ----------
    genes : the names that were looked for.
    columns : the position of each, -1 where it is missing.
    spelled : genes found in another spelling: another version of their Ensembl
        identifier, or another case.
    ambiguous : genes for which there are several names; they count as missing.
    """

    genes: tuple[str, ...]
    columns: NDArray[np.intp]
    spelled: Mapping[str, str] = field(default_factory=dict)
    ambiguous: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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

    def note_spelling(self) -> None:
        """Say which genes were found in another spelling, or under several names."""
        by_case = self.by_case
        kinds = {
            "matched without the version of their Ensembl identifier": {
                gene: name for gene, name in self.spelled.items() if gene not in by_case
            },
            "matched in another case": by_case,
            "missing because several columns match": {
                gene: " and ".join(names) for gene, names in self.ambiguous.items()
            },
        }
        for what, spelled in kinds.items():
            if spelled:
                how_many = counted(len(spelled), "gene is", "genes are")
                note(f"{how_many} {what}: {_pairs(spelled)}")


def match_genes(wanted: Iterable[str], names: Iterable[str]) -> GeneMatch:
    """Find genes, all different, by name among those of data, in their order."""
    genes, names = list(wanted), list(names)
    wrong = [name for name in (*genes, *names) if not isinstance(name, str)]
    if wrong:
        kind = type(wrong[0]).__name__
        raise TypeError(f"gene names are strings, not {kind}: {wrong[0]!r}")
    columns = np.full(len(genes), -1, dtype=np.intp)
    spelled: dict[str, str] = {}
    ambiguous: dict[str, tuple[str, ...]] = {}
    as_written = set(genes)
    for spelling in (str, _without_version, without_case):
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
    return GeneMatch(tuple(genes), columns, spelled, ambiguous)


def check_case(match: GeneMatch) -> None:
    """Refuse a match most of which rests on names in another case.

    Symbols of mouse genes are those of human genes in another case (Cd4, CD4), and
    genes of the same name need not be the same gene, nor behave alike.
    """
    by_case = match.by_case
    n_found = int(match.present.sum())
    if len(by_case) <= _FEW or 2 * len(by_case) <= n_found:
        return
    raise DataError(
        f"{len(by_case)} of the {n_found} genes that were found match in another case "
        f"only: {_pairs(by_case)}. Another species? Mouse symbols are written Cd4, "
        "human ones CD4: translate the names first (docs: Names of genes)"
    )


def _without_version(name: str) -> str:
    return _ENSEMBL.sub(r"\1\2", name)


def without_case(name: str) -> str:
    """A name of a gene without the version of its identifier, and without case."""
    return _without_version(name).casefold()


def _pairs(spelled: Mapping[str, str]) -> str:
    return some(f"{ours} as {theirs}" for ours, theirs in spelled.items())


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
            replace(same, genes=first[common], obs=obs, source=name, notes=notes)
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
    names = names[features]
    group, unique = pd.factorize(names)
    profiles = Profiles(
        X=X,
        obs=obs,
        genes=np.asarray(unique, dtype=object),
        columns=features[np.unique(group, return_index=True)[1]],
        gene_of_column=None,
        source=source,
        raw_genes=frozenset(map(str, raw_genes)),
    )
    if len(unique) == len(names):
        return profiles
    # Some features of some samples, evenly spaced, tell what values are
    looked_at = features[:: max(1, len(features) // _SCALE_GENES)]
    rows = np.arange(0, len(obs), max(1, len(obs) // _SCALE_SAMPLES))
    values = read_values(replace(profiles, columns=looked_at), rows=rows)
    are_counts = value_scale(values) == "counts"
    how = "their counts are summed" if are_counts else "the first of each is used"
    repeated = duplicates(names)
    what = counted(len(repeated), "gene name occurs", "gene names occur")
    note(f"{what} more than once, {how}: {some(repeated)}")
    if are_counts:
        return replace(profiles, columns=features, gene_of_column=group)
    return profiles


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
    if column is None and known_genes:
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
