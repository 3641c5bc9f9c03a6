"""One pass over the samples of a query: scores, ties, likeness, kind of values, checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.arrays import as_dense
from optirank._util.scales import GeneMoments
from optirank.io.data import DataError, block_rows
from optirank.model.likeness import ALARM_SHIFT
from optirank.model.values import ValueCounter
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.io.data import Profiles
    from optirank.model import Predictor

Progress = Callable[[int, int], None]

_BLOCK_SAMPLES = 4096  # read together: more save no time
_LIKENESS_SAMPLES = 2000  # whose likeness tells the shift of a query


class Query:
    """What one pass over a query's samples gives, with the panel's genes alone.

    Parameters
    ----------
    profiles : the samples.
    predictor : the model made ready for their genes.
    all_likenesses : whether to compute the likeness of every sample, not only of some.
    progress : called with the number of samples that are done, and of all.

    Attributes
    ----------
    scores : of all samples.
    values : counts of zeros and negative values.
    moments : means and variances of the panel's genes.
    tied_share : of each sample, the share of the panel's genes tied with another.
    likeness : of the samples at ``looked_at``.
    checksum : of the names and values that were read.
    """

    def __init__(
        self,
        profiles: Profiles,
        predictor: Predictor,
        *,
        all_likenesses: bool = False,
        progress: Progress | None = None,
    ) -> None:
        n_samples = profiles.n_samples
        self.profiles = profiles
        self.predictor = predictor
        self.values = ValueCounter()
        self.moments = GeneMoments()
        self.tied_share = np.zeros(n_samples)
        step = 1 if all_likenesses else -(-n_samples // _LIKENESS_SAMPLES)
        self.looked_at = np.arange(0, n_samples, step)
        self.likeness = np.zeros(len(self.looked_at))
        digest = self._digest_of_names()
        parts = []
        for rows, X in self._blocks():
            try:
                parts.append(self._read(rows, X))
            except ValueError as error:
                place = f"{profiles.source}, samples {rows.start + 1} to {rows.stop}"
                raise DataError(f"{place}: {error}") from None
            digest.update(as_dense(X, "<f4").data)
            if progress is not None:
                progress(rows.stop, n_samples)
        self.scores = np.concatenate(parts)
        self.checksum: str = digest.hexdigest()

    def _digest_of_names(self) -> Any:
        names = [*self.predictor.match.genes, *map(str, self.profiles.sample_names)]
        content = "\0".join(names).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        size = min(_BLOCK_SAMPLES, block_rows(len(self.profiles.gene_names)))
        start = 0
        for block in self.profiles.blocks(self.predictor.columns, size):
            rows = slice(start, start + block.n_samples)
            yield rows, block.X
            start = rows.stop

    def _read(self, rows: slice, X: Any) -> NDArray[np.float64]:
        """Scores of a block; what else there is to know is kept."""
        narrow = self.predictor.narrowed()
        scores = narrow.scores(X)
        self.values.add(X)
        self.moments.add(X)
        self.tied_share[rows] = tied_shares(X)
        first, last = np.searchsorted(self.looked_at, [rows.start, rows.stop])
        if self.predictor.panel.likeness is not None and first < last:
            wanted = self.looked_at[first:last] - rows.start
            labels = best_class(scores[wanted])
            self.likeness[first:last] = narrow.likeness(X[wanted], labels)
        return scores

    @property
    def labels_looked_at(self) -> NDArray[np.intp]:
        """The labels, as positions, of the samples whose likeness is known."""
        return best_class(self.scores[self.looked_at])

    @property
    def shift(self) -> float:
        """By how much the samples look less like the training data; 0 if unknown."""
        likeness = self.predictor.panel.likeness
        if likeness is None:
            return 0.0
        return likeness.shift(self.likeness, self.labels_looked_at)

    def alarms(self) -> list[str]:
        """What says that the labels may be wrong as a whole."""
        if self.shift <= ALARM_SHIFT:
            return []
        return [
            "these samples do not look like the training data (wrong tissue, wrong "
            "species, scrambled genes, or scaled values): their labels may all be wrong"
        ]


class WholeQuery:
    """The samples of a query with all genes, as learning from the query reads them."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles
        self.shape = (profiles.n_samples, len(profiles.gene_names))

    def blocks(self, columns: NDArray | None = None) -> Iterator[Any]:
        """All samples in order, with some genes (all)."""
        for block in self._profiles.blocks(columns, block_rows(self.shape[1])):
            yield block.X.tocsr() if hasattr(block.X, "tocsr") else block.X


def tied_shares(X: Any) -> NDArray[np.float64]:
    """Of each sample, the share of its values that another of its values equals.

    It is 1 only where all values are equal.
    """
    values = as_dense(X)
    if values.shape[1] < 2:
        return np.ones(len(values))
    ordered = np.sort(values, axis=1)
    equal = ordered[:, 1:] == ordered[:, :-1]
    tied = np.zeros(values.shape, dtype=bool)
    tied[:, 1:] |= equal
    tied[:, :-1] |= equal
    all_equal = equal.all(axis=1)
    return np.where(all_equal, 1.0, np.minimum(tied.mean(axis=1), 1.0 - 1e-9))
