"""What passes tell of samples: empty ones, values that are no numbers, checksums, and
samples of the training in a query.

A fingerprint is a hash of the ranks of the panel's genes in one sample, so it is the
same for counts, CPM and logarithms of the same sample. A model's card keeps some of
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.matrices import PerSample
from optirank._util.names import counted
from optirank.io.data import DataError, block_rows, gene_names
from optirank.io.passes import run_pass
from optirank.ranks.scoring import panel_ranks

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank.io.cluster import Cluster
    from optirank.model import Model


def are_empty(block: Any, source: str) -> NDArray[np.bool_]:
    """Which samples of a block have the same value in every gene.

    Values that are missing, or no numbers, are refused.
    """
    refuse_no_numbers(block, source)
    if sparse.issparse(block):
        return np.diff(block.indptr) == 0
    return block.min(axis=1) == block.max(axis=1)


def checksums(block: Any) -> NDArray[np.uint64]:
    """A checksum of the values of each sample of a block, sparse or not.

    That of a sample is ``sum over j of a_j x_j`` modulo 2^64, with x_j the bits of a
    value in single precision and a_j random odd numbers, always the same ones.
    """
    random = np.random.default_rng(0).integers(0, 1 << 63, block.shape[1], np.uint64)
    factors = 2 * random + np.uint64(1)
    if not sparse.issparse(block):
        return _bits(block) @ factors
    bits = (_bits(block.data), block.indices, block.indptr)
    return sparse.csr_matrix(bits, block.shape) @ factors


def whole_checksum(
    of_samples: NDArray,
    genes: Sequence[object] | NDArray,
    samples: Sequence[object] | NDArray,
) -> str:
    """One checksum of the names of genes and samples and of all values.

    The order of the samples does not matter. ``of_samples`` are their `checksums`.
    """
    values = of_samples.astype("<u8")
    names = np.array([str(name) for name in samples], dtype=object)
    order = np.lexsort([values, np.unique(names, return_inverse=True)[1]])
    digest = hashlib.blake2b(digest_size=16)
    for some in (genes, names[order]):
        text = "".join(f"{name}\0" for name in some)
        digest.update(text.encode("utf-8", "surrogatepass"))
    digest.update(values[order].data)
    return digest.hexdigest()


def _bits(values: Any) -> NDArray[np.uint64]:
    """The bits of values in single precision."""
    return np.asarray(values, "<f4").view("<u4").astype(np.uint64)


def refuse_no_numbers(X: Any, source: str) -> None:
    """Refuse values that are missing, infinite or no numbers."""
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind not in "buif":
        raise DataError(f"{source}: the matrix holds {values.dtype}, not numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        n_missing = int((~np.isfinite(values)).sum())
        what = counted(n_missing, "value is", "values are")
        raise DataError(
            f"{source}: {what} missing or infinite (NaN, inf): fill in what is "
            "missing, or leave these genes or samples out"
        )


_TOGETHER = 8  # blocks of a task, where there are tasks
N_FINGERPRINTS = 100  # samples of a training: some of them are in any half of it
# Fewer different values, or genes that are not tied with most others (such as zeros),
# may be another sample's too
_MIN_VALUES = 4
_MIN_GENES = 10


def fingerprints(X: Any) -> NDArray[np.str_]:
    """A hash per sample (row) of the ranks of its values; "" where they say
    too little.
    """
    ranks = panel_ranks(X)
    doubled = np.rint(2.0 * ranks * ranks.shape[1]).astype("<u4")
    hashes = np.zeros(len(doubled), dtype="U16")
    for number, row in enumerate(doubled):
        sizes = np.unique(row, return_counts=True)[1]
        n_apart = len(row) - sizes.max()
        if len(sizes) >= _MIN_VALUES and n_apart >= min(_MIN_GENES, len(row) - 1):
            digest = hashlib.blake2b(row.tobytes(), digest_size=8)
            hashes[number] = digest.hexdigest()
    return hashes


def some_fingerprints(X: Any) -> tuple[str, ...]:
    """Fingerprints of evenly spaced samples, for a model's card."""
    n_samples = X.shape[0]
    n_chosen = min(N_FINGERPRINTS, n_samples)
    chosen = np.linspace(0, n_samples - 1, n_chosen).astype(np.intp)
    return tuple(sorted({text for text in fingerprints(X[chosen]).tolist() if text}))


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
    of_samples = PerSample(adata.n_obs, fingerprints)
    run_pass(
        adata,
        [of_samples],
        model.genes,
        size=block_rows(len(names)),
        together=_TOGETHER,
        cluster=cluster,
    )
    return len(wanted.intersection(of_samples.result().tolist()))
