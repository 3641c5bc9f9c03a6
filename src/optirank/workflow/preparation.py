"""Make data ready for training: labels, sources, genes and samples; each loss is reported.

Samples and genes are chosen before they are read: one pass over the samples gives the sums by which
genes are chosen, for every fold at once, and a second one reads the chosen genes. So memory follows
what is used, whatever the size of the file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from optirank._util.names import some
from optirank.datasets.data import duplicates, text_column
from optirank.datasets.errors import DataError
from optirank.datasets.profiles import gather
from optirank.preprocessing._statistics import is_counts
from optirank.workflow.candidates import Candidates, gene_limit
from optirank.workflow.folding import N_FOLDS, fold_samples
from optirank.workflow.gene_choice import (
    fixed_reference,
    reference_candidates,
    refuse_both,
    usable_genes,
)
from optirank.workflow.scanning import scan, seconds_per_sample, unordered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.datasets.data import ExpressionData
    from optirank.datasets.profiles import Profiles
    from optirank.tuning.folds import Fold

MIN_CLASS = 3  # samples of a class: two to train on while one is held out
MOST_ENTRIES = 430_000_000  # values other than zero to train on; beyond, samples are drawn
_NO_LABEL = {"", "nan", "na", "n/a", "none", "null", "<na>"}
_FEW_CANDIDATES = 1000  # genes that may be in the reference, up to which all are read
_ONE_FOLD_ABOVE = 20_000  # samples
_PROBED = 500  # samples that tell how many values are not zero
_TIME_MATTERS = 5000  # samples from which on the time of reading is looked at


@dataclass(frozen=True)
class KeptRows:
    """The values of some of many samples, which are asked for by their positions among all."""

    X: Any
    rows: NDArray  # positions of the samples of X, in order
    n_samples: int

    @property
    def shape(self) -> tuple[int, int]:
        """Of the whole matrix."""
        return self.n_samples, self.X.shape[1]

    def __getitem__(self, rows: NDArray) -> Any:
        places = np.searchsorted(self.rows, rows).clip(max=len(self.rows) - 1)
        if not np.array_equal(self.rows[places], rows):
            raise IndexError("values of samples are asked for that were let go")
        return self.X[places]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What is trained on."""

    X: Any  # CSR matrix or array, samples by genes; `KeptRows` where the others were let go
    y: NDArray  # labels, text
    groups: NDArray | None  # the source of each sample
    genes: NDArray  # names of the genes that were read, each once
    n_genes: int  # that could be used, of which some were read
    samples: NDArray  # names
    reference: NDArray | None  # positions of a reference set fixed by the user
    candidates: NDArray | None  # positions of the genes that may be in the reference; None: all
    max_genes: int | None
    chooser: Candidates
    folds: list[Fold]
    label: str
    batch: str | None
    source: str
    notes: tuple[str, ...]
    seconds: float = 0.0  # that reading took

    @property
    def classes(self) -> NDArray:
        """The labels, each once, in order."""
        return np.unique(self.y)

    @property
    def n_problems(self) -> int:
        """Binary problems of a classifier: one for two classes, one per class for more."""
        return n_problems(self.y)

    def candidate_mask(self, genes: NDArray) -> NDArray | None:
        """Which of some genes (positions) may be in the reference set; None for all."""
        if self.candidates is None:
            return None
        mask = np.isin(genes, self.candidates)
        if not mask.any():
            raise DataError(
                f"{self.source}: none of the {len(genes)} genes that were selected may be in the "
                "reference set: allow more genes, or more of them in the reference set"
            )
        return mask

    def noted(self, *texts: str) -> Prepared:
        """The same with more to say."""
        return replace(self, notes=(*self.notes, *texts))

    def take(self, rows: NDArray) -> Prepared:
        """Some of the samples, in folds as before."""
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            groups=None if self.groups is None else self.groups[rows],
            samples=self.samples[rows],
            chooser=self.chooser.take(rows),
            folds=fewer_samples(self.folds, rows, len(self.y)),
        )

    def let_go(self, kept: NDArray) -> None:
        """Hold the values of some samples alone (positions, in order), to save memory."""
        held = KeptRows(self.X[kept], kept, len(self.y))
        object.__setattr__(self, "X", held)  # everybody who has this object lets go of them

    def thinned(self, n_samples: int, why: str) -> Prepared:
        """At most about so many samples: classes above a common size lose some, at random."""
        if len(self.y) <= n_samples:
            return self
        rows, cap = thin(self.y, n_samples)
        return self.take(rows).noted(thinning(why, cap, len(rows), len(self.y)))


