"""What a training works on: usable samples and genes, and what one pass over
them gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.numbers import (
    STANDARDISED,
    GeneMoments,
    PerSample,
    as_dense,
)
from optirank._util.words import counted, note, some, warn
from optirank.data.passes import run_pass
from optirank.data.profiles import (
    DataError,
    Profiles,
    annotations_of,
    source_of,
)
from optirank.estimators.selection import N_FOLDS
from optirank.panel.samples import DrawnSamples, keys_of_names
from optirank.verbs.gene_lists import (
    excluded_genes,
    find_genes,
    genes_of_items,
    refuse_missing,
    shared_genes,
)
from optirank.verbs.samples import labelled_samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.verbs.options import TrainingOptions


class TrainingSet:
    """Samples and genes, before anything is fitted.

    Attributes
    ----------
    data : the profiles.
    source : what they are called in messages.
    genes : names of the genes in use, of the ``n_genes_of_file`` that there are.
    samples : `LabelledSamples`, those in use.
    n_genes : of the panel; "auto" chooses by held-out accuracy.
    include, allowed : positions of the genes that must and that may be in the panel;
        None: all may.
    per_class : genes of largest weight that each class, of a tree each label, keeps.
    sums, kept, X, fold_of : what the first pass gives, see `DrawnSamples.result`.
    n_folds : how many folds there are.
    """

    n_genes: Any = "auto"
    include: NDArray[np.intp] = np.zeros(0, np.intp)
    allowed: NDArray[np.intp] | None = None
    per_class: int = 0

    def __init__(
        self, data: Profiles | Sequence[Profiles], options: TrainingOptions
    ) -> None:
        parts = [data] if isinstance(data, Profiles) else list(data)
        for part in parts:
            for text in part.notes:
                note(text)
        self.source = source_of(parts)
        self.n_genes_of_file = len(parts[0].genes)
        names = parts[0].genes.astype(str).tolist()
        usable = np.arange(len(names))
        if options.exclude:
            usable = np.flatnonzero(~excluded_genes(names, options.exclude))
        if len(usable) < 2:
            raise DataError(
                f"{self.source}: {len(usable)} of {len(names)} genes are left to "
                "choose from, and ranks need at least 2"
            )
        if options.query_genes is not None:
            left = [names[k] for k in usable]
            whose = "the data to be labelled have"
            shared = shared_genes(left, self.source, options.query_genes, whose)
            usable = usable[shared]
        self.data = [part.with_genes(usable) for part in parts]
        self.genes = self.data[0].genes
        obs = annotations_of(parts)
        empty: Sequence[int] | NDArray = ()
        while True:
            samples = labelled_samples(obs, options, self.source, empty)
            without_values = PerSample(_are_empty)
            moments = GeneMoments()
            drawn = DrawnSamples(
                samples.codes,
                keys_of_names(self.genes),
                len(samples.classes),
                fold_of=samples.fold_of,
                n_folds=N_FOLDS,
            )
            run_pass(self.data, [without_values, moments, drawn], rows=samples.rows)
            empty = samples.rows[without_values.result()]
            if not len(empty):
                break  # else once more: folds are of the samples that are left
        self.samples = samples
        self.sums, self.kept, self.X, self.fold_of, n_repeated = drawn.result()
        self.n_folds = len(np.unique(self.fold_of[self.fold_of >= 0]))
        if moments.result():
            warn(STANDARDISED)
        if n_repeated:
            what = "equal samples are in one fold"
            if samples.sources is not None:
                what = (
                    "where they are in several sources, held-out figures are too high"
                )
            note(
                f"{n_repeated} samples have the same order of genes as another sample, "
                f"and are probably copies: {what}"
            )
        note(
            f"{len(samples.rows)} samples, {len(self.genes)} genes, "
            f"{len(samples.classes)} classes, {self.n_folds} folds"
        )

    def choose_genes(self, options: TrainingOptions) -> None:
        """Set the size of the panel and which genes must and may be in it.

        A file of genes is the panel as it is. Where another number of genes is asked
        for, a smaller panel is chosen among them, and a larger one extends them.
        """
        self.n_genes = options.n_genes or "auto"
        if options.include:
            names = self.genes.astype(str).tolist()
            listed, named = genes_of_items(options.include)
            required, missing = find_genes(names, named)
            refuse_missing(missing, names, self.source)
            found, missing = find_genes(names, listed)
            if missing and len(found) < 2:
                refuse_missing(missing, names, self.source)
            if missing:
                note(
                    f"{len(missing)} of the {len(listed)} genes of the list are not in "
                    f"the data: {some(missing, 30)}"
                )
            self.include = np.union1d(found, required)
            if listed and self.n_genes == "auto":
                self.n_genes = len(self.include)
            elif listed and self.n_genes < len(self.include):
                self.include, self.allowed = required, self.include
        sizes = range(len(self.include), len(self.genes) + 1)
        if self.n_genes != "auto" and self.n_genes not in sizes:
            raise DataError(
                f"a panel of {self.n_genes} genes: {len(self.include)} must be in it, "
                f"and {self.source} has {len(self.genes)} that can be used; ask for "
                "another number (n_genes=)"
            )


def _are_empty(block: Any) -> NDArray[np.bool_]:
    """Which samples of a block have the same value in every gene.

    Values that are missing, infinite or no numbers are refused.
    """
    values = block.data if sparse.issparse(block) else block
    if values.dtype.kind not in "buif":
        raise ValueError(f"the matrix holds {values.dtype}, not numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        n_missing = int((~np.isfinite(values)).sum())
        raise ValueError(
            f"{counted(n_missing, 'value is', 'values are')} missing or infinite (NaN, "
            "inf): fill in what is missing, or leave these genes or samples out"
        )
    lowest, highest = (
        as_dense(ends) for ends in (block.min(axis=1), block.max(axis=1))
    )
    return np.ravel(lowest) == np.ravel(highest)
