"""From profiles to what a training works on: usable samples and genes, classes, folds,
the first pass over them, and what is odd about them.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from optirank._util.matrices import GeneMoments, PerSample
from optirank._util.names import counted, some
from optirank._util.work import worker_count
from optirank.estimators.selection import N_FOLDS, make_folds
from optirank.io.data import (
    DataError,
    annotations_of,
    gene_names,
    notes_of,
    parts_of,
    source_of,
    text_column,
)
from optirank.io.homologs import in_names_of
from optirank.io.passes import run_pass, unique_genes
from optirank.panel.samples import DrawnSamples, keys_of_names
from optirank.verbs.gene_lists import included_genes, usable_genes
from optirank.verbs.sources import labelled_samples

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank._util.matrices import Accumulator
    from optirank.io.cluster import Cluster
    from optirank.verbs.options import TrainingOptions

MIN_CLASS = 3  # samples: two to learn from while one is held out
_FULL_SOURCE = 10  # samples of a class with which a source counts half

_NO_CLASS = (  # words that mark samples without a label
    *("unknown", "unassigned", "undefined", "undetermined", "unlabelled", "unlabeled"),
    *("unclassified", "na", "n/a", "nan", "none", "null", "other", "missing", "?", "-"),
)
_DONOR = re.compile(
    r"(^|[^a-z])(donor|patient|subject|individual|participant|person|animal)([^a-z]|$)"
)


def prepare(
    data: AnnData | Sequence[AnnData],
    options: TrainingOptions,
    *,
    cluster: Cluster | None = None,
) -> Prepared:
    """Check everything that can be wrong, leave out what cannot be used, and look at
    all samples once.

    Where samples turn out to have no values to rank, they are left out, and the others
    are looked at again: folds are of the samples that are left. ``cluster`` runs
    passes over the samples.
    """
    parts = parts_of(data)
    if options.query_genes is not None and len(parts) == 1:
        parts = [in_names_of(parts[0], options.query_genes)]
    parts = [unique_genes(part) for part in parts]
    prepared = Prepared(parts, options, cluster)
    empty = prepared.look()
    if len(empty):
        prepared = Prepared(parts, options, cluster, prepared.rows[empty])
        prepared.look()
    return prepared


class Prepared:
    """Everything that a training works on.

    Attributes
    ----------
    data, cluster : the profiles, and where passes over them run instead of here.
    n_threads : of what runs here.
    rows, samples : positions and names of the samples in use.
    genes : names of the genes in use, of the ``n_genes_of_file`` that there are.
    classes, codes : the classes, and that of each sample as a number.
    tree, terms : coarser labels above the classes, and terms of the Cell Ontology.
    sources : the source of each sample, where folds leave sources out.
    fold_of, n_folds : the fold that holds each sample out, -1 for none; their number.
    n_genes : of the panel; "auto" chooses by held-out accuracy.
    include, allowed : positions of the genes that must and that may be in the panel;
        None: all may.
    per_class : genes of largest weight that each class, of a tree each label, keeps.
    sums, kept, X : what the first pass gives: sums of the places of the genes, by class
        and fold; the positions of at most 500 samples per class, in an order that
        follows from the samples themselves; and these samples.
    standardised : whether the values were standardised per gene.
    notes : what was left out or decided.
    """

    def __init__(
        self,
        data: list[AnnData],
        options: TrainingOptions,
        cluster: Cluster | None = None,
        empty: Sequence[int] | NDArray = (),
    ) -> None:
        source = source_of(data)
        obs = annotations_of(data)
        self.data = data
        self.cluster = cluster
        self.n_threads = worker_count(options.n_jobs)
        self.notes = notes_of(data)  # every step adds its own
        labels, tree, terms = labelled_samples(
            obs, options, source, self.notes, several=len(data) > 1
        )
        batches = None
        if options.batch is not None:
            batches = text_column(obs, options.batch, source)
        names = gene_names(data)
        self.n_genes_of_file = len(names)
        self.genes = names[usable_genes(names, source, options, self.notes)]
        self.rows = _usable_samples(source, options, labels, batches, empty, self.notes)
        self.samples = obs.index.to_numpy(dtype=object)[self.rows]
        y = labels.to_numpy()[self.rows].astype(str)
        self.notes += label_notes(np.sort(y))
        if batches is None:
            self.notes += donor_notes(obs.iloc[self.rows], options.label[-1])
        self.classes, self.codes = np.unique(y, return_inverse=True)
        if len(self.classes) < 2:
            there = f"one class ({self.classes[0]})" if len(y) else "no class"
            raise DataError(
                f"{source}: column {options.label[-1]!r} has {there} of at least "
                f"{MIN_CLASS} usable samples: a classifier needs two classes"
            )
        self.tree = tree and tree.of_classes(self.classes)
        above = self.classes if self.tree is None else self.tree.labels
        self.terms = terms and terms.of_labels(above)
        if options.n_genes != "auto" and options.n_genes > len(self.genes):
            raise DataError(
                f"a panel of {options.n_genes} genes: {source} has {len(self.genes)} "
                "genes that can be used; ask for fewer"
            )
        self.n_genes = options.n_genes
        if options.n_genes == "auto" and options.gene_list is not None:
            self.n_genes = len(self.genes)
        self.include = included_genes(self.genes, source, options, self.notes)
        self.allowed: NDArray | None = None
        self.per_class = 0
        self.sources: NDArray | None = None
        if batches is not None:  # else folds follow from the samples, not read yet
            self.sources = batches.to_numpy()[self.rows].astype(str)
            self.fold_of = self._folds(options.batch, source)

    def _folds(self, batch: str | None, source: str) -> NDArray:
        """The fold of each sample, where folds leave sources out."""
        codes = self.codes
        sources = np.asarray(self.sources)
        if len(np.unique(sources)) < 2:
            raise DataError(
                f"{source}: column {batch!r} has the single value "
                f"{str(sources[0])!r}, so no source can be left out: leave the column "
                "out, or name another (batch=)"
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                folds = make_folds(codes, N_FOLDS, sources)
            except ValueError:
                folds = []
        self.notes += [str(warning.message) for warning in caught]
        learned = [(test, np.isin(codes[test], codes[train])) for train, test in folds]
        usable = [test for test, known in learned if known.any()]
        if not usable:
            error = DataError(
                f"{source}: no class is in two sources of column {batch!r}, so "
                "none that is learned from some can be tested on another: leave the "
                "column out, or name another (batch=)"
            )
            for note in self.notes:  # such as labels that look like one class
                error.add_note(note)
            raise error
        lost = np.unique(
            np.concatenate([codes[test][~known] for test, known in learned])
        )
        if len(lost):
            self.notes.append(
                "where its only source is left out a class cannot be learned, and its "
                f"samples there are not counted: {some(self.classes[lost])}"
            )
        fold_of = np.full(len(codes), -1)
        for k, test in enumerate(usable):
            fold_of[test] = k
        return fold_of

    def look(self) -> NDArray[np.intp]:
        """The first pass over all samples and genes, before anything is fitted.

        Gives the positions, among ``rows``, of samples without values to rank.
        """
        refusing = functools.partial(_are_empty, source=source_of(self.data))
        empty = PerSample(len(self.rows), refusing)
        moments = GeneMoments()
        has_sources = self.sources is not None
        looking = DrawnSamples(
            self.codes,
            keys_of_names(self.genes),
            len(self.classes),
            fold_of=self.fold_of if has_sources else None,
            n_folds=N_FOLDS,
            n_threads=self.n_threads,
        )
        self.run_pass([empty, moments, looking])
        self.sums, self.kept, self.X, self.fold_of, n_repeated = looking.result()
        self.n_folds = len(np.unique(self.fold_of[self.fold_of >= 0]))
        self.standardised = moments.result()
        if n_repeated:
            what = "equal samples are in one fold"
            if has_sources:
                what = (
                    "where they are in several sources, held-out figures are too high"
                )
            self.notes.append(
                f"{n_repeated} samples have the same order of genes as another sample, "
                f"and are probably copies: {what}"
            )
        return np.flatnonzero(empty.result())

    @property
    def weights(self) -> NDArray:
        """Weights with which, in every class, large sources count the same.

        A source in which a class is frequent would else be learned in place of the
        class.
        """
        if self.sources is None:
            return np.ones(len(self.codes))
        source_codes = np.unique(self.sources, return_inverse=True)[1]
        group = self.codes + len(self.classes) * source_codes
        n_groups = len(self.classes) * (int(source_codes.max()) + 1)
        sizes = np.bincount(group, minlength=n_groups)
        weights = 1.0 / (sizes + _FULL_SOURCE)
        of_sources = (sizes * weights).reshape(-1, len(self.classes))
        factors = np.bincount(self.codes) / of_sources.sum(axis=0)
        return weights[group] * factors[self.codes]

    def summary(self) -> str:
        """How much there is of everything, in a line."""
        return (
            f"{len(self.rows)} samples, {len(self.genes)} genes, "
            f"{len(self.classes)} classes, {self.n_folds} folds"
        )

    def run_pass(
        self, accumulators: Sequence[Accumulator], columns: NDArray | None = None
    ) -> None:
        """Feed accumulators with all samples in use, and some of the genes (all)."""
        genes = self.genes if columns is None else self.genes[columns]
        run_pass(self.data, accumulators, genes, rows=self.rows, cluster=self.cluster)


def _usable_samples(
    source: str,
    options: TrainingOptions,
    labels: pd.Series,
    sources: pd.Series | None,
    empty: Sequence[int] | NDArray,
    notes: list[str],
) -> NDArray:
    """Positions of the samples with a label, a source, values to rank and a
    large class.
    """
    if not len(labels):
        raise DataError(f"{source} holds no samples")
    asked = {f"no label in {options.label[-1]!r}": labels}
    if sources is not None:
        asked[f"no source in {options.batch!r}"] = sources
    reasons = {
        reason: np.asarray(values.isna() | (values.astype(str).str.strip() == ""))
        for reason, values in asked.items()
    }
    reasons["every gene has the same value"] = np.isin(np.arange(len(labels)), empty)
    kept = ~np.any([*reasons.values()], axis=0)
    names = labels.to_numpy(dtype=object).astype(str)
    classes, counts = np.unique(names[kept], return_counts=True)
    is_small = counts < MIN_CLASS
    if is_small.any():
        named = zip(classes[is_small], counts[is_small], strict=True)
        listed = some([f"{name} ({n_samples})" for name, n_samples in named])
        reason = f"their class has fewer than {MIN_CLASS}: {listed}"
        reasons[reason] = np.isin(names, classes[is_small])
    left = np.ones(len(labels), dtype=bool)
    left_out = []
    for reason, mask in reasons.items():
        n_samples = int((left & mask).sum())
        left &= ~mask
        if n_samples:
            what = counted(n_samples, "sample is", "samples are")
            left_out.append(f"{what} left out: {reason}")
    if not kept.any():
        raise DataError(
            f"{source}: no sample is left to train on; {'; '.join(left_out)}"
        )
    notes += left_out
    return np.flatnonzero(left)


def label_notes(labels: Iterable[object]) -> list[str]:
    """What is odd about class labels: words for "no label", and names that differ by a
    typo.

    Labels that differ only in case or in spaces, and words such as "Unknown" or "NA",
    are classes like any other to a classifier; mostly that is a mistake.
    """
    counts = Counter(str(label) for label in labels if isinstance(label, str))
    notes = [
        f"{counted(n, 'sample is', 'samples are')} labelled {name!r}: it is used as a "
        "class like any other; "
        "remove these samples, or leave their label empty, if they have no known class"
        for name, n in counts.items()
        if name.strip().lower() in _NO_CLASS
    ]
    alike: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        alike["".join(name.split()).casefold()].append(name)
    notes += [
        "the labels "
        f"{' and '.join(f'{name!r} ({counts[name]} samples)' for name in names)} "
        "differ only in case or spaces: they are different classes; rename one if "
        "they are the same"
        for names in alike.values()
        if len(names) > 1
    ]
    return notes


def donor_notes(obs: pd.DataFrame, label: str) -> list[str]:
    """Say that a column looks like that of donors with several samples each.

    Samples of one donor resemble each other: where they are on both sides of a fold,
    held-out samples are not independent.
    """
    for column in obs.columns:
        words = re.sub(r"([a-z])([A-Z])", r"\1_\2", str(column)).lower()
        if column == label or not _DONOR.search(words):
            continue
        values = obs[column].dropna()
        n_donors = values.nunique()
        if 2 <= n_donors <= len(values) / 2:
            return [
                f"column {str(column)!r} looks like that of donors ({n_donors} of "
                f"{len(values)} samples): samples of one donor resemble each other, "
                "and held-out figures are too high where donors are on both sides of "
                f"a fold; batch={str(column)!r} leaves donors out"
            ]
    return []


def _are_empty(block: Any, source: str) -> NDArray[np.bool_]:
    """Which samples of a block have the same value in every gene.

    Values that are missing, infinite or no numbers are refused.
    """
    values = block.data if sparse.issparse(block) else block
    if values.dtype.kind not in "buif":
        raise DataError(f"{source}: the matrix holds {values.dtype}, not numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        n_missing = int((~np.isfinite(values)).sum())
        what = counted(n_missing, "value is", "values are")
        raise DataError(
            f"{source}: {what} missing or infinite (NaN, inf): fill in what is "
            "missing, or leave these genes or samples out"
        )
    if sparse.issparse(block):
        return np.diff(block.indptr) == 0
    return block.min(axis=1) == block.max(axis=1)
