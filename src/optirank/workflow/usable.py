"""Which genes and samples of some profiles a training can use, and notes on
the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from optirank._util.names import counted, some
from optirank.io.data import DataError
from optirank.io.genes import match_genes
from optirank.workflow.gene_lists import excluded_genes, matching, with_likely_name

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from optirank.workflow.options import TrainingOptions

MIN_CLASS = 3  # samples: two to learn from while one is held out


def usable_genes(
    names: NDArray, source: str, options: TrainingOptions, notes: list[str]
) -> NDArray:
    """Rising positions of the genes to choose from."""
    texts = [str(name) for name in names]
    kept = np.ones(len(texts), dtype=bool)
    if options.gene_list is not None:
        kept = _listed_genes(texts, source, options.gene_list, notes)
    kept &= ~excluded_genes(texts, options.exclude, notes)
    positions = np.flatnonzero(kept)
    if len(positions) < 2:
        raise DataError(
            f"{source}: {len(positions)} of {len(texts)} genes are left to choose "
            "from, and ranks need at least 2"
        )
    if options.query_genes is not None:
        chosen = [texts[k] for k in positions]
        shared = _shared_genes(chosen, source, options.query_genes, notes)
        positions = positions[shared]
    return positions


def _listed_genes(
    texts: list[str], source: str, gene_list: Sequence[str], notes: list[str]
) -> NDArray:
    """Mask of the genes that a list names."""
    wanted = list(dict.fromkeys(str(gene) for gene in gene_list))
    known = set(wanted)
    kept = np.array([text in known for text in texts], dtype=bool)
    if kept.sum() < 2:
        raise DataError(
            f"{source} has {kept.sum()} of the {len(wanted)} genes asked for, too few: "
            f"it has genes such as {some(texts, 3)}, asked for were {some(wanted, 3)}"
        )
    missing = sorted(known.difference(texts))
    if missing:
        notes.append(
            f"{len(missing)} of {len(wanted)} genes asked for are missing: "
            f"{some(missing)}"
        )
    return kept


def _shared_genes(
    texts: list[str], source: str, query_genes: Sequence[str], notes: list[str]
) -> NDArray:
    """Mask of the genes that the data to be labelled have."""
    match = match_genes(texts, query_genes)
    n_shared = int(match.present.sum())
    if n_shared < 2:
        raise DataError(
            f"{source} shares {n_shared} genes with the data to be labelled: it has "
            f"genes such as {some(texts, 3)}, those have {some(query_genes, 3)}"
        )
    notes.append(
        f"{n_shared} of {len(texts)} genes are used: those that the data to be "
        "labelled have"
    )
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
    if options.panel_size is not None and len(positions) > options.panel_size:
        raise DataError(
            f"{len(positions)} genes must be in a panel of {options.panel_size}: ask "
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


def usable_samples(
    source: str,
    options: TrainingOptions,
    labels: pd.Series,
    sources: pd.Series | None,
    empty: NDArray | None,
    notes: list[str],
) -> NDArray:
    """Positions of the samples with a label, a source, values to rank and a
    large class.
    """
    if not len(labels):
        raise DataError(f"{source} holds no samples")
    reasons = {f"no label in {options.columns[-1]!r}": _is_missing(labels)}
    if sources is not None:
        reasons[f"no source in {options.batch!r}"] = _is_missing(sources)
    if empty is not None:
        reasons["every gene has the same value"] = np.isin(
            np.arange(len(labels)), empty
        )
    kept = np.ones(len(labels), dtype=bool)
    left_out = [
        note
        for reason, mask in reasons.items()
        if (note := _leave_out(kept, mask, reason))
    ]
    if not kept.any():
        raise DataError(
            f"{source}: no sample is left to train on; {'; '.join(left_out)}"
        )
    names = labels.to_numpy(dtype=object)
    classes, counts = np.unique(names[kept].astype(str), return_counts=True)
    is_small = counts < MIN_CLASS
    if is_small.any():
        named = zip(classes[is_small], counts[is_small], strict=True)
        listed = some([f"{name} ({n_samples})" for name, n_samples in named])
        in_small = kept & np.isin(names.astype(str), classes[is_small])
        reason = f"their class has fewer than {MIN_CLASS}: {listed}"
        left_out.append(_leave_out(kept, in_small, reason))
    notes += left_out
    return np.flatnonzero(kept)


def _is_missing(values: pd.Series) -> NDArray:
    return np.asarray(values.isna() | (values.astype(str).str.strip() == ""))


def _leave_out(kept: NDArray, mask: NDArray, reason: str) -> str:
    """Take samples out of those that are kept, and say so; "" where there are none."""
    n_samples = int((kept & mask).sum())
    kept[mask] = False
    if not n_samples:
        return ""
    return f"{counted(n_samples, 'sample is', 'samples are')} left out: {reason}"
