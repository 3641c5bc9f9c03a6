"""One pass over the samples of a query, with the panel's genes and those that check it.

Scores and what else there is to know of the samples are accumulators; `Query` has their
results. Further genes (`optirank.model.likeness`) check the labels and have no part in
them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optirank._util.matrices import GeneMoments, PerSample, as_dense
from optirank.io.data import block_rows, gene_names
from optirank.io.passes import run_pass
from optirank.model.likeness import ValueCounter, ValueShares, looks_inverted
from optirank.panel.further import (
    FEWEST_GENES,
    LabelMeans,
    RanksByLabel,
    agreement_of,
    every_so_many,
)
from optirank.ranks.scoring import best_class
from optirank.workflow.checks import checksums, whole_checksum
from optirank.workflow.trust import Trust

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank._util.matrices import Accumulator, Progress
    from optirank.io.cluster import Cluster
    from optirank.model import Predictor

_BLOCK_SAMPLES = 4096  # read together: more save no time
_FEWEST_TASKS = 32  # on a cluster: larger tasks cost less, fewer leave workers idle
_MOST_TOGETHER = 4  # blocks of a task: some tenths of a second


class _Likeness:
    """Accumulates the likeness of every so many-th sample to the training data."""

    def __init__(self, predictor: Predictor, every: int) -> None:
        self._predictor = predictor
        self._every = every
        self._parts: list[NDArray] = []

    def add(self, block: NDArray, rows: slice) -> None:
        """Compare the samples of a block whose turn it is."""
        first = -rows.start % self._every
        chosen = block[first :: self._every]
        if len(chosen):
            labels = best_class(self._predictor.scores(chosen))
            likeness = self._predictor.likeness(chosen, labels)
            self._parts = [*self._parts, likeness]

    def merge(self, other: _Likeness) -> None:
        """Take that of the samples that follow."""
        self._parts = self._parts + other._parts

    def result(self) -> NDArray:
        """The likeness of the samples that were compared, in order."""
        return np.concatenate([np.zeros(0), *self._parts])


class Query:
    """What one pass over a query's samples gives.

    Attributes
    ----------
    adata : the query, whose genes have the model's names.
    predictor : the model, bound to these genes.
    scores : of all samples.
    values : shares of zeros and negative values.
    genes_apart : of each sample, the genes of the panel outside its largest tie.
    likeness : of the samples at ``looked_at``.
    standardised : whether the values were standardised per gene.
    trust : what checks the labels as a whole.
    alarms : what says that the labels may be wrong as a whole.
    inverted : whether the genes seem to be in the opposite order.
    checksum : of the names and values that were read.
    """

    def __init__(
        self,
        adata: AnnData,
        predictor: Predictor,
        *,
        all_likeness: bool = False,
        progress: Progress | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        n_samples = adata.n_obs
        self.adata = adata
        self.predictor = predictor
        every = 1 if all_likeness else every_so_many(n_samples)
        self.looked_at = np.arange(0, n_samples, every)
        # All that there is to know of the samples: a further accumulator goes here
        narrowed = predictor.narrowed()
        looks: dict[str, Accumulator] = {
            "scores": PerSample(n_samples, narrowed.scores),
            "genes_apart": PerSample(n_samples, genes_apart),
            "checksums": PerSample(n_samples, checksums),
            "values": ValueCounter(),
            "moments": GeneMoments(),
        }
        panel = predictor.panel
        likeness = predictor.likeness_score if all_likeness else panel.likeness
        if likeness is not None:
            looks["likeness"] = _Likeness(narrowed, every)
        columns, means = _further(adata, predictor)
        read = predictor.columns
        dense: list[int] = []
        if len(columns):
            read = np.union1d(read, columns)  # rising: CSR rows stay sorted
            places = np.searchsorted(read, predictor.columns)
            dense = places.tolist()
            labelling = replace(predictor, columns=places, n_columns=len(read))
            looks["ranks"] = RanksByLabel(
                lambda block, _: best_class(labelling.scores(block)),
                len(predictor.model.classes),
                np.searchsorted(read, columns),
                every_so_many(n_samples),
            )
        size = min(_BLOCK_SAMPLES, block_rows(len(read)))
        n_tasks = -(-n_samples // size) // _FEWEST_TASKS
        run_pass(
            adata,
            list(looks.values()),
            gene_names(adata)[read],
            size=size,
            together=int(np.clip(n_tasks, 1, _MOST_TOGETHER)),
            as_dense=True,  # once: a block of a panel is small
            dense=dense,
            cluster=cluster,
            progress=progress,
        )
        found = {name: look.result() for name, look in looks.items()}
        self.scores: NDArray = found["scores"]
        self.genes_apart: NDArray = found["genes_apart"]
        self.likeness: NDArray = found.get("likeness", np.zeros(0))
        self.values: ValueShares = found["values"]
        self.standardised: bool = found["moments"]
        n_classes = len(predictor.model.classes)
        none = LabelMeans(np.zeros(n_classes), np.zeros((n_classes, 0)))
        ranks: LabelMeans = found.get("ranks", none)
        self.trust = self._trust(means, ranks)
        self.alarms = [*predictor.alarms(), *self.trust.alarms()]
        self.inverted = _is_inverted(means, ranks)
        samples = np.array(adata.obs_names)
        self.checksum = whole_checksum(
            found["checksums"], predictor.match.genes, samples
        )

    @property
    def labels_looked_at(self) -> NDArray[np.intp]:
        """The labels, as positions, of the samples whose likeness is known."""
        return best_class(self.scores[self.looked_at])

    def _trust(self, means: NDArray, ranks: LabelMeans) -> Trust:
        """What the labels are checked by, of the mean ranks of further genes."""
        model = self.predictor.model
        n_samples = self.adata.n_obs
        compared = None
        if model.further is not None:
            compared = agreement_of(means, ranks)
        known = self.predictor.panel.likeness
        relative = None
        if known is not None:
            relative = known.relative(self.likeness, self.labels_looked_at)
        missing = 1.0 - float(self.predictor.match.present.mean())
        return Trust(model.classes.tolist(), n_samples, compared, relative, missing)


def _further(adata: AnnData, predictor: Predictor) -> tuple[NDArray, NDArray]:
    """Positions of the genes that check the labels, and their mean ranks by class."""
    further = predictor.model.further
    if further is None:
        return np.zeros(0, np.intp), np.zeros((0, 0))
    used = predictor.panel.genes.tolist()
    columns, means = further.found_among(gene_names(adata).tolist(), used)
    kept = ~np.isin(columns, predictor.columns)
    return columns[kept], means[:, kept]


def _is_inverted(means: NDArray, ranks: LabelMeans) -> bool:
    """Whether the genes of the samples are in the opposite order of every class's."""
    if means.shape[1] < FEWEST_GENES:
        return False
    shares = ranks.counts / max(1.0, ranks.counts.sum())
    return looks_inverted(shares @ ranks.means, means)


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
