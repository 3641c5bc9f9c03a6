"""A model's genes in new data: how each is found, and what stands in for those that are missing.

A name is looked for as it is written. Names that are not there are looked for without the version
of an Ensembl identifier (``ENSG00000141510.12``), then without regard to case. Whatever was found
in another spelling is listed. Nothing is guessed: a gene that several columns could stand for, be
it a symbol that is there twice or two spellings of it, counts as missing and is listed.

Ranks are taken among the reference genes that are there and divided by their number, so they stay
on the scale of 0 to 1. A gene with a weight that is not there has its mean rank in the training
data (``mean_ranks_``), or one half where the model does not store it; this leaves the mean score
over the training data where it was. What is lost is counted for each class. Beyond a share of its
genes, or of its weights, the model refuses: a class can lose most of its weights with a few genes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from optirank._util.names import some
from optirank.model.linear import LinearParts, linear_model, linear_parts
from optirank.ranks.relative import check_ties
from optirank.ranks.scoring import ScoreRows, score_rows

if TYPE_CHECKING:
    import pandas as pd

MAX_MISSING = (
    0.5  # beyond half of its genes a panel of 100 is worse than one of 20 genes
)
_ENSEMBL = re.compile(r"^(ENS[A-Z]*[GTPER][0-9]{6,})\.[0-9]+(.*)$", re.IGNORECASE)


@dataclass(frozen=True)
class GeneMatch:
    """Where a model's genes are in new data."""

    genes: tuple[str, ...]  # that were looked for
    columns: NDArray[np.intp]  # of each, -1 where it is missing
    by_version: dict[str, str] = field(
        default_factory=dict
    )  # Ensembl identifier: here -> there
    by_case: dict[str, str] = field(default_factory=dict)  # found in another case
    ambiguous: dict[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # several columns: missing
    other_column: tuple[str, int] | None = (
        None  # names with more of the genes, and how many
    )

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which of the genes were found."""
        return self.columns >= 0

    @property
    def missing(self) -> tuple[str, ...]:
        """The genes that were not found, the ambiguous ones among them."""
        return tuple(
            gene
            for gene, column in zip(self.genes, self.columns, strict=True)
            if column < 0
        )

    def notes(self) -> list[str]:
        """What there is to say, a sentence each; none when every gene was found as written."""
        several = {gene: " and ".join(names) for gene, names in self.ambiguous.items()}
        how = {
            "were matched without the version of their Ensembl identifier": self.by_version,
            "were matched in another case": self.by_case,
            "match several columns and count as missing": several,
        }
        notes = [
            f"{len(one)} genes {what}: {_pairs(one)}"
            for what, one in how.items()
            if one
        ]
        if self.missing:
            notes.append(
                f"{len(self.missing)} of {len(self.genes)} genes are missing: {some(self.missing)}"
            )
        if self.other_column:
            column, n = self.other_column
            notes.append(
                f"the column {column!r} of the data's genes has {n} of the {len(self.genes)}: it "
                "may be the one to use (gene_column=, --gene-column)"
            )
        return notes


def match_genes(
    wanted: Iterable[str], given: Iterable[str], known: Iterable[str] = ()
) -> GeneMatch:
    """Find genes by name.

    Parameters
    ----------
    wanted : the genes looked for: a model's panel, all different.
    given : the genes of the new data, in the order of its columns.
    known : further genes of the model's training data. A column that is one of them is itself, and
        not another spelling of a gene looked for.
    """
    wanted, given = _names(wanted, "the model"), _names(given, "the data")
    columns = np.full(len(wanted), -1, dtype=np.intp)
    ambiguous: dict[str, tuple[str, ...]] = {}
    spelled: tuple[dict[str, str], ...] = ({}, {}, {})
    taken = set(wanted) | set(known)
    keys = (str, _without_version, lambda name: _without_version(name).casefold())
    for key, found in zip(keys, spelled, strict=True):
        if (columns < 0).sum() == len(ambiguous):
            break
        ours = Counter(map(key, wanted))
        theirs: defaultdict[str, list[int]] = defaultdict(list)
        for column, name in enumerate(given):
            if key is str or name not in taken:
                theirs[key(name)].append(column)
        for j, gene in enumerate(wanted):
            there = theirs.get(key(gene), [])
            if columns[j] >= 0 or gene in ambiguous or not there:
                continue
            if len(there) == 1 and ours[key(gene)] == 1:
                columns[j] = there[0]
                found[gene] = given[there[0]]
            else:
                ambiguous[gene] = tuple(given[column] for column in there)
    return GeneMatch(tuple(wanted), columns, *spelled[1:], ambiguous)


def check_case(match: GeneMatch) -> None:
    """Refuse a match most of which rests on names in another case.

    Symbols of mouse genes are those of human genes in another case (Cd4, CD4), and what is called
    alike need not be the same gene, nor behave alike.
    """
    n, found = len(match.by_case), int(match.present.sum())
    # A few genes in another case differ between annotations, and are only reported
    if n <= 5 or 2 * n <= found:
        return
    raise ValueError(
        f"{n} of the {found} genes that were found match in another case only: "
        f"{_pairs(match.by_case)}. This may be "
        "another species (mouse symbols are written Cd4, human ones CD4). Please give a table of "
        "homologs (homologs=, --homologs mouse or a file), or say that case does not matter "
        "(homologs='case', --homologs case)."
    )


def _without_version(name: str) -> str:
    return _ENSEMBL.sub(r"\1\2", name)


def _names(names: Iterable[str], whose: str) -> list[str]:
    names = (
        list(np.asarray(names, dtype=object))
        if hasattr(names, "__array__")
        else list(names)
    )
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise TypeError(
            f"the gene names of {whose} are not all strings: {wrong!r} is of type "
            f"{type(wrong).__name__}; give names as strings"
        )
    return names


def _pairs(spelled: dict[str, str]) -> str:
    return some(f"{ours} as {theirs}" for ours, theirs in spelled.items())


@dataclass(frozen=True)
class ClassLoss:
    """What one class lacks in new data."""

    label: Any
    n_genes: int
    n_missing: int
    weight_lost: float  # share of the absolute weights
    reference_lost: float  # share of the reference set

    @property
    def share_missing(self) -> float:
        """Share of the class's genes that are missing."""
        return self.n_missing / max(1, self.n_genes)

    @property
    def share_lost(self) -> float:
        """The larger of the shares of the genes and of the weights that are missing."""
        return max(self.share_missing, self.weight_lost)

    def __str__(self) -> str:
        counted = f"{self.n_missing} of {self.n_genes} genes"
        return f"{self.label} ({counted}, {self.weight_lost:.0%} of the weights)"


class MissingGenesError(ValueError):
    """Too many of a model's genes are missing from the data.

    ``what`` says so without the remedies, ``lacking`` are the classes that lack too many,
    ``droppable`` says whether enough others stay, ``enough`` is the least ``max_missing`` that
    would pass, None where none does, and ``match`` how each gene was looked for.
    """

    def __init__(
        self, losses: Sequence[ClassLoss], match: GeneMatch, max_missing: float
    ) -> None:
        self.match, self.lacking = match, tuple(_lacking(losses, max_missing))
        self.droppable = len(losses) >= len(self.lacking) + 2
        empty = any(loss.reference_lost == 1 for loss in self.lacking)
        self.enough = None if empty else max(loss.share_lost for loss in self.lacking)
        n = len(self.lacking)
        classes = f"{n} {'class' if n == 1 else 'classes'}"
        remedies = ["check that the gene names are of the same kind as the model's"]
        if not match.present.any():
            what = f"none of the model's {len(match.genes)} genes are present."
        elif empty:
            what = f"none of the reference genes of {classes} are present: {some(self.lacking)}."
        else:
            what = f"more than {max_missing:.0%} of the genes or weights of {classes} are missing: "
            what += f"{some(self.lacking)}."
        if match.other_column:
            column, n = match.other_column
            has = f"which has {n} of the {len(match.genes)} genes (gene_column=, --gene-column)"
            remedies = [f"name the column {column!r}, {has}"]
        if self.droppable:
            remedies.append(
                "leave these classes out (drop_classes=True, --drop-classes)"
            )
        if not empty:
            remedies.append("allow for more (max_missing=, --max-missing)")
        if match.present.any():
            remedies.append(
                "train again on the genes that are present (available=, --for)"
            )
        self.what = f"{what} Missing genes: {some(match.missing)}."
        super().__init__(f"{self.what} Please {', or '.join(remedies)}.")


@dataclass(frozen=True)
class BoundModel:
    """A model over the q columns of new data that hold its genes."""

    parts: LinearParts
    match: GeneMatch
    losses: tuple[ClassLoss, ...]
    columns: NDArray  # (q,)
    n_columns: int  # of the data
    rows: ScoreRows  # over these columns; missing genes are in their base
    imputed: NDArray  # (rows, p): scaled ranks that stand in for missing genes

    def loss_table(self) -> pd.DataFrame:
        """The losses as a table, one line per class."""
        import pandas as pd

        columns = ["label", "n_genes", "n_missing", "weight_lost", "reference_lost"]
        return pd.DataFrame(
            [{c: getattr(loss, c) for c in columns} for loss in self.losses]
        )

    def notes(self) -> list[str]:
        """What there is to say about the genes and what the classes lose."""
        notes = self.match.notes()
        worst = max(self.losses, key=lambda loss: loss.share_lost)
        if worst.n_missing:
            notes.append(f"most is lost for {worst}")
        return notes


def bind(
    model: Any,
    genes: Iterable[str] | None = None,
    max_missing: float = MAX_MISSING,
    other_names: Mapping[str, Iterable[str]] | None = None,
) -> BoundModel:
    """Find the model's genes in new data, and settle what stands in for the missing ones.

    Parameters
    ----------
    model : a fitted linear classifier on ranks.
    genes : the names of the data's columns; None for the columns of the training data.
    max_missing : the share of a class's genes, and of its weights, that may be missing.
    other_names : other names of the data's columns, by kind: said where they would find more.
    """
    parts = linear_parts(model)
    match, n_columns = _match(parts, genes)
    for name, names in (other_names or {}).items():
        n, most = (
            len(set(match.genes).intersection(names)),
            (match.other_column or ("", 0))[1],
        )
        if n > max(most, match.present.sum()):
            match = replace(match, other_column=(name, n))
    here = match.present
    losses = _losses(parts, here)
    if _lacking(losses, max_missing):
        raise MissingGenesError(losses, match, max_missing)
    coef, gamma = parts.coef[:, here], parts.reference_weights[:, here]
    imputed = parts.mean_ranks
    if imputed is None:
        _, offset = check_ties(parts.ties)
        half = 0.5 - offset / gamma.sum(axis=1)
        imputed = np.repeat(half[:, None], len(here), axis=1)
    base = parts.intercept + np.where(here, 0.0, parts.coef * imputed).sum(axis=1)
    rows = score_rows(coef, gamma, base, parts.ties)
    return BoundModel(
        parts, match, losses, match.columns[here], n_columns, rows, imputed
    )


def without_lacking(
    model: Any, genes: Iterable[str] | None, max_missing: float = MAX_MISSING
) -> tuple[Any, tuple[ClassLoss, ...]]:
    """The model without the classes that lack too much, and what these lack.

    Where fewer than two classes would stay, the model is given back as it is.
    """
    parts = linear_parts(model)
    match, _ = _match(parts, genes)
    lacking = tuple(_lacking(_losses(parts, match.present), max_missing))
    gone = [loss.label for loss in lacking]
    kept = [label for label in parts.classes.tolist() if label not in gone]
    if not lacking or len(kept) < 2:
        return model, ()
    return linear_model(model).subset(kept), lacking


def _match(parts: LinearParts, genes: Iterable[str] | None) -> tuple[GeneMatch, int]:
    if genes is None:
        return GeneMatch(tuple(parts.genes), parts.positions), parts.n_features
    if parts.names is None:
        raise ValueError(
            "the model was trained on data without gene names, so genes cannot be found by name: "
            f"give the {parts.n_features} columns of the training data in order, without names"
        )
    genes = list(genes)
    return match_genes(parts.genes, genes, parts.names), len(genes)


def _losses(parts: LinearParts, here: NDArray) -> tuple[ClassLoss, ...]:
    losses = []
    rows = zip(np.abs(parts.coef), parts.reference_weights, strict=True)
    for label, (weights, gamma) in zip(parts.score_classes.tolist(), rows, strict=True):
        needed = (weights > 0) | (gamma > 0)
        lost = weights[~here].sum() / (weights.sum() or 1.0)
        reference = gamma[~here].sum() / gamma.sum()
        counts = int(needed.sum()), int((needed & ~here).sum())
        losses.append(ClassLoss(label, *counts, float(lost), float(reference)))
    return tuple(losses)


def _lacking(losses: Sequence[ClassLoss], max_missing: float) -> list[ClassLoss]:
    if not 0 <= max_missing <= 1:
        raise ValueError(f"max_missing={max_missing!r}: use a share between 0 and 1")
    return [
        loss
        for loss in losses
        if loss.share_lost > max_missing or loss.reference_lost == 1
    ]
