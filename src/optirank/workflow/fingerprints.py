"""Fingerprints of samples, by which samples of a training are recognised in a query.

A fingerprint is a hash of the ranks of the panel's genes in one sample, so it is the
same for counts, CPM and logarithms of the same sample. A model's card keeps some of
them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank.io.data import block_rows, gene_names
from optirank.io.passes import run_pass
from optirank.ranks.scoring import panel_ranks

if TYPE_CHECKING:
    from anndata import AnnData

    from optirank.io.cluster import Cluster
    from optirank.model import Model

_TOGETHER = 8  # blocks of a task, where there are tasks
N_FINGERPRINTS = 100  # samples of a training: some of them are in any half of it
# Fewer different values, or genes that are not tied with most others (such as zeros),
# may be another sample's too
_MIN_VALUES = 4
_MIN_GENES = 10


def fingerprints(X: Any) -> list[str]:
    """A hash per sample (row) of the ranks of its values; "" where they say
    too little.
    """
    ranks = panel_ranks(X)
    doubled = np.rint(2.0 * ranks * ranks.shape[1]).astype("<u4")
    hashes = []
    for row in doubled:
        sizes = np.unique(row, return_counts=True)[1]
        n_apart = len(row) - sizes.max()
        too_little = len(sizes) < _MIN_VALUES or n_apart < min(_MIN_GENES, len(row) - 1)
        digest = hashlib.blake2b(row.tobytes(), digest_size=8).hexdigest()
        hashes.append("" if too_little else digest)
    return hashes


def some_fingerprints(X: Any) -> tuple[str, ...]:
    """Fingerprints of evenly spaced samples, for a model's card."""
    n_samples = X.shape[0]
    n_chosen = min(N_FINGERPRINTS, n_samples)
    chosen = np.linspace(0, n_samples - 1, n_chosen).astype(np.intp)
    return tuple(sorted({text for text in fingerprints(X[chosen]) if text}))


def matching_fingerprints(
    adata: AnnData, model: Model, cluster: Cluster | None = None
) -> int:
    """How many of the training samples that a model remembers are in a query.

    0 where the query lacks genes of the panel, or the model remembers none.
    """
    wanted = set(model.card.fingerprints)
    names = gene_names(adata)
    if not wanted or not set(names).issuperset(model.genes):
        return 0
    same = _Matching(wanted)
    run_pass(
        adata,
        [same],
        model.genes,
        size=block_rows(len(names)),
        together=_TOGETHER,
        cluster=cluster,
    )
    return len(same.result())


class _Matching:
    """Accumulates the fingerprints that are wanted and there."""

    def __init__(self, wanted: set[str]) -> None:
        self._wanted = wanted
        self._same: set[str] = set()

    def add(self, block: Any, rows: slice) -> None:
        """Look for those of a block."""
        self._same = self._same | self._wanted.intersection(fingerprints(block))

    def merge(self, other: _Matching) -> None:
        """Add those of others."""
        self._same = self._same | other._same

    def result(self) -> set[str]:
        """The fingerprints."""
        return self._same
