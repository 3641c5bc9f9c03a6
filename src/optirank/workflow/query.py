"""One pass over the samples of a query, with the panel's genes alone, block by block.

Each block gives scores and what else there is to know of its samples (`LookAtBlock`),
wherever it is read: in this process, or by a worker of a cluster. `Query` puts the
blocks together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.arrays import as_dense
from optirank._util.scales import GeneMoments
from optirank.io.blocks import BlockJob, Engine, run_blocks
from optirank.io.data import block_rows
from optirank.model.likeness import ALARM_SHIFT
from optirank.model.values import ValueCounter, ValueShares
from optirank.ranks.scoring import best_class

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.io.data import Profiles
    from optirank.model import Predictor

Progress = Callable[[int, int], None]
_BLOCK_SAMPLES = 4096  # read together: more save no time
_LIKENESS_SAMPLES = 2000  # whose likeness tells the shift of a query
_FEWEST_TASKS = 32  # on a cluster: larger tasks cost less, fewer leave workers idle
_MOST_TOGETHER = 4  # blocks of a task: some tenths of a second
_NAMES = 100_000  # names of samples that are joined at a time
_SUMMED = ("counts", "scale", "gene_sums", "gene_squares", "lowest_and_count")


@dataclass(frozen=True)
class LookAtBlock:
    """What is to be known of a block of samples, as arrays by name.

    Attributes
    ----------
    predictor : for data of which only the panel's genes were read.
    likeness_every : of so many samples one is compared with the training data; 0: none.
    """

    predictor: Predictor
    likeness_every: int

    def __call__(self, X: Any, rows: slice) -> dict[str, NDArray]:
        """Scores, genes that are not tied, likeness of some, counts, sums and
        checksums.
        """
        values = as_dense(X)  # once: a block of a panel is small
        scores = self.predictor.scores(values)
        counter = ValueCounter()
        counter.add(values)
        moments = GeneMoments()
        moments.add(values)
        counts = [counter.n_values, counter.n_zero, counter.n_negative]
        return {
            "scores": scores,
            "genes_apart": genes_apart(values),
            "likeness": self._likeness(values, rows, scores),
            "counts": np.array(counts),
            "scale": np.array(counter.scale or ""),
            "checksum": row_checksums(values),
            **moments.sums(),
        }

    def _likeness(
        self, values: NDArray, rows: slice, scores: NDArray
    ) -> NDArray[np.float64]:
        if not self.likeness_every:
            return np.zeros(0)
        first = -rows.start % self.likeness_every
        wanted = np.arange(first, rows.stop - rows.start, self.likeness_every)
        if not len(wanted):
            return np.zeros(0)
        return self.predictor.likeness(values[wanted], best_class(scores[wanted]))


class Query:
    """What one pass over a query's samples gives.

    Attributes
    ----------
    scores : of all samples.
    values : shares of zeros and negative values.
    genes_apart : of each sample, the genes of the panel outside its largest tie.
    likeness : of the samples at ``looked_at``.
    standardised : whether the values were standardised per gene.
    checksum : of the names and values that were read.
    """

    def __init__(
        self,
        profiles: Profiles,
        predictor: Predictor,
        *,
        all_likeness: bool = False,
        progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> None:
        n_samples = profiles.n_samples
        self.profiles = profiles
        self.predictor = predictor
        step = 1 if all_likeness else -(-n_samples // _LIKENESS_SAMPLES)
        if predictor.panel.likeness is None:
            if all_likeness:
                _ = predictor.likeness_score  # raises
            step = 0
        self.looked_at = np.arange(0, n_samples, step or n_samples)
        digest = self._digest_of_names()
        summed = []
        likeness = []
        for rows, block in run_blocks(self._job(step), engine):
            if rows.start == 0:
                n_rows = block["scores"].shape[1:]
                self.scores = np.empty((n_samples, *n_rows))
                self.genes_apart = np.empty(n_samples, block["genes_apart"].dtype)
            self.scores[rows] = block["scores"]
            self.genes_apart[rows] = block["genes_apart"]
            likeness.append(block["likeness"])
            summed.append({name: block[name] for name in _SUMMED})
            digest.update(block["checksum"].astype("<u8").data)
            if progress is not None:
                progress(rows.stop, n_samples)
        self.likeness = np.concatenate(likeness)
        self.values = _shares(summed)
        self.standardised = GeneMoments.of_sums(summed).standardised()
        self.checksum = digest.hexdigest()

    def _job(self, likeness_every: int) -> BlockJob:
        columns = self.predictor.columns
        size = min(_BLOCK_SAMPLES, block_rows(len(columns)))
        function = LookAtBlock(self.predictor.narrowed(), likeness_every)
        n_blocks = -(-self.profiles.n_samples // size)
        together = int(np.clip(n_blocks // _FEWEST_TASKS, 1, _MOST_TOGETHER))
        return BlockJob(function, self.profiles, columns, size, together=together)

    def _digest_of_names(self) -> Any:
        """What the checksum begins with: the names of genes and samples."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(_joined(self.predictor.match.genes))
        names = self.profiles.sample_names
        for start in range(0, len(names), _NAMES):
            digest.update(b"\0" + _joined(names[start : start + _NAMES]))
        return digest

    @property
    def labels_looked_at(self) -> NDArray[np.intp]:
        """The labels, as positions, of the samples whose likeness is known."""
        return best_class(self.scores[self.looked_at])

    @cached_property
    def shift(self) -> float:
        """By how much the samples look less like the training data; 0 if unknown."""
        likeness = self.predictor.panel.likeness
        if likeness is None:
            return 0.0
        return likeness.shift(self.likeness, self.labels_looked_at)

    def alarms(self) -> list[str]:
        """What says that the labels may be wrong as a whole."""
        alarms = self.predictor.alarms()
        if self.shift > ALARM_SHIFT:
            alarms.append(
                "these samples do not look like the training data (wrong tissue, wrong "
                "species, scrambled genes, or scaled values): their labels may all be "
                "wrong"
            )
        return alarms


