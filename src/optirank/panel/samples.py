"""The samples that a panel is found on: sums of the genes by class, those that are
kept, their folds; and passes over a matrix in memory.

Which samples are kept, their order and their folds follow from the samples themselves:
from hashes of the order of the genes in each. So neither the order of the samples nor
the scale of their values changes a model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.numbers import Look, as_dense
from optirank._util.work import threads_in_use

if TYPE_CHECKING:
    from numpy.typing import NDArray

PER_CLASS = 500  # samples for the elimination: more change little, and cost time
_FEW_GENES = 20  # above the lowest value: two samples with fewer may be equal by chance
_BLOCK_ENTRIES = 1 << 24  # of a matrix in memory that are looked at together: 128 MiB
_SUMS_OF_BLOCK = 1 << 18  # sums that are worth the while of looking at one more block

# Feeds accumulators with some genes (positions; None for all) of all samples, or of
# those at rising positions
Pass = Callable[..., None]


class ClassSums:
    """What correlations with the labels need, of some samples; none at first.

    Samples belong to a class and to a part, such as the fold that holds them out. The
    correlations of the samples of some parts follow from the sums of these parts, so
    that one pass over the samples serves every fold.

    Values are places of genes, multiples of 2^-24, and their squares are summed in two
    parts of as many digits: so all sums are exact (up to 2^29 samples), and the order
    of the samples changes none of them.

    Attributes
    ----------
    sizes : array of shape (parts, classes)
    sums : array of shape (parts, classes, d)
    leading, trailing : arrays of shape (parts, d)
        Of squares: their first digits, and the others.
    """

    def __init__(self, n_parts: int, n_classes: int, n_genes: int) -> None:
        self.sizes = np.zeros((n_parts, n_classes), np.intp)
        self.sums = np.zeros((n_parts, n_classes, n_genes))
        self.leading = np.zeros((n_parts, n_genes))
        self.trailing = np.zeros((n_parts, n_genes))

    def add(self, other: ClassSums) -> None:
        """Add the sums of other samples."""
        for name, total in vars(self).items():
            total += vars(other)[name]

    def add_samples(self, X: Any, codes: NDArray, parts: NDArray) -> None:
        """Add samples, of classes and parts that are given as numbers."""
        from optirank._compiled.rank_loops import add_places
        from optirank.ranks.orders import PLACE_STEPS

        n, d = X.shape
        if sparse.issparse(X):
            X = sparse.csr_array(X)
            indptr, genes, values = X.indptr, X.indices, X.data
        else:
            values = as_dense(X).ravel()
            indptr = np.arange(0, n * d + 1, d)
            genes = np.tile(np.arange(d, dtype=np.int32), n)
        np.add.at(self.sizes, (parts, codes), 1)
        cells = parts * self.sizes.shape[1] + codes
        totals = self.sums.reshape(-1, d), self.leading, self.trailing
        add_places(indptr, genes, values, cells, parts, PLACE_STEPS, *totals)

    def correlations(self, parts: NDArray | None = None) -> NDArray:
        """Correlations with the label of each class; 0 for genes that do not vary.

        With class sizes ``n_k`` and sums ``S_k`` of a gene, n and S over all classes
        and Q the sum of squares, the correlation with the label of class k is
        ``(S_k - n_k S / n) / sqrt(n_k (n - n_k) / n (Q - S^2 / n))``. Two classes make
        one row, that of the second. Classes without samples in these parts have none.
        """
        which = np.arange(len(self.sizes)) if parts is None else parts
        sizes = self.sizes[which].sum(axis=0)
        present = np.flatnonzero(sizes)
        sizes = sizes[present]
        sums = self.sums[which].sum(axis=0)[present]
        n = sizes.sum()
        total = sums.sum(axis=0)
        squares = (self.leading + self.trailing)[which].sum(axis=0)
        spread = squares - total**2 / n
        varies = spread > 1e-9 * squares  # a variance below is a rounding error
        of_labels = sizes * (n - sizes) / n
        scale = np.sqrt(np.outer(of_labels, np.where(varies, spread, 1.0)))
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(varies, (sums - np.outer(sizes, total / n)) / scale, 0.0)
        return each[1:] if len(present) == 2 else each

    def best_genes(
        self, n: int, parts: NDArray | None = None, among: NDArray | None = None
    ) -> NDArray:
        """Rising positions of the n genes that correlate most with any class.

        Every class ranks the genes by the size of its correlation, and a gene counts by
        its best place over the classes, so that each class has its share. Genes that do
        not vary are out, and so are genes that are not ``among`` some positions, where
        these are given.
        """
        order = np.argsort(self.places())
        size = np.abs(self.correlations(parts))
        if among is not None:
            size[:, np.setdiff1d(np.arange(size.shape[1]), among)] = 0.0
        size = size[:, order]
        ranking = np.argsort(-size, axis=1, kind="stable")
        place = np.empty_like(ranking)
        np.put_along_axis(place, ranking, np.arange(size.shape[1])[None, :], axis=1)
        best = np.where(size.max(axis=0) > 0, place.min(axis=0), size.shape[1])
        chosen = np.argsort(best, kind="stable")[:n]
        return np.sort(order[chosen[best[chosen] < size.shape[1]]])

    def places(self) -> NDArray:
        """The place of each gene in an order that follows from the values alone.

        Genes are sorted by their sums over the classes; only genes that are equal in
        all of them are in the order of their columns.
        """
        sums = self.sums.sum(axis=0)
        squares = (self.leading + self.trailing).sum(axis=0)
        order = np.lexsort([squares, *sums])
        return np.argsort(order)


def class_sums(
    X: Any, codes: NDArray, n_classes: int, parts: NDArray | None = None
) -> ClassSums:
    """The sums of samples (places of their genes) by class and part.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    codes, parts : arrays of shape (n,)
        The class and the part of each sample, as numbers; all in one part by default.
    """
    parts = np.zeros(len(codes), np.intp) if parts is None else parts
    n_parts = int(parts.max(initial=0)) + 1
    sums = ClassSums(n_parts, n_classes, X.shape[1])
    sums.add_samples(X, codes, parts)
    return sums


def matrix_blocks(X: Any, columns: NDArray | None = None) -> Iterator[Any]:
    """All samples of a matrix in memory (array, CSR or CSC) in order, in blocks."""
    X = X if columns is None else X[:, columns]
    X = X.tocsr() if sparse.issparse(X) else X
    step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, X.shape[0], step):
        yield X[start : start + step]


def fold_matrix(
    X: Any,
    looks: Sequence[Look],
    columns: NDArray | None = None,
    rows: NDArray | None = None,
) -> None:
    """Show looks the samples of a matrix in memory, see `Pass`."""
    X = X if rows is None else X[rows]
    start = 0
    for block in matrix_blocks(X, columns):
        stop = start + block.shape[0]
        for look in looks:
            look.add(block, slice(start, stop))
        start = stop


class DrawnSamples:
    """Looks at all samples before anything is fitted: sums of the places of genes, the
    samples for the elimination, and folds.

    At most 500 samples of each class are drawn, those of lowest hash. A class that is
    not larger is kept whole; of a larger one somewhat more are kept until the end.

    Parameters
    ----------
    codes : array of shape (n_samples,)
        The class of each sample, as a number.
    keys : array of shape (n_genes,)
        A number per gene, see `keys_of_names` and `keys_of_matrix`.
    n_classes : int
    fold_of : array of shape (n_samples,), optional
        The fold that holds each sample out, -1 for none.
    n_folds : int
        Where ``fold_of`` is not given: the samples that are drawn are dealt out over so
        many folds, equal ones into the same; 0 holds none out.
    per_class : int
        Samples of a class that are drawn; with 0 there are sums alone.

    Attributes
    ----------
    sums : of the places of all samples.
    """

    def __init__(
        self,
        codes: NDArray,
        keys: NDArray,
        n_classes: int,
        *,
        fold_of: NDArray | None = None,
        n_folds: int = 0,
        per_class: int = PER_CLASS,
    ) -> None:
        self._codes = codes
        self._keys = keys
        self._fold_of = fold_of
        self._n_folds = n_folds
        self._parts = np.zeros(len(codes), np.intp) if fold_of is None else fold_of + 1
        self._per_class = per_class
        sizes = np.bincount(codes, minlength=n_classes)
        # Of which as many as are wanted are enough, but for 1 in 1e7
        enough = per_class + 6 * per_class**0.5
        share = np.minimum(enough / np.maximum(sizes, 1), 1.0)
        limits = (share * ((1 << 53) - 1)).astype(np.uint64) << np.uint64(11)
        self._limits = np.where(sizes > per_class, limits, np.iinfo(np.uint64).max)
        self.sums = ClassSums(int(self._parts.max()) + 1, n_classes, len(keys))
        # Of every block: positions, samples and hashes
        self._kept: list[tuple[NDArray, Any, NDArray]] = []

    @property
    def blocks_per_task(self) -> int:
        """As many as make it worth sending their sums, which are exact."""
        return int(np.clip(self.sums.sums.size // _SUMS_OF_BLOCK, 4, 256))

    def add(self, block: Any, rows: slice) -> None:
        """Add the samples of a block."""
        from optirank.ranks.orders import PLACE_STEPS, places_in_sample  # loads numba

        codes = self._codes[rows]
        places = places_in_sample(block, threads_in_use())
        self.sums.add_samples(places, codes, self._parts[rows])
        hashes = row_hashes(places, self._keys, PLACE_STEPS)
        kept = np.flatnonzero(hashes <= self._limits[codes])
        self._kept.append((rows.start + kept, block[kept], hashes[kept]))

    def merge(self, other: DrawnSamples) -> None:
        """Add the sums and samples that follow."""
        self.sums.add(other.sums)
        self._kept += other._kept

    def result(self) -> tuple[ClassSums, NDArray, Any, NDArray, int]:
        """What there is to fit to.

        Returns
        -------
        sums : of the places of the genes, by class and part: 0, and 1 + each fold.
        rows : positions of at most 500 samples per class, in an order that follows from
            the samples themselves.
        X : these samples.
        fold_of : the fold that holds each of all samples out, -1 for none.
        n_repeated : of the samples that are drawn, those that are equal to another one.
        """
        from optirank.ranks.orders import PLACE_STEPS, places_in_sample  # loads numba

        of_blocks, blocks, hashes = zip(*self._kept, strict=True)
        self._kept = []  # all samples would be in memory twice
        rows = np.concatenate(of_blocks)
        is_sparse = sparse.issparse(blocks[0])
        X: Any = sparse.vstack(blocks, "csr") if is_sparse else np.concatenate(blocks)
        del blocks
        codes = self._codes[rows]
        by_hash = np.lexsort([np.concatenate(hashes), codes])
        first_of_class = np.searchsorted(codes[by_hash], codes[by_hash])
        drawn = by_hash[np.arange(len(rows)) - first_of_class < self._per_class]
        places = places_in_sample(X, threads_in_use())
        hashes = row_hashes(places, mixed(self.sums.places()), PLACE_STEPS)
        order = np.lexsort([hashes, codes])
        order = order[np.isin(order, drawn)]
        n_above = np.ravel((places > 0).sum(axis=1))
        folds, n_repeated = deal_folds(
            codes[order], hashes[order], n_above[order] >= _FEW_GENES, self._n_folds
        )
        fold_of, sums = self._fold_of, self.sums
        if fold_of is None:
            fold_of = np.full(len(self._codes), -1)
            fold_of[rows[order]] = folds
            sums = class_sums(places, codes, sums.sizes.shape[1], fold_of[rows] + 1)
            for name, of_parts in vars(sums).items():  # part 0 has all other samples
                of_parts[0] = vars(self.sums)[name][0] - of_parts[1:].sum(axis=0)
        del places
        X = X[order].tocsc() if is_sparse else X[order]
        return sums, rows[order], X, fold_of, n_repeated


def deal_folds(
    codes: NDArray, hashes: NDArray, is_informative: NDArray, n_folds: int
) -> tuple[NDArray, int]:
    """The fold of each sample, and how many samples are equal to another one.

    Samples in the order of their classes and hashes are dealt out over the folds, so
    that each fold has its share of every class, whatever the order of the samples.
    Samples of equal hash are in one fold: else a model would have seen what it is
    judged on. Where they are not informative, with few genes that differ, samples may
    be equal by chance, and each counts alone. Fewer folds serve classes that are all
    small; with 0 folds no sample is held out (-1).
    """
    alone = np.where(is_informative, 0, np.arange(1, len(codes) + 1))
    samples = np.stack([hashes, alone.astype(np.uint64)])
    _, firsts, group = np.unique(
        samples, axis=1, return_index=True, return_inverse=True
    )
    group = group.ravel()
    n_repeated = int((np.bincount(group)[group] > 1).sum())
    if not n_folds:
        return np.full(len(codes), -1), n_repeated
    largest = int(np.bincount(codes[firsts]).max())
    if largest < 2:
        raise ValueError(
            "every class has a single sample, or copies of one: held-out samples need "
            "at least two"
        )
    fold_of_group = np.empty(len(firsts), np.intp)
    by_class = np.argsort(codes[firsts], kind="stable")
    fold_of_group[by_class] = np.arange(len(firsts)) % min(n_folds, largest)
    return fold_of_group[group], n_repeated


def keys_of_names(names: Iterable[object]) -> NDArray[np.uint64]:
    """A number per gene that follows from its name."""
    digests = [
        hashlib.blake2b(str(name).encode("utf-8", "surrogatepass"), digest_size=8)
        for name in names
    ]
    return np.frombuffer(b"".join(d.digest() for d in digests), "<u8").copy()


def keys_of_matrix(X: Any, codes: NDArray) -> NDArray[np.uint64]:
    """A number per gene of a matrix in memory, whatever the order of its columns.

    It is that of the samples in which the gene is above the sample's median. Only where
    a class has more than 500 samples the numbers matter.
    """
    counts = np.zeros(X.shape[1], np.intp)
    if len(codes) and np.bincount(codes).max() > PER_CLASS:
        for block in matrix_blocks(X):
            values = as_dense(block)
            counts += (values > np.median(values, axis=1, keepdims=True)).sum(axis=0)
    return mixed(counts)


def row_hashes(values: Any, keys: NDArray, factor: int = 1) -> NDArray[np.uint64]:
    """A hash of each row: equal rows have equal ones.

    Values, sparse or not, times the factor are whole numbers of at least 0.
    """
    hashes = []
    for block in matrix_blocks(values):
        stored = block.data if sparse.issparse(block) else block
        whole = (stored * factor).astype(np.uint64)
        if sparse.issparse(block):
            entries = (whole, block.indices, block.indptr)
            whole = sparse.csr_array(entries, block.shape)
        hashes.append(whole @ keys)
    return mixed(np.concatenate(hashes))


def mixed(numbers: NDArray) -> NDArray[np.uint64]:
    """Numbers that look random, one for each number (SplitMix64)."""
    z = np.asarray(numbers).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(31))


def uniform_numbers(n: int, seed: int) -> NDArray:
    """Numbers between 0 and 1 that look random, the same ones for a seed."""
    start = mixed(np.array([seed])) >> np.uint64(1)
    drawn = mixed(start + np.arange(n, dtype=np.uint64)) >> np.uint64(11)
    return (drawn + 0.5) / 2.0**53
