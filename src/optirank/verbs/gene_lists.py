"""Which genes may be chosen, and which must be: patterns, families by one word, lists,
other spellings, aliases.
"""

from __future__ import annotations

import difflib
import fnmatch
import functools
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.names import counted, some
from optirank.io.data import DataError
from optirank.io.genes import match_genes
from optirank.io.homologs import are_ensembl_ids, ensembl_ids_of, symbols_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.verbs.options import TrainingOptions

HOUSEKEEPING = "housekeeping"  # a word for genes of these families
_RIBOSOMAL = re.compile(r"RP[LS](?!6K)[0-9].*|RPLP[0-9].*|RPSA.*", re.IGNORECASE)
_MITOCHONDRIAL = re.compile(r"MT-.*", re.IGNORECASE)
_HAEMOGLOBIN = re.compile(r"HB(A[12]|B|D|E1|G[12]|M|Q1[AB]?|Z|[AB]-.*)", re.IGNORECASE)


@functools.cache
def _known() -> tuple[frozenset[str], dict[str, str]]:
    """Genes of the cell cycle, and symbols by other names, from the file beside
    this one.
    """
    text = files("optirank.verbs").joinpath("gene_lists.toml").read_text("utf-8")
    content = tomllib.loads(text)
    return frozenset(content["cell_cycle"].split()), content["aliases"]


def matching(names: Sequence[str], pattern: str) -> NDArray[np.bool_]:
    """Mask of the names that are equal to a word or fit a pattern such as ``MT-*``, in
    any case.

    ``housekeeping`` stands for the genes of :func:`housekeeping`.
    """
    wanted = str(pattern).casefold()
    if wanted == HOUSEKEEPING:
        return housekeeping(names)
    fits = [fnmatch.fnmatchcase(name.casefold(), wanted) for name in names]
    return np.array(fits, dtype=bool)


def housekeeping(names: Sequence[str]) -> NDArray[np.bool_]:
    """Mask of ribosomal, mitochondrial, haemoglobin and cell-cycle genes of human
    or mouse.
    """
    symbols = symbols_of(names) if are_ensembl_ids(names) else names
    families = (_RIBOSOMAL, _MITOCHONDRIAL, _HAEMOGLOBIN)
    cell_cycle, _ = _known()
    belongs = [
        symbol.upper() in cell_cycle
        or any(family.fullmatch(symbol) for family in families)
        for symbol in symbols
    ]
    return np.array(belongs, dtype=bool)


def excluded_genes(
    names: Sequence[str], patterns: Sequence[str], notes: list[str]
) -> NDArray[np.bool_]:
    """Mask of the names that fit any of the patterns; a note for each of these."""
    mask = np.zeros(len(names), dtype=bool)
    for pattern in patterns:
        hits = matching(names, pattern) & ~mask
        mask |= hits
        fitting = [names[k] for k in np.flatnonzero(hits).tolist()]
        what = counted(len(fitting), "gene", "genes")
        notes.append(
            f"{what} excluded by {pattern!r}: {some(fitting, 5)}"
            if fitting
            else f"no gene is excluded by {pattern!r}: none has such a name"
        )
    return mask


def with_likely_name(name: str, names: Sequence[str]) -> str:
    """A name that is missing, with the name that the gene has among ``names``, or with
    names that are written like it.
    """
    _, aliases = _known()
    by_case = {text.casefold(): text for text in names}
    symbol = aliases.get(name.upper(), "").casefold()
    if symbol in by_case:
        return f"{name} (another name of {by_case[symbol]})"
    close = difflib.get_close_matches(name.casefold(), by_case, n=3, cutoff=0.7)
    if not close:
        return name
    return f"{name} (close: {', '.join(by_case[text] for text in close)})"


def find_listed(
    wanted: Sequence[str],
    names: Sequence[str],
    source: str,
    other_names: Mapping[str, Sequence[str]] | None = None,
    *,
    skip_unknown: bool = False,
) -> tuple[NDArray[np.intp], list[str]]:
    """Positions of the genes of a list among ``names``, in the order of the list, and
    notes.

    A name is looked for as it is written, without the version of an Ensembl id, in
    another case, as Ensembl id or symbol, and in other columns of the data's genes.
    What was found otherwise than as written is in the notes.

    Raises
    ------
    DataError
        For names that occur twice or stand for one gene, and, unless ``skip_unknown``,
        for names that are not there.
    """
    wanted = [str(name).strip() for name in wanted]
    repeated = {name: n for name, n in Counter(wanted).items() if n > 1}
    if repeated:
        named = some([f"{name} ({n} times)" for name, n in repeated.items()], 30)
        raise DataError(
            f"{counted(len(repeated), 'gene is', 'genes are')} in the list more than "
            f"once: {named}; name each once"
        )
    names = [str(name) for name in names]
    match = match_genes(wanted, names)
    columns = match.columns.copy()
    notes = match.spelling_notes()
    lost = np.flatnonzero(columns < 0)
    if len(lost):
        notes += _by_other_names(wanted, names, columns, other_names or {})
    _refuse_synonyms(wanted, names, columns)
    unknown = [wanted[k] for k in np.flatnonzero(columns < 0).tolist()]
    if unknown and not skip_unknown:
        hints = some([with_likely_name(name, names) for name in unknown], 30)
        raise DataError(
            f"{source} lacks {len(unknown)} of the {len(wanted)} genes of the list: "
            f"{hints}; correct them, take them out, or go on without them "
            "(skip_unknown=True)"
        )
    if unknown:
        notes.append(
            f"{len(unknown)} of the {len(wanted)} genes of the list are not in "
            f"{source} and are skipped: {some(unknown, 30)}"
        )
    return columns[columns >= 0], notes