def _joined(names: Iterable[Any]) -> bytes:
    return "\0".join(map(str, names)).encode("utf-8", "surrogatepass")


def _shares(blocks: list[dict[str, NDArray]]) -> ValueShares:
    """The shares of zeros and negative values over all blocks."""
    n_values, n_zero, n_negative = np.sum([block["counts"] for block in blocks], axis=0)
    scales = [str(block["scale"]) for block in blocks]
    scale = next((name for name in scales if name), None)
    counter = ValueCounter(int(n_values), int(n_zero), int(n_negative), scale)
    return counter.shares()


def genes_apart(X: Any) -> NDArray[np.intp]:
    """Of each sample, the number of its values outside its largest group of equal ones.

    In single cells that group is mostly the zeros. A sample in which all values are
    equal has 0, and its genes have no order.
    """
    values = as_dense(X)
    ordered = np.sort(values, axis=1)
    n_samples, n_genes = ordered.shape
    begins = np.ones(ordered.shape, dtype=bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(begins)  # groups end where the next begins, in every row
    sizes = np.diff(np.append(starts, ordered.size))
    largest = np.zeros(n_samples, np.intp)
    np.maximum.at(largest, starts // max(1, n_genes), sizes)
    return n_genes - largest


def row_checksums(X: Any) -> NDArray[np.uint64]:
    """A checksum of the values of each sample, whether they are sparse or not.

    It is ``sum over j of a_j x_j`` modulo 2^64, with x_j the bits of a value in single
    precision and a_j random odd numbers, always the same ones.
    """
    bits = as_dense(X, "<f4").view("<u4").astype(np.uint64)
    random = np.random.default_rng(0).integers(0, 1 << 63, bits.shape[1], np.uint64)
    return bits @ (2 * random + np.uint64(1))