def prepare(
    data: Profiles,
    label: str,
    *,
    batch: str | None = None,
    genes: Sequence[str] | None = None,
    available: Sequence[str] | None = None,
    max_genes: int | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    reference_from: Sequence[str] = (),
    not_in_reference: Sequence[str] = (),
    n_folds: int = N_FOLDS,
    seconds: float | None = None,
) -> Prepared:
    """Check everything that can be wrong, and leave out what cannot be used; see `train`.

    ``seconds`` is the time that reading may take: where all samples would take longer, fewer of the
    large classes are read.
    """
    begin = time.perf_counter()
    if max_genes is not None and max_genes < 2:
        raise DataError(f"at most {max_genes} genes: a comparison needs at least 2 genes")
    data, notes = _unique_genes(data)
    labels = text_column(data.obs, label, data.source)
    groups = None if batch is None else text_column(data.obs, batch, data.source)
    if include and exclude:
        refuse_both(data.source, include, exclude)
    columns, told = usable_genes(data.gene_names, data.source, genes, exclude, available)
    notes += told
    names = np.asarray(data.gene_names, dtype=object)[columns]
    reference, reference_notes = fixed_reference(
        [str(name) for name in names], data.source, include, max_genes
    )
    if include and (reference_from or not_in_reference):
        raise DataError(
            "the reference set is fixed (include=, --include) and so cannot be chosen: leave out "
            "reference_from and not_in_reference (--reference-from, --not-in-reference)"
        )
    candidates, told = reference_candidates(
        [str(name) for name in names], data.source, reference_from, not_in_reference
    )
    reference_notes += told
    reading = _Reading(data, label, batch, labels, groups, columns)
    always = np.zeros(0, np.intp) if reference is None else reference
    few = _FEW_CANDIDATES if max_genes is None else min(_FEW_CANDIDATES, max_genes // 2)
    if candidates is not None and len(candidates) <= few:
        always = candidates  # the selection of genes would leave out most of them
    empty = np.zeros(data.n_samples, dtype=bool)
    while True:  # empty samples show when they are read, and then the folds are other ones
        keep, told = _usable_samples(data, label, labels, batch, groups, empty)
        found = reading.read(np.flatnonzero(keep), max_genes, always, n_folds, seconds)
        if not found.empty.any():
            break
        empty[found.rows[found.empty]] = True
    rows, chooser = found.rows, found.chooser
    narrow = chooser.read
    if reference is not None and narrow is not None:
        reference = np.searchsorted(narrow, reference)
    if candidates is not None and narrow is not None:
        candidates = np.flatnonzero(np.isin(narrow, candidates))
    return Prepared(
        X=found.X,
        y=reading.y(rows),
        groups=reading.sources(rows),
        genes=names if narrow is None else names[narrow],
        n_genes=len(names),
        samples=np.asarray(data.sample_names, dtype=object)[rows],
        reference=reference,
        candidates=candidates,
        max_genes=max_genes,
        chooser=chooser,
        folds=found.folds,
        label=label,
        batch=batch,
        source=data.source,
        notes=(*notes, *told, *reference_notes, *found.notes),
        seconds=time.perf_counter() - begin,
    )


@dataclass(frozen=True, kw_only=True)
class _Read:
    """What was read: X of the samples at ``rows``, unless some of these turned out to be empty."""

    rows: NDArray
    empty: NDArray
    X: Any = None
    chooser: Candidates | None = None
    folds: list[Fold]
    notes: list[str]


@dataclass(frozen=True)
class _Reading:
    """Reads usable samples of the chosen genes."""

    data: Profiles
    label: str
    batch: str | None
    labels: pd.Series
    groups: pd.Series | None
    columns: NDArray

    def y(self, rows: NDArray) -> NDArray:
        """Labels as text."""
        return self.labels.to_numpy()[rows].astype(str)

    def sources(self, rows: NDArray) -> NDArray | None:
        """Sources as text."""
        return None if self.groups is None else self.groups.to_numpy()[rows].astype(str)

    def read(
        self,
        rows: NDArray,
        max_genes: int | None,
        always: NDArray,
        n_folds: int,
        seconds: float | None,
    ) -> _Read:
        """Choose genes in one pass and read them in another."""
        data, columns = self.data, self.columns
        rows, notes = self._in_time(rows, seconds)
        y = self.y(rows)
        self._check(y, self.sources(rows))
        folds, told = fold_samples(y, self.sources(rows), self.batch, data.source, n_folds)
        notes += told
        if len(rows) > _ONE_FOLD_ABOVE:  # one held-out part says enough, and fewer genes are read
            folds = folds[:1]
        parts = np.full(len(rows), len(folds))
        for k, (_, test) in enumerate(folds):
            parts[test] = k
        limit = gene_limit(len(columns), n_problems(y), max_genes, len(always))
        sums = None
        if limit is not None:
            _, codes = np.unique(y, return_inverse=True)
            seen = scan(data, columns, rows, codes, parts)
            if seen.empty.any():
                return _Read(rows=rows, empty=seen.empty, folds=folds, notes=notes)
            sums = seen.sums
        chooser = Candidates(len(columns), limit, always, sums, parts)
        if sums is not None:
            known = np.unique(parts)
            choices = [chooser.of_parts(known[known != k]) for k in range(len(folds))]
            columns = columns[chooser.keep_read([*choices, chooser.of_parts(known)])]
            if len(columns) < 2:
                raise DataError(
                    f"{data.source}: {len(columns)} genes differ between the samples and are "
                    "expressed by enough of them: at least 2 are needed"
                )
        kept, told = self._in_memory(rows, chooser, columns)
        notes += told
        if len(kept) < len(rows):
            folds = fewer_samples(folds, kept, len(rows))
            chooser, rows = chooser.take(kept), rows[kept]
        X = gather(data, columns, rows)
        empty = np.zeros(len(rows), dtype=bool) if sums is not None else unordered(X, data.source)
        X = X.tocsr() if sparse.issparse(X) else X
        return _Read(rows=rows, empty=empty, X=X, chooser=chooser, folds=folds, notes=notes)

    def _check(self, y: NDArray, groups: NDArray | None) -> None:
        if len(np.unique(y)) < 2:
            raise DataError(
                f"{self.data.source}: column {self.label!r} has {_n_classes(y)} of at least "
                f"{MIN_CLASS} usable samples: a classifier needs two classes"
            )
        if groups is not None and len(np.unique(groups)) < 2:
            only = str(groups[0])
            raise DataError(
                f"{self.data.source}: column {self.batch!r} has the single value {only!r}, so no "
                "source can be left out: leave the column out, or name another (batch=, --batch)"
            )

    def _in_time(self, rows: NDArray, seconds: float | None) -> tuple[NDArray, list[str]]:
        """As many rows as can be read twice in the time there is."""
        if seconds is None or len(rows) <= _TIME_MATTERS:
            return rows, []
        each = 2 * seconds_per_sample(self.data, self.columns, rows)
        n = max(_TIME_MATTERS, int(seconds / each))
        if len(rows) <= n:
            return rows, []
        kept, cap = thin(self.y(rows), n)
        why = "reading all samples takes too long for the time allowed"
        return rows[kept], [thinning(why, cap, len(kept), len(rows))]

    def _in_memory(
        self, rows: NDArray, chooser: Candidates, columns: NDArray
    ) -> tuple[NDArray, list[str]]:
        """Positions of as many rows as may be held, by the entries of the genes that are read."""
        if chooser.sums is not None:
            entries = int(chooser.sums.n_expressing[:, chooser.read].sum())
        elif len(rows) * len(columns) <= MOST_ENTRIES:
            return np.arange(len(rows)), []
        else:  # a few samples tell how many entries there are
            few = gather(self.data, columns, rows[:: -(-len(rows) // _PROBED)])
            n_few = few.nnz if sparse.issparse(few) else few.size
            entries = n_few * len(rows) // few.shape[0]
        if entries <= MOST_ENTRIES:
            return np.arange(len(rows)), []
        n = int(len(rows) * MOST_ENTRIES / entries)
        kept, cap = thin(self.y(rows), n)
        return kept, [thinning("memory is limited", cap, len(kept), len(rows))]


def n_problems(y: NDArray) -> int:
    """Binary problems of a classifier: one for two classes, one per class for more."""
    n = len(np.unique(y))
    return 1 if n == 2 else n


def thin(y: NDArray, n_samples: int) -> tuple[NDArray, int]:
    """Sorted positions of about so many samples, and the most that a class has of them."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    cap = max(MIN_CLASS, _common_cap(counts, n_samples))
    rng = np.random.default_rng(0)
    parts = [rng.permutation(np.flatnonzero(codes == k))[:cap] for k in range(len(classes))]
    return np.sort(np.concatenate(parts)), cap


def thinning(why: str, cap: int, n: int, n_before: int) -> str:
    """What is said where samples are left out."""
    return f"{why}: at most {cap} samples per class are used, {n} of {n_before}"


def fewer_samples(folds: list[Fold], rows: NDArray, n_samples: int) -> list[Fold]:
    """The folds of some of the samples; those without samples on either side are left out."""
    place = np.full(n_samples, -1)
    place[rows] = np.arange(len(rows))
    moved = [tuple(place[part][place[part] >= 0] for part in fold) for fold in folds]
    return [(train, test) for train, test in moved if len(train) and len(test)]


def _unique_genes(data: Profiles) -> tuple[Profiles, list[str]]:
    """The data with names of their own for the genes; where some share one, all are read."""
    twice = duplicates(data.gene_names)
    if not twice:
        return data, []
    whole = _whole(data)
    how = "sum" if is_counts(whole.X) else "first"
    told = "their counts are summed" if how == "sum" else "the first of each is used"
    notes = [f"{len(twice)} gene names occur more than once, {told}: {some(twice)}"]
    return whole.merge_duplicates(how), notes


def _whole(data: Profiles) -> ExpressionData:
    return next(data.blocks(None, max(1, data.n_samples)))


def _usable_samples(
    data: Profiles,
    label: str,
    labels: pd.Series,
    batch: str | None,
    groups: pd.Series | None,
    empty: NDArray,
) -> tuple[NDArray, list[str]]:
    """Mask of the samples with a label, a source, counts, and enough of their class; notes."""
    notes: list[str] = []

    def without(mask: NDArray, what: str) -> NDArray:
        n = int((keep & mask).sum())
        if n:
            notes.append(f"{n} sample{'s are' if n > 1 else ' is'} left out: {what}")
        return keep & ~mask

    if not data.n_samples:
        raise DataError(f"{data.source} holds no samples")
    keep = np.ones(data.n_samples, dtype=bool)
    keep = without(_missing(labels), f"no label in {label!r}")
    if groups is not None:
        keep = without(_missing(groups), f"no source in {batch!r}")
    keep = without(empty, "empty, every gene has the same value")
    if not keep.any():
        raise DataError(f"{data.source}: no sample is left to train on; {'; '.join(notes)}")
    counts = labels[keep].value_counts()
    small = counts[counts < MIN_CLASS]
    if len(small):
        named = some([f"{name} ({n})" for name, n in small.items()])
        keep = without(
            labels.isin(small.index).to_numpy(),
            f"their class has fewer than {MIN_CLASS}: {named}",
        )
    return keep, notes


def _missing(values: pd.Series) -> NDArray:
    text = values.astype(str).str.strip().str.lower()
    return (values.isna() | text.isin(_NO_LABEL)).to_numpy()


def _n_classes(y: NDArray) -> str:
    names = np.unique(y)
    return f"one class ({names[0]})" if len(names) else "no class"


def _common_cap(counts: NDArray, total: int) -> int:
    """The largest class size c with ``sum(min(counts, c)) <= total``."""
    low, high = 1, int(counts.max())
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(counts, middle).sum() <= total:
            low = middle
        else:
            high = middle - 1
    return low