def _refuse_synonyms(
    wanted: Sequence[str], names: Sequence[str], columns: NDArray
) -> None:
    by_column: dict[int, list[str]] = {}
    for name, column in zip(wanted, columns.tolist(), strict=True):
        if column >= 0:
            by_column.setdefault(column, []).append(name)
    same = [
        f"{' and '.join(spelled)} are {names[column]}"
        for column, spelled in by_column.items()
        if len(spelled) > 1
    ]
    if same:
        raise DataError(
            f"the list has {counted(len(same), 'gene', 'genes')} under two names: "
            f"{some(same, 10)}; name each once"
        )


def _by_other_names(
    wanted: Sequence[str],
    names: Sequence[str],
    columns: NDArray,
    other_names: Mapping[str, Sequence[str]],
) -> list[str]:
    """Fill in the columns of genes that have another name; notes on them."""
    table = "the shipped table of Ensembl ids"
    spellings = [
        (table, symbols_of(wanted), names),
        (table, ensembl_ids_of(wanted), names),
        *(
            (f"the column {column!r}", wanted, [str(name) for name in others])
            for column, others in other_names.items()
        ),
    ]
    notes = []
    for where, words, places in spellings:
        counts = Counter(places)
        at = {name: k for k, name in enumerate(places) if counts[name] == 1}
        new = [k for k in np.flatnonzero(columns < 0).tolist() if words[k] in at]
        if new:
            columns[new] = [at[words[k]] for k in new]
            pairs = [f"{wanted[k]} as {names[columns[k]]}" for k in new]
            what = counted(len(new), "gene is", "genes are")
            notes.append(f"{what} found by {where}: {some(pairs)}")
    return notes


def usable_genes(
    names: NDArray, source: str, options: TrainingOptions, notes: list[str]
) -> NDArray:
    """Rising positions of the genes to choose from."""
    texts = [str(name) for name in names]
    kept = np.ones(len(texts), dtype=bool)
    if options.gene_list is not None:
        wanted = list(dict.fromkeys(map(str, options.gene_list)))
        listed, list_notes = find_listed(wanted, texts, source, skip_unknown=True)
        if len(listed) < 2:
            raise DataError(
                f"{source} has {len(listed)} of the {len(wanted)} genes asked for, too "
                f"few: it has genes such as {some(texts, 3)}, asked for were "
                f"{some(wanted, 3)}"
            )
        notes += list_notes
        kept = np.isin(np.arange(len(texts)), listed)
    kept &= ~excluded_genes(texts, options.exclude, notes)
    positions = np.flatnonzero(kept)
    if len(positions) < 2:
        raise DataError(
            f"{source}: {len(positions)} of {len(texts)} genes are left to choose "
            "from, and ranks need at least 2"
        )
    if options.query_genes is not None:
        chosen = [texts[k] for k in positions]
        whose = "the data to be labelled have"
        shared = shared_genes(chosen, source, options.query_genes, whose, notes)
        positions = positions[shared]
    return positions


def shared_genes(
    texts: Sequence[str],
    source: str,
    others: Sequence[str],
    whose: str,
    notes: list[str],
) -> NDArray[np.bool_]:
    """Mask of the genes that are among others; ``whose`` says what these are."""
    match = match_genes(texts, others)
    n_shared = int(match.present.sum())
    if n_shared < 2:
        raise DataError(
            f"{source} shares {n_shared} genes with those that {whose}: it has genes "
            f"such as {some(texts, 3)}, those are {some(others, 3)}"
        )
    notes.append(f"{n_shared} of {len(texts)} genes are used: those that {whose}")
    notes += match.spelling_notes()
    return match.present


def included_genes(
    genes: NDArray, source: str, options: TrainingOptions, notes: list[str]
) -> NDArray:
    """Positions of the genes that must be in the panel."""
    texts = [str(gene) for gene in genes]
    hits = {pattern: matching(texts, pattern) for pattern in options.include}
    missing = [pattern for pattern, mask in hits.items() if not mask.any()]
    if missing:
        named = [with_likely_name(name, texts) for name in missing]
        raise DataError(
            f"{source} lacks {len(missing)} of the genes that must be in the panel"
            f"{_restrictions(options)}: {some(named, 30)}; correct them, or require "
            "fewer (include=)"
        )
    if not hits:
        return np.zeros(0, dtype=np.intp)
    positions = np.flatnonzero(np.any(list(hits.values()), axis=0))
    if options.n_genes != "auto" and len(positions) > options.n_genes:
        raise DataError(
            f"{len(positions)} genes must be in a panel of {options.n_genes}: ask "
            "for more genes, or include fewer"
        )
    what = counted(len(positions), "gene is", "genes are")
    notes.append(f"{what} in the panel as asked: {some(genes[positions])}")
    return positions


def _restrictions(options: TrainingOptions) -> str:
    """Why genes that the data have may not be there, in words."""
    given = {
        "outside the list of genes": options.gene_list is not None,
        "excluded": bool(options.exclude),
        "missing in the query": options.query_genes is not None,
    }
    reasons = [reason for reason, is_given in given.items() if is_given]
    return f" (they may be {' or '.join(reasons)})" if reasons else ""
